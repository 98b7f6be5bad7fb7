"""The facts about a stream that plans depend on."""

from __future__ import annotations

from collections.abc import Mapping

from levada.core.frozen import frozen

MAX_MEMBERS = 20
"""The most names of members or predicates of a stream that explain columns without values."""


@frozen
class StreamFacts:
    """The facts of a stream that the plan needs: ``schema`` of a tuple stream (None: triples), the
    ``unique`` and ``closed`` promises.

    ``time``: the schema's column that is the unchanged event time, if any. ``sign``: the column of
    a relation's signs.
    """

    schema: Mapping[str, str] | None = None
    unique: bool = False
    time: str | None = None
    closed: bool = False
    sign: str = ""

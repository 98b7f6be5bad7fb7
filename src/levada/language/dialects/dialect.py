"""A dialect as a value: its clauses beside SPARQL's grammar, and the differences in meaning.

Invariant: these flags define a dialect completely. The builder applies them, and no later stage
uses them.
"""

from __future__ import annotations

from typing import Literal

from levada.core.frozen import frozen


@frozen
class Dialect:
    """A dialect: its ``name`` for ``dialect=``, its ``title``, and the ``endings`` of its files.

    ``grammar``: files of clauses beside the common ones. ``output``: the default of REGISTER;
    CQL's plain Select is a RELATION, of which the changes are written.
    ``report``: the default report policy of windows with a STEP; None is on close. ``merged``: FROM
    STREAM adds to the default graph (otherwise STREAM patterns name the stream). ``named_beside``:
    FROM NAMED alone leaves the default graph as it is (in SPARQL it empties it).
    ``tumbling_range``: RANGE without STEP tumbles. ``tumbling_triples``: TRIPLES n without STEP
    tumbles.
    """

    name: str
    title: str
    grammar: tuple[str, ...]
    endings: tuple[str, ...] = ()
    output: Literal["RSTREAM", "ISTREAM", "RELATION"] = "RSTREAM"
    report: Literal["change"] | None = None
    merged: bool = False
    named_beside: bool = False
    tumbling_range: bool = False
    tumbling_triples: bool = False

"""A dialect as a value: which clauses it adds to SPARQL's grammar, and what it means where others
mean something else.

Invariant: all that sets a dialect apart is in these flags; the builder applies them, and nothing
behind the tree knows of them.
"""

from __future__ import annotations

from typing import Literal

from levada.core.frozen import frozen


@frozen
class Dialect:
    """``name`` as ``dialect=`` says it, ``title`` as people do, ``endings`` of its files.

    ``grammar``: files of clauses beside the common ones. ``output``: what REGISTER leaves open.
    ``report``: when windows with a STEP report; None is on close. ``merged``: FROM STREAM makes a
    part of the default graph (else STREAM patterns name it).
    ``named_beside``: FROM NAMED alone leaves the default graph as it is (in SPARQL it empties it).
    ``tumbling_range``: RANGE without STEP tumbles. ``tumbling_triples``: TRIPLES n without STEP
    tumbles.
    """

    name: str
    title: str
    grammar: tuple[str, ...]
    endings: tuple[str, ...] = ()
    output: Literal["RSTREAM", "ISTREAM"] = "RSTREAM"
    report: Literal["change"] | None = None
    merged: bool = False
    named_beside: bool = False
    tumbling_range: bool = False
    tumbling_triples: bool = False

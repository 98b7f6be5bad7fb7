"""The steps of leaf nodes: they turn triples, tuples and constants into rows.

``steps`` has the steps above.
"""

from __future__ import annotations

from typing import NamedTuple

from levada.core.frozen import frozen
from levada.core.rdf_terms import Term
from levada.plan.execution.step_traits import Traits


@frozen
class Match(Traits):
    """A triple pattern: the slot of each position s, p, o (-1: a constant of the member).

    ``kept``: the slots that are read, in order. ``lifted``: positions whose terms are those that
    some pick above wants (``Pick``).
    """

    positions: tuple[int, int, int]
    kept: tuple[int, ...]
    static: bool
    lifted: tuple[int, ...] = ()


class Form(NamedTuple):
    """The way in which an alternative of a pattern becomes a row.

    ``sources``: for each slot the position s, p, o of the explicit triple (0, 1, 2), or -1: a term
    of the alternative. ``repeats``: the positions with the same variable (1 s = o, 2 s = p, 4 p =
    o). ``resource``: the object is not a literal.
    """

    sources: tuple[int, ...]
    repeats: int
    resource: bool


class EntailmentAlternative(NamedTuple):
    """An alternative of a member: the number of its form, the terms of its positions (None: a
    variable), and the terms of its slots.
    """

    form: int
    pattern: tuple[Term | None, Term | None, Term | None]
    terms: tuple[Term, ...]


@frozen
class Entailed(Traits):
    """A ``Match`` over entailed triples, by the members' alternatives.

    ``spread`` slots: a value among the terms ``alike`` is replaced by each of them.
    """

    positions: tuple[int, int, int]
    forms: tuple[Form, ...]
    kept: tuple[int, ...]
    static: bool
    spread: tuple[int, ...] = ()
    alike: tuple[tuple[Term, ...], ...] = ()


@frozen
class Star(Traits):
    """Patterns of one subject within an element: the slots of each pattern's positions.

    ``kept``: as in ``Match``.
    """

    legs: tuple[tuple[int, int, int], ...]
    kept: tuple[int, ...]

    def places(self) -> dict[int, list[tuple[int, int]]]:
        """Returns the (pattern, position) places of each slot, at most one for each pattern."""
        places: dict[int, list[tuple[int, int]]] = {}
        for leg, positions in enumerate(self.legs):
            for slot in dict.fromkeys(positions):
                if slot >= 0:
                    places.setdefault(slot, []).append((leg, positions.index(slot)))
        return places

    def shared_slots(self) -> list[tuple[tuple[int, int], list[tuple[int, int]]]]:
        """Returns the first place and the other places of each slot that several patterns share.

        The common subject is left out.
        """
        return [
            (places[0], places[1:])
            for places in self.places().values()
            if len(places) > 1 and any(position for _, position in places)
        ]


@frozen
class Scan(Traits):
    """The column and the type of each slot; ``sign``: the column of weights, if there is one."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    sign: str = ""


@frozen
class Constant(Traits):
    """Rows of the member's terms; ``width``: their number of columns."""

    width: int


Leaf = Match | Entailed | Star | Scan | Constant

"""Shapes of the first nodes: what becomes a row where triples, tuples and constants come in
(``shapes`` has those above).
"""

from __future__ import annotations

from typing import NamedTuple

from levada.core.frozen import frozen
from levada.core.rdf_terms import Term
from levada.plan.execution.step_traits import Traits


@frozen
class Match(Traits):
    """Slot of each position s, p, o (-1: a constant of the member); ``kept`` are those that are
    read, in order. ``lifted``: the positions that are the terms that some pick above wants
    (``Pick``).
    """

    positions: tuple[int, int, int]
    kept: tuple[int, ...]
    static: bool
    lifted: tuple[int, ...] = ()


class Form(NamedTuple):
    """How an alternative of a pattern becomes a row.

    ``sources``: for each slot the position s, p, o of the explicit triple that it is (0, 1, 2), or
    -1: a term of the alternative.
    ``repeats``: which positions hold the same variable (1 s = o, 2 s = p, 4 p = o). ``resource``:
    the object is no literal.
    """

    sources: tuple[int, ...]
    repeats: int
    resource: bool


class EntailmentAlternative(NamedTuple):
    """An alternative of a member: the number of its form, the terms of its positions (None: a
    variable), those of its slots.
    """

    form: int
    pattern: tuple[Term | None, Term | None, Term | None]
    terms: tuple[Term, ...]


@frozen
class Entailed(Traits):
    """As ``Match``, by the members' ways. ``spread`` slots: a value that is one of terms ``alike``
    stands for each of them.
    """

    positions: tuple[int, int, int]
    forms: tuple[Form, ...]
    kept: tuple[int, ...]
    static: bool
    spread: tuple[int, ...] = ()
    alike: tuple[tuple[Term, ...], ...] = ()


@frozen
class Star(Traits):
    """Patterns of one subject inside an element: slots of each leg's positions, and ``kept``, as in
    ``Match``.
    """

    legs: tuple[tuple[int, int, int], ...]
    kept: tuple[int, ...]

    def places(self) -> dict[int, list[tuple[int, int]]]:
        """Where each slot stands: (leg, position), a leg once."""
        places: dict[int, list[tuple[int, int]]] = {}
        for leg, positions in enumerate(self.legs):
            for slot in dict.fromkeys(positions):
                if slot >= 0:
                    places.setdefault(slot, []).append((leg, positions.index(slot)))
        return places

    def shared_slots(self) -> list[tuple[tuple[int, int], list[tuple[int, int]]]]:
        """For each slot of several legs, but for the common subject: its first place, and the
        others.
        """
        return [
            (places[0], places[1:])
            for places in self.places().values()
            if len(places) > 1 and any(position for _, position in places)
        ]


@frozen
class Scan(Traits):
    """The column of each slot, and its type; ``sign``: that of weights, if rows have any."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    sign: str = ""


@frozen
class Constant(Traits):
    """Rows of the member's terms, ``width`` wide."""

    width: int


Leaf = Match | Entailed | Star | Scan | Constant

"""Layouts define the columns of a frame: only the facets and times that consumers need.

A layout is a tuple of slots (each a set of facets), a tuple of windows (each with or without ``hi``
and ``prev``), whether rows have weights, and whether they are report rows (a report time ``r`` in
place of event times).
"""

from __future__ import annotations

from enum import IntFlag
from functools import lru_cache
from typing import NamedTuple

from levada.core import column_names as col
from levada.core.rdf_terms import Kind


class Facet(IntFlag):
    """The facets of a slot: identity (x, y), value facets (k, d, m, c), text (in the Terms beside
    the frame).

    INT and DBL are the value facets of tuple columns whose type implies the rest: (k, m) and (k,
    d).
    """

    ID = 1
    NUM = 2
    TEXT = 4
    INT = 8
    DBL = 16

    def __contains__(self, other: Facet) -> bool:
        return other._value_ & self._value_ == other._value_

    def __or__(self, other: int) -> Facet:
        """Returns the union, cached: a plan needs thousands, and an enum would create each anew."""
        value = self._value_ | int(other)
        union = _SETS.get(value)
        if union is None:
            union = _SETS[value] = Facet(value)
        return union


_SETS: dict[int, Facet] = {}
NOTHING = Facet(0)


class Span(NamedTuple):
    """The event times of one window in a row: ``lo`` always, ``hi`` if rows join several triples,
    ``prev`` for sets.
    """

    hi: bool
    prev: bool


class Layout(NamedTuple):
    """The columns of a frame. ``windows`` is empty for rows of static data and for report rows."""

    slots: tuple[Facet, ...]
    windows: tuple[Span, ...] = ()
    weighted: bool = False
    report: bool = False

    def columns(self) -> list[str]:
        """Returns the column names in order, ``op`` first."""
        names = ["op"]
        for i, facets in enumerate(self.slots):
            names += slot_columns(i, facets)
        for j, span in enumerate(self.windows):
            names += [col.least(j)] + [col.greatest(j)] * span.hi + [col.earlier(j)] * span.prev
        ends = [col.UNTIL] * (self.weighted and bool(self.windows))
        return names + ["w"] * self.weighted + ends + ["r"] * self.report

    @property
    def width(self) -> int:
        """The bytes of a row in its columns, with the group if it has one, without texts."""
        return 2 + sum(int(DTYPES.get(name[0], "i8")[1]) for name in self.columns())

    def width_of(self, slot: int) -> int:
        """Returns the bytes of a row in the columns of a slot."""
        return sum(int(DTYPES[n[0]][1]) for n in slot_columns(slot, self.slots[slot]))

    def show(self) -> str:
        """Returns a short text for explain: ``ID+TEXT ID | lo hi prev``."""
        slots = " ".join("+".join(f.name or "" for f in Facet if f in s) or "-" for s in self.slots)
        times = " ".join("lo" + "/hi" * w.hi + "/prev" * w.prev for w in self.windows)
        return (
            f"[{slots}]"
            + (f" {times}" if times else "")
            + " w" * self.weighted
            + " r" * self.report
        )


def slot_columns(i: int, facets: Facet) -> tuple[str, ...]:
    """Returns the columns of slot ``i`` with these facets (texts are not columns)."""
    return _slot_columns(i, facets._value_)


@lru_cache(maxsize=4096)
def _slot_columns(i: int, value: int) -> tuple[str, ...]:
    facets = Facet(value)
    names = [col.x(i), col.y(i)] if Facet.ID in facets or Facet.TEXT in facets else []
    if Facet.NUM in facets:
        names += [col.kind(i), col.double(i), col.mantissa(i), col.scale(i)]
    else:
        names += [col.kind(i), col.mantissa(i)] if Facet.INT in facets else []
        names += [col.kind(i), col.double(i)] if Facet.DBL in facets else []
    return tuple(names)


DTYPES = {"x": "u8", "y": "u8", "k": "u1", "d": "f8", "m": "i8", "c": "u1"}
UNBOUND = int(Kind.UNBOUND)

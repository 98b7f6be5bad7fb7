"""Members by columns that grow, and are found again: what the catalog has of a node's members.

Columns are as in a sealed table (``table``); where members come with other values a column becomes
a list. A member is found by its hash, in a table of 4 bytes a slot beside the hashes: numbers are
never used again (``plan/topology/members``), so a slot is never emptied. Cost: 8 bytes of hash,
some ten of slots, 4 for each input, 8 for each field in which members differ. A node of a few
members, as most are where few queries run, has these and no columns until it is sealed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from levada.core.array_types import Bools
from levada.core.size_thresholds import register
from levada.plan.execution.member_table import MemberTable, fields_of, member_of, table_of
from levada.plan.execution.shapes import Member

_START = 8  # slots
# members that are kept as they are: to plan one query takes some 4 % less time so
_FEW = register(f"{__name__}._FEW", 16)


class MemberColumns:
    """Members by number. ``alive``: a byte for each, which are there."""

    __slots__ = ("_columns", "_few", "_hashes", "_inputs", "_slots", "_splits", "_width", "alive")

    def __init__(self) -> None:
        self.alive = bytearray()
        self._hashes, self._slots = array("q"), array("i", bytes(4 * _START))
        self._inputs: list[array[int]] = []
        self._columns: list[_Column] = []
        self._width, self._splits = -1, True  # of constants, which have a column for each place
        self._few: list[Member] | None = []  # None: there are columns

    def __len__(self) -> int:
        return len(self.alive)

    def __getitem__(self, at: int) -> Member:
        if self._few is not None:
            return self._few[at]
        inputs = tuple([column[at] for column in self._inputs])
        values = [column[at] for column in self._columns]
        if self._splits:
            return member_of(inputs, tuple(values[: self._width]), values[self._width :])
        return member_of(inputs, values[0], values[1:])

    def find(self, member: Member) -> int:
        """The number of a member that is there; -1: it is not."""
        code, mask = hash(member), len(self._slots) - 1
        slot = code & mask
        while at := self._slots[slot]:
            at -= 1
            if self._hashes[at] == code and self.alive[at] and self[at] == member:
                return at
            slot = (slot + 1) & mask
        return -1

    def add(self, member: Member) -> int:
        """The number of a member that is new."""
        at = len(self.alive)
        if at == _FEW:
            self._open_columns()
        if self._few is None:
            self._append(member, at)
        else:
            self._few.append(member)
        self.alive.append(1)
        self._hashes.append(hash(member))
        if 2 * len(self.alive) > len(self._slots):
            self._slots = array("i", bytes(8 * len(self._slots)))
            for number in range(len(self.alive)):
                self._put(number)
        else:
            self._put(at)
        return at

    def remove(self, at: int) -> None:
        """One is no more there; its place stays."""
        self.alive[at] = 0

    def living_numbers(self) -> list[int]:
        """The numbers of those that are there, ascending."""
        return np.flatnonzero(self.mask()).tolist()

    def mask(self) -> Bools:
        """Which are there."""
        return np.frombuffer(bytes(self.alive), np.bool_)

    def table(self, at: Sequence[int]) -> MemberTable:
        """These members, sealed."""
        self._open_columns()
        places = np.asarray(at, np.int64)
        below = [np.array(column, np.int32)[places] for column in self._inputs]
        inputs = np.array(below, np.int32).reshape(len(below), len(places))
        whole = len(places) == len(self) and bool((places == np.arange(len(self))).all())
        columns = [column.take(None if whole else places.tolist()) for column in self._columns]
        width = self._width if self._splits else 1
        constants, others = columns[:width], columns[width:]
        if self._splits:
            return table_of(len(places), inputs, constants, [], others)
        return table_of(len(places), inputs, [], constants[0], others)

    def kinds(self, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """What each of those that are there has in these fields, in order of their numbers."""
        self._open_columns()
        first = self._width if self._splits else 1
        place = {name: first + i for i, name in enumerate(_NAMES)}
        living = None if all(self.alive) else self.living_numbers()
        columns = [self._columns[place[name]].take(living) for name in names]
        size = len(self) if living is None else len(living)
        return zip(*[c if len(c) == size else repeat(c[0], size) for c in columns], strict=True)

    def _open_columns(self) -> None:
        """Columns for the few, if there are none yet."""
        if not self._few:
            return
        few, self._few = self._few, None
        self._inputs = [array("i") for _ in few[0].inputs]
        self._width = len(few[0].constants)
        self._columns = [_Column() for _ in self._values(few[0])]
        for at, member in enumerate(few):
            self._append(member, at)

    def _append(self, member: Member, at: int) -> None:
        """One more row of the columns."""
        if self._splits and len(member.constants) != self._width:
            self._join(at)
        for column, number in zip(self._inputs, member.inputs, strict=True):
            column.append(number)
        for column_, value in zip(self._columns, self._values(member), strict=True):
            column_.append(value, at)

    def _put(self, at: int) -> None:
        mask = len(self._slots) - 1
        slot = self._hashes[at] & mask
        while self._slots[slot]:
            slot = (slot + 1) & mask
        self._slots[slot] = at + 1

    def _values(self, member: Member) -> list[Any]:
        constants = member.constants if self._splits else (member.constants,)
        return [*constants, *fields_of(member)]

    def _join(self, size: int) -> None:
        """Members have other numbers of constants: they have one column from now on."""
        rows = [self[at].constants for at in range(size)]
        joined = _Column()
        for at, row in enumerate(rows):
            joined.append(row, at)
        self._columns[: self._width] = [joined]
        self._splits = False


_NAMES = tuple([name for name in Member._fields if name not in ("inputs", "constants")])


class _Column:
    """One value for all, or a list."""

    __slots__ = ("_held", "_one")

    def __init__(self) -> None:
        self._one: Any = None
        self._held: list[Any] | None = None

    def __getitem__(self, at: int) -> Any:
        return self._one if self._held is None else self._held[at]

    def append(self, value: Any, at: int) -> None:
        """One more, the number ``at``."""
        if self._held is not None:
            self._held.append(value)
        elif not at:
            self._one = value
        elif value != self._one or type(value) is not type(self._one):
            self._held = [*repeat(self._one, at), value]

    def take(self, at: Sequence[int] | None) -> Sequence[Any]:
        """Those at these places (None: all), or one for all."""
        if self._held is None:
            return (self._one,)
        return self._held if at is None else [self._held[i] for i in at]

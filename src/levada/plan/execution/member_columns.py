"""Growing columns of members with an index: the storage of a catalog node's members.

Columns have the layout of a sealed table (``table``). A constant column becomes a list when a
member differs. A hash table with 4 bytes for each slot, beside the hashes, finds a member. Numbers
are never used again (``plan/topology/catalog_members``), so a slot is never emptied. Cost: 8 bytes
of hash, some ten of slots, 4 for each input, 8 for each field in which members differ. A node with
few members, as most are in small topologies, keeps them as objects until it is sealed.
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
# up to this many members stay objects: planning one query then takes some 4 % less time
_MAX_ROW_READS = register(f"{__name__}._MAX_ROW_READS", 16)


class MemberColumns:
    """Members by number. ``alive``: a byte for each place, 1 if its member exists."""

    __slots__ = ("_columns", "_few", "_hashes", "_inputs", "_slots", "_splits", "_width", "alive")

    def __init__(self) -> None:
        self.alive = bytearray()
        self._hashes, self._slots = array("q"), array("i", bytes(4 * _START))
        self._inputs: list[array[int]] = []
        self._columns: list[_Column] = []
        self._width, self._splits = -1, True  # number of constants; each has a column
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
        """Returns the number of a member; -1: it does not exist."""
        code, mask = hash(member), len(self._slots) - 1
        slot = code & mask
        while at := self._slots[slot]:
            at -= 1
            if self._hashes[at] == code and self.alive[at] and self[at] == member:
                return at
            slot = (slot + 1) & mask
        return -1

    def add(self, member: Member) -> int:
        """Adds a new member and returns its number."""
        at = len(self.alive)
        if at == _MAX_ROW_READS:
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
        """Removes a member; its place stays."""
        self.alive[at] = 0

    def living_numbers(self) -> list[int]:
        """Returns the numbers of the living members, ascending."""
        return np.flatnonzero(self.mask()).tolist()

    def mask(self) -> Bools:
        """Returns for each place whether its member exists."""
        return np.frombuffer(bytes(self.alive), np.bool_)

    def table(self, at: Sequence[int]) -> MemberTable:
        """Returns these members as a sealed table."""
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
        """Returns the values of these fields for each living member, in the order of numbers."""
        self._open_columns()
        first = self._width if self._splits else 1
        place = {name: first + i for i, name in enumerate(_NAMES)}
        living = None if all(self.alive) else self.living_numbers()
        columns = [self._columns[place[name]].take(living) for name in names]
        size = len(self) if living is None else len(living)
        return zip(*[c if len(c) == size else repeat(c[0], size) for c in columns], strict=True)

    def _open_columns(self) -> None:
        """Creates columns from the member objects, if there are none yet."""
        if not self._few:
            return
        few, self._few = self._few, None
        self._inputs = [array("i") for _ in few[0].inputs]
        self._width = len(few[0].constants)
        self._columns = [_Column() for _ in self._values(few[0])]
        for at, member in enumerate(few):
            self._append(member, at)

    def _append(self, member: Member, at: int) -> None:
        """Appends a row to the columns."""
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
        """Stores constants in one column from now on, since members have different
        numbers of them.
        """
        rows = [self[at].constants for at in range(size)]
        joined = _Column()
        for at, row in enumerate(rows):
            joined.append(row, at)
        self._columns[: self._width] = [joined]
        self._splits = False


_NAMES = tuple([name for name in Member._fields if name not in ("inputs", "constants")])


class _Column:
    """A column: one value for all members, or a list."""

    __slots__ = ("_held", "_one")

    def __init__(self) -> None:
        self._one: Any = None
        self._held: list[Any] | None = None

    def __getitem__(self, at: int) -> Any:
        return self._one if self._held is None else self._held[at]

    def append(self, value: Any, at: int) -> None:
        """Appends the value of member ``at``."""
        if self._held is not None:
            self._held.append(value)
        elif not at:
            self._one = value
        elif value != self._one or type(value) is not type(self._one):
            self._held = [*repeat(self._one, at), value]

    def take(self, at: Sequence[int] | None) -> Sequence[Any]:
        """Returns the values at these places (None: all), or one value for all."""
        if self._held is None:
            return (self._one,)
        return self._held if at is None else [self._held[i] for i in at]

"""The members of a sealed node as columns; a member object is built on access.

The members of a node differ in few fields: inputs, a constant, a query's name. A column of equal
values is one value. Inputs are arrays of numbers, and constants have a column for each place. So a
member costs some bytes where it differs, and no object.

    >>> from levada.plan.execution.shapes import Member
    >>> table = MemberTable.from_members([Member((i,), query=f"q{i}") for i in (4, 2)])
    >>> table[1].inputs, table[1].query, len(table), len(table.start)
    ((2,), 'q2', 2, 1)
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat, zip_longest
from operator import eq
from typing import Any, overload

import numpy as np

from levada.core.array_types import Bools, Ints
from levada.core.event_time import Window
from levada.core.rdf_terms import Term
from levada.core.size_thresholds import register
from levada.plan.execution.leaves import EntailmentAlternative
from levada.plan.execution.shapes import Member

INPUTS, CONSTANTS = Member._fields.index("inputs"), Member._fields.index("constants")
OTHERS = tuple([i for i in range(len(Member._fields)) if i not in (INPUTS, CONSTANTS)])
"""The fields with a column of their own."""


@dataclass(frozen=True, eq=False)
class MemberTable(Sequence[Member]):
    """A number of members as columns, each with a value for each member or one for all.

    ``inputs``: an array with a row for each input. ``constants``: a column for each place; empty if
    members have different numbers of constants. ``ragged`` then has the constants of each.
    """

    size: int
    inputs: Ints
    constants: tuple[tuple[Term | None, ...], ...]
    ragged: tuple[tuple[Term | None, ...], ...]
    windows: tuple[tuple[Window, ...], ...]
    streams: tuple[tuple[str, ...], ...]
    start: tuple[int, ...]
    rows: tuple[tuple[tuple[Term | None, ...], ...], ...]
    graphs: tuple[tuple[str | None, ...], ...]
    query: tuple[str, ...]
    show_empty: tuple[bool, ...]
    nonempty: tuple[bool, ...]
    since: tuple[int, ...]
    ways: tuple[tuple[EntailmentAlternative, ...], ...]
    reread_graphs: tuple[tuple[str | None, ...], ...]

    def __post_init__(self) -> None:
        columns = [*self.constants, self.ragged or ((),), *self._others()]
        if self.inputs.ndim != 2 or self.inputs.shape[1] != self.size:
            raise ValueError("members with inputs of others")
        if any(len(column) not in (1, self.size) for column in columns if self.size):
            raise ValueError("members with a column of others")

    @staticmethod
    def from_members(members: Sequence[Member]) -> MemberTable:
        """Returns the table of at least one member."""
        lists: list[list[Any]] = [list(column) for column in zip(*members, strict=True)]
        inputs = np.array(lists[INPUTS], np.int32).reshape(len(members), -1)
        widths = {len(constants) for constants in lists[CONSTANTS]}
        by_place = zip(*lists[CONSTANTS], strict=True) if len(widths) == 1 else ()
        return table_of(
            len(members),
            np.ascontiguousarray(inputs.T),
            [list(column) for column in by_place],
            lists[CONSTANTS] if len(widths) > 1 else [],
            [lists[i] for i in OTHERS],
        )

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, at: int) -> Member: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Member]: ...
    def __getitem__(self, at: int | slice) -> Member | Sequence[Member]:
        if isinstance(at, slice):
            return [self[i] for i in range(self.size)[at]]
        at = range(self.size)[at]
        others = [column[at if len(column) > 1 else 0] for column in self._others()]
        return member_of(self.inputs_at(at), self.constants_at(at), others)

    def __iter__(self) -> Iterator[Member]:
        inputs = zip(*self.inputs.tolist(), strict=True) if len(self.inputs) else self._each(((),))
        others = zip(*map(self._each, self._others()), strict=True)
        return map(member_of, inputs, self.each_constants(), others)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MemberTable):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def inputs_at(self, at: int) -> tuple[int, ...]:
        """Returns the inputs of a member (numbers start at 0)."""
        return tuple(self.inputs[:, at].tolist())

    def constants_at(self, at: int) -> tuple[Term | None, ...]:
        """Returns the constants of a member (numbers start at 0)."""
        if self.ragged:
            return self.ragged[at if len(self.ragged) > 1 else 0]
        return tuple([c[at if len(c) > 1 else 0] for c in self.constants])

    def windows_at(self, at: int) -> tuple[Window, ...]:
        """Returns the windows of a member (numbers start at 0)."""
        return self.windows[at if len(self.windows) > 1 else 0]

    def query_at(self, at: int) -> str:
        """Returns the query of a member (numbers start at 0)."""
        return self.query[at if len(self.query) > 1 else 0]

    def each_constants(self) -> Iterator[tuple[Term | None, ...]]:
        """Returns the constants of each member."""
        if self.ragged or not self.constants:
            return self._each(self.ragged or ((),))
        return zip(*map(self._each, self.constants), strict=True)

    def columns_of_constants(self) -> list[Sequence[Term | None]]:
        """Returns the constants of all members by place; None where a member has none."""
        if self.ragged:
            return list(zip_longest(*self._each(self.ragged)))
        return [tuple(self._each(column)) for column in self.constants]

    def each_query(self) -> Iterator[str]:
        """Returns the query of each member."""
        return self._each(self.query)

    def each_stream(self) -> Iterator[tuple[str, ...]]:
        """Returns the streams of each member."""
        return self._each(self.streams)

    def each_graph(self) -> Iterator[tuple[str | None, ...]]:
        """Returns the graphs of each member."""
        return self._each(self.graphs)

    def each_reread_graph(self) -> Iterator[tuple[str | None, ...]]:
        """Returns the graphs at whose replacement each member is answered again."""
        return self._each(self.reread_graphs)

    def _each(self, column: Sequence[Any]) -> Iterator[Any]:
        return iter(column) if len(column) == self.size else repeat(column[0], self.size)

    def _others(self) -> tuple[Sequence[Any], ...]:
        return (
            self.windows, self.streams, self.start, self.rows, self.graphs, self.query,
            self.show_empty, self.nonempty, self.since, self.ways, self.reread_graphs,
        )  # fmt: skip


def member_of(
    inputs: tuple[int, ...], constants: tuple[Term | None, ...], others: Sequence[Any]
) -> Member:
    """Returns a member with these inputs, constants and other fields in order."""
    return Member._make((inputs, *others[:3], constants, *others[3:]))


def table_of(
    size: int,
    inputs: Ints,
    constants: Sequence[Sequence[Term | None]],
    ragged: Sequence[tuple[Term | None, ...]],
    others: Sequence[Sequence[Any]],
) -> MemberTable:
    """Returns a table of columns with a value for each member, or one for all."""
    return MemberTable(
        size, inputs, tuple(map(_fold, constants)), _fold(ragged), *map(_fold, others)
    )


def _fold(column: Sequence[Any]) -> tuple[Any, ...]:
    """Replaces a column of equal values by one value."""
    if len(column) > 1 and all(map(eq, column, repeat(column[0]))):
        return (column[0],)
    return tuple(column)


def fields_of(member: Member) -> Iterator[Any]:
    """Returns the fields of a member that have a column of their own."""
    return chain(member[1:CONSTANTS], member[CONSTANTS + 1 :])


# Growing columns of members with an index: the storage of a catalog node's members.
#
# Columns have the layout of a sealed table (``table``). A constant column becomes a list when a
# member differs. A hash table with 4 bytes for each slot, beside the hashes, finds a member.
# Numbers are never used again (``plan/topology/catalog_members``), so a slot is never emptied.
# Cost: 8 bytes of hash, some ten of slots, 4 for each input, 8 for each field in which members
# differ. A node with few members, as most are in small topologies, keeps them as objects until it
# is sealed.


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

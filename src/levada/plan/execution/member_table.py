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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat, zip_longest
from operator import eq
from typing import Any, overload

import numpy as np

from levada.core.array_types import Ints
from levada.core.event_time import Window
from levada.core.rdf_terms import Term
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

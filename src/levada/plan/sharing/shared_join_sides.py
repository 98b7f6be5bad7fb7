"""The choice of joins that share a side and read it from an arrangement (``static_arrangements``;
CQELS Cloud, shared state).

    q1   (?x :p ?y) x (?x :q ?z)       its own join: no other query has a side of it
    q2   (?x :p ?y) x (?x :r ?w)       another join with a side of q1's: an arrangement is made
    q3   (?x :p ?y) x (?x :s ?v)       reads the arrangement

A join keeps a side itself while no other join has it, so a single query pays nothing. A decision
holds while a query has the join, also for later queries with an equal one: new queries never change
running operators. If both sides are shared, an existing arrangement is preferred, then the side of
more joins. Queries that are added together are examined before any decision. Lower joins are
decided first, since the result is a side of the upper ones. Cost: two keys for each join of a
query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from levada.core.event_time import Window
from levada.core.frozen import frozen
from levada.plan.binding.edges import base_of
from levada.plan.binding.installer import Installer, reading_of_edge
from levada.plan.physical.operators import Join, Op
from levada.plan.sharing.batch_install import Batch
from levada.plan.sharing.share_equal_operators import CommonSubexpressions, Key
from levada.plan.sharing.static_arrangements import (
    arrangement_of_side,
    joins_of,
    read_arrangement,
    rebuild_tree,
)

OWN = -1
"""A join that keeps both sides."""


class _Side(NamedTuple):
    """The rows that a join keeps of an input.

    It has the number of the operator below, its windows, the reading edge, the join's stage, the
    places of the key, whether rows are raw, and whether picks decide how long they are kept.
    """

    base: int
    windows: tuple[Window, ...]
    read: Key
    stage: int
    keys: tuple[int, ...]
    raw: bool
    relaxed: bool


_Both = tuple[_Side, _Side, tuple[int, ...]]
"""A join: its sides, and the indexes of those that can be arranged."""


@dataclass(eq=False, slots=True)
class _Join:
    """The state of a join of these queries: its arranged side (None: not decided), and its held
    numbers.
    """

    both: _Both
    at: int | None = None
    names: dict[str, None] = field(default_factory=dict)
    held: list[int] = field(default_factory=list)

    def side(self, at: int) -> _Side:
        return self.both[1] if at else self.both[0]

    def others(self) -> set[_Side]:
        """Returns the sides that other joins may have, too."""
        return {self.side(at) for at in self.both[2]}

    def hold(self, common: CommonSubexpressions, number: int) -> None:
        common.hold(number)
        self.held.append(number)


@frozen
class _PlannedJoin:
    """A join of a query: as it was planned, and with its current inputs (``op``).

    ``arrangements``: the arrangements of its sides, as far as they were looked up. They have
    numbers, so they must live as long as this object.
    """

    installer: Installer
    planned: Op
    op: Op
    join: _Join
    arrangements: dict[int, Op] = field(default_factory=dict)

    def side(self, at: int) -> Op:
        """Returns the arrangement that would keep the rows of an input."""
        if at not in self.arrangements:
            self.arrangements[at] = arrangement_of_side(self.op, at)
        return self.arrangements[at]


@dataclass(slots=True)
class Sides:
    """The joins of the queries: the number of joins with each side, the readers of arrangements,
    and the joins that keep a side themselves.

    A side is identified by the number (in ``common``) of its operator and the way in which the join
    keeps it, a join by both sides. The numbers are held while a query has the join. ``late``:
    queries with such joins that were added before the arrangement. They may be planned again and
    then read it (``plan/migration/migrate_to_shared``).
    """

    late: dict[str, None] = field(default_factory=dict)
    _joins: dict[_Both, _Join] = field(default_factory=dict)
    _of: dict[str, dict[_Join, None]] = field(default_factory=dict)
    _having: dict[_Side, int] = field(default_factory=dict)
    _reading: dict[_Side, int] = field(default_factory=dict)
    _owning: dict[_Side, dict[_Join, None]] = field(default_factory=dict)

    def ask(self, batch: Batch, installers: Mapping[str, Installer], roots: dict[str, Op]) -> None:
        """Adds queries that come together, each by its last operator, which is replaced by one with
        the decided joins.
        """
        joins = {n: {} if installers[n].apart else joins_of(root) for n, root in roots.items()}
        by: dict[str, dict[int, Op]] = {name: {} for name in roots}
        seen = list[_PlannedJoin]()  # numbers belong to existing operators
        for height in range(1, max(map(len, joins.values()), default=0) + 1):
            level = list[tuple[str, _PlannedJoin]]()
            for name, by_height in joins.items():
                for planned, of in by_height.get(height, ()):
                    op, installer = rebuild_tree(planned, by[name]), installers[name]
                    join = self._register_join(
                        batch.common, name, _key_sides(batch, installer, op, of)
                    )
                    level.append((name, _PlannedJoin(installer, planned, op, join)))
            for name, one in level:
                at = self._decide_side(batch, one)
                op = one.op if at == OWN else read_arrangement(one.op, at, one.side(at))
                if op is not one.planned:
                    by[name][id(one.planned)] = op
                seen.append(one)
        for name, installer in installers.items():
            roots[name] = rebuild_tree(roots[name], by[name])
            batch.ask(name, installer, roots[name])

    def forget(self, common: CommonSubexpressions, name: str) -> None:
        """Removes a query, or its joins if it has others from now on."""
        self.late.pop(name, None)
        for join in self._of.pop(name, {}):
            del join.names[name]
            if join.names:
                continue
            del self._joins[join.both]
            if join.at == OWN:
                self._release_sides(join)
            elif join.at is not None:
                _decrement(self._reading, join.side(join.at))
            for side in join.others():
                _decrement(self._having, side)
            for held in join.held:
                common.release(held)

    def reconsider(self, name: str) -> bool:
        """Reverts the decisions for joins of a query that keep a side which others read from an
        arrangement.

        They are decided again at the next ``ask``. Returns whether there are any.
        """
        joins = [
            join
            for join in self._of.get(name, {})
            if join.at == OWN and not join.others().isdisjoint(self._reading)
        ]
        for join in joins:
            self._release_sides(join)
            join.at = None
        return bool(joins)

    def _release_sides(self, join: _Join) -> None:
        for side in join.others():
            del self._owning[side][join]
            if not self._owning[side]:
                del self._owning[side]

    def _register_join(self, common: CommonSubexpressions, name: str, both: _Both) -> _Join:
        """Registers a join of an added query."""
        join = self._joins.get(both)
        if join is None:
            join = self._joins[both] = _Join(both)
            join.hold(common, both[0].base)
            join.hold(common, both[1].base)
            for side in join.others():
                self._having[side] = self._having.get(side, 0) + 1
        join.names[name] = None
        self._of.setdefault(name, {})[join] = None
        return join

    def _decide_side(self, batch: Batch, one: _PlannedJoin) -> int:
        """Returns the side that a join reads from an arrangement; ``OWN``: it keeps both."""
        join = one.join
        if join.at is None:
            join.at, most = OWN, (False, 1)
            for at in join.both[2]:
                known = self._is_kept(batch, one, at), self._having[join.side(at)]
                if known > most:
                    join.at, most = at, known
            if join.at == OWN:
                for side in join.others():
                    self._owning.setdefault(side, {})[join] = None
            else:
                self._count_reader(join.side(join.at))
        return join.at

    def _count_reader(self, side: _Side) -> None:
        """Counts a join that reads an arrangement."""
        if side not in self._reading:
            for join in self._owning.get(side, ()):
                self.late |= join.names
        self._reading[side] = self._reading.get(side, 0) + 1

    def _is_kept(self, batch: Batch, one: _PlannedJoin, at: int) -> bool:
        """Whether an arrangement of a side exists: for a join of this batch, or in the running
        plan.
        """
        side = one.join.side(at)
        if side in self._reading:
            return True
        if not batch.common.keeps(side.base):
            return False
        number = batch.number(one.installer, one.side(at))
        one.join.hold(batch.common, number)
        return bool(batch.common.known[number].made)


def _key_sides(batch: Batch, installer: Installer, op: Op, of: tuple[int, ...]) -> _Both:
    """Returns a join by its sides; ``of``: the sides that others may have."""
    spec = op.spec
    assert isinstance(spec, Join), "a join has a key"
    windows = installer.rows_in(op.windows or (), loose=spec.relaxed).windows

    def side(at: int) -> _Side:
        rows, read = op.inputs[at], reading_of_edge(op, at)
        keys = tuple([i for i, v in enumerate(rows.variables) if v in spec.keys])
        base = batch.number(installer, base_of(rows))
        return _Side(base, windows, read, op.stage, keys, spec.raw[at], spec.relaxed)

    return side(0), side(1), of


def _decrement(counts: dict[_Side, int], side: _Side) -> None:
    counts[side] -= 1
    if not counts[side]:
        del counts[side]

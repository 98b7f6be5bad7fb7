"""Which joins have a side in common, and so read it where it is kept once
(``plan/physical/shared/streams``; CQELS Cloud, shared state).

    q1   (?x :p ?y) x (?x :q ?z)       its own join: nobody else has a side of it
    q2   (?x :p ?y) x (?x :r ?w)       another join with a side of q1's: what keeps it is made
    q3   (?x :p ?y) x (?x :s ?v)       reads it there

A join keeps its sides itself as long as it is the only one that has them, so a query alone pays
nothing. What has been decided for a join holds while a query has it, and for whoever comes with an
equal one; so what runs is never changed by a newcomer. Of those that come together all are looked
at before any is decided. Of two sides that others have, too, the one is kept that is kept already,
else that which more joins have.

Joins and sides are told by the numbers of ``common``, from the streams up, since what a join reads
may have been changed below it; they are held there as long as a query has them. Cost: two numbers
for each join of a query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from levada.plan.install.batch import Batch
from levada.plan.install.common import Common
from levada.plan.install.install import Installer
from levada.plan.physical.operators import Op
from levada.plan.physical.shared.streams import joins_of, kept, reading, rebuilt

OWN = -1
"""A join that keeps both sides."""


@dataclass(slots=True)
class _Join:
    """A join of so many queries: the numbers of what would keep its sides, by input; the side that
    is kept for all (None: not decided).
    """

    sides: dict[int, int]
    at: int | None = None
    users: int = 0


@dataclass(frozen=True, slots=True)
class _Found:
    """A join of the query ``name``: as it was planned, and with what became of its inputs; what
    would keep its sides, by input.
    """

    name: str
    planned: Op
    op: Op
    sides: Mapping[int, Op]
    number: int


@dataclass(slots=True)
class Sides:
    """The joins of the queries that there are, by number; of what keeps sides, how many joins have
    such a side, and how many read it.
    """

    _joins: dict[int, _Join] = field(default_factory=dict)
    _of: dict[str, list[int]] = field(default_factory=dict)
    _having: Counter[int] = field(default_factory=Counter)
    _reading: Counter[int] = field(default_factory=Counter)

    def ask(self, batch: Batch, installers: Mapping[str, Installer], roots: dict[str, Op]) -> None:
        """Asks for queries that come together, each by its last operator, which becomes that with
        the joins that were decided.
        """
        joins = {n: {} if installers[n].apart else joins_of(root) for n, root in roots.items()}
        by: dict[str, dict[int, Op]] = {name: {} for name in roots}
        seen = list[_Found]()  # numbers are those of operators that there are
        for height in range(1, max(map(len, joins.values()), default=0) + 1):
            level = [
                self._noted(batch, installers[name], name, join, rebuilt(join, by[name], {}), of=of)
                for name, own in joins.items()
                for join, of in own.get(height, ())
            ]
            seen += level
            for one in level:
                at = self._decided(batch.common, one.number)
                op = one.op if at == OWN else reading(one.op, at, one.sides[at])
                by[one.name][id(one.planned)] = op
        for name, installer in installers.items():
            roots[name] = rebuilt(roots[name], by[name], {})
            batch.ask(name, installer, roots[name])

    def forget(self, common: Common, name: str) -> None:
        """A query that goes, or has other joins from now on."""
        for number in self._of.pop(name, ()):
            join = self._joins[number]
            join.users -= 1
            if join.users:
                continue
            del self._joins[number]
            if join.at is not None and join.at != OWN:
                _less(self._reading, join.sides[join.at])
            for side in {*join.sides.values()}:
                _less(self._having, side)
            for held in (number, *join.sides.values()):
                common.release(held)

    def _noted(
        self, batch: Batch, installer: Installer, name: str, planned: Op, op: Op, *,
        of: Sequence[int],
    ) -> _Found:  # fmt: skip
        """A join of a query that comes, ``of`` whose sides others may have some."""
        sides = {at: kept(op, at) for at in of}
        number = batch.number(installer, op)
        if number not in self._joins:
            numbers = {at: batch.number(installer, side) for at, side in sides.items()}
            self._joins[number] = _Join(numbers)
            for held in (number, *numbers.values()):
                batch.common.hold(held)
            self._having.update({*numbers.values()})
        self._joins[number].users += 1
        self._of.setdefault(name, []).append(number)
        return _Found(name, planned, op, sides, number)

    def _decided(self, common: Common, number: int) -> int:
        """The side that a join reads where it is kept; ``OWN``: it has both."""
        join = self._joins[number]
        if join.at is None:
            known = {
                at: (self._is_kept(common, s), self._having[s]) for at, s in join.sides.items()
            }
            shared = [at for at, (is_kept, having) in known.items() if is_kept or having > 1]
            join.at = max(shared, key=lambda at: (known[at], -at), default=OWN)
            if join.at != OWN:
                self._reading[join.sides[join.at]] += 1
        return join.at

    def _is_kept(self, common: Common, side: int) -> bool:
        """Whether a side is kept for all: for a join that comes too, or in what runs, perhaps since
        the run before.
        """
        return self._reading[side] > 0 or bool(common.known[side].made)


def _less(counts: Counter[int], number: int) -> None:
    counts[number] -= 1
    if not counts[number]:
        del counts[number]

"""In which order the parts of a conjunction are joined: greedily, by what the next join costs.

Stars of one subject come first, then what takes the fewest stages, Cartesian products last; of
equal ones what stands first. Only pairs that share a variable are looked at, each once: a path of n
steps has n of them, a star n**2. Where none has a key, none ever will: what is left is joined by
its stages alone, in n steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush, nsmallest

from levada.model.expression import Expression, Var, variables
from levada.plan.lowering.placing import evenest
from levada.plan.physical import operators as p
from levada.plan.physical.build import filter_, join
from levada.plan.physical.forms.wanted import BINARY, Wanted
from levada.plan.physical.operators import Op
from levada.plan.physical.partitioning import join_keys, place
from levada.plan.sealed.kinds import JoinForm

Cost = tuple[bool, int, int]


def join_all(
    parts: Sequence[Op],
    conjuncts: Sequence[Expression] = (),
    joins: Wanted = BINARY,
) -> Op:
    """Joins all parts, each filter as soon as its variables are there; two at a time, but for those
    that this form of joins puts together before.
    """
    pending = list(conjuncts)
    parts = [_filter_rows(part, pending, parts) for part in parts]
    if joins.form in (JoinForm.REPLICATED, JoinForm.AUTO):
        # here: only who asks for it loads it
        from levada.plan.lowering.join_forms import formed

        parts = formed(parts, joins, lambda group: join_all(group, _of(group, pending)))
        parts = [_filter_rows(part, pending, parts) for part in parts]
    order = _Order(parts)
    rank = 0
    while len(order.parts) > 1:
        left, right = order.next()
        rank -= 1
        joined = _met(left, right, joins)
        order.add(rank, _filter_rows(joined, pending, [joined, *order.parts.values()]))
    (whole,) = order.parts.values()
    for condition in pending:
        whole = filter_(whole, condition)
    return whole


def _met(left: Op, right: Op, joins: Wanted) -> Op:
    """The join of two parts, where its rows are best."""
    if joins.form is JoinForm.AUTO and not join_keys(left, right)[1]:
        # here: only who asks for it loads it
        from levada.plan.lowering.join_forms import met

        if (spread := met(left, right, joins)) is not None:
            return spread
    return join(left, right, evenest(left, right, joins))


class _Order:
    """What is still to be joined, by rank: parts as they stand, in front of them what has been
    joined, the newest first.
    """

    def __init__(self, parts: Sequence[Op]) -> None:
        self.parts: dict[int, Op] = {}
        self._with: dict[str, set[int]] = {}  # variable -> the parts that have it
        self._pairs: list[tuple[Cost, int, int]] = []
        self._centers: dict[int, str | None] = {}
        self._places: dict[int, dict[str, int]] = {}  # of each part's variables
        for rank, part in enumerate(parts):
            self.add(rank, part)

    def add(self, rank: int, part: Op) -> None:
        """A part, and its pairs with those that are there."""
        near = {other for v in part.variables for other in self._with.get(v, ())}
        self._centers[rank] = _center(part)
        self._places[rank] = {v: at for at, v in enumerate(part.variables)}
        self.parts[rank] = part
        for other in near:
            self._push(rank, other)
        for v in part.variables:
            self._with.setdefault(v, set()).add(rank)

    def next(self) -> tuple[Op, Op]:
        """Takes out the pair that is to be joined next."""
        while self._pairs:
            _, i, j = heappop(self._pairs)
            if i in self.parts and j in self.parts:
                return self._take(i), self._take(j)
        i, j = self._product()
        return self._take(i), self._take(j)

    def _product(self) -> tuple[int, int]:
        """Of parts of which no two have a key: the two that are joined in the least stage, of these
        the first. A product is made behind both its parts, so the second least stage decides.
        """
        stage = nsmallest(2, [part.stage for part in self.parts.values()])[1]
        i, j = nsmallest(2, [rank for rank, part in self.parts.items() if part.stage <= stage])
        return i, j

    def _push(self, i: int, j: int) -> None:
        """A pair, if it has a key: without one parts are joined last."""
        i, j = min(i, j), max(i, j)
        if (cost := self._cost(i, j)) is not None:
            heappush(self._pairs, (cost, i, j))

    def _cost(self, i: int, j: int) -> Cost | None:
        left, right = self.parts[i], self.parts[j]
        _, keys, placed = join_keys(left, right, self._places[i])
        if not keys:
            return None
        stage, _ = place((left, right), placed)
        star = self._centers[i] is not None and self._centers[i] == self._centers[j]
        return (not star, stage, -len(keys))

    def _take(self, rank: int) -> Op:
        part = self.parts.pop(rank)
        for v in part.variables:
            self._with[v].discard(rank)
        return part


def _filter_rows(op: Op, pending: list[Expression], others: Sequence[Op]) -> Op:
    """Applies the pending filters whose variables this part binds for good."""
    for condition in list(pending):
        names = set(variables(condition))
        if names and names <= set(op.variables) and not _open(op, names, others):
            op = filter_(op, condition)
            pending.remove(condition)
    return op


def _of(parts: Sequence[Op], conditions: Sequence[Expression]) -> list[Expression]:
    """The conditions on variables of these parts alone."""
    names = {v for part in parts for v in part.variables}
    return [condition for condition in conditions if set(variables(condition)) <= names]


def _open(op: Op, names: set[str], others: Sequence[Op]) -> bool:
    """Whether one of these variables may be unbound here, and bound by another part."""
    unsure = names & op.maybe
    return bool(unsure) and any(not unsure.isdisjoint(o.variables) for o in others if o is not op)


def _center(op: Op) -> str | None:
    """The subject that all patterns of this part share, if it is one variable."""
    below = [op]
    found: set[str | None] = set()
    while below and len(found) < 2:
        part = below.pop()
        spec = part.spec
        if isinstance(spec, (p.Filter, p.Extend, p.Join)):
            below += part.inputs
            continue
        subject = None
        if isinstance(spec, (p.Match, p.Entailed, p.Star)):
            subject = (spec.patterns[0] if isinstance(spec, p.Star) else spec.pattern).subject
        found.add(subject.name if isinstance(subject, Var) else None)
    return found.pop() if len(found) == 1 else None

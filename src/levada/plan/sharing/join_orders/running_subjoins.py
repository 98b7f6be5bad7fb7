"""The sub-joins of existing queries, and the choice of the join orders of new ones.

    follow      running queries: their sub-joins by key (``subjoin_keys``), each with its order and
                place; some are examined later
    choose      queries that are added together: the order of each that adds the least cost
                (``choose_order``), one after the other; later ones use the sub-joins of earlier
                ones

Nothing is computed for a single query: running sub-joins are examined when another query is added.
A sub-join whose member was removed is void (numbers are never used again), and dropped when there
are many. The choice depends only on existing queries, added ones, and measurements. Results never
depend on it. Cost of a query: linear in its own sub-joins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from levada.core.frozen import frozen
from levada.core.size_thresholds import register
from levada.plan.binding.edges import base_of
from levada.plan.binding.installer import Installer
from levada.plan.execution.plan import At
from levada.plan.execution.shapes import Shape
from levada.plan.lowering.join_order import MAX_ORDERED_PARTS, Conjunction, Tree
from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op
from levada.plan.sharing.join_orders.choose_order import (
    MAX_SEARCHED_PARTS,
    Chosen,
    OrderContext,
    choose,
)
from levada.plan.sharing.join_orders.order_cost import Costs, Cut, cuts_of, mask_of
from levada.plan.sharing.join_orders.subjoin_keys import Keyed, Numbers, SubJoin, places_of
from levada.plan.sharing.share_equal_operators import CommonSubexpressions, Key

Forced = Callable[[str, int, Conjunction], Sequence[Tree]]
"""Returns the units of a query's conjunction, by its number."""
MIN_KEPT_SUBJOINS = register(f"{__name__}.MIN_KEPT_SUBJOINS", 256)
"""The number of sub-joins that are always kept, and of conjunctions examined together."""
MAX_SUBJOIN_PARTS = 3
"""The maximum number of parts of sub-joins in conjunctions of more than ``MAX_SEARCHED_PARTS``
parts.
"""


@frozen
class Running:
    """A running sub-join: its order, by places in its key, and its member."""

    tree: Tree
    at: At


@frozen
class NewQuery:
    """An added query: its conjunctions in their own orders."""

    name: str
    installer: Installer
    conjunctions: Sequence[Conjunction]


@frozen
class RunningConjunction:
    """The running operators of a query's conjunction with this ``number``: the member of each part
    and sub-join, by bits of parts.
    """

    installer: Installer
    conjunction: Conjunction
    places: dict[int, At]
    number: int = 0


@frozen
class _Wishes:
    """The conjunctions of queries that are added together.

    It counts the queries with each part, and (``wanted``) with each sub-join of shared parts.
    ``running``: whether a part runs.
    """

    keyed: Mapping[str, Sequence[tuple[int, Keyed]]]
    uses: Counter[int]
    running: Callable[[int], bool]
    wanted: Counter[Key] = field(default_factory=Counter)

    def is_shared(self, part: int) -> bool:
        """Whether other queries have a part, too."""
        return self.uses[part] > 1 or self.running(part)

    def find_subjoin(self, keyed: Keyed, mask: int) -> SubJoin | None:
        """Returns a sub-join if other queries have all of its parts, too."""
        there = all(self.is_shared(keyed.parts[i].number) for i in places_of(mask))
        return keyed.sub_join(mask) if there else None

    def sets(self, keyed: Keyed) -> Iterator[int]:
        """Yields the sub-joins of shared parts."""
        n = len(keyed.parts)
        within = sum(1 << i for i, part in enumerate(keyed.parts) if self.is_shared(part.number))
        most = n if n <= MAX_SEARCHED_PARTS else MAX_SUBJOIN_PARTS
        return (mask for mask in keyed.connected_sets(within, most) if mask & (mask - 1))


@dataclass(slots=True)
class RunningSubjoins:
    """The sub-joins of the queries of a topology.

    ``alive``: whether a member exists. ``rate``: the rows of a member for each element, if known.
    ``lifted``: keys ignore constants. ``forced``: overrides the units of a query's conjunction, by
    its number. ``standing``: the conjunctions of more than two parts, for the last added queries.
    """

    alive: Callable[[At], bool]
    rate: Callable[[At], float | None]
    lifted: bool = False
    forced: Forced | None = None
    _numbers: Numbers = field(default_factory=Numbers)
    _joins: dict[Key, Running] = field(default_factory=dict)
    _parts: dict[int, At] = field(default_factory=dict)
    _new: list[RunningConjunction] = field(default_factory=list)
    _most: int = MIN_KEPT_SUBJOINS
    standing: dict[str, list[RunningConjunction]] = field(default_factory=dict)

    def follow(self, followed: RunningConjunction) -> None:
        """Adds a running conjunction."""
        self.record_query(followed)
        self.offer(followed)

    def record_query(self, followed: RunningConjunction) -> None:
        """Records that a query has this conjunction from now on."""
        if len(followed.conjunction.parts) > 2:
            self.standing.setdefault(followed.installer.name, []).append(followed)
            if len(self.standing) > MIN_KEPT_SUBJOINS:
                self.standing.pop(next(iter(self.standing)))

    def forget(self, name: str) -> None:
        """Removes a query, or its conjunctions if it gets another order."""
        self.standing.pop(name, None)

    def offer(self, followed: RunningConjunction) -> None:
        """Adds a conjunction that other queries may join from now on."""
        self._new.append(followed)
        if len(self._new) >= MIN_KEPT_SUBJOINS:  # this limits the operators that are kept
            self._learn()

    def key_conjunction(self, followed: RunningConjunction) -> Keyed:
        """Returns a running conjunction with its keys."""
        self._learn()
        return self._key_parts(followed.installer, followed.conjunction)

    def find_running(self, join: SubJoin) -> Running | None:
        """Returns a sub-join if it runs."""
        one = self._joins.get(join.key)
        return one if one is not None and self.alive(one.at) else None

    def new_conjunctions(self, name: str) -> Sequence[RunningConjunction]:
        """Returns the conjunctions of a query that have not been examined yet."""
        return [one for one in self._new if one.installer.name == name]

    def choose(self, asked: Sequence[NewQuery]) -> dict[str, dict[int, Chosen]]:
        """Returns the examined orders of conjunctions, by query and conjunction number."""
        if self.forced is not None:
            return self._choose_forced(asked)
        alone = len(asked) == 1 and not self._new and not self._joins
        if alone or not any(len(c.parts) > 2 for one in asked for c in one.conjunctions):
            return {}
        self._learn()
        wishes, coming = self._collect_wishes(asked), dict[Key, Tree]()
        chosen_by_query: dict[str, dict[int, Chosen]] = {}
        for one in asked:
            for number, each in wishes.keyed[one.name]:
                chosen = self._choose_order(each, wishes, coming)
                tree = each.conjunction.tree
                if chosen is not None:
                    chosen_by_query.setdefault(one.name, {})[number] = chosen
                    tree = tree if not chosen.units else chosen.tree
                for sub, (left, right) in cuts_of(tree):
                    join = wishes.find_subjoin(each, left | right)
                    if join is not None:
                        coming.setdefault(join.key, join.canonical(sub))
        return chosen_by_query

    def _collect_wishes(self, asked: Sequence[NewQuery]) -> _Wishes:
        """Returns the conjunctions of queries that are added together."""
        keyed = {
            one.name: [
                (number, self._key_parts(one.installer, conjunction))
                for number, conjunction in enumerate(one.conjunctions)
                if 1 < len(conjunction.parts) <= MAX_ORDERED_PARTS
            ]
            for one in asked
        }
        every = [each for conjunctions in keyed.values() for _, each in conjunctions]
        uses = Counter(n for each in every for n in {part.number for part in each.parts})
        wishes = _Wishes(keyed, uses, self._runs)
        for each in every:
            wishes.wanted.update({each.sub_join(mask).key for mask in wishes.sets(each)})
        return wishes

    def _choose_forced(self, asked: Sequence[NewQuery]) -> dict[str, dict[int, Chosen]]:
        assert self.forced is not None, "who says the orders"
        chosen_by_query: dict[str, dict[int, Chosen]] = {}
        for one in asked:
            for number, conjunction in enumerate(one.conjunctions):
                units = tuple(self.forced(one.name, number, conjunction))
                if units:
                    chosen_by_query.setdefault(one.name, {})[number] = Chosen(
                        units, units[0], 0.0, 0.0
                    )
        return chosen_by_query

    def _key_parts(self, installer: Installer, conjunction: Conjunction) -> Keyed:
        return Keyed.from_conjunction(conjunction, installer, self._numbers, lifted=self.lifted)

    def _learn(self) -> None:
        """Examines the conjunctions that have started to run."""
        new, self._new = self._new, []
        for one in new:
            keyed = self._key_parts(one.installer, one.conjunction)
            for i, part in enumerate(keyed.parts):
                if 1 << i in one.places:
                    self._parts[part.number] = one.places[1 << i]
            for tree, (left, right) in cuts_of(one.conjunction.tree):
                if left | right in one.places:
                    join = keyed.sub_join(left | right)
                    self._joins[join.key] = Running(join.canonical(tree), one.places[left | right])
        if len(self._joins) + len(self._parts) > 2 * self._most:
            self._forget()

    def _forget(self) -> None:
        """Drops removed sub-joins."""
        self._joins = {key: one for key, one in self._joins.items() if self.alive(one.at)}
        self._parts = {number: at for number, at in self._parts.items() if self.alive(at)}
        self._numbers.keep({*self._parts})
        self._most = max(len(self._joins) + len(self._parts), MIN_KEPT_SUBJOINS)

    def _runs(self, part: int) -> bool:
        at = self._parts.get(part)
        return at is not None and self.alive(at)

    def _choose_order(
        self, keyed: Keyed, wishes: _Wishes, coming: Mapping[Key, Tree]
    ) -> Chosen | None:
        """Returns the order of a conjunction; None: nothing could change it. ``coming``: the
        sub-joins of queries that have their order already.
        """
        whole = (1 << len(keyed.parts)) - 1
        shared = sum(wishes.is_shared(part.number) for part in keyed.parts)
        if len(keyed.parts) < 3 or shared < 2 or not keyed.is_connected(whole):
            return None

        def running(mask: int) -> Tree | None:
            join = wishes.find_subjoin(keyed, mask)
            if join is None:
                return None
            tree = coming.get(join.key)
            if tree is None and (one := self._joins.get(join.key)) is not None:
                tree = one.tree if self.alive(one.at) else None
            return None if tree is None else join.to_parts(tree)

        def wants(mask: int) -> int:
            join = wishes.find_subjoin(keyed, mask)
            return 1 if join is None else max(wishes.wanted[join.key], 1)

        if (tree := running(whole)) is not None:  # equal conjunctions need no search
            current_tree = keyed.conjunction.tree
            return Chosen((tree,) if tree != current_tree else (), tree, 0.0, 0.0)
        costs = Costs.from_rates(
            keyed, whole, self._rates(keyed, wishes), self._cuts(keyed, wishes)
        )
        return choose(keyed, OrderContext(running, wants), costs)

    def _rates(self, keyed: Keyed, wishes: _Wishes) -> Callable[[int], float | None]:
        def rate(mask: int) -> float | None:
            if not mask & (mask - 1):
                at = self._parts.get(keyed.parts[mask.bit_length() - 1].number)
                return None if at is None else self.rate(at)
            join = wishes.find_subjoin(keyed, mask)
            one = None if join is None else self._joins.get(join.key)
            return None if one is None else self.rate(one.at)

        return rate

    def _cuts(self, keyed: Keyed, wishes: _Wishes) -> Iterator[Cut]:
        """Yields the running joins among the sub-joins of a conjunction."""
        for mask in wishes.sets(keyed):
            join = keyed.sub_join(mask)
            one = self._joins.get(join.key)
            if one is not None:
                yield cuts_of(join.to_parts(one.tree))[-1][1]


# The places of the rows of a query's parts and sub-joins after it is installed.
#
# A query's tree is that of its conjunctions, with the changes of installation: a relaxed join is
# below a pick, without the lifted conditions (``parameterize``), and static data are below their
# arrangement. Both trees are walked side by side.


def locate_conjunctions(
    conjunctions: Sequence[Conjunction], installer: Installer, root: Op, installed: Op
) -> Iterator[tuple[RunningConjunction, Mapping[int, int]]]:
    """Yields the conjunctions below ``root`` as they were ``installed``, with the numbers of
    operators.

    These are the operators of their parts and sub-joins.
    """
    became: dict[int, Op] = {}
    _walk(root, installed, became)
    for number, conjunction in enumerate(conjunctions):
        if not 1 < len(conjunction.parts) <= MAX_ORDERED_PARTS:
            continue
        ops = {1 << i: part for i, part in enumerate(conjunction.parts)}
        ops |= {mask_of(tree): op for tree, op in conjunction.joined.items()}
        there = {mask: base_of(became[id(op)]) for mask, op in ops.items() if id(op) in became}
        numbers = {
            mask: installer.numbers[id(op)]
            for mask, op in there.items()
            if id(op) in installer.numbers
        }
        yield RunningConjunction(installer, conjunction, {}, number), numbers


def with_places(
    numbered: tuple[RunningConjunction, Mapping[int, int]],
    common: CommonSubexpressions,
    index: Mapping[Shape, int],
) -> RunningConjunction:
    """Returns a conjunction with the places of its installed operators."""
    followed, numbers = numbered
    made = {
        mask: known.made[-1]
        for mask, number in numbers.items()
        if (known := common.known.get(number)) is not None and known.made
    }
    places = {mask: (index[one.shape], one.member) for mask, one in made.items()}
    return replace(followed, places=places)


def _walk(root: Op, installed: Op, became: dict[int, Op]) -> None:
    """Maps each operator below the first root to the one below the second root in its place."""
    waiting = [(root, installed)]
    while waiting:
        op, other = waiting.pop()
        if isinstance(other.spec, p.ByWindow) and not isinstance(op.spec, p.ByWindow):
            (other,) = other.inputs
        if isinstance(other.spec, p.Pick) and not isinstance(op.spec, p.Pick):
            (other,) = other.inputs
        if isinstance(other.spec, p.Arrange):
            (other,) = other.inputs
        if id(op) in became:
            continue
        became[id(op)] = other
        if type(op.spec) is type(other.spec) and len(op.inputs) == len(other.inputs):
            waiting += zip(op.inputs, other.inputs, strict=True)
        elif isinstance(op.spec, p.Filter):
            waiting.append((op.inputs[0], other))

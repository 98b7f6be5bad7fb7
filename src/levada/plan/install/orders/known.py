"""The sub-joins of the queries that there are, and the order of joins of those that come.

    follow      queries that run: their sub-joins by what they are (``keys``), each with the order
                in which it runs and where
    choose      queries that come together: of each the order that adds least (``choose``), one
                after the other; what one of them makes is there for the next

Of a query alone nothing is asked: what runs is looked at when another one comes. A sub-join whose
member is gone is none (numbers are never used again), and forgotten when many are. Which order is
chosen follows from the queries that there are, those that come, and what has been measured, and
from nothing else. Results never depend on it. Cost of a query: by its own sub-joins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from levada.plan.install.common import Key
from levada.plan.install.install import Installer
from levada.plan.install.orders.choose import MOST, Chosen, Seen, choose
from levada.plan.install.orders.costs import Costs, Cut, cuts_of
from levada.plan.install.orders.keys import Keyed, Numbers, SubJoin, places_of
from levada.plan.lowering.join_order import MANY, Conjunction, Tree
from levada.plan.sealed.shares import At

FEW = 256
"""Sub-joins that are kept unasked."""
LARGE = 3
"""Parts of the sub-joins that are looked for in conjunctions of more than ``MOST`` parts."""


@dataclass(frozen=True, slots=True)
class Running:
    """A sub-join that runs: in which order, by places in its key; where."""

    tree: Tree
    at: At


@dataclass(frozen=True, slots=True)
class Asked:
    """A query that comes: its conjunctions in their own orders. ``rows``: how many it stands
    for.
    """

    name: str
    installer: Installer
    conjunctions: Sequence[Conjunction]


@dataclass(frozen=True, slots=True)
class Followed:
    """What runs of a query's conjunction: where the rows of each part and sub-join are, by bits of
    parts.
    """

    installer: Installer
    conjunction: Conjunction
    places: dict[int, At]


@dataclass(slots=True)
class Known:
    """The sub-joins of the queries of a topology. ``alive``: whether there is such a member;
    ``rate``: how many rows it has for each element, if that is known. ``lifted``: constants are no
    part of what they are. ``forced``: what says the units of a conjunction in place of all this.
    """

    alive: Callable[[At], bool]
    rate: Callable[[At], float | None]
    lifted: bool = False
    forced: Callable[[str, Conjunction], Sequence[Tree]] | None = None
    _numbers: Numbers = field(default_factory=Numbers)
    _joins: dict[Key, Running] = field(default_factory=dict)
    _parts: dict[int, At] = field(default_factory=dict)
    _new: list[Followed] = field(default_factory=list)
    _coming: dict[Key, Tree] = field(default_factory=dict)
    _most: int = FEW

    def follow(self, followed: Followed) -> None:
        """A conjunction that runs now."""
        self._new.append(followed)

    def choose(self, asked: Sequence[Asked]) -> dict[str, dict[int, Chosen]]:
        """The orders of conjunctions that others than the query's own are chosen for, or were
        looked at, by the query and their numbers.
        """
        if self.forced is not None:
            return self._as_forced(asked)
        alone = len(asked) == 1 and not self._new and not self._joins
        if alone or not any(len(c.parts) > 2 for one in asked for c in one.conjunctions):
            return {}
        self._learn()
        keyed = [
            (one.name, number, self._keyed(one.installer, conjunction))
            for one in asked
            for number, conjunction in enumerate(one.conjunctions)
            if 1 < len(conjunction.parts) <= MANY
        ]
        uses = Counter(n for *_, each in keyed for n in {part.number for part in each.parts})

        def common(number: int) -> bool:
            return uses[number] > 1 or number in self._parts

        wanted: Counter[Key] = Counter()
        for *_, each in keyed:
            wanted.update({each.sub_join(mask).key for mask in _sets(each, common)})
        found: dict[str, dict[int, Chosen]] = {}
        self._coming = {}
        for name, number, each in keyed:
            chosen = self._chosen(each, common, wanted)
            tree = each.conjunction.tree
            if chosen is not None:
                found.setdefault(name, {})[number] = chosen
                tree = tree if not chosen.units else chosen.tree
            for sub, (left, right) in cuts_of(tree):
                join = self._of(each, common, left | right)
                if join is not None:
                    self._coming.setdefault(join.key, join.canonical(sub))
        self._coming = {}
        return found

    def _as_forced(self, asked: Sequence[Asked]) -> dict[str, dict[int, Chosen]]:
        assert self.forced is not None, "who says the orders"
        found: dict[str, dict[int, Chosen]] = {}
        for one in asked:
            for number, conjunction in enumerate(one.conjunctions):
                units = tuple(self.forced(one.name, conjunction))
                if units:
                    found.setdefault(one.name, {})[number] = Chosen(units, units[0], 0.0, 0.0)
        return found

    def _keyed(self, installer: Installer, conjunction: Conjunction) -> Keyed:
        return Keyed.of(conjunction, installer, self._numbers, lifted=self.lifted)

    def _learn(self) -> None:
        """Looks at the conjunctions that have come to run since."""
        new, self._new = self._new, []
        for one in new:
            keyed = self._keyed(one.installer, one.conjunction)
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
        """Forgets what is gone."""
        self._joins = {key: one for key, one in self._joins.items() if self.alive(one.at)}
        self._parts = {number: at for number, at in self._parts.items() if self.alive(at)}
        self._numbers.keep({*self._parts})
        self._most = max(len(self._joins) + len(self._parts), FEW)

    def _of(self, keyed: Keyed, common: Callable[[int], bool], mask: int) -> SubJoin | None:
        """A sub-join, if all of its parts are others' too."""
        there = all(common(keyed.parts[i].number) for i in places_of(mask))
        return keyed.sub_join(mask) if there else None

    def _chosen(
        self, keyed: Keyed, common: Callable[[int], bool], wanted: Counter[Key]
    ) -> Chosen | None:
        """The order of a conjunction; None: nothing is known that could make it another."""
        whole = (1 << len(keyed.parts)) - 1
        shared = sum(common(part.number) for part in keyed.parts)
        if len(keyed.parts) < 3 or shared < 2 or not keyed.is_connected(whole):
            return None

        def running(mask: int) -> Tree | None:
            join = self._of(keyed, common, mask)
            if join is None:
                return None
            tree = self._coming.get(join.key)
            if tree is None and (one := self._joins.get(join.key)) is not None:
                tree = one.tree if self.alive(one.at) else None
            return None if tree is None else join.here(tree)

        def wants(mask: int) -> int:
            join = self._of(keyed, common, mask)
            return 1 if join is None else max(wanted[join.key], 1)

        if (tree := running(whole)) is not None:  # equal ones cost no search
            own = keyed.conjunction.tree
            return Chosen((tree,) if tree != own else (), tree, 0.0, 0.0)
        costs = Costs.of(keyed, whole, self._rates(keyed, common), self._cuts(keyed, common))
        return choose(keyed, Seen(running, wants), costs)

    def _rates(self, keyed: Keyed, common: Callable[[int], bool]) -> Callable[[int], float | None]:
        def rate(mask: int) -> float | None:
            if not mask & (mask - 1):
                at = self._parts.get(keyed.parts[mask.bit_length() - 1].number)
                return None if at is None else self.rate(at)
            join = self._of(keyed, common, mask)
            one = None if join is None else self._joins.get(join.key)
            return None if one is None else self.rate(one.at)

        return rate

    def _cuts(self, keyed: Keyed, common: Callable[[int], bool]) -> Iterator[Cut]:
        """The joins that run, among the sub-joins of a conjunction."""
        for mask in _sets(keyed, common):
            join = keyed.sub_join(mask)
            one = self._joins.get(join.key)
            if one is not None:
                yield cuts_of(join.here(one.tree))[-1][1]


def _sets(keyed: Keyed, common: Callable[[int], bool]) -> Iterator[int]:
    """The sub-joins of parts that others have, too."""
    n = len(keyed.parts)
    within = sum(1 << i for i, part in enumerate(keyed.parts) if common(part.number))
    most = n if n <= MOST else LARGE
    yield from (mask for mask in keyed.connected(within, most) if mask & (mask - 1))

"""Keys of sub-joins, independent of variable names and join order, that find equal sub-joins of
other queries.

    part       its signature, its windows; with relaxation without its lifted terms
    sub-join   its parts, sorted; the equalities of their variables, windows and lifted terms (with
               relaxation not windows that use time alone); the conditions on several of them

Equal parts are tried in all orders, if these are few, and the least key is taken. If they are many,
the order of the text decides; this may prevent sharing, but changes no result. Two sub-joins of one
key give the same rows, except for column order, and with relaxation for lifted terms. Cost of a
key: some us for each part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, permutations, product
from math import factorial, prod

from levada.core.expressions import Expression, Var, requires_values, show, variables
from levada.core.frozen import frozen
from levada.core.size_thresholds import register
from levada.plan.binding.edges import look_through
from levada.plan.binding.installer import Installer
from levada.plan.execution.sharing_demand import LOOSE, with_widest_windows
from levada.plan.lowering.join_order import Conjunction, Tree
from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op, all_operators
from levada.plan.sharing.parameterize import Parameterizer
from levada.plan.sharing.share_equal_operators import Key

ORDERS = register(f"{__name__}.ORDERS", 24)
"""The maximum number of orders of equal parts that are tried."""
_NAME = re.compile(r"\?([\w.]+)")


@frozen
class Part:
    """A part of a conjunction: its number, and the names that it may share with others,
    in order.
    """

    number: int
    labels: tuple[object, ...]


@dataclass(slots=True)
class Numbers:
    """The numbers of parts by their signatures."""

    known: dict[Key, int] = field(default_factory=dict)
    _next: int = 0

    def part(self, op: Op, installer: Installer, *, lifted: bool) -> Part:
        """Returns a part of a query's conjunction; ``lifted``: regardless of its constants."""
        windows = op.windows or ()
        rows = installer.timing.member_of_rows(windows)
        terms: dict[str, object] = {}
        spans = rows.windows
        if lifted:
            lifting = Parameterizer(windows)
            op = lifting.lift(op, (0,))
            # parts do not share variables that a projection hides
            terms = {name: object() for name in op.variables if name.startswith(".")}
            terms |= {one.name: one.terms for one in lifting.lifted if one.source}
            spans = with_widest_windows(spans)
            if all(window.kind in LOOSE for window in rows.windows):
                windows = ()  # joins over one window or two are equal (``per_leaf_times``)
        base, source = look_through(op)
        shown = tuple(
            [base.variables.index(source[v]) if v in source else -1 for v in op.variables]
        )
        key = (installer.signature(base), shown, spans, rows.streams)
        number = self.known.get(key)
        if number is None:
            number = self.known[key] = self._next
            self._next += 1
        return Part(number, (*(terms.get(v, v) for v in op.variables), *windows))

    def keep(self, numbers: set[int]) -> None:
        """Removes all parts except these."""
        self.known = {key: number for key, number in self.known.items() if number in numbers}


@frozen
class SubJoin:
    """The key of a sub-join, and the indexes of its parts in the conjunction, in the order of the
    key.
    """

    key: Key
    places: tuple[int, ...]

    def canonical(self, tree: Tree) -> Tree:
        """Translates a tree of parts to places in the key."""
        at = {place: i for i, place in enumerate(self.places)}
        return _rename_places(tree, at)

    def to_parts(self, tree: Tree) -> Tree:
        """Translates a tree of places in the key to this conjunction's parts."""
        return _rename_places(tree, dict(enumerate(self.places)))


def _rename_places(tree: Tree, to: Mapping[int, int]) -> Tree:
    if isinstance(tree, int):
        return to[tree]
    return _rename_places(tree[0], to), _rename_places(tree[1], to)


@dataclass
class Keyed:
    """The parts of a conjunction, and the keys of its sub-joins, by bits of parts."""

    conjunction: Conjunction
    parts: tuple[Part, ...]
    _sub_joins: dict[int, SubJoin] = field(default_factory=dict)
    _beside: dict[int, int] = field(default_factory=dict)

    @staticmethod
    def from_conjunction(
        conjunction: Conjunction, installer: Installer, numbers: Numbers, *, lifted: bool
    ) -> Keyed:
        """Returns a conjunction with its parts."""
        parts = tuple([numbers.part(op, installer, lifted=lifted) for op in conjunction.parts])
        return Keyed(conjunction, parts)

    @cached_property
    def adjacency(self) -> tuple[int, ...]:
        """For each part the bits of the parts with which it has a key."""
        ops = self.conjunction.parts
        bound = [{*op.variables} - (op.maybe - self.conjunction.equal) for op in ops]
        with_ = dict[str, int]()
        for i, names in enumerate(bound):
            for name in names:
                with_[name] = with_.get(name, 0) | 1 << i
        masks = []
        for i, names in enumerate(bound):
            mask = 0
            for name in names:
                mask |= with_[name]
            masks.append(mask & ~(1 << i))
        return tuple(masks)

    @cached_property
    def restricted(self) -> int:
        """The bits of the parts with a constant, beside predicates, or a condition."""
        return sum(1 << i for i, op in enumerate(self.conjunction.parts) if _is_restricted(op))

    def neighbours(self, mask: int) -> int:
        """Returns the parts that have a key with some of these."""
        neighbours = self._beside.get(mask)
        if neighbours is None:
            neighbours = 0
            for i in places_of(mask):
                neighbours |= self.adjacency[i]
            neighbours = self._beside[mask] = neighbours & ~mask
        return neighbours

    def is_connected(self, mask: int) -> bool:
        """Whether parts are connected by keys."""
        reached, new = 0, mask & -mask
        while new:
            reached |= new
            new = self.neighbours(reached) & mask
        return reached == mask

    def connected_sets(self, within: int, most: int) -> list[int]:
        """Returns the connected subsets of up to ``most`` parts, each once, smaller ones first."""
        level = [1 << i for i in places_of(within)]
        masks = list(level)
        for _ in range(most - 1):
            level = list(
                dict.fromkeys(
                    mask | 1 << i
                    for mask in level
                    for i in places_of(self.neighbours(mask) & within)
                )
            )
            masks += level
        return masks

    def sub_join(self, mask: int) -> SubJoin:
        """Returns the key of a sub-join of these parts."""
        if mask not in self._sub_joins:
            places = places_of(mask)
            names = {v for i in places for v in self.conjunction.parts[i].variables}
            conditions = [c for c in self.conjunction.conditions if {*variables(c)} <= names]
            self._sub_joins[mask] = _sub_join(self.parts, places, conditions)
        return self._sub_joins[mask]


def places_of(mask: int) -> list[int]:
    """Returns the positions of the set bits.

    >>> places_of(0b1101)
    [0, 2, 3]
    """
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


def _is_restricted(part: Op) -> bool:
    """Whether a part has a constant, beside predicates, or a condition other than BOUND."""
    for op in all_operators(part):
        spec = op.spec
        if isinstance(spec, p.Constant):
            return True
        if isinstance(spec, p.Filter) and not requires_values(spec.condition):
            return True
        if isinstance(spec, p.Match | p.Entailed | p.Select | p.Star):
            patterns = spec.patterns if isinstance(spec, p.Star) else (spec.pattern,)
            if not all(isinstance(t, Var) for one in patterns for t in (one.subject, one.object)):
                return True
    return False


def _sub_join(
    parts: Sequence[Part], places: Sequence[int], conditions: Sequence[Expression]
) -> SubJoin:
    by_number = sorted(places, key=lambda i: parts[i].number)
    alike = [list(group) for _, group in groupby(by_number, key=lambda i: parts[i].number)]
    orders = [by_number]
    if len(alike) < len(places) and prod(factorial(len(group)) for group in alike) <= ORDERS:
        orders = [
            [i for group in each for i in group] for each in product(*map(permutations, alike))
        ]
    labelled = [(_label_parts(parts, order), tuple(order)) for order in orders]
    key, order = min(labelled)
    if not conditions:
        return SubJoin(key, order)
    names = {label: i for i, label in enumerate(_labels(parts, order))}
    condition_texts = sorted(
        _NAME.sub(lambda m: f"?{names.get(m[1], m[1])}", show(c)) for c in conditions
    )
    return SubJoin((key, *condition_texts), order)


def _labels(parts: Sequence[Part], order: Sequence[int]) -> list[object]:
    """Returns the distinct names that parts may share, in order of appearance."""
    return list(dict.fromkeys(label for i in order for label in parts[i].labels))


def _label_parts(parts: Sequence[Part], order: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    seen: dict[object, int] = {}
    return tuple(
        [
            (parts[i].number, *[seen.setdefault(label, len(seen)) for label in parts[i].labels])
            for i in order
        ]
    )

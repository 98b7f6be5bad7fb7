"""Orders of joins by lot, drawn anew each time that a query is asked for."""

from __future__ import annotations

from random import Random

from levada.plan.lowering.join_order import Conjunction, Tree


class Lots:
    """Orders by lot, of parts that hang together as far as there are such."""

    def __init__(self, seed: int) -> None:
        self._random, self.others = Random(seed), 0

    def __call__(self, name: str, number: int, conjunction: Conjunction) -> list[Tree]:
        names = [{*op.variables} for op in conjunction.parts]
        ways: list[tuple[Tree, set[str]]] = list(enumerate(names))
        while len(ways) > 1:
            pairs = [(a, b) for a in ways for b in ways if a is not b]
            near = [(a, b) for a, b in pairs if a[1] & b[1]]
            a, b = self._random.choice(near or pairs)
            ways = [way for way in ways if way is not a and way is not b]
            ways.append(((a[0], b[0]), a[1] | b[1]))
        self.others += ways[0][0] != conjunction.tree
        return [ways[0][0]]

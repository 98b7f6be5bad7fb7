"""The cost of a join of many inputs in one step, and two at a time, and the choice of the strategy.

Two at a time keeps the join of some inputs as state, so that rows of the others meet it with one
probe. One step computes it again and again, and keeps nothing. The cheaper strategy follows from
the number of rows that each *set* of inputs makes in an epoch: for each input, its new rows times
the mean of the products of their matches in the others (``multiway_inputs.matches``), so keys with
many rows in several inputs are counted correctly.

    one step    each new row probes others in turn, as do the combinations on the way
    two         each new row probes once; intermediate results are made, written, merged, and
                probe, too

Two at a time uses the cheapest order. Figures are recent: each epoch counts for a third of the
remembered value, and in proportion to its rows.

Invariant: the choice follows from the epochs alone, so a replay makes the same choice. (CQELS
Cloud, C26, C27.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from levada.core.array_types import Doubles
from levada.core.frozen import frozen

PROBE, CARRY, STORE = 100.0, 60.0, 500.0
"""Nanoseconds: a probe of an input; a combination on the way; a row that is kept."""
FIRST = 3  # epochs that are looked at before the first choice
GAIN = 1.1  # so many times better another form must be at the first choice
LATER_GAIN = 2.0  # and so many times later
FADE = 0.3
MAX_INPUTS = 6  # inputs, of whose sets figures are kept


@frozen
class Figures:
    """The statistics of a join. ``order``: its current order, () for one step. ``epochs``: the
    number of observed epochs. ``rows``: by set of inputs (bits) the number of new rows of their
    join in an epoch. ``one``: the cost of one step in an epoch (ns).
    """

    order: tuple[int, ...]
    epochs: int
    one: float
    rows: Doubles

    @staticmethod
    def empty(inputs: int) -> Figures:
        """Nothing is known yet: it is one step."""
        return Figures((), 0, 0.0, np.zeros(1 << inputs))

    def with_epoch(self, looks: Sequence[Doubles], new: Sequence[int]) -> Figures:
        """With another epoch, which has so many new rows of each input."""
        one, rows = _one_step_cost(looks, new), _rows(looks, new)
        if self.epochs:
            one = self.one + FADE * (one - self.one)
            rows = self.rows + FADE * (rows - self.rows)
        return Figures(self.order, self.epochs + 1, one, rows)

    def two_way_cost(self, order: Sequence[int]) -> float:
        """Returns the cost of two at a time in an epoch (ns), in this order."""
        some, cost, left = 1 << order[0], 0.0, float(self.rows[1 << order[0]])
        for at, i in enumerate(order[1:], 2):
            cost += PROBE * (left + float(self.rows[1 << i]))
            some |= 1 << i
            left = float(self.rows[some])
            if at < len(order):
                cost += STORE * left
        return cost

    def best_order(self) -> tuple[float, tuple[int, ...]]:
        """Returns the least cost of two at a time (ns), and its order."""
        inputs = len(self.rows).bit_length() - 1
        least: dict[int, tuple[float, tuple[int, ...]]] = {
            1 << a | 1 << b: (self.two_way_cost((a, b)), (a, b))
            for a, b in combinations(range(inputs), 2)
        }
        for size in range(3, inputs + 1):
            least = dict(self._extend_orders(least, inputs, size))
        (cheapest,) = least.values()
        return cheapest

    def _extend_orders(
        self, least: dict[int, tuple[float, tuple[int, ...]]], inputs: int, size: int
    ) -> Iterator[tuple[int, tuple[float, tuple[int, ...]]]]:
        """The best orders of sets with one input more."""
        for some in (sum(1 << i for i in of) for of in combinations(range(inputs), size)):
            ways = ((*least[some & ~(1 << i)][1], i) for i in range(inputs) if some & 1 << i)
            yield some, min((self._order_cost(way), way) for way in ways)

    def _order_cost(self, order: tuple[int, ...]) -> float:
        """Returns the cost of a join of these inputs, kept as long as there are others."""
        whole = 1 << len(order) == len(self.rows)
        last = 0.0 if whole else float(self.rows[sum(1 << i for i in order)])
        return self.two_way_cost(order) + STORE * last

    def largest(self, order: Sequence[int]) -> float:
        """The most rows that are kept new in an epoch, of one of its joins of two."""
        sets = (sum(1 << i for i in order[:size]) for size in range(2, len(order)))
        return max((float(self.rows[some]) for some in sets), default=0.0)


def choose(figures: Figures) -> tuple[int, ...]:
    """Returns the order of the joins of two with which a join continues, or () for one step."""
    now = figures.order
    if figures.epochs < FIRST or figures.one <= 0:
        return now
    two, order = figures.best_order()
    current_cost = figures.two_way_cost(now) if now else figures.one
    least, best = min((figures.one, ()), (two, order))
    first = figures.epochs == FIRST and not now
    return best if best != now and current_cost > least * (GAIN if first else LATER_GAIN) else now


def _one_step_cost(looks: Sequence[Doubles], new: Sequence[int]) -> float:
    """Returns the cost of one step (ns): each input first probes the inputs with the fewest
    matches.
    """
    cost = 0.0
    for i, (look, rows) in enumerate(zip(looks, new, strict=True)):
        if not rows:
            continue
        others = sorted((j for j in range(len(looks)) if j != i), key=look.mean(axis=0).__getitem__)
        made, left = np.ones(len(look)), float(rows)
        for at, j in enumerate(others, 2):
            cost += PROBE * left
            made = made * look[:, j]
            left = rows * float(made.mean())
            cost += CARRY * left if at < len(looks) else 0.0  # results are made in each form
    return cost


def _rows(looks: Sequence[Doubles], new: Sequence[int]) -> Doubles:
    """Returns by set of inputs the number of new rows in their join."""
    inputs = len(looks)
    row_counts = np.zeros(1 << inputs)
    for i, (look, rows) in enumerate(zip(looks, new, strict=True)):
        if not rows:
            continue
        made = {1 << i: np.ones(len(look))}
        for j in range(inputs):
            if j != i:
                made |= {some | 1 << j: each * look[:, j] for some, each in made.items()}
        for some, each in made.items():
            row_counts[some] += rows * float(each.mean())
    return row_counts

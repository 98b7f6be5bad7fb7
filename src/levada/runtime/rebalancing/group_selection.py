"""Selects the groups that a supplier gives away: a set that weighs at most so much.

The paper gives one partition-group of some sixty by lot. Here there are 65,536 groups, so a move
has as many as necessary. A group that weighs more than the amount stays. So a busy key that is a
group by itself is not passed around.
"""

from __future__ import annotations

import numpy as np

from levada.core.array_types import Doubles, Longs
from levada.runtime.rebalancing.rebalancing_options import Choice


def choose_groups(weights: Doubles, amount: float, choice: str, rng: np.random.Generator) -> Longs:
    """Chooses the positions of the groups to give away, among those with a weight.

    >>> choose_groups(np.array([5.0, 0.0, 2.0, 4.0, 1.0]), 6.5, "largest", np.random.default_rng(1))
    array([0, 4])
    """
    (there,) = np.nonzero(weights > 0)
    if choice == Choice.RANDOM:
        there = rng.permutation(there[weights[there] <= amount])
        return np.sort(there[np.cumsum(weights[there]) <= amount])
    order = there[np.argsort(-weights[there], kind="stable")]
    if choice == Choice.BEST_FIT:
        return _best_fit(weights, order, amount)
    return np.sort(_largest(weights, order, amount))


def _best_fit(weights: Doubles, order: Longs, amount: float) -> Longs:
    """Chooses first the group whose weight is nearest to the amount, also above it; then the
    heaviest that still fit.
    """
    off = np.abs(weights[order] - amount)
    if not len(order) or off.min() >= amount:
        return np.empty(0, np.int64)
    first = order[int(off.argmin())]
    rest = _largest(weights, order[order != first], amount - float(weights[first]))
    return np.sort(np.append(rest, first))


def _largest(weights: Doubles, order: Longs, amount: float) -> Longs:
    """Chooses the heaviest group that fits, then the heaviest that fits into the rest, and so on;
    in runs of neighbours, of which there are few.
    """
    w = weights[order]
    taken, at, left = [order[:0]], 0, amount
    while at < len(order):
        at += int(np.searchsorted(-w[at:], -left))  # the first that fits
        fits = int(np.searchsorted(np.cumsum(w[at:]), left, side="right"))
        if not fits:
            break
        taken.append(order[at : at + fits])
        left -= float(w[at : at + fits].sum())
        at += fits
    return np.concatenate(taken)

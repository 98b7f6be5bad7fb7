"""Nodes, how far they are from each other, and the regions that they form (STREAMREUSE, sections
2.2 and 4.2).

Delays are in seconds. A *region* is a number, its RID the bit of that number; a mask is the bits of
several. Regions are given, or found by k-medoids on the delays, which needs no coordinates where
the paper takes K-Means: the medoid is the region's planner node. There is one planner here, to whom
searching "my region first, then farther" is a row of masks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from levada.core.array_types import Doubles, Ints
from levada.core.frozen import frozen
from levada.errors import UsageError

ROUNDS = 50


@frozen
class Network:
    """``delay`` in seconds from row to column, ``region`` by node, ``medoid`` by region."""

    delay: Doubles
    region: Ints
    medoid: Ints

    def rid(self, node: int) -> int:
        """The bit of a node's region."""
        return 1 << int(self.region[node])

    def far(self, one: int, other: int) -> float:
        """Seconds from one node to another."""
        return float(self.delay[one, other])

    def masks(self, node: int) -> list[int]:
        """Regions that have not been asked, from a node on: its own, then the nearer half of the
        others, then all that are left.

        >>> net = network(np.array([[0, 1, 9], [1, 0, 9], [9, 9, 0]]) / 1000, [0, 0, 1])
        >>> net.masks(0)
        [1, 2]
        """
        own = int(self.region[node])
        order = np.argsort(self.delay[self.medoid[own], self.medoid], kind="stable")
        others = [int(r) for r in order if r != own]
        half = (len(others) + 1) // 2
        parts = [[own], others[:half], others[half:]]
        return [sum(1 << r for r in part) for part in parts if part]


def network(delay: Doubles, region: Sequence[int] | Ints) -> Network:
    """Nodes with the regions that are given. Raises ``UsageError``."""
    of = np.asarray(region, np.int32)
    if delay.ndim != 2 or delay.shape[0] != delay.shape[1] or (delay < 0).any():
        raise UsageError("Delays are a square of seconds, none of which is negative.")
    if of.shape != (len(delay),) or set(of.tolist()) != set(range(int(of.max()) + 1)):
        raise UsageError(f"Each of the {len(delay)} nodes has a region, counted from 0.")
    return Network(delay, of, _medoids(delay, of))


def clustered(delay: Doubles, regions: int, seed: int) -> Network:
    """Nodes in so many regions, by k-medoids from a seeded start that is spread out.

    >>> delay = np.array([[0, 1, 9, 9], [1, 0, 9, 9], [9, 9, 0, 1], [9, 9, 1, 0]]) / 1000
    >>> found = clustered(delay, 2, 0).region
    >>> bool(found[0] == found[1] != found[2] == found[3])
    True
    """
    if not 0 < regions <= len(delay):
        raise UsageError(f"{len(delay)} nodes can't form {regions} regions.")
    chosen = [int(np.random.default_rng(seed).integers(len(delay)))]
    while len(chosen) < regions:
        chosen.append(int(delay[chosen].min(0).argmax()))
    medoid = np.array(chosen, np.int32)
    for _ in range(ROUNDS):
        of = delay[medoid].argmin(0).astype(np.int32)
        of[medoid] = np.arange(regions)
        moved = _medoids(delay, of)
        if (moved == medoid).all():
            break
        medoid = moved
    return network(delay, of)


def _medoids(delay: Doubles, of: Ints) -> Ints:
    found = []
    for region in range(int(of.max()) + 1):
        nodes = np.flatnonzero(of == region)
        found.append(int(nodes[delay[np.ix_(nodes, nodes)].sum(0).argmin()]))
    return np.array(found, np.int32)

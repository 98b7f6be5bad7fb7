"""A network of transit and stub domains with delays, after the usual models of the internet.

All parameters are ours: stubs of equally many nodes, each stub on one transit node, transit nodes
in a ring with chords. Delays in seconds: 1 to 5 ms within a stub, 5 to 15 ms to its transit node,
20 to 60 ms between transit nodes. The shortest way counts.
"""

from __future__ import annotations

import numpy as np

from bench.papers.streamreuse.model.network import Network, clustered
from levada.core.array_types import Doubles


def transit_stub(stubs: int, each: int, seed: int) -> Network:
    """``stubs`` domains of ``each`` nodes, whose first is the transit node; as many regions, found
    from the delays.
    """
    rng = np.random.default_rng(seed)
    n = stubs * each
    delay = np.full((n, n), np.inf)
    np.fill_diagonal(delay, 0.0)
    heads = np.arange(stubs) * each
    for head in heads:
        for node in range(head + 1, head + each):
            near = int(rng.integers(head, node))
            _link(delay, node, near, rng.uniform(0.005, 0.015) if near == head else 0.0, rng)
    for i, head in enumerate(heads):
        _link(delay, head, heads[(i + 1) % stubs], rng.uniform(0.02, 0.06), rng)
        _link(delay, head, int(rng.choice(heads)), rng.uniform(0.02, 0.06), rng)
    for middle in range(n):
        np.minimum(delay, delay[:, middle, None] + delay[None, middle, :], out=delay)
    return clustered(delay, stubs, seed)


def _link(delay: Doubles, one: int, other: int, seconds: float, rng: np.random.Generator) -> None:
    if one != other:
        seconds = seconds or rng.uniform(0.001, 0.005)
        delay[one, other] = delay[other, one] = min(delay[one, other], seconds)

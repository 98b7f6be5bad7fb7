"""Parallel windowed stream joins, its evaluation: what arrives, its knobs, what
its text says of its figures, and what follows from epochs that were measured.

Arrivals are Poisson. Keys are of a b-model: each half of the keys has a share b of what their whole
has, or 1 - b, and so on. The figures themselves are lost in the text that there is; what sentences
tell of them is *quoted*. A cluster of n slaves is *predicted* from what the task of each partition
takes: slaves do not wait for each other but at the end of an epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.data import Events
from levada.core.array_types import Doubles

WINDOW, DISTRIBUTION, REORGANIZATION = 600.0, 2.0, 20.0  # s
RATE, BIAS, BITS = 1_500, 0.7, 23  # a second and stream; keys are 0 to some 10**7
GROUPS, TUPLE, BUFFER, THETA = 60, 64, 1_000_000, 1_500_000  # bytes of a tuple, a buffer, a part

QUOTED = {
    "delay, 4 slaves, 4,000 tuples a second and stream, tuned": "about 2 s",
    "delay, 4 slaves, 4,000 tuples a second and stream, not tuned": "about 48 s",
    "a slave is never idle from": "4,000 a second on, tuned 6,000",
}
FIGURES = {
    "Table 2": ("quoted", "its values: this module; `balance=windowed-joins`"),
    "Fig. 5, 6": ("predicted", "delay by rate and slaves, from measured tasks: `curves`"),
    "Fig. 7, 8": ("quoted, measured", "CPU and delay without and with parts: `tuning`"),
    "Fig. 9, 10": ("predicted", "idle time by rate: `curves`; bytes for times of communication"),
    "Fig. 11": ("measured", "bytes and blobs of an epoch by slaves, a fixed or a chosen number"),
    "Fig. 12": ("measured", "bytes to the slave that gets least, on average, most: `curves`"),
    "Fig. 13, 14": ("predicted, measured", "delay and bytes by the length of an epoch: `lengths`"),
    "background load": ("measured", "`LEVADA_MOVING=beside bench moving`"),
    "sub-groups": ("re-derived", "the buffer's peak, `peak`; docs/decisions/0129 has what we do"),
    "rivals": ("re-derived", "bytes where one stream goes to all slaves: `to_all`"),
    "seconds on a network": ("not measurable here", "one machine of two cores"),
}
"""What each is here, and where."""


def poisson(seed: int, rate: float, seconds: float, bias: float = BIAS) -> Events:
    """Events of a stream, ``rate`` a second on average, times in whole ms, keys of a b-model."""
    rng = np.random.default_rng(seed)
    n = int(rng.poisson(rate * seconds))
    ts = np.sort(rng.random(n) * seconds * 1000).astype(np.int64)
    return Events(b_model(rng, n, BITS, bias), np.round(rng.random(n) * 1000, 3), ts)


def b_model(rng: np.random.Generator, n: int, bits: int, bias: float) -> np.ndarray:
    """``n`` keys below two to the ``bits``: each bit is 0 with probability ``bias``."""
    k = np.zeros(n, np.int64)
    for bit in range(bits):
        k |= (rng.random(n) >= bias).astype(np.int64) << bit
    return k


def slope(bias: float) -> float:
    """The entropy that each further bit of a key adds, in bits.

    >>> round(slope(0.7), 3), slope(0.5)
    (0.881, 1.0)
    """
    return float(-bias * np.log2(bias) - (1 - bias) * np.log2(1 - bias))


def peak(rate: float, epoch: float, groups: int) -> float:
    """Rows in the master's buffer at most, slaves served in so many groups one after the other.

    >>> peak(1500, 2.0, 1), peak(1500, 2.0, 4)
    (3000.0, 1875.0)
    """
    return rate * epoch / 2 * (1 + 1 / groups)


def to_all(first: float, second: float, slaves: int) -> float:
    """Bytes of an epoch where each slave has the whole of the second stream.

    >>> to_all(100.0, 100.0, 4)
    500.0
    """
    return first + slaves * second


@dataclass(frozen=True, slots=True)
class Served:
    """What epochs take on a cluster, s: the ``master``, and each slave (epochs x slaves)."""

    master: Doubles
    slaves: Doubles

    @property
    def service(self) -> Doubles:
        """Of each epoch, until its last slave is done."""
        found: Doubles = self.master + self.slaves.max(axis=1)
        return found

    def delay(self, epoch: float) -> float:
        """Mean s from the arrival of a pair's younger tuple until it is put out, where epochs are
        of so many s: half an epoch until the buffer goes, what waits before it, and its service.

        >>> Served(np.array([0.5, 0.5]), np.array([[0.5], [0.5]])).delay(2.0)
        2.0
        """
        free, found = 0.0, []
        for number, service in enumerate(self.service.tolist(), 1):
            free = max(free, number * epoch) + service
            found.append(free - (number - 0.5) * epoch)
        return float(np.mean(found))

    def idle(self, epoch: float) -> float:
        """Of a slave's time, how much it does nothing, on average."""
        busy = self.slaves.mean(axis=1)
        return float(max(0.0, 1 - busy.mean() / max(epoch, float(self.service.mean()))))


def knee(rates: Sequence[float], services: Sequence[float], epoch: float) -> float:
    """The rate at which an epoch takes as long as it is: a + b r + c r^2, none of them negative, by
    what was measured, since tuples grow with the rate, and their pairs with its square.

    >>> round(knee([1.0, 2.0, 4.0], [0.3, 0.7, 2.1], 2.1), 3)
    4.0
    """
    r = np.asarray(rates, np.float64)
    powers = np.stack([np.ones_like(r), r, r * r], 1)
    fits = []
    for kept in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]):
        found, *_ = np.linalg.lstsq(powers[:, kept], np.asarray(services), rcond=None)
        if (found >= 0).all():
            error = float(np.square(powers[:, kept] @ found - services).sum())
            fits.append((error, kept, found))
    _, kept, found = min(fits, key=lambda fit: fit[0])
    a, b, c = (dict(zip(kept, found.tolist(), strict=True)).get(i, 0.0) for i in range(3))
    if not c:
        return (epoch - a) / b if b else float("inf")
    return float((-b + np.sqrt(b * b + 4 * c * (epoch - a))) / (2 * c))

"""Measurement of the cost of reading memory that another place has written.

The thread, bound to a processor of the first place, writes a piece of memory, which the kernel
takes from that place. Bound to the second, it follows a chain of cache lines in random order (each
load waits for the one before: a latency) and copies the piece (a bandwidth). So rows are made in
one place and fetched in the other, as in BriskStream (Zhang et al., SIGMOD 2019, 3.1). The best of
a few turns counts, since disturbances only add. Caches may serve a piece that fits into them, as
they do for fresh rows. If threads cannot be bound, one figure applies to all places, and a sentence
says so.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence

import numba
import numpy as np

from levada.core.array_types import Doubles, Longs
from levada.core.frozen import frozen
from levada.placement.hardware.cpu_topology import Layout, Pin

PIECE_BYTES = 32 << 20  # bytes of the piece
TURNS = 3
STEPS = 1 << 18  # the lines that a walk reads
Clock = Callable[[], float]
"""Seconds since some moment."""


@frozen
class Fetched:
    """``latency`` in ns a cache line and ``bandwidth`` in MB/s, from row to column; the latency
    within a place is 0. ``assumed``: a sentence for each figure that is not measured.
    """

    latency: Doubles
    bandwidth: Doubles
    assumed: tuple[str, ...]


@frozen
class Gauge:
    """The settings of a measurement: ``size`` in bytes, the number of ``turns``, a ``clock``, and
    ``pin``.
    """

    pin: Pin
    clock: Clock
    size: int = PIECE_BYTES
    turns: int = TURNS
    seed: int = 0


def measure(layout: Layout, gauge: Gauge) -> Fetched:
    """Returns latencies and bandwidths of all places. The thread remains bound: the caller restores
    it.
    """
    firsts = [numbers[:1] for numbers in layout.processors]
    piece = _Piece(layout.line, gauge)
    assumed: list[str] = []
    if numba.config.DISABLE_JIT:
        assumed.append("Loops are not compiled (NUMBA_DISABLE_JIT): latencies are far too long.")
    try:
        for first in firsts:
            gauge.pin(first)
    except OSError as error:
        assumed.append(_refused_text(error, len(firsts)))
        near = piece.measure(None, None)
        n = len(firsts)
        latency, width = np.full((n, n), near[0]), np.full((n, n), near[1])
    else:
        latency, width = _pairs(firsts, piece, far=layout.distance is None)
    if layout.distance is not None and len(firsts) > 1:
        latency = _by_distance(np.array(layout.distance), latency)
        assumed.append("Latencies follow the nodes' distances, from that of a node's own memory.")
    np.fill_diagonal(latency, 0.0)
    return Fetched(np.round(latency, 1), np.round(width), tuple(assumed))


def _pairs(firsts: Sequence[Sequence[int]], piece: _Piece, *, far: bool) -> tuple[Doubles, Doubles]:
    """Returns both figures of each pair; ``far``: also latencies between places."""
    n = len(firsts)
    latency, width = np.zeros((n, n)), np.zeros((n, n))
    for i, made in enumerate(firsts):
        for j, read in enumerate(firsts):
            walk = far or i == j
            latency[i, j], width[i, j] = piece.measure(made, read, walk=walk)
    return latency, width


def _by_distance(distance: Doubles, latency: Doubles) -> Doubles:
    """Returns the reader's local latency, scaled by the relative distance from a row to a
    column.
    """
    diagonal = np.diagonal(latency)
    scaled: Doubles = diagonal[None, :] * distance.T / np.diagonal(distance)[None, :]
    return scaled


def _refused_text(error: OSError, places: int) -> str:
    what = "the figures are" if places == 1 else "one figure for all places is"
    return (
        f"This process may not be bound to processors ({error.strerror}): {what} that of wherever "
        "it ran."
    )


class _Piece:
    """Memory that is written in one place and read in another."""

    def __init__(self, line: int, gauge: Gauge) -> None:
        self._gauge, self._line = gauge, line
        self._stride = max(1, line // 8)
        self._many = max(2, gauge.size // line)
        order = np.random.default_rng(gauge.seed).permutation(self._many)
        self._next = np.empty(self._many, np.int64)
        self._next[order] = np.roll(order, -1) * self._stride
        _walk(np.zeros(1, np.int64), 1)  # compiles it before the measurement

    def measure(
        self, made: Sequence[int] | None, read: Sequence[int] | None, *, walk: bool = True
    ) -> tuple[float, float]:
        """Returns ns a line (0 unless ``walk``) and MB/s."""
        clock, best, most = self._gauge.clock, np.inf, 0.0
        steps = min(self._many, STEPS)
        for _ in range(self._gauge.turns):
            memory = self._written(made)
            if read is not None:
                self._gauge.pin(read)
            target = self._allocate()
            target[:] = 0  # allocates its pages in the reader's place
            if walk:
                began = clock()
                _walk(memory, steps)
                best = min(best, (clock() - began) / steps * 1e9)
            memory = self._written(made, memory)
            if read is not None:
                self._gauge.pin(read)
            began = clock()
            np.copyto(target, memory)
            most = max(most, memory.nbytes / max(clock() - began, 1e-9) / 1e6)
        return (float(best) if walk else 0.0), most

    def _written(self, made: Sequence[int] | None, memory: Longs | None = None) -> Longs:
        """Writes the piece in a place and returns it."""
        if made is not None:
            self._gauge.pin(made)
        memory = self._allocate() if memory is None else memory
        memory[:] = 0
        memory[:: self._stride] = self._next
        return memory

    def _allocate(self) -> Longs:
        """Returns memory without pages; memory of an allocator may lie in another place."""
        size = self._many * self._stride * 8
        return np.frombuffer(
            mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.int64
        )


def _chase(chain: Longs, steps: int) -> int:
    at = 0
    for _ in range(steps):
        at = chain[at]
    return at


_walk = numba.njit(_chase)

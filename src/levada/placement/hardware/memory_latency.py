"""What it costs one place to read what another has made, measured.

The thread is bound to a processor of the first place and writes a piece of memory there, which the
kernel then takes from that place's memory; bound to a processor of the second, it walks through the
piece along a chain of cache lines in random order (each load waits for the one before: a latency)
and copies it (a bandwidth). So rows are made in one place and fetched in the other, as BriskStream
means it (Zhang et al., SIGMOD 2019, 3.1). The best of a few turns counts: what disturbs only adds.
A piece smaller than what caches hold is read from there, as rows that were just made are, too.

Where threads cannot be bound, one figure stands for all places; a sentence says so.
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
STEPS = 1 << 18  # of a walk: lines that are read
Clock = Callable[[], float]
"""Seconds since some moment."""


@frozen
class Fetched:
    """``latency`` in ns a cache line and ``bandwidth`` in MB/s, from row to column; a place's own
    latency is 0. ``assumed``: a sentence for each figure that is none of a measurement.
    """

    latency: Doubles
    bandwidth: Doubles
    assumed: tuple[str, ...]


@frozen
class Gauge:
    """How to measure: ``size`` bytes, so many ``turns``; by a ``clock``, with ``pin``."""

    pin: Pin
    clock: Clock
    size: int = PIECE_BYTES
    turns: int = TURNS
    seed: int = 0


def measure(layout: Layout, gauge: Gauge) -> Fetched:
    """Latencies and bandwidths of all places. Who calls it binds the thread back."""
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
    """Both figures of each pair; latencies of other places only if they are ``far`` from known."""
    n = len(firsts)
    latency, width = np.zeros((n, n)), np.zeros((n, n))
    for i, made in enumerate(firsts):
        for j, read in enumerate(firsts):
            walk = far or i == j
            latency[i, j], width[i, j] = piece.measure(made, read, walk=walk)
    return latency, width


def _by_distance(distance: Doubles, latency: Doubles) -> Doubles:
    """From a row's place to a column's: the reader's own latency, times how much farther it is."""
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
        _walk(np.zeros(1, np.int64), 1)  # compiled before anything is measured

    def measure(
        self, made: Sequence[int] | None, read: Sequence[int] | None, *, walk: bool = True
    ) -> tuple[float, float]:
        """ns a line and MB/s; ``walk``: else the first is 0."""
        clock, best, most = self._gauge.clock, np.inf, 0.0
        steps = min(self._many, STEPS)
        for _ in range(self._gauge.turns):
            memory = self._written(made)
            if read is not None:
                self._gauge.pin(read)
            target = self._allocate()
            target[:] = 0  # its pages are there, in the place that reads
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
        """The piece, written anew in a place."""
        if made is not None:
            self._gauge.pin(made)
        memory = self._allocate() if memory is None else memory
        memory[:] = 0
        memory[:: self._stride] = self._next
        return memory

    def _allocate(self) -> Longs:
        """Memory without pages yet: what an allocator keeps may lie in another place."""
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

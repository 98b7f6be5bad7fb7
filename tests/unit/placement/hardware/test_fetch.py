"""What places cost each other: measured on this machine, on pieces too small to be judged."""

import os
import time
from collections.abc import Collection

import numpy as np
import pytest

from levada.placement.hardware.cpu_topology import Layout
from levada.placement.hardware.memory_latency import Gauge, _chase, _walk, measure

ALLOWED = sorted(os.sched_getaffinity(0))
SMALL = 1 << 16


def layout(places: int, distance: tuple[tuple[float, ...], ...] | None = None) -> Layout:
    """So many places on the processors that there are, over and over."""
    own = tuple((ALLOWED[i % len(ALLOWED)],) for i in range(places))
    names = tuple(f"p{i}" for i in range(places))
    return Layout(names, own, (1,) * places, distance, 2.0, 64, ())


class Pins:
    """Binds this thread, and remembers to what."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, ...]] = []

    def __call__(self, processors: Collection[int]) -> None:
        os.sched_setaffinity(0, processors)
        self.seen.append(tuple(processors))


@pytest.fixture(autouse=True)
def _bound_back() -> object:
    yield
    os.sched_setaffinity(0, ALLOWED)


def test_all_pairs_are_measured_from_where_they_are_bound() -> None:
    pins = Pins()
    found = measure(layout(2), Gauge(pins, time.perf_counter, SMALL, 1))
    assert found.assumed == () or "NUMBA_DISABLE_JIT" in found.assumed[0]
    assert (np.diagonal(found.latency) == 0).all() and (found.bandwidth > 0).all()
    assert found.latency[0, 1] > 0 and found.latency[1, 0] > 0
    assert set(pins.seen) == set(layout(2).processors)


def test_known_distances_scale_the_reader_s_own_latency() -> None:
    ticks = iter(range(10_000))
    gauge = Gauge(Pins(), lambda: float(next(ticks)), SMALL, 1)  # each measurement takes 1 s
    found = measure(layout(2, ((10, 20), (30, 10))), gauge)
    own = 1e9 / (SMALL // 64)
    assert found.latency.tolist() == [[0, round(3 * own, 1)], [round(2 * own, 1), 0]]
    assert any("follow the nodes' distances" in said for said in found.assumed)


def test_where_nothing_can_be_bound_one_figure_stands_for_all() -> None:
    def refused(processors: Collection[int]) -> None:
        raise PermissionError(1, "Operation not permitted")

    found = measure(layout(3), Gauge(refused, time.perf_counter, SMALL, 1))
    assert len({*found.bandwidth.ravel().tolist()}) == 1
    assert len({*found.latency[~np.eye(3, dtype=bool)].tolist()}) == 1
    assert any(
        "may not be bound to processors (Operation not permitted)" in s for s in found.assumed
    )


def test_the_walk_is_its_twin_in_python() -> None:
    order = np.random.default_rng(3).permutation(50)
    chain = np.empty(50, np.int64)
    chain[order] = np.roll(order, -1)
    for steps in (0, 1, 7, 50):
        assert _walk(chain, steps) == _chase(chain, steps)
    assert _walk(chain, 50) == 0  # one cycle through all

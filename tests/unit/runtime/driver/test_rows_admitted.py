"""How many elements an epoch may have, by made-up costs: the largest epoch that keeps the delay,
also where epochs are slower than predicted, and in a queue that is simulated.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

from levada.engine.driver.epoch_pacing import parse_pacing
from levada.errors import UsageError
from levada.runtime.cost_model.admission_control import (
    ASKED,
    GROWTH,
    MIN_EPOCH_ELEMENTS,
    START,
    Admission,
    LinearCost,
)

MOST = 1_000_000
BESIDE = 8.0  # ms of the driver


def told(admission: Admission, way: LinearCost, *, slow: float = 1.0, epochs: int = 30) -> None:
    """Epochs as large as they may be, which take what is predicted, or so many times as much."""
    for _ in range(epochs):
        job = (way.fixed + way.each * admission.rows) * slow
        admission.see(admission.rows, job + BESIDE, job, [way])


def kept(admission: Admission) -> bool:
    assert admission.status is not None
    return admission.status.is_met


def whole(way: LinearCost, rows: int, slow: float = 1.0) -> float:
    return (way.fixed + way.each * rows) * slow + BESIDE


@pytest.mark.parametrize("each", [0.0005, 0.01, 0.2])
@pytest.mark.parametrize("slow", [1.0, 1.6])
def test_the_largest_epoch_that_keeps_the_delay(each: float, slow: float) -> None:
    admission, way = Admission(MOST, delay=250), LinearCost(20.0, each, MOST)
    told(admission, way, slow=slow, epochs=60)
    took = whole(way, admission.rows, slow)
    assert 2 * took + ASKED <= 250, "what is slow is slow again"
    assert 2 * took + ASKED >= 0.8 * 250, "and no smaller than it has to be"
    assert kept(admission)


def test_the_interval_is_waited_for() -> None:
    way = LinearCost(20.0, 0.01, MOST)
    admission = Admission(MOST, delay=250, interval=180)
    told(admission, way)
    assert 180 + whole(way, admission.rows) + ASKED <= 250


def test_no_more_than_is_said_and_no_less_than_the_least() -> None:
    admission = Admission(7_000, delay=250)
    assert admission.rows == 7_000
    told(admission, LinearCost(1.0, 1e-6, MOST))
    assert admission.rows == 7_000
    admission = Admission(MOST, delay=250)
    with pytest.warns(UserWarning, match="no epoch is that short"):
        told(admission, LinearCost(10.0, 50.0, MOST))
    assert admission.rows == MIN_EPOCH_ELEMENTS


def test_without_a_delay_nothing_changes() -> None:
    admission = Admission(MOST)
    told(admission, LinearCost(1000.0, 10.0, MOST))
    assert admission.rows == MOST


def test_a_line_is_not_believed_far_beyond_what_it_was_drawn_through() -> None:
    admission, seen = Admission(MOST, delay=250), START
    while admission.rows < MOST:
        assert admission.rows <= GROWTH * seen
        seen = admission.rows
        told(admission, LinearCost(1.0, 0.0, MOST), epochs=1)


def test_a_floor_above_the_delay_is_said_once() -> None:
    admission, way = Admission(MOST, delay=100), LinearCost(90.0, 0.01, MOST)
    with pytest.warns(UserWarning, match="within 100 ms, and no epoch is that short") as found:
        told(admission, way)
    assert len(found) == 1
    assert not kept(admission)
    assert admission.status is not None
    assert admission.status.expected_wait_ms > 100
    floor = whole(way, 0)
    assert floor < whole(way, admission.rows) <= 2.1 * floor, "half of the time is work"


def test_one_slow_epoch_is_no_floor() -> None:
    admission, way = Admission(MOST, delay=250), LinearCost(20.0, 0.001, MOST)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(40):
            job = 5_000.0 if i == 20 else way.fixed + way.each * admission.rows
            admission.see(admission.rows, job + BESIDE, job, [way])
    assert kept(admission)


def test_a_way_that_has_no_more_is_taken_no_further() -> None:
    """Few elements take little in the driver's process, and more need tasks of Spark."""
    admission = Admission(MOST, delay=100)
    told_ways = [LinearCost(3.0, 0.001, 1_000), LinearCost(60.0, 0.001, MOST)]
    for _ in range(10):
        admission.see(1_000, 12.0, 4.0, told_ways)
    assert admission.rows == 1_000


def waits(arrivals: np.ndarray, admission: Admission, cost: Callable[[int], float]) -> np.ndarray:
    """ms from the arrival of each element to the end of its epoch, where epochs follow each other:
    each takes what has come, no more than it may have.
    """
    now, read, found = 0.0, 0, []
    way = LinearCost(cost(0), cost(1) - cost(0), MOST)
    while read < len(arrivals):
        now = max(now, arrivals[read])
        there = int(np.searchsorted(arrivals, now, "right"))
        n = min(there - read, admission.rows)
        took = cost(n) + BESIDE
        found.append(now + took - arrivals[read : read + n])
        admission.see(n, took, took - BESIDE, [way])
        read, now = read + n, max(now + took, now + admission.interval)
    return np.concatenate(found)


def test_at_half_load_what_waits_longest_keeps_the_delay() -> None:
    """Half of what epochs of this size can take, in bursts, in a queue that is simulated."""
    rng = np.random.default_rng(3)
    admission = Admission(MOST, delay=250, interval=62)
    gaps = rng.exponential(1 / 50.0, 1_000_000) * np.where(rng.random(1_000_000) < 0.5, 0.4, 1.6)
    found = waits(np.cumsum(gaps), admission, lambda n: 20.0 + 0.01 * n)
    assert np.percentile(found, 99) <= 250 - ASKED


def test_epochs_that_are_dearer_in_the_beginning_do_not_leave_a_queue_behind() -> None:
    """Ways that are believed to cost five times as much, and what waits for small epochs."""
    rng = np.random.default_rng(5)
    admission, way = Admission(MOST, delay=250, interval=62), LinearCost(110.0, 0.005, MOST)
    arrivals = np.cumsum(rng.exponential(1 / 400.0, 4_000_000))  # 400 in a ms, for 10 s
    now, read, found = 0.0, 0, []
    for n in range(10_000):
        if read == len(arrivals):
            break
        now = max(now, arrivals[read])
        size = min(int(np.searchsorted(arrivals, now, "right")) - read, admission.rows)
        took = (35.0 + 0.001 * size) * (6.0 if n < 5 else 2.0 if rng.random() < 0.03 else 1.0)
        found.append(now + took - arrivals[read : read + size])
        admission.see(size, took, took - BESIDE, [way])
        read, now = read + size, max(now + took, now + 62)
    waited = np.concatenate(found)[1_600_000:]
    assert np.percentile(waited, 99) <= 250


def test_what_comes_at_once_is_read_in_epochs_that_keep_the_delay() -> None:
    admission = Admission(MOST, delay=250)
    arrivals = np.sort(np.concatenate([np.arange(0, 5000, 1.0), np.full(200_000, 2000.0)]))
    found = waits(arrivals, admission, lambda n: 20.0 + 0.01 * n)
    late = arrivals > 2000.0 + 200_000 / (admission.rows / 125)
    assert found[late].max() <= 250, "as soon as what came at once is read"


def test_intervals_and_delays_that_go_together() -> None:
    assert parse_pacing("1s", None) == (1000, 0)
    assert parse_pacing(None, 250) == (62, 250)
    assert parse_pacing(0, "1s") == (0, 1000)
    with pytest.raises(UsageError, match=r"begin 1,000 ms apart, so no result .* within 250 ms"):
        parse_pacing("1s", "250ms")
    with pytest.raises(UsageError, match="delay is 20 ms, and no result comes that soon"):
        parse_pacing(None, "20ms")
    with pytest.raises(UsageError, match="soonish is not a duration"):
        parse_pacing(None, "soonish")

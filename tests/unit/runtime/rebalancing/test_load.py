"""What tasks have told is the load of partitions, and a round of it one measurement."""

from __future__ import annotations

import numpy as np
import pytest

from levada.checkpoint.epoch_context import Counted, TaskOutcome, text_of
from levada.plan.execution.key_group_table import deal_round_robin
from levada.runtime.rebalancing.partition_load import Load, Round, load_of
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions, Measure

CPU, TIME = BalanceOptions(), BalanceOptions(measure="time")


def load(*seconds: float, groups: list[int] | None = None) -> Load:
    counted = None if groups is None else np.array(groups)
    each = np.array(seconds)
    return Load(each, each, np.full(len(seconds), 100), counted)


def counted(groups: list[int], rows: list[int]) -> Counted:
    told, many = text_of(np.array(groups, np.uint16)), text_of(np.array(rows, np.uint32))
    return Counted(-1, told, many, 0)


def test_stages_of_a_partition_add_up_and_readers_are_none() -> None:
    done = [
        TaskOutcome(0, 0, reader="s a.nt", cpu_seconds=9.0),
        TaskOutcome(
            1, 0, cpu_seconds=0.5, seconds=1.0, input_rows=10, rows_by_group=counted([0, 3], [4, 6])
        ),
        TaskOutcome(
            1, 1, cpu_seconds=1.0, seconds=1.5, input_rows=5, rows_by_group=counted([1], [5])
        ),
        TaskOutcome(
            2, 0, cpu_seconds=0.25, seconds=0.5, input_rows=2, rows_by_group=counted([3], [2])
        ),
        TaskOutcome(2, 1, seconds=0.25),
    ]
    found = load_of(done, deal_round_robin(4, 2))
    assert found.seconds.tolist() == [1.5, 1.75]
    assert found.cpu.tolist() == [0.75, 1.0]
    assert found.rows.tolist() == [12, 5]
    assert found.groups is not None
    assert found.groups.tolist() == [4, 5, 0, 8]
    assert load_of(done[4:], deal_round_robin(4, 2)).groups is None


def test_a_queue_is_what_does_not_fit_into_an_epoch() -> None:
    now = Round(2, np.zeros(4), CPU)
    for _ in range(3):
        now.add(load(0.5, 1.5), 1.0, 1.0, hurried=False)
    assert now.queue.tolist() == [0.0, 1.0], "it is full"
    measured = now.measure(4)
    assert measured.occupancy.tolist() == pytest.approx([0.0, (0.5 + 1 + 1) / 3])
    assert (measured.available, measured.span, measured.hurried) == (1.0, 1.0, False)
    for _ in range(3):
        now.add(load(0.5, 0.25), 1.0, 1.0, hurried=False)
    assert now.queue.tolist() == [0.0, 0.0], "it is worked off"


def test_a_buffer_of_rows_is_full_by_the_rate_of_its_partition() -> None:
    for rows, occupancy in ((100, 0.5), (25, 1.0)):
        options = BalanceOptions(buffer_rows=rows)
        now = Round(2, np.zeros(4), options)
        now.add(load(1.0, 2.0), 1.0, 1.0, hurried=False)
        # a queue of a second at 50 rows a second
        assert now.measure(2).occupancy.tolist() == [0.0, occupancy]


def test_under_a_backlog_a_queue_is_to_be_busier_than_the_others() -> None:
    now = Round(4, np.zeros(4), CPU)
    now.add(load(1.0, 1.0, 1.0, 1.3), 9.0, 0.0, hurried=True)
    assert now.queue.tolist() == pytest.approx([0.0, 0.0, 0.0, 1.3 - 1.1 * 1.075])


@pytest.mark.parametrize(
    ("slow", "span", "is_full"), [(2.0, 2.0, True), (1.2, 2.0, False), (2.0, 60.0, False)]
)
def test_a_slow_executor_fills_its_queue_with_time_to_spare(
    slow: float, span: float, is_full: bool
) -> None:
    """Elapsed time: a fifth more than the mean is usual, and what is a moment of the time between
    two epochs delays nobody.
    """
    now = Round(4, np.zeros(4), TIME)
    for _ in range(10):
        now.add(load(1.0, 1.0, 1.0, slow), span, span, hurried=False)
    assert bool(now.measure(11).occupancy[3] > TIME.supplier_threshold) is is_full
    assert not now.measure(11).occupancy[:3].any()


def test_the_longest_epoch_of_each_is_odd() -> None:
    now = Round(2, np.zeros(4), CPU)
    for i in range(5):
        now.add(load(100.0 if i == 2 else 1.0, 2.0), 1.0, 0.0, hurried=True)
    assert now.measure(6).seconds.tolist() == [1.0, 2.0]


def test_rows_of_groups_are_forgotten_by_halves() -> None:
    now = Round(2, np.zeros(3))
    for groups in ([8, 0, 2], None, [0, 6, 2]):
        now.add(load(1.0, 1.0, groups=groups), 1.0, 0.0, hurried=True)
    assert now.groups.tolist() == [4.0, 6.0, 3.0]


def test_a_partition_that_does_nothing() -> None:
    now = Round(2, np.zeros(3))
    now.add(load(0.0, 0.0), 1.0, 0.0, hurried=True)
    measured = now.measure(2)
    assert measured.occupancy.tolist() == [0.0, 0.0] and measured.ratio == 1.0


def test_what_a_partition_takes_is_cpu_unless_waiting_is_asked_for() -> None:
    found = {}
    for measure in Measure:
        now = Round(2, np.zeros(3), BalanceOptions(measure=measure))
        now.add(Load(np.array([3.0, 1.0]), np.array([1.0, 1.0]), np.ones(2, np.int64), None), 9.0,
                0.0, hurried=True)  # fmt: skip
        found[measure] = now.measure(2)
    assert found[Measure.CPU].seconds.tolist() == [1.0, 1.0] and found[Measure.CPU].ratio == 1
    assert found[Measure.TIME].seconds.tolist() == [3.0, 1.0]
    assert not found[Measure.CPU].occupancy.any() and found[Measure.TIME].occupancy[0] > 0.2
    for each in found.values():
        assert (each.passed.tolist(), each.cpu.tolist()) == ([3.0, 1.0], [1.0, 1.0])

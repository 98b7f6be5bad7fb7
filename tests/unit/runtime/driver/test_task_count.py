"""One task or many: one as long as nothing is known and while it keeps up; then the way that is
clearly faster and costs less CPU and time, as predicted and corrected by measurements.
"""

from collections.abc import Callable
from typing import Any

import pytest

from levada.checkpoint.epoch_context import TaskOutcome
from levada.connectors.sources.splits import FileSplit, OffsetSplit
from levada.runtime.cost_model.parallelism_choice import ONE, SPREAD, Cost, Pressure, choose
from levada.runtime.driver.parallelism import (
    BACKLOG,
    HERE,
    LIGHT,
    LIGHT_BYTES,
    MOST_BYTES,
    TRY,
    ParallelismPolicy,
)

PARTITIONS = 2
JVM = {ONE: 20.0, SPREAD: 80.0}


def of(elements: int, form: str = "nt", files: int = 1) -> list[Any]:
    each = elements // files
    return [
        FileSplit("s", "p", "f", "/f", form, 0, 10 * each, index=0, document=0, elements=each)
        for _ in range(files)
    ]


def done(read: float, stage: float, rows: int) -> list[TaskOutcome]:
    """What tasks tell: reading and each partition's call took so many ms."""
    nodes = {"7": stage * 0.8e-3}
    calls = [
        TaskOutcome(1, p, cpu_seconds=stage * 1e-3, cpu_by_node=nodes, rows_by_node={"7": rows})
        for p in range(PARTITIONS)
    ]
    return [TaskOutcome(0, 0, cpu_seconds=read * 1e-3), *calls]


def run(
    pace: ParallelismPolicy, epochs: int, elements: int, *, each: float, took: Callable[[str],
    float], jvm: dict[str, float] = JVM, pressure: Pressure = BACKLOG,
) -> list[str]:  # fmt: skip
    """The ways of epochs in which an element costs so many ms, half of it in reading."""
    ways = []
    for _ in range(epochs):
        choice = pace.decide(of(elements, files=4), 1, PARTITIONS, pressure)
        ways.append(choice.mode)
        pace.took(took(choice.mode) / 1e3, here=False, jvm=jvm[choice.mode] / 1e3)
        half = elements * each / 2
        pace.learn(done(half, half / PARTITIONS, elements // PARTITIONS))
    return ways


def test_an_epoch_of_unknown_cost_is_one_task_unless_it_is_very_large() -> None:
    for elements, way in ((0, ONE), (1_000_000, ONE), (MOST_BYTES // 10 + 1, SPREAD)):
        choice = ParallelismPolicy().decide(of(elements), 2, PARTITIONS)
        assert choice.mode == way and not choice.predicted_ms and choice.reason


@pytest.mark.parametrize(("each", "way"), [(0.1, ONE), (40.0, SPREAD)])
def test_what_calls_cost_decides_and_not_their_number(each: float, way: str) -> None:
    """Two stages over 12 partitions on four cores: 24 calls, each of ``each`` ms."""
    pace, took = ParallelismPolicy(4), {ONE: 20 + 24 * each, SPREAD: 60 + 6 * each}
    ways = []
    for _ in range(30):
        choice = pace.decide(of(250), 2, 12)
        ways.append(choice.mode)
        pace.took(took[choice.mode] / 1e3, here=False, jvm=JVM[choice.mode] / 1e3)
        calls = [
            TaskOutcome(
                stage, p, cpu_seconds=each / 1e3, cpu_by_node={f"{stage}": each * 0.8e-3},
                rows_by_node={f"{stage}": 20},
            )
            for stage in (1, 2) for p in range(12)
        ]  # fmt: skip
        pace.learn([TaskOutcome(0, 0, cpu_seconds=1e-3), *calls])
    assert ways[0] == ONE and ways[10:].count(way) >= 19, "the other way is tried at most once"


@pytest.mark.parametrize(("each", "way"), [(0.0001, ONE), (0.1, SPREAD)])
def test_the_work_of_an_epoch_decides_and_not_its_elements(each: float, way: str) -> None:
    work = 10_000 * each
    took = {ONE: 20 + work, SPREAD: 30 + 0.5 * work}
    ways = run(ParallelismPolicy(2), 50, 10_000, each=each, took=took.__getitem__)
    assert ways[20:] == [way] * 30, "nothing is tried that is predicted to be much slower"


def test_a_wrong_prediction_is_corrected_by_what_is_measured() -> None:
    """Spread is predicted to take less than it does: it is tried, and left."""
    took = {ONE: 20.0 + 200, SPREAD: 400.0}
    ways = run(ParallelismPolicy(2), 60, 10_000, each=0.02, took=took.__getitem__)
    assert SPREAD in ways and ways[10:].count(SPREAD) <= 2


def test_a_way_that_would_be_hardly_worse_is_tried_again_rarely() -> None:
    took = {ONE: 1050.0, SPREAD: 700.0 + 10}
    ways = run(ParallelismPolicy(2), 200, 10_000, each=0.1, took=took.__getitem__)
    assert 0 < ways[10:].count(SPREAD) <= 190 // TRY + 1


def test_predictions_follow_epochs_of_other_sizes() -> None:
    pace = ParallelismPolicy(2)
    for elements in (1_000, 20_000, 5_000, 40_000, 1_000, 20_000, 5_000, 40_000):
        ms = 20 + 0.01 * elements
        run(pace, 1, elements, each=0.01, took={ONE: ms, SPREAD: ms}.__getitem__)
    choice = pace.decide(of(10_000), 1, PARTITIONS)
    assert choice.predicted_ms[ONE] == pytest.approx(120, rel=0.1)


def test_what_is_read_by_several_tasks_is_worth_them() -> None:
    pace = ParallelismPolicy(4)
    run(pace, 3, 10_000, each=0.02, took=lambda way: 200.0)
    assert pace.decide(of(10_000, files=4), 1, 4).readers == 4
    assert pace.decide(of(10_000, files=1), 1, 4).readers == 1
    assert pace.decide(of(100, files=4), 1, 4).readers == 1


def test_what_is_told_adds_up() -> None:
    pace = ParallelismPolicy(2)
    run(pace, 5, 10_000, each=0.001, took=lambda way: 30.0)
    costs = pace.describe_epoch(5)
    assert costs.last_epoch.epoch == 5 and costs.last_epoch.measured_ms == pytest.approx(30.0)
    assert costs.totals_by_mode[ONE][0] == 4, "the first was not predicted"
    assert set(costs.work_parts) == {"7", "reading", "around 1"}
    assert sum(part[-1] for part in costs.work_parts.values()) == pytest.approx(10.0)


def test_predictions_are_made_before_the_epoch_and_of_its_cpu_too() -> None:
    pace = ParallelismPolicy(2)
    run(pace, 20, 10_000, each=0.004, took=lambda way: 60.0)
    assert pace.choice.predicted_task_cpu_ms == pytest.approx(40.0, rel=0.05)
    assert pace.choice.measured_task_cpu_ms == pytest.approx(40.0)


def test_the_first_epochs_of_a_process_are_soon_forgotten() -> None:
    """They load kernels: ten times as slow, they would hide what an epoch takes for long."""
    pace = ParallelismPolicy(2)
    run(pace, 1, 10_000, each=0.04, took=lambda way: 900.0)
    run(pace, 6, 10_000, each=0.004, took=lambda way: 60.0)
    choice = pace.decide(of(10_000, files=4), 1, PARTITIONS)
    assert choice.predicted_task_cpu_ms == pytest.approx(40.0, rel=0.1)
    assert choice.predicted_ms[ONE] == pytest.approx(60.0, rel=0.1)


def test_on_a_machine_that_is_slower_than_was_guessed_both_ways_are_tried_soon() -> None:
    took = {ONE: 8 * 22.0, SPREAD: 8 * 50.0}
    ways = run(ParallelismPolicy(2), 30, 10_000, each=0.0002, took=took.__getitem__)
    assert ways.count(SPREAD) <= 2 and SPREAD in ways[:20]


def test_epochs_that_are_alike_say_nothing_of_larger_ones_but_the_guess() -> None:
    """What differs by chance is hardly a slope: by points alone all sizes would take the same."""
    pace = ParallelismPolicy(2)
    for i in range(20):
        took, each = (66.0, 54.0)[i % 2], (0.0044, 0.0036)[i // 2 % 2]
        run(pace, 1, 10_000 + 10 * i, each=each, took={ONE: took, SPREAD: took}.__getitem__)
    choice = pace.decide(of(100_000, files=4), 1, PARTITIONS)
    assert 200.0 < choice.predicted_ms[ONE] < 500.0


def test_what_an_epoch_takes_by_its_elements() -> None:
    """The lines that decide how many elements keep a delay say what is predicted for an epoch."""
    pace = ParallelismPolicy(2)
    for elements in (1_000, 20_000, 5_000, 40_000) * 3:
        ms = 20 + 0.01 * elements
        run(pace, 1, elements, each=0.01, took={ONE: ms, SPREAD: ms}.__getitem__)
    one, spread = pace.ways(here=False)
    for elements in (5_000, 50_000):
        predicted = pace.decide(of(elements, files=1), 1, PARTITIONS).predicted_ms
        assert one.fixed + one.each * elements == pytest.approx(predicted[ONE], rel=0.01)
    assert one.max_elements_within(one.fixed + 1_000 * one.each) == pytest.approx(1_000, abs=1)
    assert spread.most == one.most
    assert not ParallelismPolicy(2).ways(here=False)


def test_what_runs_here_goes_no_other_way() -> None:
    pace = ParallelismPolicy(2)
    run(pace, 3, 10_000, each=0.001, took=lambda way: 30.0)
    assert len(pace.ways(here=True)) == 1
    for _ in range(3):
        pace.decide(of(10), 1, PARTITIONS)
        pace.took(0.001, here=True)
        pace.learn(done(0.1, 0.1, 5))
    light, one, _ = pace.ways(here=False)
    assert light.most == LIGHT < one.most


def test_fewer_partitions_are_worth_it_where_their_calls_cost_more_than_their_rows() -> None:
    for fixed, each, best in ((5.0, 0.0, 1), (0.1, 0.1, 2)):
        pace = ParallelismPolicy(2)
        for elements in (1_000, 20_000, 5_000, 40_000) * 5:
            choice = pace.decide(of(elements), 1, PARTITIONS)
            rows = elements // PARTITIONS
            call = fixed + each * rows
            took = {ONE: 20 + 2 * call, SPREAD: 60 + call}[choice.mode]
            pace.took(took / 1e3, here=False)
            pace.learn(done(0.0, call, rows))
        pace.decide(of(20_000), 1, PARTITIONS)
        would = pace.times_by_partitions()
        assert set(would) == {1, 2}
        assert min(would, key=would.__getitem__) == best
    assert ParallelismPolicy(0).times_by_partitions() == {}


def test_what_ran_here_says_nothing_of_tasks() -> None:
    pace = ParallelismPolicy(2)
    for _ in range(3):
        pace.decide(of(10), 1, PARTITIONS)
        pace.took(0.001, here=True)
        pace.learn(done(0.1, 0.1, 5))
    assert set(pace.describe_epoch(3).totals_by_mode) == {HERE}


def test_few_lines_are_light_and_documents_are_not() -> None:
    pace = ParallelismPolicy()
    for references, light in (
        ([], True),
        (of(LIGHT), True),
        (of(LIGHT + 1), False),
        (of(1, "csv") + of(1, "nq"), True),
        (of(1) + of(1, "ttl"), False),
        (of(1, "parquet"), False),
        ([messages("lines", LIGHT)], True),
        ([messages("lines", LIGHT + 1)], False),
        ([messages("lines", 5, each=LIGHT_BYTES // 4)], False),
        ([messages("documents", 1)], False),
        ([*of(1), messages("lines", 1)], True),
    ):
        pace.decide(references, 2, PARTITIONS, formats={"lines": "nq", "documents": "ttl"})
        assert pace.is_light is light


def messages(stream: str, count: int, each: int = 100) -> OffsetSplit:
    """So many messages of a topic."""
    return OffsetSplit(stream, "topic", 0, 7, 7 + count, each, 0)


def test_two_cores_that_gain_a_third_of_the_time_are_not_worth_their_shuffles() -> None:
    """The 500 stations of SRBench on two cores."""
    took, jvm = {ONE: 408.0, SPREAD: 308.0}, {ONE: 40.0, SPREAD: 140.0}
    ways = run(ParallelismPolicy(2), 100, 1_000_000, each=0.00036, took=took.__getitem__, jvm=jvm)
    assert ways.count(SPREAD) <= 2 and set(ways[:8] + ways[50:]) == {ONE}


def test_many_cores_that_are_clearly_faster_are_used_under_a_backlog() -> None:
    took, jvm = {ONE: 4_000.0, SPREAD: 700.0}, {ONE: 40.0, SPREAD: 300.0}
    pace = ParallelismPolicy(8)
    ways = run(pace, 30, 1_000_000, each=0.0038, took=took.__getitem__, jvm=jvm)
    assert set(ways[10:]) == {SPREAD}
    assert "times as fast as one task" in pace.choice.reason


def test_one_task_that_keeps_up_is_used_however_fast_many_would_be() -> None:
    took = {ONE: 400.0, SPREAD: 100.0}
    for pressure, way in (
        (Pressure(interval=1_000.0), ONE),
        (Pressure(interval=300.0), SPREAD),
        (Pressure(interval=1_000.0, budget=200.0), SPREAD),
        (Pressure(interval=1_000.0, budget=500.0), ONE),
    ):
        pace = ParallelismPolicy(8)
        ways = run(pace, 30, 1_000_000, each=0.00038, took=took.__getitem__, pressure=pressure)
        assert set(ways[20:]) == {way}, pressure


def test_a_first_trial_that_loads_kernels_does_not_hide_what_a_way_takes() -> None:
    took, jvm = {ONE: 4_000.0, SPREAD: 3_900.0}, {ONE: 40.0, SPREAD: 300.0}
    pace = ParallelismPolicy(8)
    run(pace, 20, 1_000_000, each=0.0038, took=took.__getitem__, jvm=jvm)
    took[SPREAD] = 700.0
    ways = run(pace, 60, 1_000_000, each=0.0038, took=took.__getitem__, jvm=jvm)
    assert set(ways[45:]) == {SPREAD}


def test_the_jvm_of_another_machine_is_guessed() -> None:
    pace = ParallelismPolicy(2)
    for _ in range(5):
        pace.decide(of(10_000), 3, PARTITIONS)
        pace.took(0.1, here=False)
        pace.learn(done(5.0, 5.0, 5_000))
    cpu = pace.choice.predicted_cpu_ms
    assert cpu[SPREAD] - cpu[ONE] > 150.0


def test_state_on_several_executors_is_not_brought_together_for_less_than_it_costs() -> None:
    one, spread = Cost(100.0, 20.0, 120.0), Cost(90.0, 60.0, 250.0)
    keeps_up = 1_000.0
    assert choose(one, spread, Pressure(keeps_up, move=lambda: 50.0)).way == ONE
    verdict = choose(one, spread, Pressure(keeps_up, move=lambda: 500.0))
    assert verdict.way == SPREAD and "executors" in verdict.why

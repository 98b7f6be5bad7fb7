"""One task or many: small epochs as one as long as nothing is known; then what is predicted to be
faster, and what is measured corrects it.
"""

from collections.abc import Callable
from typing import Any

import pytest

from levada.runtime.context import Done
from levada.runtime.driver.task_count import HERE, LIGHT, NEAR, ONE, SMALL, SPREAD, TRY, Pace
from levada.sources.reference import Reference

PARTITIONS = 2


def of(elements: int, form: str = "nt", files: int = 1) -> list[Any]:
    each = elements // files
    return [
        Reference("s", "p", "f", "/f", form, 0, 10 * each, index=0, document=0, elements=each)
        for _ in range(files)
    ]


def done(read: float, stage: float, rows: int) -> list[Done]:
    """What tasks tell: reading and each partition's call took so many ms."""
    nodes = {"7": stage * 0.8e-3}
    calls = [Done(1, p, cpu=stage * 1e-3, nodes=nodes, rows={"7": rows}) for p in range(PARTITIONS)]
    return [Done(0, 0, cpu=read * 1e-3), *calls]


def run(
    pace: Pace, epochs: int, elements: int, *, each: float, took: Callable[[str], float]
) -> list[str]:
    """The ways of epochs in which an element costs so many ms, half of it in reading."""
    ways = []
    for _ in range(epochs):
        choice = pace.decide(of(elements, files=4), 1, PARTITIONS)
        ways.append(choice.way)
        pace.took(took(choice.way) / 1e3, here=False)
        half = elements * each / 2
        pace.learn(done(half, half / PARTITIONS, elements // PARTITIONS))
    return ways


def test_as_long_as_nothing_is_known_small_epochs_are_one_task() -> None:
    for elements, way in ((0, ONE), (SMALL, ONE), (SMALL + 1, SPREAD)):
        choice = Pace().decide(of(elements), 2, PARTITIONS)
        assert choice.way == way and not choice.predicted


def test_many_calls_are_always_spread() -> None:
    assert Pace().decide([], 8, 8).way == SPREAD


@pytest.mark.parametrize(("each", "way"), [(0.0001, ONE), (0.1, SPREAD)])
def test_the_work_of_an_epoch_decides_and_not_its_elements(each: float, way: str) -> None:
    work = 10_000 * each
    took = {ONE: 20 + work, SPREAD: 30 + 0.6 * work}
    ways = run(Pace(2), 50, 10_000, each=each, took=took.__getitem__)
    assert ways[1:] == [way] * 49, "nothing is tried that is predicted to be much slower"


def test_a_wrong_prediction_is_corrected_by_what_is_measured() -> None:
    """Spread is predicted to take less than it does: it is tried, and left."""
    took = {ONE: 20.0 + 200, SPREAD: 400.0}
    ways = run(Pace(2), 60, 10_000, each=0.02, took=took.__getitem__)
    assert SPREAD in ways and ways[10:].count(SPREAD) <= 2


def test_a_way_that_would_not_be_much_slower_is_tried_again_rarely() -> None:
    took = {ONE: 100.0, SPREAD: 110.0}
    ways = run(Pace(2), 200, 10_000, each=0.008, took=took.__getitem__)
    assert 0 < ways[10:].count(SPREAD) <= 190 // TRY + 1 and NEAR > 1.1


def test_predictions_follow_epochs_of_other_sizes() -> None:
    pace = Pace(2)
    for elements in (1_000, 20_000, 5_000, 40_000, 1_000, 20_000, 5_000, 40_000):
        ms = 20 + 0.01 * elements
        run(pace, 1, elements, each=0.01, took={ONE: ms, SPREAD: ms}.__getitem__)
    choice = pace.decide(of(10_000), 1, PARTITIONS)
    assert choice.predicted[ONE] == pytest.approx(120, rel=0.1)


def test_what_is_read_by_several_tasks_is_worth_them() -> None:
    pace = Pace(4)
    run(pace, 3, 10_000, each=0.02, took=lambda way: 200.0)
    assert pace.decide(of(10_000, files=4), 1, 4).readers == 4
    assert pace.decide(of(10_000, files=1), 1, 4).readers == 1
    assert pace.decide(of(100, files=4), 1, 4).readers == 1


def test_what_is_told_adds_up() -> None:
    pace = Pace(2)
    run(pace, 5, 10_000, each=0.001, took=lambda way: 30.0)
    costs = pace.told(5)
    assert costs.last.epoch == 5 and costs.last.took == pytest.approx(30.0)
    assert costs.sums[ONE][0] == 4, "the first was not predicted"
    assert set(costs.parts) == {"7", "reading", "around 1"}
    assert sum(part[-1] for part in costs.parts.values()) == pytest.approx(10.0)


def test_what_ran_here_says_nothing_of_tasks() -> None:
    pace = Pace(2)
    for _ in range(3):
        pace.decide(of(10), 1, PARTITIONS)
        pace.took(0.001, here=True)
        pace.learn(done(0.1, 0.1, 5))
    assert set(pace.told(3).sums) == {HERE}


def test_few_lines_are_light_and_documents_are_not() -> None:
    pace = Pace()
    for references, light in (
        ([], True),
        (of(LIGHT), True),
        (of(LIGHT + 1), False),
        (of(1, "csv") + of(1, "nq"), True),
        (of(1) + of(1, "ttl"), False),
        (of(1, "parquet"), False),
    ):
        pace.decide(references, 2, PARTITIONS)
        assert pace.is_light is light

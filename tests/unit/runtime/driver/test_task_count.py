"""One task or many: small epochs as one, unless they were slow; large ones as they were faster."""

from typing import Any

from levada.runtime.driver.task_count import LIGHT, SLOW, SMALL, WARY, Pace
from levada.sources.reference import Reference


def of(elements: Any, form: str = "nt") -> list[Any]:
    return [
        Reference(
            "s", "p", "f", "/f", form, 0, 10 * elements, index=0, document=0, elements=elements
        )
    ]


def test_small_epochs_run_as_one_task() -> None:
    pace = Pace()
    assert pace.one_task([], 4)
    assert pace.one_task(of(SMALL), 4)


def test_many_partitions_are_always_spread() -> None:
    assert not Pace().one_task([], 64)


def test_after_a_slow_one_the_next_are_spread() -> None:
    pace = Pace()
    assert pace.one_task(of(1), 2)
    pace.took(True, 2 * SLOW)
    spread = [pace.one_task(of(1), 2) for _ in range(WARY + 1)]
    assert spread[:3] == [False] * 3 and spread[-1], "it is tried again"


def test_large_epochs_run_in_the_faster_way_and_the_other_is_tried_rarely() -> None:
    pace, ways = Pace(), []
    for _ in range(200):
        one = pace.one_task(of(2 * SMALL), 2)
        ways.append(one)
        pace.took(one, 0.4 if one else 0.1)
    assert ways[:2] == [False, True], "each once"
    assert 2 <= sum(ways) <= 5


def test_what_becomes_faster_is_found() -> None:
    pace = Pace()
    for epoch in range(400):
        one = pace.one_task(of(2 * SMALL), 2)
        pace.took(one, (0.4 if one else 0.1) if epoch < 100 else (0.1 if one else 0.4))
    assert pace.one_task(of(2 * SMALL), 2)


def test_few_lines_are_light_and_documents_are_not() -> None:
    pace = Pace()
    assert pace.one_task([], 4) and pace.is_light([])
    for references, light in (
        (of(LIGHT), True),
        (of(LIGHT + 1), False),
        (of(1, "csv") + of(1, "nq"), True),
        (of(1) + of(1, "ttl"), False),
        (of(1, "parquet"), False),
    ):
        assert pace.one_task(references, 4)
        assert pace.is_light(references) is light

"""Partitions stay with their executors, as far as these live and have no more than their share."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from levada.checkpoint.executor_affinity import (
    BUSY,
    AffinityStats,
    ExecutorAffinity,
    assign_partitions,
    executor_here,
)

CORES = st.dictionaries(st.sampled_from("01234567"), st.integers(1, 4), max_size=6)


@given(st.integers(1, 20), CORES, st.lists(CORES, min_size=1, max_size=4))
def test_who_may_stay_stays_and_nobody_has_more_than_a_share(
    partitions: int, first: dict[str, int], later: list[dict[str, int]]
) -> None:
    before = assign_partitions(partitions, (), first)
    for cores in later:
        now = assign_partitions(partitions, before, cores)
        assert len(now) == partitions
        if not cores:
            assert set(now) == {""}
            before = now
            continue
        own, total = Counter(now), sum(cores.values())
        share = {e: -(-partitions * n // total) for e, n in cores.items()}
        assert all(n <= share[e] for e, n in own.items())
        was = Counter(e for e in before if e in cores)
        stayed = Counter(a for a, b in zip(before, now, strict=True) if a == b)
        assert all(stayed[e] == min(n, share[e]) for e, n in was.items() if e), (
            "nothing leaves an executor that has no more than its share"
        )
        before = now


def ran(
    homes: ExecutorAffinity, asked: tuple[str, ...], elsewhere: dict[int, str] | None = None
) -> None:
    homes.record_run((1, p, (elsewhere or {}).get(p, at or "9")) for p, at in enumerate(asked))


def test_an_executor_without_room_is_asked_for_less_and_less() -> None:
    homes, cores, asked_in = ExecutorAffinity(), {"0": 1, "1": 1}, list[int]()
    for job in range(60):
        asked = homes.assign(2, cores, one=False)
        assert asked in (("0", "1"), ("0", "")), "any executor will do"
        if asked[1]:
            asked_in.append(job)
        ran(homes, asked, {1: "0"})
    assert asked_in == [0, 1, 3, 6, 11, 20, 37, 37 + BUSY + 1]
    assert homes.assign(2, cores, one=False) == ("0", "")


def test_an_executor_that_was_busy_for_a_moment_has_its_partitions_back() -> None:
    homes, cores = ExecutorAffinity(), {"0": 1, "1": 1}
    for busy in (True, False, True, False):
        asked = homes.assign(2, cores, one=False)
        assert asked == ("0", "1")
        ran(homes, asked, {1: "0"} if busy else None)


def test_one_that_has_room_for_a_part_has_no_room() -> None:
    homes, cores = ExecutorAffinity(), {"0": 1, "1": 1}
    asked = [homes.assign(4, cores, one=False)]
    for _ in range(2):
        ran(homes, asked[-1], {3: "0"})
        asked.append(homes.assign(4, cores, one=False))
    assert asked == [("0", "1", "0", "1"), ("0", "1", "0", "1"), ("0", "", "0", "")]


def test_what_is_told() -> None:
    homes, cores = ExecutorAffinity(), {"0": 1, "1": 2}
    for at in ("0", "0", "1"):
        homes.assign(2, cores, one=False)
        homes.record_run([(1, 0, at), (1, 1, "1"), (2, 0, "1"), (2, 1, "1")])
    assert homes.stats == AffinityStats(
        recurring_tasks=8, same_executor_tasks=7, executors=2, cores=3, homes=("1", "0")
    )
    homes.assign(2, cores, one=True)
    homes.record_run([(1, 0, "0"), (1, 1, "0")])  # in one task
    homes.assign(2, cores, one=False)
    homes.record_run([(1, 0, ""), (1, 1, "")])  # in the driver's process
    homes.assign(2, cores, one=True)
    homes.record_run([(1, 0, "1"), (1, 1, "1")])
    assert homes.stats == AffinityStats(
        recurring_tasks=9, same_executor_tasks=7, executors=2, cores=3, homes=("1",)
    )


def test_a_worker_knows_its_executor() -> None:
    assert executor_here() == "", "nobody has begun this process as a worker"
    module = "levada.checkpoint.executor_affinity"
    worker = f"from {module} import executor_here; print(executor_here(), end='')"
    daemon = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {worker!r}])"
    command = [sys.executable, "-c", f"{daemon}; 0", "Backend", "--executor-id", "17", "--cores"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "17"

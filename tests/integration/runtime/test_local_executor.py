"""What a job means: the local executor is a few loops, here against hand-made results."""

import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from levada.runtime.executor import Job, LocalExecutor, deliver, outcome, resolve


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module of job functions that writes down each call."""
    module: Any = types.ModuleType("a_job")
    module.calls = []

    def intake(context: Any, payload: Any) -> list[Any]:
        return [(byte % 2, bytes([byte])) for byte in payload]

    def stage(context: Any, number: Any, partition: Any, blobs: Any) -> Any:
        module.calls.append((context, number, partition, b"".join(blobs)))
        return (
            [(-1, b"".join(blobs))]
            if number == int(context)
            else [(1 - partition, b) for b in blobs]
        )

    module.intake, module.stage = intake, stage
    monkeypatch.setitem(sys.modules, "a_job", module)
    resolve.cache_clear()
    yield module
    resolve.cache_clear()


NAMES = ("a_job:intake", "a_job:stage")


def test_blobs_reach_their_targets_in_the_order_in_which_they_were_sent(functions: Any) -> None:
    outcomes = LocalExecutor().run(Job(b"1", [b"\x01\x02\x03", b"\x04\x05"], 1, 2, NAMES))
    assert outcomes == [b"\x02\x04", b"\x01\x03\x05"]


def test_each_stage_runs_on_every_partition_also_without_blobs(functions: Any) -> None:
    assert LocalExecutor().run(Job(b"2", [], 2, 2, NAMES)) == [b"", b""]
    assert functions.calls == [
        (b"2", 1, 0, b""),
        (b"2", 1, 1, b""),
        (b"2", 2, 0, b""),
        (b"2", 2, 1, b""),
    ]


def test_a_later_stage_reads_what_the_stage_before_sent(functions: Any) -> None:
    assert LocalExecutor().run(Job(b"2", [b"\x01\x02"], 2, 2, NAMES)) == [b"\x01", b"\x02"]


def test_a_wrong_target_is_a_programmers_error() -> None:
    with pytest.raises(AssertionError, match="partition 2 is not one of 2"):
        deliver([(2, b"")], 2)
    with pytest.raises(AssertionError, match="sends outcomes to -1"):
        outcome(0, b"")


def test_outcomes_are_bytes() -> None:
    assert outcome(-1, memoryview(b"ab")) == b"ab"


@pytest.mark.parametrize(("stages", "partitions"), [(0, 1), (1, 0)])
def test_a_job_without_stages_or_partitions_is_refused(stages: int, partitions: int) -> None:
    with pytest.raises(AssertionError):
        Job(b"", [], stages, partitions)

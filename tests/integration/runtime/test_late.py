"""An executor that is on its way: jobs run here until it is there, and its failures are told."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from levada.errors import JavaError
from levada.runtime.executor import Executor, Job, LocalExecutor, deliver
from levada.runtime.warmup_executor import WarmupExecutor, is_here
from support.polling import PATIENCE

JOB = Job(b"", [], 1, 1, ("levada.runtime.spark.spark_tasks:idle_intake", f"{__name__}:stage"))
HERE: list[str] = []


def stage(context: bytes, number: int, partition: int, blobs: list[Any]) -> list[tuple[int, bytes]]:
    HERE.append(threading.current_thread().name)
    return [(-1, b"here")]


class There:
    def run(self, job: Job) -> list[bytes]:
        assert deliver([], job.partitions) == [[]]
        return [b"there"]


class Start:
    """A start that goes on when it is let, and ends when it is told to."""

    def __init__(self, missing: Exception | None = None, failure: Exception | None = None) -> None:
        self.missing, self.failure = missing, failure
        self.go, self.over = threading.Event(), threading.Event()

    def find(self) -> None:
        if self.missing is not None:
            raise self.missing

    def start(self) -> Executor:
        assert self.go.wait(PATIENCE)
        if self.failure is not None:
            raise self.failure
        return There()

    def check(self) -> None:
        pass

    def end(self) -> None:
        self.over.set()
        self.go.set()


def test_jobs_run_here_until_the_other_executor_is_there() -> None:
    start = Start()
    late = WarmupExecutor(start, here=True)
    assert not late._there.is_set()
    assert late.run(JOB) == LocalExecutor().run(JOB) == [b"here"]
    start.go.set()
    late.await_warm()
    assert late.is_warm
    assert late.run(JOB) == [b"there"]
    late.end()
    assert start.over.is_set()


@pytest.mark.parametrize("here", [True, False])
def test_light_jobs_stay_here_unless_nothing_may(here: bool) -> None:
    start = Start()
    late = WarmupExecutor(start, here=here)
    start.go.set()
    late.await_warm()
    assert late.run(replace(JOB, light=True)) == ([b"here"] if here else [b"there"])
    assert is_here(late) is here and is_here(LocalExecutor())
    late.end()


def test_what_is_missing_is_known_before_the_start_is_over() -> None:
    late = WarmupExecutor(Start(missing=JavaError("No Java.")), here=True)
    with pytest.raises(JavaError, match=r"No Java\."):
        late.await_requirements()
    fine = WarmupExecutor(Start(), here=True)
    fine.await_requirements()
    fine.check()
    fine.end()


def test_a_start_that_fails_is_told_by_every_check() -> None:
    start = Start(failure=JavaError("It does not run."))
    late = WarmupExecutor(start, here=True)
    late.check()
    start.go.set()
    for _ in range(2):
        with pytest.raises(JavaError, match="does not run"):
            late.await_warm()
    assert late.run(JOB) == [b"here"], "it is for the driver to stop"

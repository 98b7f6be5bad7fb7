"""The job with which Spark is there: its tasks may be lost, too."""

import pytest

from levada.errors import LostTaskError
from levada.runtime.executor import Job
from levada.runtime.spark.spark_startup import ATTEMPTS, warm


class Losing:
    """An executor that loses the tasks of its first jobs."""

    def __init__(self, jobs: int) -> None:
        self.left, self.done = jobs, 0

    def run(self, job: Job) -> list[bytes]:
        if self.left:
            self.left -= 1
            raise LostTaskError("Python worker exited unexpectedly")
        self.done += 1
        return []


def test_a_worker_that_is_killed_while_spark_starts_ends_nothing() -> None:
    executor = Losing(ATTEMPTS - 1)
    warm(executor)
    assert executor.done == 1


def test_where_all_are_lost_it_is_told() -> None:
    with pytest.raises(LostTaskError, match="exited unexpectedly"):
        warm(Losing(ATTEMPTS))

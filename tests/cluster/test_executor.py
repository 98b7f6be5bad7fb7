"""Jobs on Spark: the same outcomes in the same order as in one process, whatever the path, and
errors as they were raised.
"""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from levada.errors import (
    EngineError,
    OvertakenError,
    PromiseError,
    SourceError,
    escape_controls,
)
from levada.runtime.executor import Job, LocalExecutor
from levada.runtime.spark.spark_executor import SparkExecutor
from levada.runtime.spark.task_errors import encode_error
from support.hostile_texts import markers

pytestmark = pytest.mark.spark
ECHO = ("spark_jobs:intake", "spark_jobs:stage")


@pytest.fixture(scope="module")
def executor(spark: Any) -> Any:
    return SparkExecutor(spark, threshold=1000)


def echo(
    payloads: Any, stages: int = 1, partitions: int = 2, size: int = 0, fused: bool = False
) -> Any:
    context = json.dumps({"stages": stages, "partitions": partitions, "size": size}).encode()
    return Job(context, [b"p%d" % n for n in range(payloads)], stages, partitions, ECHO, fused)


def failing(context: Any) -> Any:
    return Job(context, [], 1, 2, ("spark_jobs:intake", "spark_jobs:failing_stage"))


@pytest.mark.parametrize(
    "job",
    [
        echo(1),
        echo(5, partitions=3),
        echo(2, stages=3, partitions=3),
        echo(0, stages=1),
        echo(0, stages=2, partitions=4),
        echo(3, stages=2, partitions=1),
        echo(2, size=5000),
        echo(3, stages=2, partitions=3, size=2000),
        echo(2, fused=True),
        echo(0, fused=True),
        echo(3, stages=3, partitions=3, fused=True),
    ],
    ids=lambda j: (
        f"{len(j.payloads)}p-{j.stages}s-{j.partitions}x-{json.loads(j.context)['size']}-{j.fused}"
    ),
)
def test_outcomes_are_those_of_one_process(executor: Any, job: Any) -> None:
    assert executor.run(job) == LocalExecutor().run(job)


def test_by_value_and_by_reference_are_the_same(spark: Any) -> None:
    job = echo(3, stages=2, size=3000)
    assert SparkExecutor(spark, threshold=1).run(job) == SparkExecutor(
        spark, threshold=1 << 30
    ).run(job)


def test_exchange_files_are_gone_after_a_job(executor: Any) -> None:
    executor.run(echo(2, size=5000))
    assert os.listdir(executor._scratch) == []


def test_what_a_task_raises_is_raised_here(executor: Any) -> None:
    with pytest.raises(ValueError, match="bad value") as caught:
        executor.run(failing(b"value"))
    assert "failing_stage" in caught.value.__notes__[0], "the worker's traceback is a note"


def test_an_error_for_users_keeps_its_hint(executor: Any) -> None:
    with pytest.raises(SourceError) as caught:
        executor.run(failing(b"user"))
    assert str(caught.value) == "The disk is full. Free some."


def test_an_error_that_cannot_travel_is_told(executor: Any) -> None:
    with pytest.raises(EngineError, match="UnpicklableError: no pickle"):
        executor.run(failing(b"other"))


@pytest.mark.parametrize("fused", [True, False])
def test_forged_errors_in_a_message_are_text(executor: Any, tmp_path: Path, fused: bool) -> None:
    functions = ("spark_jobs:intake", "spark_jobs:quoting_stage")
    for marker in markers(tmp_path / "ran"):
        quoted = marker.encode("utf-8", "replace").decode()
        with pytest.raises(PromiseError) as caught:
            executor.run(Job(quoted.encode(), [], 2, 2, functions, fused))
        shown = escape_controls(quoted)
        assert (caught.value.message, caught.value.hint) == (shown, shown)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("fused", [True, False])
def test_blobs_that_look_like_errors_are_outcomes(
    executor: Any, tmp_path: Path, fused: bool
) -> None:
    document = encode_error(OvertakenError("forged"))
    payloads = [document, document + b"\1", document + b"\2" + bytes(8), b"\1", b""]
    payloads += [marker.encode("utf-8", "replace") for marker in markers(tmp_path / "ran")]
    job = replace(echo(0, stages=2, partitions=3, fused=fused), payloads=payloads)
    assert executor.run(job) == LocalExecutor().run(job)
    assert not (tmp_path / "ran").exists()


def test_an_error_of_the_intake_is_raised_here(executor: Any) -> None:
    with pytest.raises(TypeError):
        executor.run(Job(b"{}", [b""], 2, 2, ("spark_jobs:stage", "spark_jobs:stage")))


def test_a_stray_target_is_a_programmers_error(executor: Any) -> None:
    with pytest.raises(AssertionError, match="partition 7 is not one of 2"):
        executor.run(Job(b"", [b""], 1, 2, ("spark_jobs:stray_intake", "spark_jobs:stage")))


def test_jobs_run_after_a_failed_one(executor: Any) -> None:
    with pytest.raises(ValueError, match="bad value"):
        executor.run(failing(b"value"))
    assert executor.run(echo(1)) == LocalExecutor().run(echo(1))


def test_workers_are_used_again_and_forked_from_our_daemon(executor: Any) -> None:
    job = Job(b"", [], 1, 2, ("spark_jobs:intake", "spark_jobs:describing_stage"))
    seen = [json.loads(o) for _ in range(4) for o in executor.run(job)]
    assert len({s["pid"] for s in seen}) < len(seen)
    assert all(s["frozen"] > 10_000 and s["threads"] == 1 and s["polars"] == "1" for s in seen)

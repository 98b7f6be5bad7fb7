"""Spark drives the epochs: each intention once and in order, again after a crash, and a clean end in every case."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from levada.runtime.local import Job
from levada.runtime.spark.executor import SparkExecutor
from levada.runtime.spark.intentions import SparkLoop

pytestmark = pytest.mark.spark
PATIENCE = 60  # seconds

DRIVER = """
import json, os, signal, sys, threading, time
from pathlib import Path
from levada.runtime.local import Job
from levada.runtime.spark.executor import SparkExecutor
from levada.runtime.spark.intentions import SparkLoop
from levada.runtime.spark.session import start_session, stop_session

checkpoint, jobs, mode = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
session = start_session("local[2]", scratch=Path("scratch"))
session.sparkContext.addPyFile(jobs)
executor = SparkExecutor(session)
job = Job(b"1", [], 1, 2, ("spark_jobs:intake", "spark_jobs:slow_stage"))
interrupted = threading.Event()
signal.signal(signal.SIGINT, lambda *_: interrupted.set())

def next_intention(last):
    n = json.loads(last)["epoch"] + 1 if last else 1
    return json.dumps({"epoch": n, "by": mode, "odd": "\\u00e9\\n\\""})

def run_epoch(intention):
    n = json.loads(intention)["epoch"]
    print("begin", intention, flush=True)
    if mode == "crash" and n == 3:
        os._exit(9)
    if mode == "interrupt":
        assert executor.run(job) == [b"slept", b"slept"]
    print("end", n, flush=True)

loop = SparkLoop(session, checkpoint, next_intention, run_epoch)
loop.start()
interrupted.wait()
print("stop", loop.stop(60), loop.failure, flush=True)
stop_session(session)
"""


class Recorder:
    """An engine of ``total`` epochs that writes down what it is asked and told."""

    def __init__(self, total, by="test"):
        self.total, self.by = total, by
        self.asked, self.ran = [], []
        self.done = threading.Event()

    def next_intention(self, last):
        self.asked.append(last)
        epoch = json.loads(last)["epoch"] + 1 if last else 1
        if epoch > self.total:
            self.done.set()
            return None
        return json.dumps({"epoch": epoch, "by": self.by}, separators=(",", ":"))

    def run_epoch(self, intention):
        self.ran.append((json.loads(intention)["epoch"], json.loads(intention)["by"]))


@pytest.fixture
def loops():
    """Loops that are stopped at the end, whatever happens."""
    started = []

    def start(session, checkpoint, engine, **options):
        loop = SparkLoop(session, checkpoint, engine.next_intention, engine.run_epoch, **options)
        started.append(loop)
        loop.start()
        return loop

    yield start
    for loop in started:
        assert loop.stop(PATIENCE)


def test_epochs_run_in_order_and_a_quiet_loop_stops_without_error(spark, tmp_path, loops):
    engine = Recorder(total=8)
    loop = loops(spark, tmp_path, engine)
    assert engine.done.wait(PATIENCE)
    assert loop.stop(PATIENCE)
    assert loop.failure is None
    assert engine.ran == [(n, "test") for n in range(1, 9)]
    assert engine.asked[0] is None
    assert [json.loads(a)["epoch"] for a in engine.asked[1:8]] == list(range(1, 8))
    kept = [name for name in os.listdir(tmp_path / "offsets") if not name.startswith(".")]
    assert len(kept) <= 5, "the logs stay short"


def test_a_loop_that_never_had_an_epoch_stops_too(spark, tmp_path, loops):
    loop = loops(spark, tmp_path, Recorder(total=0))
    assert loop.stop(PATIENCE)
    assert loop.failure is None


def test_a_stopped_loop_is_continued_by_the_next(spark, tmp_path, loops):
    first, second = Recorder(total=3, by="first"), Recorder(total=5, by="second")
    loop = loops(spark, tmp_path, first)
    assert first.done.wait(PATIENCE)
    assert loop.stop(PATIENCE)
    loops(spark, tmp_path, second)
    assert second.done.wait(PATIENCE)
    assert second.ran == [(4, "second"), (5, "second")]
    assert json.loads(second.asked[0]) == {"epoch": 3, "by": "first"}


def test_an_epoch_that_fails_ends_the_loop_and_is_run_again_by_the_next(spark, tmp_path, loops):
    error = ValueError("epoch 2 is bad")
    first, second = Recorder(total=5, by="first"), Recorder(total=3, by="second")

    def fail(intention):
        first.ran.append(json.loads(intention)["epoch"])
        if first.ran[-1] == 2:
            raise error

    first.run_epoch = fail
    loop = loops(spark, tmp_path, first)
    assert loop.await_end(PATIENCE)
    assert loop.failure is error, "the exception itself, not Spark's report of it"
    assert first.ran == [1, 2]
    loops(spark, tmp_path, second)
    assert second.done.wait(PATIENCE)
    assert second.ran == [(2, "first"), (3, "second")]


def test_a_task_that_fails_surfaces_as_its_own_error(spark, tmp_path, loops):
    engine, executor = Recorder(total=1), SparkExecutor(spark)
    job = Job(b"value", [], 1, 2, ("spark_jobs:intake", "spark_jobs:failing_stage"))
    engine.run_epoch = lambda intention: executor.run(job)
    loop = loops(spark, tmp_path, engine)
    assert loop.await_end(PATIENCE)
    assert isinstance(loop.failure, ValueError)


def test_a_failing_next_intention_ends_the_loop(spark, tmp_path, loops):
    engine, error = Recorder(total=1), KeyError("no plan")

    def fail(last):
        raise error

    engine.next_intention = fail
    loop = loops(spark, tmp_path, engine)
    assert loop.await_end(PATIENCE)
    assert loop.failure is error
    assert engine.ran == []


def test_an_epoch_may_ask_for_the_stop(spark, tmp_path, loops):
    engine = Recorder(total=100)
    loop = None
    ready = threading.Event()

    def run(intention):
        ready.wait(PATIENCE)
        engine.ran.append(json.loads(intention)["epoch"])
        if engine.ran[-1] == 2:
            loop.request_stop()

    engine.run_epoch = run
    loop = loops(spark, tmp_path, engine)
    ready.set()
    assert loop.await_end(PATIENCE)
    assert (engine.ran, loop.failure) == ([1, 2], None)


def test_a_stop_waits_for_the_epoch_and_says_when_it_has_not_ended(spark, tmp_path, loops):
    engine, inside, go_on = Recorder(total=100), threading.Event(), threading.Event()

    def run(intention):
        inside.set()
        go_on.wait(PATIENCE)
        engine.ran.append(json.loads(intention)["epoch"])

    engine.run_epoch = run
    loop = loops(spark, tmp_path, engine)
    assert inside.wait(PATIENCE)
    assert not loop.stop(0.3)
    go_on.set()
    assert loop.await_end(PATIENCE)
    assert engine.ran == [1]


def test_epochs_start_at_least_the_interval_apart(spark, tmp_path, loops):
    engine, starts = Recorder(total=4), []
    engine.run_epoch = lambda intention: starts.append(time.monotonic())
    loops(spark, tmp_path, engine, min_interval_ms=300)
    assert engine.done.wait(PATIENCE)
    assert starts[-1] - starts[0] >= 0.3 * (len(starts) - 1) - 0.1


def test_a_wake_is_not_waited_for(spark, tmp_path, loops):
    engine, due, ran = Recorder(total=1), threading.Event(), threading.Event()
    ask = engine.next_intention
    engine.next_intention = lambda last: ask(last) if due.is_set() else None
    engine.run_epoch = lambda intention: ran.set()
    loop = loops(spark, tmp_path, engine, ask_every=0.09)
    assert not ran.wait(1)
    due.set()
    loop.wake()
    assert ran.wait(PATIENCE)


def test_a_folder_that_spark_cannot_write_is_an_error_in_words(spark, tmp_path, loops):
    (tmp_path / "file").write_text("")
    engine = Recorder(total=1)
    with pytest.raises(Exception, match=r"file") as caught:
        loops(spark, tmp_path / "file" / "below", engine)
    assert type(caught.value).__module__.startswith("levada")


def test_a_killed_drivers_epoch_is_run_again_with_its_own_intention(spark, tmp_path, loops, run_script):
    driver = run_script(DRIVER, tmp_path / "log", Path(__file__).parent / "spark_jobs.py", "crash")
    out, _ = driver.communicate(timeout=400)
    assert driver.returncode == 9
    begun = [json.loads(line.removeprefix("begin ")) for line in out.splitlines() if line.startswith("begin")]
    assert [b["epoch"] for b in begun] == [1, 2, 3]
    engine, seen = Recorder(total=4), []
    engine.run_epoch = lambda intention: seen.append(json.loads(intention))
    loops(spark, tmp_path / "log", engine)
    assert engine.done.wait(PATIENCE)
    assert seen == [begun[2], {"epoch": 4, "by": "test"}]
    assert begun[2]["odd"] == 'é\n"'


def test_an_interrupt_reaches_the_driver_only_and_the_epoch_ends(tmp_path, run_script):
    driver = run_script(DRIVER, tmp_path / "log", Path(__file__).parent / "spark_jobs.py", "interrupt")
    assert driver.stdout.readline().startswith("begin")
    time.sleep(0.3)
    os.killpg(driver.pid, signal.SIGINT)
    out, err = driver.communicate(timeout=400)
    assert out.splitlines() == ["end 1", "stop True None"]
    assert (err, driver.returncode) == ("", 0)

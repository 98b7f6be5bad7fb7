"""The loop: each intention once and in order, again after a crash, and a clean end in every
case.
"""

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from levada.core.checksummed_files import read_sealed, seal
from levada.errors import CheckpointError, EngineError, LostTaskError
from support.loop_steps import loop_of
from support.polling import PATIENCE

CRASH = """
import json, os, sys
from pathlib import Path
from support.loop_steps import loop_of

def next_intention(last):
    epoch = json.loads(last)["epoch"] + 1 if last else 1
    return json.dumps({"epoch": epoch, "by": "crash", "odd": "\\u00e9\\n"})

def run_epoch(intention):
    print(intention, flush=True)
    if json.loads(intention)["epoch"] == 3:
        os._exit(9)

loop_of(Path(sys.argv[1]), next_intention, run_epoch).await_end()
"""


class Recorder:
    """An engine of ``total`` epochs that writes down what it is asked and told."""

    def __init__(self, total: Any, by: str = "test") -> None:
        self.total, self.by = total, by
        self.asked, self.ran = [], []
        self.done = threading.Event()

    def next_intention(self, last: Any) -> Any:
        self.asked.append(last)
        epoch = json.loads(last)["epoch"] + 1 if last else 1
        if epoch > self.total:
            self.done.set()
            return None
        return json.dumps({"epoch": epoch, "by": self.by}, separators=(",", ":"))

    def run_epoch(self, intention: Any) -> None:
        self.ran.append((json.loads(intention)["epoch"], json.loads(intention)["by"]))


@pytest.fixture
def loops() -> Iterator[Any]:
    """Loops that are stopped at the end, whatever happens."""
    started = []

    def start(folder: Any, engine: Any, **options: Any) -> Any:
        loop = loop_of(folder, engine.next_intention, engine.run_epoch, **options)
        started.append(loop)
        return loop

    yield start
    for loop in started:
        assert loop.stop(PATIENCE)


def test_epochs_run_in_order_and_a_quiet_loop_stops_without_error(
    tmp_path: Path, loops: Any
) -> None:
    engine = Recorder(total=8)
    loop = loops(tmp_path, engine)
    assert engine.done.wait(PATIENCE)
    assert loop.stop(PATIENCE)
    assert loop.failure is None
    assert engine.ran == [(n, "test") for n in range(1, 9)]
    assert [json.loads(a)["epoch"] for a in engine.asked[1:8]] == list(range(1, 8))
    assert [p.name for p in tmp_path.iterdir()] == ["done"], "nothing is open"


def test_a_loop_that_never_had_an_epoch_stops_too(tmp_path: Path, loops: Any) -> None:
    loop = loops(tmp_path, Recorder(total=0))
    assert loop.stop(PATIENCE)
    assert loop.failure is None


def test_what_is_written_ahead_is_there_while_the_epoch_runs(tmp_path: Path, loops: Any) -> None:
    engine, seen = Recorder(total=2), []
    engine.run_epoch = lambda intention: seen.append(
        read_sealed(tmp_path / "open") == intention.encode()
    )
    loops(tmp_path, engine)
    assert engine.done.wait(PATIENCE)
    assert seen == [True, True]


def test_an_epoch_that_fails_ends_the_loop_and_is_run_again_by_the_next(
    tmp_path: Path, loops: Any
) -> None:
    error = ValueError("epoch 2 is bad")
    first, second = Recorder(total=5, by="first"), Recorder(total=3, by="second")

    def fail(intention: Any) -> None:
        first.ran.append(json.loads(intention)["epoch"])
        if first.ran[-1] == 2:
            raise error

    first.run_epoch = fail
    loop = loops(tmp_path, first)
    assert loop.await_end(PATIENCE)
    assert loop.failure is error
    assert first.ran == [1, 2]
    loops(tmp_path, second)
    assert second.done.wait(PATIENCE)
    assert second.ran == [(2, "first"), (3, "second")]
    assert json.loads(second.asked[0]) == {"epoch": 2, "by": "first"}


def test_a_failing_next_intention_ends_the_loop(tmp_path: Path, loops: Any) -> None:
    engine, error = Recorder(total=1), KeyError("no plan")

    def fail(last: Any) -> None:
        raise error

    engine.next_intention = fail
    loop = loops(tmp_path, engine)
    assert loop.await_end(PATIENCE)
    assert loop.failure is error
    assert engine.ran == []


def test_an_epoch_may_ask_for_the_stop(tmp_path: Path, loops: Any) -> None:
    engine = Recorder(total=100)
    loop = None
    ready = threading.Event()

    def run(intention: Any) -> None:
        ready.wait(PATIENCE)
        engine.ran.append(json.loads(intention)["epoch"])
        if engine.ran[-1] == 2:
            loop.request_stop()  # type: ignore[attr-defined]

    engine.run_epoch = run
    loop = loops(tmp_path, engine)
    ready.set()
    assert loop.await_end(PATIENCE)
    assert (engine.ran, loop.failure) == ([1, 2], None)


def test_a_stop_waits_for_the_epoch_and_says_when_it_has_not_ended(
    tmp_path: Path, loops: Any
) -> None:
    engine, inside, go_on = Recorder(total=100), threading.Event(), threading.Event()

    def run(intention: Any) -> None:
        inside.set()
        go_on.wait(PATIENCE)
        engine.ran.append(json.loads(intention)["epoch"])

    engine.run_epoch = run
    loop = loops(tmp_path, engine)
    assert inside.wait(PATIENCE)
    assert not loop.stop(0.3)
    go_on.set()
    assert loop.await_end(PATIENCE)
    assert engine.ran == [1]


def test_a_wake_is_not_waited_for(tmp_path: Path, loops: Any) -> None:
    engine, due, ran = Recorder(total=1), threading.Event(), threading.Event()
    ask = engine.next_intention
    engine.next_intention = lambda last: ask(last) if due.is_set() else None
    engine.run_epoch = lambda intention: ran.set()
    loop = loops(tmp_path, engine, ask_every=2 * PATIENCE)
    time.sleep(0.1)
    due.set()
    loop.wake()
    assert ran.wait(PATIENCE)


def test_a_folder_that_cannot_be_written_is_an_error_in_words(tmp_path: Path, loops: Any) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="file"):
        loops(tmp_path / "file" / "below", Recorder(total=1))


def test_a_killed_drivers_epoch_is_run_again_with_its_own_intention(
    tmp_path: Path, loops: Any
) -> None:
    driver = subprocess.run(
        [sys.executable, "-c", CRASH, tmp_path], capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert driver.returncode == 9
    begun = [json.loads(line) for line in driver.stdout.splitlines()]
    assert [b["epoch"] for b in begun] == [1, 2, 3]
    engine, seen = Recorder(total=4), []
    engine.run_epoch = lambda intention: seen.append(json.loads(intention))
    loops(tmp_path, engine)
    assert engine.done.wait(PATIENCE)
    assert seen == [begun[2], {"epoch": 4, "by": "test"}]
    assert begun[2]["odd"] == "é\n"


def test_what_ended_without_a_word_is_examined_and_the_verdict_is_durable(
    tmp_path: Path, loops: Any
) -> None:
    (tmp_path / "open").write_bytes(seal(json.dumps({"epoch": 3, "by": "dead"}).encode()))
    engine, seen = Recorder(total=4), []

    def examine(intention: str) -> str:
        seen.append(json.loads(intention)["by"])
        return intention.replace("dead", "examined")

    run = engine.run_epoch

    def look(intention: str) -> None:
        seen.append(read_sealed(tmp_path / "open").decode() == intention)
        run(intention)

    engine.run_epoch = look
    loops(tmp_path, engine, examine=examine)
    assert engine.done.wait(PATIENCE)
    assert engine.ran == [(3, "examined"), (4, "test")]
    assert seen == ["dead", True, True]


def test_what_failed_with_an_error_is_not_examined(tmp_path: Path, loops: Any) -> None:
    first, second = Recorder(total=2, by="first"), Recorder(total=2)

    def fail(intention: str) -> None:
        raise ValueError(intention)

    def examine(intention: str) -> str:
        raise AssertionError("nobody has died")

    first.run_epoch = fail
    assert loops(tmp_path, first, examine=examine).await_end(PATIENCE)
    loops(tmp_path, second, examine=examine)
    assert second.done.wait(PATIENCE)
    assert second.ran == [(1, "first"), (2, "test")]
    assert [p.name for p in tmp_path.iterdir()] == ["done"]


def losing(engine: Recorder, times: int) -> None:
    """Epoch 2 loses tasks so many times, unless it is without what they die of."""
    run, left = engine.run_epoch, [times]

    def lose(intention: str) -> None:
        if "without" not in intention and json.loads(intention)["epoch"] == 2 and left[0]:
            left[0] -= 1
            raise LostTaskError(f"Spark could not run the epoch: crashed, {left[0]} left")
        run(intention)

    engine.run_epoch = lose


def test_an_epoch_that_lost_a_task_is_examined_at_once(tmp_path: Path, loops: Any) -> None:
    engine = Recorder(total=2)
    losing(engine, 9)
    loops(tmp_path, engine, examine=lambda i: i.replace("test", "without"))
    assert engine.done.wait(PATIENCE)
    assert engine.ran == [(1, "test"), (2, "without")]


@pytest.mark.parametrize("times", [1, 3, 4])
def test_an_epoch_that_lost_tasks_is_run_again_three_times(
    tmp_path: Path, loops: Any, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    monkeypatch.setattr("levada.engine.epoch_loop.PAUSES", (0.0, 0.001, 0.002))
    engine, told, examined = Recorder(total=3), [], []
    losing(engine, times)

    def examine(intention: str) -> str:
        examined.append(intention)
        return intention

    loop = loops(
        tmp_path, engine, examine=examine,
        lost=lambda i, error, pause: told.append((json.loads(i)["epoch"], str(error)[-6:], pause)),
    )  # fmt: skip
    all_told = [
        (2, f"{times - n} left", pause) for n, pause in enumerate([0.0, 0.001, 0.002, None], 1)
    ]
    if times < 4:
        assert engine.done.wait(PATIENCE)
        assert engine.ran == [(1, "test"), (2, "test"), (3, "test")]
    else:
        assert loop.await_end(PATIENCE)
        assert isinstance(loop.failure, LostTaskError)
        assert "--memory" in loop.failure.hint, "the system may have killed them"
    assert told == all_told[:times]
    assert len(examined) == min(times, 2), "later it is known that nothing read is to blame"


def test_what_is_no_loss_is_not_run_again(tmp_path: Path, loops: Any) -> None:
    engine, runs = Recorder(total=2), []

    def fail(intention: str) -> None:
        runs.append(intention)
        raise EngineError("an error of Levada")

    engine.run_epoch = fail
    assert loops(tmp_path, engine).await_end(PATIENCE)
    assert len(runs) == 1


def test_the_next_question_comes_soon_after_an_epoch_and_then_later_and_later(
    tmp_path: Path,
) -> None:
    asked: list[float] = []
    answers = iter(["1"])

    def ask(last: str | None) -> str | None:
        asked.append(time.monotonic())
        return next(answers, None)

    loop = loop_of(tmp_path / "intentions", ask, lambda text: None, ask_every=0.4)
    while len(asked) < 10:
        assert not loop.await_end(0.01)
    loop.stop()
    waits = [b - a for a, b in itertools.pairwise(asked[1:10])]
    assert waits[0] >= 0.0015, "a silent stream is not asked again and again"
    assert all(wait >= 0.0015 * 2**i for i, wait in enumerate(waits[:8]))

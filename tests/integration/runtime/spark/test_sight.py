"""What an executor does not see is a sentence with its host and the path."""

import itertools
import platform
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from levada.errors import CheckpointError, EngineError, LostTaskError, SourceError
from levada.runtime.executor import Job, LocalExecutor, resolve
from levada.runtime.spark import executor_checks
from support.polling import until

HOST = platform.node()


class Elsewhere:
    """An executor that runs jobs on a host where something is away: ``away`` takes it, and gives
    what brings it back, if it is there for others.
    """

    def __init__(self, away: Any) -> None:
        self.away, self.jobs = away, 0

    def run(self, job: Job) -> list[bytes]:
        back = self.away()
        self.jobs += 1
        try:
            return LocalExecutor().run(job)
        finally:
            if back is not None:
                back()


class Retried:
    """An executor that runs a task again where it fails, as Spark does, at another one: at the last
    of ``hosts``, each of which has something done before a task runs there.
    """

    def __init__(self, hosts: list[Callable[[], None]]) -> None:
        self._hosts, self.failed = hosts, 0

    def run(self, job: Job) -> list[bytes]:
        blobs = [b for k, p in enumerate(job.payloads) for b in self._once(job, k, p)]
        stage = resolve(job.functions[1])
        return [bytes(blob) for _, blob in stage(job.context, 1, 0, [blob for _, blob in blobs])]

    def _once(self, job: Job, number: int, payload: bytes) -> Any:
        intake = resolve(job.functions[0])
        try:
            self._hosts[number % len(self._hosts)]()
            return intake(job.context, payload)
        except Exception:
            self.failed += 1
            self._hosts[-1]()
            return intake(job.context, payload)


def session(executors: Sequence[str], failed: Callable[[], int] = lambda: 0) -> Any:
    """What is asked of a session: which executors there are, from question to question, and how
    many tasks have failed at each.
    """
    asked, last = list(executors[:-1]), executors[-1]

    def ids() -> Any:
        text = asked.pop(0) if asked else last
        return SimpleNamespace(mkString=lambda _: text)

    summary = SimpleNamespace(failedTasks=failed, hostPort=lambda: "host-b:4711")
    store = SimpleNamespace(executorSummary=lambda _: summary)
    java = SimpleNamespace(
        sc=lambda: SimpleNamespace(getExecutorIds=ids, statusStore=lambda: store)
    )
    return SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=1, _jsc=java))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(executor_checks, "TOGETHER", 0)
    for name in ("ck", "streams"):
        (tmp_path / name).mkdir()
    (tmp_path / "streams" / "a.nt").write_text("x")
    (tmp_path / "static.nt").write_text("more than that")
    return tmp_path


def ask(root: Path, away: Any = lambda: None, executors: tuple[str, ...] = ("0",)) -> int:
    executor = Elsewhere(away)
    executor_checks.probe(session(executors), executor, root / "ck", paths(root))
    assert not list((root / "ck").iterdir()), "nothing is left"
    return executor.jobs


def paths(root: Path) -> list[str]:
    return [str(root / "streams"), str(root / "static.nt")]


def test_who_sees_everything_says_nothing(root: Path) -> None:
    assert ask(root) == 1
    assert ask(root, executors=("0", "0,1,2")) == 2, "as long as executors come"


def test_one_that_does_not_see_is_not_passed_over(root: Path) -> None:
    """Found: what it said was a failed task, which Spark ran again at another executor."""
    there, away = root / "streams", root / "away"

    def misses() -> None:
        if there.exists():
            there.rename(away)

    def sees() -> None:
        if away.exists():
            away.rename(there)

    executor = Retried([misses, sees])
    with pytest.raises(SourceError, match=f"on {HOST} does not see {there}"):
        executor_checks.probe(session(["0,1"]), executor, root / "ck", paths(root))
    assert not executor.failed


def test_one_at_which_all_fails(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no such version of Levada, so what it does is none of ours."""

    def fails() -> None:
        raise ModuleNotFoundError("No module named 'levada'")

    monkeypatch.setattr(executor_checks, "executor_here", lambda: "0")
    executor = Retried([fails, lambda: None])
    with pytest.raises(EngineError, match=r"on host-b cannot run Levada 0.*all tasks fail there"):
        executor_checks.probe(
            session(["0,1"], lambda: executor.failed), executor, root / "ck", paths(root)
        )
    busy = Retried([lambda: None])
    assert executor_checks.probe(session(["0,1"]), busy, root / "ck", paths(root)) == {"0", "1"}


def test_who_comes_later_is_asked_beside_the_epochs(root: Path) -> None:
    """It gets no work before it has answered; who is there goes on."""
    may = threading.Event()
    executor = Elsewhere(lambda: None)
    of = session(["0", "0", "0,1"])
    looks = executor_checks.ExecutorChecks(of, executor, root / "ck", lambda: paths(root))
    looks.ask()
    assert looks(["0"]) == {"0"} and executor.jobs == 1
    run = executor.run

    def waits(job: Job) -> list[bytes]:
        assert may.wait(60)
        return run(job)

    executor.run = waits
    assert looks(["0", "1"]) == {"0"} == looks(["0", "1"])
    may.set()
    until(lambda: looks(["0", "1"]) == {"0", "1"})
    assert looks(["1"]) == {"1"} and executor.jobs == 2, "nobody is asked twice"


def test_who_is_alone_is_waited_for(root: Path) -> None:
    """Also where a placement says where each task is to run."""
    executor = Elsewhere(lambda: None)
    looks = executor_checks.ExecutorChecks(
        session(["0", "0", "1", "1", "1,2"]), executor, root / "ck", lambda: paths(root)
    )
    looks.ask()
    assert looks(["1"]) == {"1"}
    assert looks(["1", "2"], wait=True) == {"1", "2"}
    assert not list((root / "ck").iterdir())


def test_what_one_that_comes_does_not_see_ends_an_epoch_behind_it(root: Path) -> None:
    executor = Elsewhere(lambda: None)
    looks = executor_checks.ExecutorChecks(
        session(["0", "0", "0,1"]), executor, root / "ck", lambda: paths(root)
    )
    looks.ask()

    def away() -> Any:
        (root / "static.nt").rename(root / "away")
        return lambda: (root / "away").rename(root / "static.nt")

    executor.away = away

    def told() -> bool:
        try:
            looks(["0", "1"])
        except SourceError as error:
            return f"does not see {root}/static.nt" in error.message
        return False

    until(told)


def test_a_file_that_goes_meanwhile(root: Path) -> None:
    """Nobody sees it any more."""
    (root / "streams" / "b.nt").write_text("x")
    assert ask(root, lambda: (root / "streams" / "a.nt").unlink(missing_ok=True)) == 2


def test_a_checkpoint_of_its_own(root: Path) -> None:
    def away() -> None:
        shutil.rmtree(root / "ck")
        (root / "ck").mkdir()

    with pytest.raises(CheckpointError, match=f"on {HOST} does not see the checkpoint {root}/ck"):
        ask(root, away)


@pytest.mark.parametrize("path", ["streams", "streams/a.nt", "static.nt"])
def test_data_that_are_not_there(root: Path, path: str) -> None:
    def away() -> Any:
        (root / path).rename(root / "away")
        return lambda: (root / "away").rename(root / path)

    seen = root / path.partition("/")[0]
    with pytest.raises(SourceError, match=f"on {HOST} does not see {seen}, which the driver reads"):
        ask(root, away)


def test_a_file_that_is_shorter_there(root: Path) -> None:
    def away() -> Any:
        (root / "static.nt").write_text("less")
        return lambda: (root / "static.nt").write_text("more than that")

    with pytest.raises(SourceError, match=rf"does not see {root}/static\.nt"):
        ask(root, away)


def test_another_version(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = itertools.chain(["1.0 (format 12)"], itertools.repeat("1.1 (format 13)"))
    monkeypatch.setattr(executor_checks, "version", lambda: next(versions))
    told = rf"on {HOST} runs Levada 1\.1 \(format 13\), and the driver 1\.0 \(format 12\)\."
    with pytest.raises(EngineError, match=told):
        ask(root)


def test_an_executor_without_levada(root: Path) -> None:
    def away() -> None:
        raise LostTaskError("Spark could not run the epoch: No module named 'levada'")

    with pytest.raises(LostTaskError, match=r"cannot run Levada 0.*: No module named 'levada'"):
        ask(root, away)

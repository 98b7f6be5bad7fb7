"""What an executor does not see is a sentence with its host and the path."""

import itertools
import platform
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from levada.errors import CheckpointError, EngineError, LostTaskError, SourceError
from levada.runtime.local import Job, LocalExecutor
from levada.runtime.spark import sight

HOST = platform.node()


class Elsewhere:
    """An executor that runs jobs on a host from which something has been taken away before."""

    def __init__(self, away: Any) -> None:
        self._away, self.jobs = away, 0

    def run(self, job: Job) -> list[bytes]:
        self._away()
        self.jobs += 1
        return LocalExecutor().run(job)


def session(executors: list[int]) -> Any:
    """What is asked of a session: how many executors there are, from question to question."""
    ids = SimpleNamespace(getExecutorIds=lambda: SimpleNamespace(size=lambda: executors.pop(0)))
    java = SimpleNamespace(sc=lambda: ids)
    return SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=1, _jsc=java))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sight, "TOGETHER", 0)
    for name in ("ck", "streams"):
        (tmp_path / name).mkdir()
    (tmp_path / "streams" / "a.nt").write_text("x")
    (tmp_path / "static.nt").write_text("more than that")
    return tmp_path


def ask(root: Path, away: Any = lambda: None, executors: tuple[int, ...] = (1, 1)) -> int:
    executor = Elsewhere(away)
    paths = [str(root / "streams"), str(root / "static.nt")]
    sight.probe(session(list(executors)), executor, root / "ck", paths)
    assert not list((root / "ck").iterdir()), "nothing is left"
    return executor.jobs


def test_who_sees_everything_says_nothing(root: Path) -> None:
    assert ask(root) == 2
    assert ask(root, executors=(1, 3, 3)) == 3, "as long as executors come"


def test_a_checkpoint_of_its_own(root: Path) -> None:
    def away() -> None:
        shutil.rmtree(root / "ck")
        (root / "ck").mkdir()

    with pytest.raises(CheckpointError, match=f"on {HOST} does not see the checkpoint {root}/ck"):
        ask(root, away)


@pytest.mark.parametrize("path", ["streams", "streams/a.nt", "static.nt"])
def test_data_that_are_not_there(root: Path, path: str) -> None:
    def away() -> None:
        (root / path).rename(root / "away")

    seen = root / path.partition("/")[0]
    with pytest.raises(SourceError, match=f"on {HOST} does not see {seen}, which the driver reads"):
        ask(root, away)


def test_a_file_that_is_shorter_there(root: Path) -> None:
    with pytest.raises(SourceError, match=rf"does not see {root}/static\.nt"):
        ask(root, lambda: (root / "static.nt").write_text("less"))


def test_another_version(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = itertools.chain(["1.0 (format 12)"], itertools.repeat("1.1 (format 13)"))
    monkeypatch.setattr(sight, "version", lambda: next(versions))
    told = rf"on {HOST} runs Levada 1\.1 \(format 13\), and the driver 1\.0 \(format 12\)\."
    with pytest.raises(EngineError, match=told):
        ask(root)


def test_an_executor_without_levada(root: Path) -> None:
    def away() -> None:
        raise LostTaskError("Spark could not run the epoch: No module named 'levada'")

    with pytest.raises(EngineError, match=r"cannot run Levada 0.*: No module named 'levada'"):
        ask(root, away)

"""Publication beside the next epoch: what is published is what a run without it publishes, in its
order, each once, whoever dies or fails in between.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest
from test_epoch_crash import QUERIES, STREAMS, attempt, leftovers, reports, source

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.leadership.rollback import rollback
from levada.connectors.serialization.result_formats import Format
from levada.connectors.serialization.serialize import Batch, ndjson
from levada.connectors.sinks.file_sink import FileSink
from levada.core.checksummed_files import seal
from levada.engine.engine import Engine
from levada.engine.engine_driver import Driver
from levada.engine.epoch_loop import EpochLoop
from levada.errors import OvertakenError, SinkError
from levada.runtime.publication import publication
from levada.runtime.publication.publication import PendingPublication, PublicationThread
from support.async_publication import overlapping
from support.fault_injection import Fate, published
from support.loop_steps import LoopSteps, loop_of
from support.polling import PATIENCE, until
from support.query_dsl import S, judge, register

FRESH = QUERIES[1]


@pytest.fixture
def overlap() -> Iterator[None]:
    with overlapping():
        yield


# -- the loop --


class Publisher:
    """Epochs whose publications go on beside: each waits until the next epoch runs, or the loop is
    to stop. ``fails``: of which epoch it fails.
    """

    def __init__(self, folder: Path, total: int, fails: int = 0) -> None:
        self.told: list[str] = []
        self.signs: list[list[str]] = []
        self.total, self.fails, self.folder = total, fails, folder
        self.runs = [threading.Event() for _ in range(total + 2)]
        self.steps = LoopSteps(self.next, self.run, again=self.again)
        self.loop = self.steps.loop

    def start(self) -> None:
        EpochLoop(self.folder, cast(Driver, self.steps)).start()

    def next(self, last: str | None) -> str | None:
        epoch = int(last) + 1 if last else 1
        if epoch <= self.total:
            return str(epoch)
        self.runs[epoch].set()
        return None

    def run(self, text: str) -> PendingPublication:
        epoch = int(text)
        self.runs[epoch].set()
        self.signs.append(sorted(path.name for path in self.folder.iterdir()))
        self.told.append(f"job {epoch}")
        self.steps.publication_thread.join()
        self.told.append(f"commit {epoch}")
        return PendingPublication(epoch, lambda: self.publish(epoch))

    def publish(self, epoch: int) -> None:
        assert self.runs[epoch + 1].wait(PATIENCE), "the next epoch begins meanwhile"
        until(lambda: f"job {epoch + 1}" in self.told or epoch == self.total)
        if epoch == self.fails:
            raise SinkError("There is no room.")
        self.told.append(f"published {epoch}")

    def again(self, text: str) -> bool:
        self.told.append(f"again {text}")
        return True


def test_the_next_job_runs_meanwhile_and_the_next_commit_does_not(tmp_path: Path) -> None:
    it = Publisher(tmp_path, 3)
    it.start()
    until(lambda: (tmp_path / "done").exists() and not list(tmp_path.glob("publishing-*")))
    until(lambda: "published 3" in it.told)
    assert it.loop.stop(PATIENCE)
    assert it.loop.failure is None
    assert it.told == [
        "job 1", "job 2", "published 1", "commit 2", "job 3", "published 2", "commit 3",
        "published 3",
    ] or it.told[1] == "commit 1"  # fmt: skip
    assert [told for told in it.told if "job" not in told] == [
        f"{what} {epoch}" for epoch in (1, 2, 3) for what in ("commit", "published")
    ]
    assert it.signs[0] == ["open"]
    assert all({"open", f"publishing-{epoch}"} <= {*it.signs[epoch]} for epoch in (1, 2))
    assert [path.name for path in tmp_path.iterdir()] == ["done"]


@pytest.mark.parametrize("fails", [2, 3])
def test_what_fails_beside_ends_the_loop_and_is_published_again_first(
    tmp_path: Path, fails: int
) -> None:
    it = Publisher(tmp_path, 3, fails)
    it.start()
    assert it.loop.await_end(PATIENCE), "also if nothing comes after it"
    assert isinstance(it.loop.failure, SinkError)
    assert f"commit {fails + 1}" not in it.told
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"done", f"publishing-{fails}", *(("open", "notice") if fails == 2 else ())}
    after = Publisher(tmp_path, 3)
    after.start()
    until(lambda: after.told[-1:] == ["published 3"] if fails == 2 else after.told)
    assert after.loop.stop(PATIENCE) and after.loop.failure is None
    assert after.told[0] == f"again {fails}"
    assert not list(tmp_path.glob("publishing-*"))


@pytest.mark.parametrize("is_last", [True, False])
def test_who_was_overtaken_ends_its_publication_while_it_is_done_again(
    tmp_path: Path, is_last: bool
) -> None:
    """Its sign is gone then: the one that reigns goes on."""
    sign = tmp_path / "publishing-1"
    sign.write_bytes(seal(b"1"))

    def again(text: str) -> bool:
        sign.rename(tmp_path / "done")
        return is_last

    told: list[str | None] = []

    def following(last: str | None) -> str | None:
        told.append(last)
        return None

    loop = loop_of(tmp_path, following, lambda text: True, again=again)
    until(lambda: told or loop.failure)
    assert loop.stop(PATIENCE) and loop.failure is None
    assert told[0] == ("1" if is_last else None)


def test_one_at_a_time_and_what_failed_is_raised_once() -> None:
    ended = threading.Event()
    it = PublicationThread(ended.set)
    it.look()
    it.join()

    def fail() -> None:
        raise SinkError("There is no room.")

    it.begin(fail)
    with pytest.raises(AssertionError, match="one publication at a time"):
        it.begin(fail)
    assert ended.wait(PATIENCE)
    with pytest.raises(SinkError):
        it.join()
    it.look()
    it.join()


# -- an engine --


class Journal:
    """A sink whose lines outlive the process that wrote them; ``blocks`` stands still with the
    first results of that epoch, or of a later one, and says so by a file.
    """

    def __init__(self, path: Path, blocks: int = 0) -> None:
        self.path, self.blocks = path, blocks

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        if self.blocks and epoch >= self.blocks:
            self.path.with_suffix(".stands").write_text(str(epoch))
            threading.Event().wait()
        said = [query, epoch, ndjson(query, variables, batch).decode().splitlines()]
        with self.path.open("a") as file:
            file.write(json.dumps(said) + "\n")
        return []

    @property
    def said(self) -> list[Any]:
        return [json.loads(line) for line in self.path.read_text().splitlines()]


def journal_run(data: Path, root: Path, sink: Any) -> None:
    """All epochs of one query into a sink."""
    root.mkdir(exist_ok=True)
    with Engine(
        spark=False, checkpoint=root / "ck", epoch_rows=6, partitions=1, sink=sink, seed=7,
        letters=root / "out", keep_results=False,
    ) as engine:  # fmt: skip
        engine.stream(S, data / "s.nt")
        register(engine, [FRESH])
        engine.start(once=True)
        engine.await_end()


class Both(Journal):
    """A sink in Python, and files behind it."""

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        super().publish(query, variables, epoch, batch)
        files = FileSink(self.path.parent / "out", Format.NDJSON)
        return files.publish(query, variables, epoch, batch)


def doomed(data: Path, root: Path) -> None:
    """In a process of its own: stands in a publication while the next epoch has run its job."""
    join = PublicationThread.join

    def waits(self: PublicationThread) -> None:
        if self._thread is not None and (root / "j.stands").exists():
            (root / "waits").touch()
        join(self)

    with overlapping(), patch.object(PublicationThread, "join", waits):
        root.mkdir()
        journal_run(data, root, Both(root / "j", blocks=3))


@pytest.mark.long
def test_killed_while_both_are_open(tmp_path: Path, overlap: None) -> None:
    data, root = source(tmp_path / "data"), tmp_path / "root"
    code = "import sys, test_overlap as t; t.doomed(*map(t.Path, sys.argv[1:]))"
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    env = {**os.environ, "PYTHONPATH": path}
    process = subprocess.Popen([sys.executable, "-c", code, data, root], env=env)
    try:
        until(lambda: (root / "waits").exists(), "both are open", process=process)
    finally:
        process.kill()
        process.wait(PATIENCE)
    assert process.returncode == -signal.SIGKILL
    stood = int((root / "j.stands").read_text())
    left = {path.name for path in (root / "ck" / "intentions").iterdir()}
    assert {"open", f"publishing-{stood}"} <= left
    assert not (root / "ck" / "manifests" / str(stood + 1)).exists()
    back = shutil.copytree(root, tmp_path / "back")
    whole, after = Both(tmp_path / "whole" / "j"), Both(root / "j")
    assert 0 < len(after.said) < stood, "some are published by the run that was killed"
    journal_run(data, tmp_path / "whole", whole)
    journal_run(data, root, after)
    assert after.said == whole.said
    assert len({(query, epoch) for query, epoch, _ in after.said}) == len(after.said) > 4
    assert published(root) == published(tmp_path / "whole")
    assert rollback(back / "ck", None, wall=0) == stood - 1
    anew = Both(back / "j")
    journal_run(data, back, anew)
    assert anew.said == whole.said, "also if it was gone back behind what was still published"
    assert published(back) == published(tmp_path / "whole")


def test_killed_before_any_change_of_the_disk(
    tmp_path: Path, overlap: None, monkeypatch: pytest.MonkeyPatch, random_seed: int
) -> None:
    fate, data = Fate(monkeypatch), source(tmp_path / "data")
    with overlapping(on=False):
        assert attempt(data, tmp_path / "whole")
    whole = published(tmp_path / "whole")
    judge(QUERIES, STREAMS, reports(whole))
    assert attempt(data, tmp_path / "beside", None, fate)
    assert published(tmp_path / "beside") == whole
    points, stride = fate.calls, 61
    for k in range(random_seed % stride, points, stride):
        root = tmp_path / str(k)
        attempt(data, root, k, fate)  # by the turns of two threads it may end before
        assert attempt(data, root), (k, random_seed)
        assert published(root) == whole, (k, random_seed)
        assert not leftovers(root), (k, random_seed)


class Breaking(Journal):
    """Does something in the epoch ``at``, or a later one, before it is published."""

    def __init__(self, path: Path, at: int, act: Any) -> None:
        super().__init__(path)
        self.at, self.act, self.epoch = at, act, 0

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        assert threading.current_thread().name == "levada publication"
        if epoch >= self.at and not self.epoch:
            self.epoch = epoch
            self.act()
        return super().publish(query, variables, epoch, batch)


def test_a_sink_that_fails_beside_fails_the_engine(tmp_path: Path, overlap: None) -> None:
    data = source(tmp_path / "data")

    def fail() -> None:
        raise SinkError("There is no room.")

    sink = Breaking(tmp_path / "j", 3, fail)
    with pytest.raises(SinkError, match="There is no room"):
        journal_run(data, tmp_path / "root", sink)
    assert not (tmp_path / "root" / "ck" / "manifests" / str(sink.epoch + 1)).exists()
    whole, after = Journal(tmp_path / "whole.j"), Journal(tmp_path / "j")
    journal_run(data, tmp_path / "whole", whole)
    journal_run(data, tmp_path / "root", after)
    assert after.said == whole.said


def test_who_was_overtaken_meanwhile_commits_and_publishes_nothing_more(
    tmp_path: Path, overlap: None
) -> None:
    data, root = source(tmp_path / "data"), tmp_path / "root"

    def take_over() -> None:
        Checkpoint(root / "ck", partitions=1, locked=False)

    sink = Breaking(tmp_path / "j", 3, take_over)
    with pytest.raises(OvertakenError):
        journal_run(data, root, sink)
    assert max(epoch for _, epoch, _ in sink.said) == sink.epoch
    whole, after = Journal(tmp_path / "whole.j"), Journal(tmp_path / "j")
    journal_run(data, tmp_path / "whole", whole)
    journal_run(data, root, after)
    assert [said for i, said in enumerate(after.said) if said not in after.said[:i]] == whole.said


def test_an_end_has_everything_published(
    tmp_path: Path, overlap: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last publication goes on until the loop is told to stop."""
    data = source(tmp_path / "data")
    sink = Journal(tmp_path / "j")
    with Engine(spark=False, epoch_rows=1000, partitions=1, sink=sink, seed=7) as engine:
        engine.stream(S, data / "s.nt")
        register(engine, [FRESH])
        write = sink.publish

        def publish(*given: Any) -> list[str]:
            assert engine._driver is not None
            loop = engine._driver.loop
            until(loop.stopping.is_set)
            assert not loop.await_end(0)
            return write(*given)

        monkeypatch.setattr(sink, "publish", publish)
        query = engine._registry.queries[FRESH.name]
        engine.start(once=True)
        engine.await_end()
        assert [name for name, _, _ in sink.said] == [query.name]


def test_few_results_stay_with_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, threads = source(tmp_path / "data"), set[str]()
    sink = Journal(tmp_path / "j")
    write = sink.publish

    def publish(*given: Any) -> list[str]:
        threads.add(threading.current_thread().name)
        return write(*given)

    monkeypatch.setattr(sink, "publish", publish)
    least = publication.MIN_ASYNC_BYTES
    # by patch: monkeypatch would put back what overlapping has set, after overlapping has ended
    with overlapping(), patch.object(publication, "MIN_ASYNC_BYTES", least):
        journal_run(data, tmp_path / "root", sink)
    assert threads == {"levada loop"}

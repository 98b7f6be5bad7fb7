"""``levada backup``: a copy of a checkpoint whose engine runs on is one that a run can start on."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from levada.checkpoint import backup as backups
from levada.checkpoint.backup import STAGE, backup
from levada.checkpoint.object_store.folder_mirror import MARK
from levada.checkpoint.verify import verify
from levada.cli.main import main
from levada.errors import CheckpointError
from support.polling import kill_after, newest_epoch, until

QUERY = """PREFIX : <http://e/>
SELECT ?a (SUM(?n) AS ?sum) FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT1S]
WHERE { WINDOW :w { ?a :p ?n } } GROUP BY ?a ORDER BY ?a
"""
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
LINES = [f'<http://e/a{k % 7}> <http://e/p> "{k}"^^<{INTEGER}> {250 * k} .\n' for k in range(4000)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a query and a stream that can be read again, in which commands run."""
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "s.nt").write_text("".join(LINES[:2000]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(checkpoint: str, *more: str, out: str = "out") -> list[str]:
    ways = ["--stream", "s=s.nt", "--master", "none", "--checkpoint", checkpoint, "--out", out]
    return ["run", "q.rq", *ways, *more]


@contextmanager
def running(*more: str) -> Iterator[subprocess.Popen[bytes]]:
    """An engine of small epochs in a process of its own; it has had some."""
    command = [sys.executable, "-m", "levada", *words("ck", "--epoch-rows", "3", *more)]
    with open("log", "wb") as log:
        process = subprocess.Popen(command, stderr=log, stdout=log)
    try:
        until(lambda: newest_epoch(Path("ck")) >= 5, "epoch 5", process=process)
        yield process
    finally:
        process.kill()
        process.wait()


def results(out: str) -> list[str]:
    return sorted(
        line for path in Path(out, "q").glob("*.ndjson") for line in path.read_text().splitlines()
    )


def forget_files_after(epoch: int, out: str = "out") -> None:
    """Deletes the files of results that come again, as the documentation says."""
    for path in Path(out, "q").iterdir():
        if int(path.name.partition("-")[0]) > epoch:
            path.unlink()


@pytest.mark.long
def test_a_run_goes_on_from_a_backup_elsewhere_with_each_result_once(here: Path) -> None:
    with running() as process:
        assert main(["backup", "ck", "saved/monday"]) == 0
        kill_after(process, here / "ck", 5)
    assert newest_epoch(here / "saved/monday") < newest_epoch(here / "ck")
    assert not verify(here / "saved/monday").damaged
    assert not [*here.glob(f"**/{STAGE}")], "nothing is left in the checkpoint"
    with open("s.nt", "a") as stream:
        stream.writelines(LINES[2000:])
    assert main(["backup", "saved/monday", "new"]) == 0, "the same command brings it back"
    forget_files_after(newest_epoch(here / "new"))
    assert main(words("new", "--once")) == 0
    assert main(words("whole", "--once", out="expected")) == 0
    assert results("out") == results("expected")


@pytest.mark.long
def test_each_of_many_backups_is_whole_while_the_engine_commits(here: Path) -> None:
    assert main(words("whole", "--once", "--keep-open", out="expected")) == 0
    with running("--epoch", "0") as process:
        for k in range(8):
            report = backup(here / "ck", here / f"saved{k}")
            assert report.epoch and not report.damaged
            until(lambda: newest_epoch(here / "ck") > report.epoch, process=process)  # noqa: B023
    for k in range(8):
        shutil.copytree("out", f"out{k}")
        forget_files_after(newest_epoch(here / f"saved{k}"), f"out{k}")
        assert main(words(f"saved{k}", "--once", "--keep-open", out=f"out{k}")) == 0
        assert results(f"out{k}") == results("expected"), k


@pytest.mark.long
def test_an_engine_that_commits_at_all_times_is_said_so(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running():
        monkeypatch.setattr(backups, "PATIENCE", 0.2)
        numbers = itertools.count()
        monkeypatch.setattr(backups, "newest_number", lambda root: next(numbers))
        with pytest.raises(CheckpointError, match="commits faster than its files can be linked"):
            backup(here / "ck", here / "saved")
    assert not (here / "saved").exists() and not (here / "ck" / STAGE).exists()


def test_what_cannot_be_backed_up_is_refused(here: Path) -> None:
    assert main(words("ck", "--once")) == 0
    (here / "full").mkdir()
    (here / "full" / "x").touch()
    for place in ("full", "ck/in"):
        with pytest.raises(CheckpointError, match="is no place for a backup"):
            backup(here / "ck", here / place)
    state = next(path for path in (here / "ck/plans").iterdir() if path.suffix == ".plan")
    state.write_bytes(state.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="cut short or altered"):
        backup(here / "ck", here / "saved")
    assert not (here / "saved").exists()
    (here / "ck" / MARK).write_text("s3://bucket/ck")
    with pytest.raises(CheckpointError, match="copy its objects"):
        backup(here / "ck", here / "saved")
    with pytest.raises(CheckpointError):
        backup(here / "full", here / "saved")


def test_a_backup_has_the_mode_of_its_checkpoint(here: Path) -> None:
    assert main(words("ck", "--once", "--checkpoint-mode", "group")) == 0
    backup(here / "ck", here / "saved")
    for name in ("", "state", "commits"):
        assert (here / "saved" / name).stat().st_mode == (here / "ck" / name).stat().st_mode

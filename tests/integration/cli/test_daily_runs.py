"""``--once`` on a checkpoint is an increment: windows stay open from run to run, until ``--close``;
``levada rollback`` opens ended streams again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from levada.cli.main import main

TEXT = "Rstream(Select k, Count(*) As n From S [Range 10 Seconds Slide 10 Seconds] Group By k)"
DAYS = ("1000,a\n4000,a\n", "8000,b\n12000,a\n", "19000,b\n21000,a\n", "25000,a\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.cql").write_text(TEXT)
    (tmp_path / "s").mkdir()
    return tmp_path


def feed(folder: Path, days: Sequence[int]) -> None:
    for day in days:
        (folder / "s" / f"{day}.csv").write_text("ts,k\n" + DAYS[day])


def run(*options: str, checkpoint: str = "ck", out: str = "out") -> int:
    command = ["run", "q.cql", "--stream", "S=s,format=csv,schema=k:string", "--master", "none"]
    kept = ["--checkpoint", checkpoint] if checkpoint else ["--overwrite"]
    return main([*command, *kept, "--out", out, "--format", "csv", *options])


def reports(folder: Path, out: str = "out") -> list[str]:
    files = sorted((folder / out / "q").glob("*.csv")) if (folder / out).exists() else []
    return [row for file in files for row in file.read_text().splitlines()[1:]]


def test_runs_day_by_day_report_what_one_run_reports(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for day in range(len(DAYS)):
        feed(folder, [day])
        assert run("--once") == 0
        assert "Windows are left open at" in capsys.readouterr().err
    assert run("--once") == 0, "nothing new"
    capsys.readouterr()
    assert reports(folder) == ["10000,a,2", "10000,b,1", "20000,a,1", "20000,b,1"]
    assert run("--close") == 0
    assert "left open" not in capsys.readouterr().err
    assert run("--once", checkpoint="", out="whole") == 0
    assert reports(folder) == reports(folder, "whole")


def test_without_a_checkpoint_windows_close_unless_they_are_kept_open(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed(folder, [0, 1])
    assert run("--once", checkpoint="") == 0
    assert reports(folder) == ["10000,a,2", "10000,b,1", "20000,a,1"]
    assert run("--once", "--keep-open", checkpoint="") == 0
    assert reports(folder) == ["10000,a,2", "10000,b,1"]
    assert "Without --keep-open they report." in capsys.readouterr().err
    assert run("--close", "--keep-open") == 2
    assert "Leave one out." in capsys.readouterr().err


def test_a_rollback_opens_ended_streams_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    feed(folder, [0])
    assert run("--once") == 0
    assert run("--close") == 0
    feed(folder, [1])
    assert run("--once") == 1
    assert "`levada rollback CHECKPOINT` opens it again" in capsys.readouterr().err
    assert main(["rollback", "ck"]) == 0
    assert "are open again" in capsys.readouterr().out
    assert run("--once") == 0
    assert main(["verify", "ck"]) == 0
    assert reports(folder) == ["10000,a,2", "10000,a,2", "10000,b,1"], "of the end, then complete"
    feed(folder, [2])
    assert run("--close") == 0
    assert reports(folder)[3:] == ["20000,a,1", "20000,b,1", "30000,a,1"]

"""``--once`` on a checkpoint is an increment: windows stay open from run to run, until ``--close``;
``levada rollback`` opens ended streams again.
"""

from __future__ import annotations

import os
import subprocess
import sys
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


LETTERS = """PREFIX : <http://e/>
SELECT ?a (UCASE(MIN(?t)) AS ?u) (HOURS(MAX(?d)) AS ?h) (COUNT(*) AS ?n)
FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S]
WHERE { WINDOW :w { ?a :t ?t ; :d ?d } } GROUP BY ?a"""
SYSTEMS = [
    {"TZ": "Asia/Kathmandu", "LC_ALL": "tr_TR.UTF-8"},
    {"TZ": "nonsense", "LC_ALL": "POSIX", "PYTHONUTF8": "0"},
    {"TZ": "Pacific/Apia", "LC_ALL": "xx_YY", "PYTHONHASHSEED": "5"},
    {"PYTHONOPTIMIZE": "2"},
]


@pytest.mark.long
def test_results_depend_on_no_zone_locale_or_hash_seed(folder: Path) -> None:
    """A run a day, each in a process on another system."""
    (folder / "q.rq").write_text(LETTERS)
    command = [sys.executable, "-m", "levada", "run", "q.rq", "--master", "none", "--format", "csv"]
    command += ["--stream", "http://e/s=t.nt", "--close", "--out"]
    noon = '"2020-01-01T12:00:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    for day, system in enumerate(SYSTEMS):
        with (folder / "t.nt").open("a", encoding="utf-8") as file:
            for ts in range(3000 * day, 3000 * day + 3000, 500):
                file.write(f'<http://e/a> <http://e/t> "i\u0131\u0130{ts}" {ts} .\n')
                file.write(f"<http://e/a> <http://e/d> {noon} {ts} .\n")
        more = ["--checkpoint", "ck", "--partitions", str(1 + 2 * day)]
        more += ["--keep-open", "--once"] * (day < 3)
        each = [word for word in command if day == 3 or word != "--close"]
        subprocess.run([*each, "out", *more], env={**os.environ, **system}, check=True)
    subprocess.run([*command, "whole"], check=True)
    assert reports(folder) == reports(folder, "whole") != []

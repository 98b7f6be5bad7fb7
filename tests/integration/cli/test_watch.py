"""``--watch`` and ``--times``: results for people."""

import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pexpect
import polars as pl
import pytest
from rich.console import Console

from levada.cli.main import main
from levada.cli.tables.answer_table import ENDS, Answer
from levada.cli.tables.watch_results import Watching
from levada.connectors.serialization.serialize import Batch
from levada.engine.status.summary import Progress
from support.polling import PATIENCE

TEMP = """<http://e/hall> <http://e/t> "20"^^<http://www.w3.org/2001/XMLSchema#integer> 1000 .
<http://e/lab> <http://e/t> "22"^^<http://www.w3.org/2001/XMLSchema#integer> 2500 .
"""
HOT = """PREFIX : <http://e/>
SELECT ?room FROM NAMED WINDOW :w ON :temp [RANGE PT4S STEP PT2S]
WHERE { WINDOW :w { ?room :t ?t FILTER(?t > 21) } }"""
RUN = ["--stream", "temp=temp.nt", "--master", "none"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("temp.nt").write_text(TEMP)
    Path("hot.rq").write_text(HOT)
    Path("all.rq").write_text(HOT.replace("> 21", "> 0"))
    return tmp_path


@pytest.mark.parametrize(
    ("form", "iso", "expected"),
    [
        ("csv", True, "1970-01-01T00:00:04Z,http://e/lab"),
        ("csv", False, "4000,http://e/lab"),
        ("tsv", True, "1970-01-01T00:00:04Z\t<http://e/lab>"),
        ("ndjson", True, '{"query": "hot", "report": "1970-01-01T00:00:04Z", "head"'),
    ],
)
def test_times_are_read_as_one_likes(
    folder: Path, capfd: pytest.CaptureFixture[str], form: str, iso: bool, expected: str
) -> None:
    times = ["--times", "iso"] if iso else []
    assert main(["run", "hot.rq", *RUN, "--once", "--format", form, *times]) == 0
    assert expected in capfd.readouterr().out


def test_what_is_for_people_is_not_for_files(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for wrong, why in (
        (["--times", "iso", "--out", "r"], "--times is for standard output"),
        (["--watch", "--out", "r"], "Leave one of the two out"),
        (["--watch"], "needs a terminal"),
        (["--times", "iso", "--format", "trig"], "trig has no place for times as texts"),
    ):
        assert main(["run", "hot.rq", *RUN, "--once", *wrong]) == 2
        assert why in capfd.readouterr().err


def test_a_watched_run_has_a_panel_for_each_query_and_ends_with_ctrl_c(folder: Path) -> None:
    child: Any = pexpect.spawn(
        sys.executable,
        ["-m", "levada", "run", "hot.rq", "all.rq", *RUN, "--watch"],
        cwd=str(folder),
        env={**os.environ, "TERM": "xterm"},
        encoding="utf-8",
        codec_errors="replace",  # the echo of a key may stand within a character
        dimensions=(40, 120),
        timeout=PATIENCE,
    )
    child.expect("all · 1")
    with Path("temp.nt").open("a") as more:
        more.write(TEMP.replace(" 1000 ", " 5000 ").replace(" 2500 ", " 9000 "))
    child.expect("hot · 2")
    child.sendintr()
    child.expect("4 elements")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def batch(reports: list[int], values: list[str]) -> Batch:
    return Batch(np.array(reports), columns={"x": pl.Series(values)})


def shown(picture: Any) -> str:
    console = Console(width=60, height=24)
    with console.capture() as captured:
        console.print(picture)
    return captured.get()


def test_the_newest_rows_of_each_query_are_shown() -> None:
    console = Console(width=60, height=20, file=open(os.devnull, "w"))  # noqa: SIM115
    watching = Watching(console, {"a": {"e": "http://e/"}, "b": {}}, "ms")
    watching.publish("a", ["x"], 1, batch(list(range(50)), [f"<http://e/n{i}>" for i in range(50)]))
    watching(Progress(3, 1000, 50, 2.0))
    text = shown(watching.render())
    watching.close()
    assert re.search(r"49\s+e:n49", text)
    assert "e:n10 " not in text
    assert "a · 50" in text
    assert "no result yet" in text
    assert "epoch 3" in text


def test_an_answer_shows_its_beginning_and_its_end_and_keeps_all() -> None:
    answer = Answer("q")
    for start in range(0, 1000, 7):
        part = range(start, min(start + 7, 1000))
        answer.publish("q", ["x"], 1, batch(list(part), [f'"v{i}"' for i in part]))
    lines = shown(answer.table("ms", {})).splitlines()
    assert len(lines) == 1 + ENDS + 1 + ENDS
    assert [line.split()[0] for line in lines[1:]] == [
        *map(str, range(ENDS)), "...", *map(str, range(1000 - ENDS, 1000)),
    ]  # fmt: skip
    assert answer.summary(0.5) == "1,000 rows in 1,000 reports (0.50 s)"
    assert sum(len(each.report) for each in answer.batches or []) == 1000

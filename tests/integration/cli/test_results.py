"""``levada results``: the kept reports of a query as typed tables."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from levada.cli.main import main
from support.kept_checkpoint import run_kept
from support.polling import PATIENCE, until


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_kept(tmp_path_factory.mktemp("kept"))


def test_parquet_and_arrow_on_standard_output_have_the_published_rows(
    checkpoint: Path,
) -> None:
    command = [sys.executable, "-m", "levada", "results", str(checkpoint), "warm", "--as"]
    parquet, arrow = (
        subprocess.run([*command, form], capture_output=True, check=True).stdout
        for form in ("parquet", "arrow")
    )
    table = pq.read_table(io.BytesIO(parquet))
    assert table.equals(pa.ipc.open_file(arrow).read_all())
    assert [(f.name, str(f.type)) for f in table.schema] == [
        ("report", "timestamp[us, tz=UTC]"), ("sign", "int64"), ("number", "int64"),
        ("room", "string"), ("t", "int64"),
    ]  # fmt: skip
    files = sorted((checkpoint.parent / "out" / "warm").glob("*.ndjson"))
    reports = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    published = [
        (report["report"], row["room"]["value"], int(row["t"]["value"]))
        for report in reports
        for row in report["results"]["bindings"]
    ]
    rows = pl.from_arrow(table)
    assert isinstance(rows, pl.DataFrame)
    times = rows["report"].dt.epoch("ms")
    assert sorted(zip(times, rows["room"], rows["t"], strict=True)) == sorted(published)
    assert not rows.select("report", "number").is_duplicated().any()


def test_a_range_with_columns_and_datatypes_into_a_file(checkpoint: Path, tmp_path: Path) -> None:
    path = tmp_path / "some.parquet"
    options = ["--from", "4000", "--until", "1970-01-01T00:00:08Z", "--columns", "t double"]
    arguments = ["results", str(checkpoint), "warm", "--out", str(path), "--datatypes", *options]
    assert main(arguments) == 0
    rows = duckdb.sql(f"select * from '{path}' order by report, number")
    assert rows.columns == ["report", "sign", "number", "t", "t_datatype"]
    found = rows.fetchall()
    times = {row[0].astimezone(UTC) for row in found}
    assert times == {datetime(1970, 1, 1, 0, 0, s, tzinfo=UTC) for s in (4, 6, 8)}
    assert len(found) == 60 and isinstance(found[0][3], float)
    assert found[0][4] == "http://www.w3.org/2001/XMLSchema#integer"


def test_follow_writes_a_file_for_each_report_and_goes_on_where_it_was(
    checkpoint: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "warm"
    arguments = ["results", str(checkpoint), "warm", "--follow", "--out", str(folder)]
    assert main([*arguments, "--until", "8000"]) == 0
    assert [p.name for p in sorted(folder.iterdir())] == [
        f"00000000000{s}000.parquet" for s in (2, 4, 6, 8)
    ]
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert main(arguments) == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    counted = duckdb.sql(f"select count(*), count(distinct report) from '{folder}/*.parquet'")
    assert counted.fetchall() == [(200, 10)]


@pytest.mark.long
def test_follow_waits_for_the_first_report_of_a_running_engine(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "q.rq").write_text(
        "PREFIX : <http://e/> SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT1S STEP PT1S] "
        "WHERE { WINDOW :w { ?x :t ?t } }"
    )
    run = [sys.executable, "-m", "levada", "run", "q.rq", "--stream", "s=s", "--checkpoint", "ck"]
    engine = subprocess.Popen([*run, "--master", "none", "--out", "out"], cwd=tmp_path)
    until(lambda: any((tmp_path / "ck" / "manifests").glob("[0-9]*")))
    follow = [sys.executable, "-m", "levada", "results", "ck", "q", "--follow", "--out", "f"]
    reader = subprocess.Popen(follow, cwd=tmp_path)
    try:
        until(lambda: any((tmp_path / "ck" / "tails").glob("[0-9a-f]*")))
        for i in range(4):
            (tmp_path / ".new").write_text(f'<http://e/a> <http://e/t> "1" {1000 * i + 1} .\n')
            (tmp_path / ".new").rename(tmp_path / "s" / f"{i}.nt")
        until(lambda: len(list(tmp_path.glob("f/*.parquet"))) == 3)
        engine.terminate()
        assert reader.wait(PATIENCE) == 0
    finally:
        for process in (engine, reader):
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["wram"], 2, "There is no query wram. Did you mean warm?"),
        (["warm", "--columns", "rom"], 2, "has no variable rom. Did you mean room?"),
        (["warm", "--columns", "t bigit"], 2, "cannot have the type bigit. Did you mean bigint?"),
        (["warm", "--columns", "room bigint", "--out", "x"], 1, "columns='room string'"),
        (["warm", "--follow"], 2, "Say --out FOLDER."),
        (["warm", "--wait"], 2, "Say --follow, too."),
        (["warm", "--from", "noon"], 2, "noon is not a time"),
        (["warm", "--out", "."], 2, ". is a folder."),
    ],
)
def test_what_cannot_be_written_is_a_sentence(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], options: list[str], code: int, message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["results", str(checkpoint), *options]) == code
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_wrong_checkpoint_and_one_that_keeps_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["results", str(tmp_path / "none"), "warm"]) == 1
    assert "is not a checkpoint of Levada" in capsys.readouterr().err
    checkpoint = run_kept(tmp_path, keep="")
    capsys.readouterr()
    assert main(["results", str(checkpoint), "warm", "--out", str(tmp_path / "x")]) == 2
    told = capsys.readouterr().err
    assert "keeps no report of the query warm" in told and "--keep" in told
    assert main(["results", str(checkpoint), "wrm", "--out", str(tmp_path / "x")]) == 2
    assert "Did you mean warm?" in capsys.readouterr().err


def test_a_full_disk_behind_standard_output_is_a_sentence(checkpoint: Path) -> None:
    command = [sys.executable, "-m", "levada", "results", str(checkpoint), "warm"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "The disk that holds standard output is full." in done.stderr
    assert "fault of Levada" not in done.stderr


def test_deleted_reports_are_an_error_that_names_the_oldest_or_are_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = run_kept(tmp_path, keep="3")
    out = tmp_path / "x.parquet"
    arguments = ["results", str(checkpoint), "warm", "--out", str(out)]
    capsys.readouterr()
    assert main([*arguments, "--from", "2000"]) == 1
    told = capsys.readouterr().err
    assert "not kept any more. The oldest report is 1970-01-01T00:00:1" in told
    assert "lost=skip" in told and "--lost skip" in told
    assert main([*arguments, "--from", "2000", "--lost", "skip"]) == 0
    skipped = pq.read_table(out)
    assert main(arguments) == 0
    assert pq.read_table(out).equals(skipped) and 0 < skipped.num_rows < 200

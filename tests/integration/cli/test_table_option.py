"""``--table`` in run, check, test and status, and tables of app files."""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.cli.main import main

QUERY = "Rstream(Select S.k, room From S [Now], D Where S.k = D.k)"
APP = """streams: {S: {path: S.csv, schema: "k:integer"}}
tables:
  D: {path: d.txt, format: csv, separator: ;}
queries: {q: {file: q.cql}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.cql").write_text(QUERY)
    (tmp_path / "S.csv").write_text("ts,k\n1000,1\n2000,2\n")
    (tmp_path / "D.csv").write_text("k,room\n1,hall\n2,lab\nx\n")
    (tmp_path / "d.txt").write_text("k;room\n2;lab\n")
    return tmp_path


def levada(command: str, *words: str) -> int:
    streams = ["--stream", "S=S.csv,schema=k:integer"]
    return main([command, "q.cql", *streams, *words])


def test_a_run_joins_a_table_and_status_shows_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--once", "--table", "D=D.csv", "--checkpoint", "state", "--out", "-", "--close")
    assert levada("run", *words, "--format", "csv") == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["1000,1,hall", "2000,2,lab"]
    assert main(["status", "state"]) == 0
    shown = "".join(capsys.readouterr().out.split())  # long lines are broken
    assert f"TableDof{folder / 'D.csv'}:2rowsand1deadletter,readat20" in shown
    assert main(["verify", "state"]) == 0


def test_a_check_knows_the_columns_of_a_table(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert levada("check", "--table", "D=D.csv") == 0
    assert levada("check", "--table", "D=D.csv,schema=k:integer;floor:integer") == 2
    assert "There is no column room." in capsys.readouterr().err
    assert levada("check", "--table", "D=D.csv,key=k") == 2
    assert "The table D has no option key." in capsys.readouterr().err


def test_an_app_file_and_a_case_have_tables(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "app.yaml").write_text(APP)
    (folder / "expected").mkdir()
    (folder / "expected" / "q.csv").write_text("report,k,room\n2000,2,lab\n")
    assert main(["run", "--app", "app.yaml", "--once", "--out", "-", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["2000,2,lab"]
    assert main(["test", "."]) == 0
    (folder / "app.yaml").write_text(APP.replace("separator", "seperator"))
    assert main(["run", "--app", "app.yaml", "--once"]) == 2
    assert "tables.D.seperator" in capsys.readouterr().err

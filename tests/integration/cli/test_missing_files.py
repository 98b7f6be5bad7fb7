"""A file that is not there is a wrong use, with exit code 2, whichever file it is, in each command
that reads it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.cli.main import main

QUERY = """PREFIX : <http://e/>
SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE PT10S] WHERE { WINDOW :w { ?s :v ?o } }
"""
STREAM = ["--stream", "http://e/s=d.nt"]
ONCE = ["--once", "--master", "none"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "d.nt").write_text("<http://e/a> <http://e/v> <http://e/b> 1000 .\n")
    (tmp_path / "folder").mkdir()


def words_of(command: str) -> list[str]:
    return [command, *(ONCE if command == "run" else [])]


@pytest.mark.parametrize("name", ["no.rq", "no*.rq"])
@pytest.mark.parametrize("command", ["run", "check", "explain", "profile", "shell"])
def test_missing_query_file_ends_with_2(
    command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words_of(command), name, *STREAM]) == 2
    assert name in capsys.readouterr().err


@pytest.mark.parametrize("name", ["no.ttl", "no*.ttl", "folder"])
@pytest.mark.parametrize("command", ["run", "check", "explain", "profile"])
def test_missing_static_file_ends_with_2(
    command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words_of(command), "q.rq", *STREAM, "--static", name]) == 2
    assert name in capsys.readouterr().err


@pytest.mark.parametrize("name", ["no.nt", "no*.nt", "folder/*.nt", "no/d.nt"])
@pytest.mark.parametrize("command", ["run", "profile"])
def test_missing_stream_file_ends_with_2(
    command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words_of(command), "q.rq", "--stream", f"http://e/s={name}"]) == 2
    assert name in capsys.readouterr().err


@pytest.mark.parametrize("name", ["no.csv", "no*.csv"])
def test_missing_table_ends_with_2(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("q.cql").write_text("Rstream(Select a From M [Now])")
    assert main(["sample", name]) == 2
    assert main([*words_of("run"), "q.cql", "--stream", f"M={name},schema=auto"]) == 2
    assert capsys.readouterr().err.count(name) == 2


@pytest.mark.parametrize("missing", ["query", "stream", "glob", "static", "app"])
def test_app_file_that_names_a_missing_file_ends_with_2(
    missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    query = "no.rq" if missing == "query" else "q.rq"
    path = {"stream": "no.nt", "glob": "no*.nt"}.get(missing, "d.nt")
    static = "no.ttl" if missing == "static" else "d.nt"
    Path("app.yaml").write_text(
        f"streams: {{'http://e/s': {{path: '{path}'}}}}\n"
        f"static: ['{static}']\nqueries: {{q: {{file: '{query}'}}}}\n"
    )
    assert main(["run", "--app", "no.yaml" if missing == "app" else "app.yaml", *ONCE]) == 2
    assert "no" in capsys.readouterr().err


def test_folders_below_a_folder_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for k, name in enumerate("ab", 1):
        (tmp_path / "s" / name).mkdir(parents=True)
        line = f"<http://e/{name}> <http://e/p> <http://e/o> {k} .\n"
        (tmp_path / "s" / name / "1.nt").write_text(line)
    (tmp_path / "q.rq").write_text(
        "SELECT ?a FROM NAMED WINDOW <w> ON <http://e/s> [NOW] WHERE { WINDOW <w> { ?a ?p ?b } }"
    )
    run = ["run", "q.rq", "--once", "--master", "none", "--stream"]
    for path in ("s", "s/**/*.nt"):
        assert main([*run, f"http://e/s={path}"]) == 0
        assert "2 elements" in capsys.readouterr().err

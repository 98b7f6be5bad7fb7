"""Late elements and dead letters are told in a line each, whatever characters their texts hold."""

import json
from pathlib import Path

import pytest

import levada
from levada.cli.main import main

ESCAPE = "\x1b[2J\x07\u202e"
QUERY = (
    "SELECT ?s ?o FROM NAMED WINDOW <w> ON <http://e/s> [RANGE 1s STEP 1s] WHERE { "
    "WINDOW <w> { ?s ?p ?o } }"
)
ODD = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei\\tj"


def test_letters_with_characters_that_other_readers_take_for_line_ends(tmp_path: Path) -> None:
    late, dead = f'<http://e/a> <http://e/p> "{ODD}" 500 .', f'<http://e/a> <http://e/p> "{ODD}" .'
    first = f'<http://e/a> <http://e/p> "{ODD}" 2500 .'
    (tmp_path / "s.nt").write_text("".join(line + "\n" for line in (first, late, dead)))
    with levada.Engine(spark=False, epoch_rows=1, letters=tmp_path / "letters") as engine:
        engine.stream("s", tmp_path / "s.nt")
        query = engine.register(QUERY)
        engine.start(once=True)
        engine.await_end()
        (row,) = query.to_polars(terms=True).rows()
    assert row[0] == 3000 and row[2].startswith('"a\u2028b\u2029c\x85d')
    for kind, text in (("late", late), ("dead-letter", dead)):
        (path,) = (tmp_path / "letters" / kind).iterdir()
        (letter,) = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
        assert letter["text"] == text


def test_a_header_with_such_characters_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text('k\u2028x,"two\nlines",ts\n1,2,1000\n')
    with levada.Engine(spark=False) as engine:
        engine.stream("S", tmp_path / "s.csv", schema="ts:integer")
        query = engine.register("Istream(Select ts From S [Now])", dialect="cql")
        engine.start(once=True)
        engine.await_end()
        assert query.to_polars(terms=True)["report"].to_list() == [1000]


def test_a_reason_has_no_character_that_a_terminal_obeys(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the dead letters are written there
    (tmp_path / "q.rq").write_text(QUERY)
    (folder := tmp_path / "s").mkdir()
    triple = '<http://e/a> <http://e/p> "1"'
    (folder / "a\x1b[2J.nt").write_text(f"{triple} 1000 .\n{triple} {ESCAPE}z .\n{ESCAPE}\n")
    stream = f"http://e/s={folder}"
    code = main(["run", str(tmp_path / "q.rq"), "--stream", stream, "--once", "--master", "none"])
    said = capfd.readouterr().err
    assert code == 0 and "2J" in said and "dead letter" in said
    assert all(char.isprintable() or char == "\n" for char in said), said

"""Messages that say what to write: mistakes of first runs, and ``levada ps`` in narrow places."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import levada
from levada.cli.main import main
from levada.cli.remote.ps import Entry, _row
from levada.connectors.config.mapping_file import load_mapping
from levada.connectors.config.stream_config import StreamConfig
from levada.core.names import check_query_name
from levada.engine.engine import Engine
from levada.errors import QueryError, QuerySyntaxError, UsageError

COUNT = "Istream(Select k, Count(*) As n From L [Range 1 s] Group By k)"


@pytest.mark.parametrize("name", ["L", "http://e/L"])
def test_rows_without_a_schema_are_rdf_and_cql_says_so(name: str) -> None:
    with pytest.raises(QueryError) as error:
        levada.query(COUNT, {name: [("<http://e/a>", "<http://e/p>", 5, 500)]})
    assert error.value.message == "The stream L holds RDF, which CQL does not read."
    assert "schema=k:integer;v:double" in error.value.hint


@pytest.mark.parametrize("text", ["counts.rq", "queries/counts.cql", "~/a-b/x.csparql\n"])
def test_the_name_of_a_file_in_place_of_a_text_is_named(text: str) -> None:
    with pytest.raises(QuerySyntaxError) as error:
        levada.query(text, {})
    assert error.value.hint == "This is the name of a file: pass its text, Path(..).read_text()."


def test_a_mapping_in_rml_without_a_triples_map_is_named(tmp_path: Path) -> None:
    (tmp_path / "map.ttl").write_text("@prefix rr: <http://www.w3.org/ns/r2rml#> .")
    with pytest.raises(UsageError, match="it has no triples map") as error:
        load_mapping(tmp_path / "map.ttl")
    assert "rml:logicalSource" in error.value.hint


def test_a_reserved_name_says_what_to_rename() -> None:
    with pytest.raises(UsageError, match="the folder of that name holds late elements") as error:
        check_query_name("late")
    assert error.value.hint == "A query has the name of its file: rename the file."


def test_a_key_of_messages_is_not_a_file() -> None:
    with pytest.raises(UsageError, match="has no option key") as error:
        StreamConfig.from_options("s", "kafka://h:1/t", format="nq", time="timestamp", key="device")
    assert "message_key=COLUMN for the keys of messages" in error.value.hint


def test_ps_never_cuts_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "40")
    (tmp_path / "s.nt").write_text("<http://e/a> <http://e/p> 1 1000 .\n")
    names = [f"the-checkpoint-of-the-{word}-application-{'x' * 60}" for word in ("hot", "cold")]
    for name in names:
        with Engine(spark=False, checkpoint=tmp_path / name) as engine:
            engine.stream("http://www.example.org/streams/of/observations#weather", "s.nt")
            engine.register(
                "SELECT * FROM NAMED WINDOW <w> ON "
                "<http://www.example.org/streams/of/observations#weather> [NOW] "
                "{ WINDOW <w> { ?s ?p ?o } }"
            )
            engine.start(once=True)
            engine.await_end()
    assert main(["ps"]) == 0
    # other tests may run engines meanwhile
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("the-")]
    assert [row.split()[0] for row in rows] == sorted(names)
    assert all("ended" in row and " weather " in row for row in rows)
    assert main(["ps", "--json"]) == 0
    first = next(
        one for one in json.loads(capsys.readouterr().out) if names[0] in one["checkpoint"]
    )
    assert first["streams"] == ["http://www.example.org/streams/of/observations#weather"]


def test_names_of_queries_in_ps_are_short() -> None:
    row = _row(Entry("ck", "running", 3, ("q" * 60, "hot"), ("http://e/s/",), 5.0))
    assert row == ("ck", "running", "3", f"{'q' * 24}.., hot", "s", "5 s ago", "-")

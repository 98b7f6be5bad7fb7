"""A column or a pattern that never matches is named: by the status, the summary, and with
``--strict`` as an error.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from levada.cli.main import main
from levada.connectors.sources.read_split import CsvChunk, JsonChunk
from levada.engine.engine import Engine

AVERAGE = "Istream(Select id, Avg(temp) As a From L [Range 1 s] Group By id)"
ROWS = [{"id": f"d{i % 3}", "tmp": i, "reading": {"temp": i}, "ts": 1000 + i} for i in range(24)]
EMPTY = (
    "None of 24 rows has a value in the column temp. Did you mean reading.temp or tmp? "
    "Their members: id, tmp, reading.temp, ts."
)
OPTIONAL = """PREFIX : <http://e/>
SELECT ?s ?v ?a FROM NAMED WINDOW :w ON :obs [RANGE PT1S STEP PT1S]
WHERE { WINDOW :w { ?s :value ?v OPTIONAL { ?s :alarn ?a } } }"""
NOTHING = "No triple of obs has matched the pattern ?a <http://e/alarn> ?b. "
PREDICATES = "Did you mean <http://e/alarm>? Their predicates: <http://e/value>, <http://e/alarm>."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("l.ndjson").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    Path("average.cql").write_text(AVERAGE)
    Path("obs.nt").write_text(
        '<http://e/a> <http://e/value> "1" 1000 .\n<http://e/a> <http://e/alarm> "1" 1500 .\n'
    )
    Path("alarms.rq").write_text(OPTIONAL)
    return tmp_path


def counts(engine: Engine, name: str) -> Any:
    return engine.status().streams[name]


@pytest.mark.parametrize("epoch_rows", [5, 1000])
def test_a_column_without_any_value_is_in_the_status(folder: Path, epoch_rows: int) -> None:
    with Engine(spark=False, epoch_rows=epoch_rows) as engine:
        engine.stream("L", "l.ndjson", schema="id:string;temp:double")
        engine.register(AVERAGE)
        engine.start(once=True)
        engine.await_end()
        assert counts(engine, "L").missing_values == EMPTY


@pytest.mark.parametrize("epoch_rows", [5, 1000])
@pytest.mark.parametrize("at", [0, 7, 23])
def test_a_column_with_one_value_is_not(folder: Path, epoch_rows: int, at: int) -> None:
    rows = [{**row, **({"temp": 1.5} if i == at else {})} for i, row in enumerate(ROWS)]
    Path("l.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Engine(spark=False, epoch_rows=epoch_rows) as engine:
        engine.stream("L", "l.ndjson", schema="id:string;temp:double")
        engine.register(AVERAGE)
        engine.start(once=True)
        engine.await_end()
        assert counts(engine, "L").missing_values == ""


def test_a_mapping_names_its_columns_without_values(folder: Path) -> None:
    Path("m.yaml").write_text(
        "columns: {temp: double}\n"
        "triples: ['<http://e/{id}> <http://e/value> {temp}', '<http://e/{id}> a <http://e/D>']\n"
    )
    with Engine(spark=False) as engine:
        engine.stream("obs", "l.ndjson", mapping="m.yaml")
        engine.register(OPTIONAL)
        engine.start(once=True)
        engine.await_end()
        assert counts(engine, "obs").missing_values == EMPTY


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_empty_column_of_a_table_is_named(folder: Path, form: str) -> None:
    import polars as pl

    frame = pl.DataFrame({"id": ["a", "b"], "temp": [None, None], "ts": [1, 2]},
                         schema_overrides={"temp": pl.Float64})  # fmt: skip
    path = Path(f"t.{form}")
    frame.write_csv(path) if form == "csv" else frame.write_parquet(path)
    with Engine(spark=False) as engine:
        engine.stream("L", path, schema="id:string;temp:double")
        engine.register(AVERAGE)
        engine.start(once=True)
        engine.await_end()
        said = counts(engine, "L").missing_values
    assert said.startswith("None of 2 rows has a value in the column temp. Their members: id, temp")


def test_the_summary_names_it_and_strict_makes_it_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["run", "average.cql", "--stream", "L=l.ndjson,schema=id:string;temp:double", "--once"]
    run += ["--master", "none", "--out", "out", "--overwrite"]
    assert main([*run, "--summary", "s.json"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert f"L: {EMPTY}" in said
    assert json.loads(Path("s.json").read_text())["streams"]["L"]["missing_values"] == EMPTY
    assert main([*run, "--strict"]) == 6
    assert f"levada: L: {EMPTY} Correct the name" in " ".join(capsys.readouterr().err.split())
    good = [part.replace("temp:", "tmp:") for part in run]
    Path("average.cql").write_text(AVERAGE.replace("temp", "tmp"))
    assert main([*good, "--strict"]) == 0


def test_a_pattern_that_nothing_matches_is_named_although_there_are_results(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["run", "alarms.rq", "--stream", "obs=obs.nt", "--close", "--master", "none"]
    assert main([*run, "--checkpoint", "state", "--out", "out"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert f"alarms: {NOTHING}{PREDICATES}" in said
    assert main(["status", "state"]) == 0
    assert f"alarms: {NOTHING}{PREDICATES}" in " ".join(capsys.readouterr().out.split())
    assert main(["status", "state", "--json"]) == 0
    (query,) = json.loads(capsys.readouterr().out)["queries"]
    assert query["unmatched_patterns"] == [NOTHING + PREDICATES]
    assert query["reason"] == ""
    assert main([*run, "--strict", "--format", "csv"]) == 6


def test_a_query_without_a_result_has_the_predicates_in_its_reason(folder: Path) -> None:
    with Engine(spark=False) as engine:
        engine.stream("http://e/obs", "obs.nt")
        engine.register(OPTIONAL.replace(":value", ":valeu"), name="q")
        engine.start(once=True)
        engine.await_end()
        (query,) = engine.status().queries
    assert query.reason.startswith("No triple of http://e/obs has matched the pattern ?a")
    assert "Did you mean <http://e/value>?" in query.reason


def test_members_of_damaged_lines_are_left_out() -> None:
    import numpy as np

    from levada.connectors.ingest.tables.member_names import members_of_rows

    deep = '{"a": ' * 3000 + "1" + "}" * 3000
    lines = ['{"a": 1, "b": {"c": {"d": {"e": 1}}}, "f": {}}', "[1]", '{"x": ', deep, '{"g": [1]}']
    data = np.frombuffer("\n".join(lines).encode(), np.uint8)
    assert members_of_rows(JsonChunk(data)) == ["a", "b.c.d", "f", "g"]
    many = tuple(f"c{i}" for i in range(30))
    assert members_of_rows(CsvChunk(many, data)) == list(many[:20])

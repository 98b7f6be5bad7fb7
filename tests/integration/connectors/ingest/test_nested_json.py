"""Nested JSON in whole runs: rows of elements in files, messages and pushed bodies. Dead letters
have the place of the element, and every record is accounted for.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.tables.mapped_rows import mapped_of
from levada.connectors.ingest.tables.tuple_rows import tuples_of
from levada.connectors.sources import source_reader
from levada.connectors.sources.message_texts import Messages
from levada.connectors.sources.parquet_files import with_schema
from levada.connectors.sources.read_split import JsonChunk
from levada.connectors.sources.source_reader import FileReader
from levada.connectors.sources.splits import FileSplit
from levada.core.event_time import MAX, MIN
from levada.engine.engine import Engine
from levada.errors import FileFault, SourceError, UsageError
from levada.runtime.task.ingest_task import count_accounted
from levada.server.problem_json import Problem
from levada.server.push.push_validation import rows_of

RECORDS = [
    {"id": "a", "ts": 1000, "items": [{"price": 1.5}, {"price": "x"}, {"price": 2}]},
    {"id": "b", "ts": 2000},
    {"id": "c", "ts": 3000, "items": []},
    {"id": "d", "items": [{"price": 4}]},
    {"id": "e", "ts": 4000, "items": [7, None, {"price": 5}]},
]
TEXT = b"\n".join(json.dumps(record).encode() for record in RECORDS) + b"\n{\n"
OPTIONS: dict[str, Any] = {
    "iterator": "items[*]",
    "schema": "key=$.id:string;price:double",
    "time": "field:$.ts",
}
DEAD = [
    "price is not a double: x (at items[1])",
    "no time (at items[0])",
    "not a JSON object",
]


def split(size: int, elements: int, form: str = "ndjson") -> FileSplit:
    return FileSplit("s", "s", "a.ndjson", "a.ndjson", form, 0, size, 0, 1, elements)


def tuples(text: bytes, options: dict[str, Any], messages: Messages | None = None) -> Any:
    config = StreamConfig.from_options("s", "a.ndjson", **options)
    chunk = JsonChunk(np.frombuffer(bytearray(text), np.uint8))
    reference = split(len(text), text.count(b"\n"))
    bounds: dict[str, Any] = {"late_below": MIN, "future_above": MAX, "messages": messages}
    return config, reference, tuples_of(chunk, config, reference, **bounds)


def test_elements_of_a_file_are_rows_with_the_members_of_their_record() -> None:
    config, reference, rows = tuples(TEXT, OPTIONS)
    assert rows.columns["key"].text.to_list() == ["a", "a", "e", "e", "e"]
    assert rows.columns["price"].facet("d").tolist() == [1.5, 2.0, 0.0, 0.0, 5.0]
    assert rows.ts.tolist() == [1000, 1000, 4000, 4000, 4000]
    assert [dead.reason for dead in rows.dead] == DEAD
    assert [dead.text for dead in rows.dead] == ['{"price": "x"}', '{"price": 4}', "{"]
    assert [TEXT[dead.offset :].startswith(dead.text.encode()) for dead in rows.dead] == [True] * 3
    assert count_accounted(config, reference, rows, None) == reference.elements == 6


@pytest.mark.parametrize("element", ["message", "line"])
def test_elements_of_messages_are_rows(element: str) -> None:
    lines = TEXT.splitlines(keepends=True)
    starts = np.cumsum([0, *map(len, lines)])
    messages = Messages(starts, np.arange(6) + 70, np.full(6, 5))
    path = "kafka://h:1/t"
    options = {**OPTIONS, "format": "ndjson", "element": element, "time": "timestamp"}
    config = StreamConfig.from_options("s", path, **options)
    chunk = JsonChunk(np.frombuffer(bytearray(TEXT), np.uint8))
    reference = split(len(TEXT), 6)
    rows = tuples_of(chunk, config, reference, late_below=MIN, future_above=MAX, messages=messages)
    assert rows.columns["key"].text.to_list() == ["a", "a", "d", "e", "e", "e"]
    assert rows.ts.tolist() == [5] * 6
    assert [(dead.offset, dead.reason) for dead in rows.dead] == [
        (70, DEAD[0]), (75, "not a JSON object"),
    ]  # fmt: skip
    assert count_accounted(config, reference, rows, 6) == 6


def test_a_mapping_reads_paths_and_elements(tmp_path: Path) -> None:
    mapping = tmp_path / "m.yml"
    mapping.write_text(
        'columns: {price: double}\nlet: {both: column("$.id") + "!"}\n'
        "triples:\n  - <http://e/{$.id}> <http://e/price> {price}\n"
        "  - <{$.id}> <http://e/both> {both}\n"
    )
    options = {"iterator": "items[*]", "time": "field:$.ts", "mapping": str(mapping)}
    config = StreamConfig.from_options("s", "a.ndjson", **options)
    text = TEXT.replace(b'"e"', b'"http://e/e"')
    reference = split(len(text), 6)
    chunk = JsonChunk(np.frombuffer(text, np.uint8))
    triples, elements = mapped_of(
        chunk, config, reference, late_below=MIN, future_above=MAX, seed=1
    )
    texts = [triples.text(triples.o, row) for row in range(triples.n)]
    assert texts[:2] == ['"1.5"^^<http://www.w3.org/2001/XMLSchema#double>'] * 1 + [
        '"2"^^<http://www.w3.org/2001/XMLSchema#double>'
    ]
    assert texts[2:].count('"http://e/e!"') == 3
    reasons = [dead.reason for dead in elements.dead]
    assert sum(reason.startswith("its triple is malformed") for reason in reasons) == 2
    assert all("(at items[" in reason for reason in reasons if "malformed" in reason)
    assert count_accounted(config, reference, elements, None) == 6


def test_a_run_counts_every_record(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_bytes(TEXT)
    with Engine(spark=False) as engine:
        engine.stream("S", tmp_path / "a.ndjson", **OPTIONS)
        query = engine.register(
            "Rstream(Select key, Sum(price) As total From S [Now] Group By key)", dialect="cql"
        )
        engine.start(once=True)
        engine.await_end()
        totals = [row[1:] for row in query.to_polars().rows()]
        record = engine._records()["S"]
    assert sorted(totals) == [("a", 3.5), ("e", 5.0)]
    assert (record.elements, record.dead_letters, record.unaccounted_elements) == (5, 3, 0)


def test_a_pushed_body_with_a_faulty_element_is_refused_with_its_place() -> None:
    options = {**OPTIONS, "format": "ndjson", "time": "field:$.ts"}
    config = StreamConfig.from_options("s", "push:", **options)
    good = b"\n".join(json.dumps(r).encode() for r in (RECORDS[1], RECORDS[4])) + b"\n"
    assert rows_of(config, good) == 3
    with pytest.raises(Problem) as error:
        rows_of(config, good + json.dumps(RECORDS[0]).encode() + b"\n")
    assert error.value.said["line"] == 3 and error.value.said["column"] > 1
    assert "items[1]" in error.value.detail


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"iterator": "items["}, "iterator of the stream s: The path items["),
        ({"iterator": "a..b"}, "descendants (..) are not supported"),
        ({"iterator": "@.a"}, "begins at an element"),
        ({"schema": "$.items[*].x:integer", "iterator": "other[*]"}, "several values in a row"),
        ({"schema": "a:integer;a=$.b:integer"}, "a column stands twice"),
        ({"format": "csv"}, "an iterator is for NDJSON"),
    ],
)
def test_a_wrong_iterator_is_refused_when_the_stream_is_declared(
    options: dict[str, str], reason: str
) -> None:
    with pytest.raises(UsageError) as error:
        StreamConfig.from_options("s", "a.ndjson", **{**OPTIONS, "schema": "v:integer", **options})
    assert reason in error.value.message


DOCUMENTS = {
    "array": (json.dumps(RECORDS, indent=1), "", ["a", "b", "c", "e"]),
    "bom": ("\ufeff \r\n" + json.dumps(RECORDS[:2]), "", ["a", "b"]),
    "object": (json.dumps(RECORDS[0], indent=1), "", ["a"]),
    "nested": (
        json.dumps({"data": {"rows": RECORDS}}, indent=2), "data.rows[*]", ["a", "b", "c", "e"],
    ),
    "empty": ("[\n]", "", []),
}  # fmt: skip


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_json_document_has_a_row_for_each_element(tmp_path: Path, name: str) -> None:
    text, iterator, ids = DOCUMENTS[name]
    (tmp_path / "a.json").write_text(text)
    options: dict[str, Any] = {"iterator": iterator or None, "schema": "id:string"}
    with Engine(spark=False) as engine:
        engine.stream("S", tmp_path / "a.json", **options)
        query = engine.register("Rstream(Select id From S [Now])", dialect="cql")
        engine.start(once=True)
        engine.await_end()
        assert [row[1] for row in query.to_polars().rows()] == ids
        record = engine._records()["S"]
    missing = sum('"ts"' not in json.dumps(r) and f'"{r["id"]}"' in text for r in RECORDS)
    assert (record.elements, record.dead_letters) == (len(ids), missing)
    assert record.unaccounted_elements == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[\n{"id": 1},\n{"id": 2}', "Expecting ',' delimiter, line 3, column 10"),
        ('{"id": "a"}\n{"id": "b"}\n', "say format=ndjson"),
        ('["\\ud800"]', "surrogate"),
        ("7", "not a JSON object"),
        ("[" * 2000 + "]" * 2000, "nests more than 1024 levels"),
        ("", None),
    ],
)
def test_a_document_that_is_not_json_is_one_dead_letter(
    tmp_path: Path, text: str, reason: str | None
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(text)
    (tmp_path / "in" / "b.json").write_text(json.dumps(RECORDS[:2]))
    with Engine(spark=False) as engine:
        engine.stream("S", tmp_path / "in", schema="id:string")
        query = engine.register("Rstream(Select id From S [Now])", dialect="cql")
        engine.start(once=True)
        engine.await_end()
        assert [row[1] for row in query.to_polars().rows()] == ["a", "b"]
        folder = engine.root / "dead-letter"
        letters = [json.loads(line) for p in sorted(folder.glob("*")) for line in p.open()]
    assert [reason in letter["reason"] for letter in letters] == [True] * (reason is not None)


def test_a_document_is_a_file() -> None:
    with pytest.raises(UsageError, match="a message is one JSON value") as error:
        StreamConfig.from_options("s", "kafka://h:1/t", format="json", schema="v:integer")
    assert "iterator=[*]" in error.value.hint


STRUCTS = [
    {"id": "a", "ts": 1000, "p": {"t": 1.5, "u": {"x.y": 1}}, "q.r": 1, "q": {"r": 9}},
    {"id": "b", "ts": 2000, "p": None, "q.r": 2, "q": {"r": 9}},
    {"id": "c", "ts": 3000, "p": {"t": None, "u": None}, "q.r": 3, "q": None},
]
STRUCT_SCHEMA = "id:string;p.t:double;$.p.u['x.y']:integer;q.r:integer"
STRUCT_ROWS = [("a", 1.5, 1, 1), ("b", None, None, 2), ("c", None, None, 3)]


def struct_rows(source: Any, schema: str, data: Any = None) -> list[tuple[Any, ...]]:
    with Engine(spark=False) as engine:
        if data is None:
            engine.stream("S", source, schema=schema)
        else:
            engine.stream("S", schema=schema)
            engine.push("S", data)
        query = engine.register("Rstream(Select * From S [Now])", dialect="cql")
        engine.start(once=True)
        engine.await_end()
        return [row[1:] for row in query.to_polars().rows()]


def test_structs_of_parquet_are_read_by_paths(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(STRUCTS), path)
    assert struct_rows(path, STRUCT_SCHEMA) == STRUCT_ROWS
    config = with_schema(StreamConfig.from_options("s", path))
    names = ["id", "ts", "p.t", "@.p.u['x.y']", "q.r"]
    assert list(dict(config.schema)) == names
    with pytest.raises(SourceError, match=r"no column p\.tt") as error:
        struct_rows(path, "p.tt:double")
    assert "p.t" in str(error.value)


@pytest.mark.parametrize("kind", [list, pl.DataFrame, pa.Table.from_pylist])
def test_structs_of_frames_and_nested_mappings_are_read_by_paths(kind: Any) -> None:
    assert struct_rows(None, STRUCT_SCHEMA, kind(STRUCTS)) == STRUCT_ROWS


def test_a_document_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_reader, "LARGEST_JSON", 9)
    (tmp_path / "a.json").write_text('[{"v": 1}]')
    config = StreamConfig.from_options("s", tmp_path / "a.json", schema="v:integer")
    reference = FileSplit("s", "s", "a", str(tmp_path / "a.json"), "json", 0, 10, 0, 1, 1)
    with pytest.raises(FileFault, match="JSON document of more than"):
        FileReader().read(reference, config)

"""Rows that make a computation over columns raise: each is one dead letter, and its neighbours are
read, in order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.tables import csv_rows, json_rows, tuple_rows
from levada.connectors.ingest.tables.mapped_rows import mapped_of
from levada.connectors.ingest.tables.tuple_rows import Tuples, tuples_of
from levada.connectors.sources.message_texts import Messages
from levada.connectors.sources.read_split import CsvChunk, JsonChunk
from levada.connectors.sources.splits import FileSplit
from levada.core.event_time import MAX, MIN

N = 50
BOUNDS: dict[str, Any] = {"late_below": MIN, "future_above": MAX}
FUTURE: dict[str, Any] = {"late_below": MIN, "future_above": 10_000}
CSV = "".join(f"{k},word {k},{k}\n" for k in range(N))
JSON = "".join(f'{{"k": {k}, "v": "word {k}", "ts": {k}}}\n' for k in range(N))


def reference(form: str, stop: int) -> FileSplit:
    return FileSplit("s", "s", "a", "a", form, 0, stop, 0, 1, N)


def read(text: str, form: str) -> Tuples:
    data = np.frombuffer(text.encode(), np.uint8)
    chunk = CsvChunk(("k", "v", "ts"), data) if form == "csv" else JsonChunk(data)
    config = StreamConfig.from_options("s", f"a.{form}", schema="k:integer;v:string")
    return tuples_of(chunk, config, reference(form, len(data)), **BOUNDS)


def numbers(found: Tuples) -> list[int]:
    column = found.columns["k"].man
    assert column is not None
    return [int(k) for k in column]


def others(*odd: int) -> list[int]:
    return [k for k in range(N) if k not in odd]


@pytest.mark.parametrize(
    ("form", "text", "module", "name"),
    [
        ("csv", CSV, csv_rows.pacsv, "read_csv"),
        ("ndjson", JSON, json_rows.pl, "read_ndjson"),
    ],
)
@pytest.mark.parametrize("odd", [(7,), (0, 7, 8, 49)])
def test_records_that_make_the_reader_raise_are_dead_alone(
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    text: str,
    module: Any,
    name: str,
    odd: tuple[int, ...],
) -> None:
    whole = getattr(module, name)

    def fail(source: Any, *given: Any, **more: Any) -> Any:
        data = bytes(source.getvalue()) if form == "ndjson" else source.read_buffer().to_pybytes()
        source.seek(0)
        if any(f"word {k}{end}".encode() in data for k in odd for end in ',"'):
            raise UnicodeError("odd")
        return whole(source, *given, **more)

    monkeypatch.setattr(module, name, fail)
    found = read(text, form)
    assert numbers(found) == others(*odd)
    assert [dead.reason for dead in found.dead] == ["odd"] * len(odd)
    assert all(f"word {k}" in dead.text for k, dead in zip(odd, found.dead, strict=True))


def test_rows_that_make_a_cast_raise_are_dead_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tuple_rows.cast_column

    def fail(rows: Any, name: str, kind: str) -> Any:
        if rows.table["v"].is_in(["word 3", "word 40"]).any():
            raise pl.exceptions.PanicException("odd")
        return whole(rows, name, kind)

    monkeypatch.setattr(tuple_rows, "cast_column", fail)
    found = read(CSV, "csv")
    assert numbers(found) == others(3, 40)
    assert [(dead.reason, dead.text) for dead in found.dead] == [
        ("it cannot be read: odd", f"{k},word {k},{k}") for k in (3, 40)
    ]


def test_a_column_that_no_row_can_be_read_from_makes_each_a_dead_letter() -> None:
    table = pa.table({"k": [[1], [2]], "v": ["a", "b"], "ts": [1, 2]})
    config = StreamConfig.from_options("s", "a.parquet", schema="k:integer;v:string")
    found = tuples_of(table, config, reference("parquet", 2), **BOUNDS)
    assert [dead.offset for dead in found.dead] == [0, 1]
    assert found.dead[1].reason.startswith("it cannot be read: cannot cast List type")
    assert found.dead[1].text == '{"k": [2], "v": "b", "ts": 2}'


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", "Europe/Berlin")])
def test_a_row_of_parquet_with_an_instant_that_python_has_not_is_shown(kind: pa.DataType) -> None:
    """A dead letter shows the row, also the year 148108."""
    times = pa.array([1_000, 1 << 62, 2_000], pa.int64()).cast(kind)
    table = pa.table({"k": [1, 2, 3], "v": ["a", "b", "c"], "ts": times})
    config = StreamConfig.from_options("s", "a.parquet", schema="k:integer;v:string")
    found = tuples_of(table, config, reference("parquet", 3), **FUTURE)
    assert numbers(found) == [1, 3]
    ((offset, _, text),) = found.dead
    assert offset == 1
    assert f'"ts": {1 << 62}' in text


def test_a_row_of_parquet_with_a_date_that_has_no_text_is_dead_alone() -> None:
    dates = pa.array([1, 2**31 - 1, 3], pa.int32()).cast(pa.date32())
    table = pa.table({"k": [1, 2, 3], "v": dates, "ts": [1, 2, 3]})
    config = StreamConfig.from_options("s", "a.parquet", schema="k:integer;v:string")
    found = tuples_of(table, config, reference("parquet", 3), **BOUNDS)
    assert numbers(found) == [1, 3]
    ((offset, reason, _),) = found.dead
    assert offset == 1
    assert reason == "it cannot be read: out-of-range date"


def test_a_row_that_makes_a_formula_raise_is_dead_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "map.yaml"
    path.write_text('let: {t: "lower(v)"}\ntriples:\n  - <http://e/{k}> <http://e/p> {t}\n')
    config = StreamConfig.from_options("s", "a.csv", mapping=path)
    whole = pl.DataFrame.with_columns

    def fail(frame: pl.DataFrame, *given: Any, **more: Any) -> pl.DataFrame:
        if "v" in frame.columns and "word 5" in frame["v"].to_list():
            raise pl.exceptions.PanicException("odd")
        return whole(frame, *given, **more)

    monkeypatch.setattr(pl.DataFrame, "with_columns", fail)
    chunk = CsvChunk(("k", "v", "ts"), np.frombuffer(CSV.encode(), np.uint8))
    _, found = mapped_of(chunk, config, reference("csv", len(CSV)), seed=1, **BOUNDS)
    assert found.elements == N - 1
    assert [(dead.reason, dead.text) for dead in found.dead] == [
        ("it cannot be read: odd", "5,word 5,5")
    ]


def test_a_message_of_several_rows_is_one_dead_letter() -> None:
    payloads = ["1,a,5", "2,b,6\n3,c,7", "4,d,8", "5,e\n6,f\n7,g,9", "8,h,10"]
    data = np.frombuffer("".join(f"{text}\n" for text in payloads).encode(), np.uint8)
    starts = np.cumsum([0, *(len(text) + 1 for text in payloads)])
    messages = Messages(starts, np.arange(5), np.arange(5))
    config = StreamConfig.from_options("s", "ws://e/x", format="csv", schema="k:integer;v:string")
    chunk = CsvChunk(("k", "v", "ts"), data)
    found = tuples_of(chunk, config, reference("csv", len(data)), messages=messages, **BOUNDS)
    assert numbers(found) == [1, 4, 8]
    assert [dead.offset for dead in found.dead] == [1, 3]
    assert (found.alone, found.blank) == (0, 0)

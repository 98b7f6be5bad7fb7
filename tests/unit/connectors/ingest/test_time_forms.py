"""A value is the same event time in every source (docs/cli/event-times.md)."""

import datetime
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.elements import elements_of
from levada.connectors.ingest.parse.ntriples import parse
from levada.connectors.ingest.tables.row_event_times import file_time
from levada.connectors.ingest.tables.tuple_rows import tuples_of
from levada.connectors.sources.message_headers import time_said
from levada.connectors.sources.read_split import CsvChunk, JsonChunk
from levada.connectors.sources.splits import FileSplit
from levada.connectors.spool.row_batches import STATEMENT, Shape
from levada.connectors.spool.row_lines import statement_lines
from levada.core.event_time import MAX, MIN
from levada.errors import UsageError

XSD = "http://www.w3.org/2001/XMLSchema#"
NEW: Any = {"late_below": MIN, "future_above": MAX}
UNITS = ("s", "ms", "us", "ns")

DAY = 1_709_251_200_000  # 2024-03-01T00:00:00Z
TEXTS = {
    "2024-03-01T12:01:28.5Z": DAY + 43_288_500,
    "2024-03-01T12:01:28.5+01:00": DAY + 39_688_500,
    "2024-03-01T12:01:28": DAY + 43_288_000,
    "2024-03-01 12:01:28": DAY + 43_288_000,
    "2024-03-01 12:01:28.999999999-14:00": DAY + 93_688_999,
    "2024-02-29T24:00:00Z": DAY,
    "2024-03-01": DAY,
    "2024-03-01Z": DAY,
    "2024-03-01+01:00": DAY - 3_600_000,
    "2024-03": DAY,
    "-0001-03-01": -62_193_657_600_000,
    "2023-02-29": None,
    "2024-03-01T25:00:00Z": None,
    "2024-03-01T12:01": None,
    "12:01:28": None,
    "--03-01": None,
    "soon": None,
    "": None,
    "INF": None,
    "NaN": None,
    "1e30": None,
}
"""Texts with the times (ms) that they are, whatever the unit."""
NUMBERS = {
    "1700000000.123": 1_700_000_000_123,
    "1700000000.99999999999": 1_700_000_000_999,
    "1700000000": 1_700_000_000_000,
    "2024": 2_024_000,
    "-0.0005": -1,
    "1.7e9": 1_700_000_000_000,
    "+17.25E+1": 172_500,
    "0": 0,
}
"""Numbers with the times (ms) that they are in seconds."""
TYPED = [
    ("2024-03-01T00:00:00Z", "dateTime", DAY),
    ("2024-03-01 00:00:00", "dateTime", DAY),
    ("2024-03-01T00:00:00+00:00", "dateTimeStamp", DAY),
    ("2024-03-01", "date", DAY),
    ("2024-03", "gYearMonth", DAY),
    ("2024", "gYear", 1_704_067_200_000),
    ("2024", "integer", 2_024_000),
    ("2024", "int", 2_024_000),
    ("2024.5", "decimal", 2_024_500),
    ("2.0245E3", "double", 2_024_500),
    ("2.0245E3", "float", 2_024_500),
    ("2024-03-01", "string", DAY),
    ("2024-03-01", "dateTime", None),
    ("2024-03-01T00:00:00Z", "date", None),
    ("2024.5", "integer", None),
    ("300", "byte", None),
    ("2024", "boolean", None),
    ("1", "boolean", None),
    ("--03", "gMonth", None),
    ("00:00:00Z", "time", None),
    ("P1D", "duration", None),
    ("2024", "other", None),
]


def config(path: str = "a.nt", unit: str = "s", **options: Any) -> StreamConfig:
    return StreamConfig.from_options("s", path, unit=unit, **options)


def reference(form: str, size: int) -> FileSplit:
    return FileSplit("s", "s", "a", "/x", form, 0, size, 0, 1, 0)


def parsed(lines: str, own: StreamConfig) -> int | None:
    found = parse(
        lines.encode(), quads=False, timed=own.timed, seed=1, document=1, unit_power=own.unit_power
    )
    if own.timed:
        return int(found.time[0]) if found.n else None
    where = reference("nt", len(lines))
    elements = elements_of(found, own, where, seed=1, **NEW)
    assert len(elements.dead) + elements.elements == 1
    return elements.max_ts if elements.elements else None


def by_line(term: str, unit: str = "s") -> int | None:
    return parsed(f"<a:s> <a:p> <a:o> {term} .\n", config(unit=unit))


def by_predicate(term: str, unit: str = "s") -> int | None:
    own = config(unit=unit, time="predicate:a:p", element="subject")
    return parsed(f"<a:s> <a:p> {term} .\n", own)


def by_frame_of_statements(term: str, unit: str = "s") -> int | None:
    rows = pl.DataFrame([("<a:s>", "<a:p>", "<a:o>", term)], schema=STATEMENT, orient="row")
    return parsed("".join(statement_lines(rows, STATEMENT)), config(unit=unit))


def by_row_of_statements(value: object, unit: str = "s") -> int | None:
    shape = Shape(config(unit=unit), STATEMENT)
    (lines,) = shape.batches([("<a:s>", "<a:p>", "<a:o>", value)])
    assert isinstance(lines, pl.Series)
    return parsed("".join(lines), config(unit=unit))


def table(chunk: CsvChunk | JsonChunk | pa.Table, unit: str, form: str) -> int | None:
    own = config(f"a.{form}", unit, schema="k:integer")
    found = tuples_of(chunk, own, reference(form, 1000), **NEW)
    assert found.n + len(found.dead) == 1
    return int(found.ts[0]) if found.n else None


def data(text: str) -> Any:
    return np.frombuffer(text.encode(), np.uint8)


def by_csv(text: str, unit: str = "s") -> int | None:
    return table(CsvChunk(("k", "ts"), data(f'1,"{text}"\n')), unit, "csv")


def by_json_text(text: str, unit: str = "s") -> int | None:
    return table(JsonChunk(data(json.dumps({"k": 1, "ts": text}) + "\n")), unit, "ndjson")


def by_json_number(text: str, unit: str = "s") -> int | None:
    return table(JsonChunk(data(f'{{"k": 1, "ts": {text.lstrip("+")}}}\n')), unit, "ndjson")


def by_parquet(text: str, unit: str = "s") -> int | None:
    return table(pa.table({"k": [1], "ts": [text]}), unit, "parquet")


def by_row_of_a_tuple(value: object, unit: str = "s") -> int | None:
    (frame,) = Shape(config("a.parquet", unit, schema="k:integer")).batches([(1, value)])
    assert isinstance(frame, pl.DataFrame)
    return table(frame.to_arrow(), unit, "parquet")


def by_file_name(text: str, unit: str = "s") -> int | None:
    found = file_time(config(unit=unit, time="filename:_(.*)[.]nt"), f"a_{text}.nt")
    return None if found == MIN else found


def by_header(text: str) -> int | None:
    found = time_said(text.encode())
    return None if found == MIN else found


OF_TEXTS: list[Callable[[str, str], int | None]] = [
    by_frame_of_statements, by_row_of_statements, by_csv, by_json_text, by_parquet,
    by_row_of_a_tuple, by_file_name,
]  # fmt: skip


@pytest.mark.parametrize("source", OF_TEXTS)
def test_a_text_is_the_same_time_in_every_source(source: Callable[..., int | None]) -> None:
    for unit in UNITS:
        assert {text: source(text, unit) for text in TEXTS} == TEXTS
    for text, ms in NUMBERS.items():
        assert source(text, "s") == source(f" {text} ", "s") == ms, text


@pytest.mark.parametrize("source", [by_line, by_predicate])
def test_a_plain_string_is_the_time_that_its_text_is(source: Callable[..., int | None]) -> None:
    for unit in UNITS:
        assert {text: source(f'"{text}"', unit) for text in TEXTS} == TEXTS
    assert {text: source(f'"{text}"') for text in NUMBERS} == NUMBERS


def test_numbers_without_quotes_are_read_from_their_digits() -> None:
    assert {text: by_line(text) for text in NUMBERS} == NUMBERS
    assert {text: by_json_number(text) for text in NUMBERS} == NUMBERS


def test_a_header_is_read_as_milliseconds() -> None:
    assert {text: by_header(text) for text in TEXTS} == TEXTS
    assert by_header("1700000000123.9") == 1_700_000_000_123


def test_small_units_are_cut_to_milliseconds_in_every_source() -> None:
    for source in (by_line, by_csv, by_json_number, by_row_of_a_tuple, by_file_name):
        assert source("1700000000123456789.9", "ns") == 1_700_000_000_123
        assert source("1700000000123999.9", "us") == 1_700_000_000_123
        assert source("-1", "ns") == -1


@pytest.mark.parametrize(("lexical", "name", "ms"), TYPED)
@pytest.mark.parametrize("source", [by_line, by_predicate, by_frame_of_statements])
def test_a_typed_literal_is_the_same_time_in_every_source(
    source: Callable[..., int | None], lexical: str, name: str, ms: int | None
) -> None:
    assert source(f'"{lexical}"^^<{XSD}{name}>') == ms


@pytest.mark.parametrize("source", [by_line, by_predicate, by_frame_of_statements])
def test_a_literal_of_a_type_of_somebodys_own_may_be_a_date_time(
    source: Callable[..., int | None],
) -> None:
    own = "^^<https://uri.etsi.org/ngsi-ld/DateTime>"
    assert source(f'"2024-03-01T00:00:00Z"{own}') == DAY
    assert source(f'"2024-03-01T00:00:00.5+01:00"{own}') == DAY - 3_599_500
    for text in ("2024-03-01", "2024", "5", "soon"):
        assert source(f'"{text}"{own}') is None


@pytest.mark.parametrize("source", [by_line, by_predicate, by_frame_of_statements])
def test_what_is_no_literal_of_a_time_is_refused(source: Callable[..., int | None]) -> None:
    for term in ('"5"@en', "<http://e/5>", "_:b5", '"5"^^<http://e/integer>'):
        assert source(term) is None


@pytest.mark.parametrize(
    "value", [True, b"5", [5], datetime.time(1), datetime.timedelta(1)], ids=str
)
def test_a_type_that_is_no_time_is_refused_where_rows_come_from(value: object) -> None:
    for rows in ([(1, value)], pl.DataFrame({"k": [1], "ts": [value]})):
        with pytest.raises(UsageError, match="no event time"):
            list(Shape(config("a.parquet", schema="k:integer")).batches(rows))


def test_rows_without_a_time_are_dead_and_no_more() -> None:
    assert by_row_of_a_tuple(None) is None
    nothing = pa.table({"k": [1], "ts": pa.nulls(1)})
    assert table(nothing, "s", "parquet") is None


def test_values_of_typed_columns_are_the_times_of_their_texts() -> None:
    moment = datetime.datetime(2024, 3, 1, 0, 0, 0, 123_999)
    berlin = datetime.timezone(datetime.timedelta(hours=1))
    values: list[tuple[Any, int]] = [
        (1_700_000_000.123, 1_700_000_000_123), (17, 17_000), (moment, DAY + 123),
        (moment.date(), DAY), (moment.replace(tzinfo=berlin), DAY - 3_599_877),
    ]  # fmt: skip
    for value, ms in values:
        assert by_row_of_statements(value) == by_row_of_a_tuple(value) == ms
        frame = pl.DataFrame({"s": ["<a:s>"], "p": ["<a:p>"], "o": ["<a:o>"], "ts": [value]})
        assert parsed("".join(statement_lines(frame, STATEMENT)), config()) == ms
    mixed = [1_700_000_000, "2024-03-01", 1_700_000_000.5, None, moment]
    (batch,) = Shape(config("a.parquet", schema="k:integer")).batches([(1, v) for v in mixed])
    assert isinstance(batch, pl.DataFrame)
    each = [table(batch[i].to_arrow(), "s", "parquet") for i in range(5)]
    assert each == [1_700_000_000_000, DAY, 1_700_000_000_500, None, DAY + 123]
    exact = pa.array(["1700000000.1239"]).cast(pa.decimal128(20, 4))
    assert table(pa.table({"k": [1], "ts": exact}), "s", "parquet") == 1_700_000_000_123


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("a_2024-03-01.nt", {"zone": "Europe/Berlin"}, DAY - 3_600_000),
        ("a_2024-03-01 02:00:00Z.ttl", {"zone": "Europe/Berlin"}, DAY + 7_200_000),
        ("a_20240301.ttl", {"time_format": "%Y%m%d"}, DAY),
        (
            "a_01.03.24 0215.nq",
            {"time_format": "%d.%m.%y %H%M", "zone": "Asia/Tokyo"},
            DAY - 24_300_000,
        ),
        ("a_2024-03-31 02:30:00.nt", {"zone": "Europe/Berlin"}, MIN),
        ("a_20240230.csv", {"time_format": "%Y%m%d", "schema": "k:integer"}, MIN),
        ("b.csv", {"zone": "Asia/Tokyo", "schema": "k:integer"}, MIN),
    ],
)
def test_name_of_a_file_has_a_format_and_a_zone(
    name: str, options: dict[str, str], expected: int
) -> None:
    assert file_time(config(name, time=r"filename:_(.*)\.", **options), name) == expected


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("a.nt", {}),
        ("a.nt", {"time": "predicate:a:p", "element": "subject"}),
        ("a.nq", {"time": "graph"}),
        ("a.ttl", {"time": "arrival"}),
        ("kafka://h:1/t", {"time": "timestamp", "format": "ndjson", "schema": "k:integer"}),
    ],
)
@pytest.mark.parametrize("option", [{"zone": "Europe/Berlin"}, {"time_format": "%Y%m%d"}])
def test_format_and_zone_are_refused_where_no_text_has_the_time(
    path: str, options: dict[str, str], option: dict[str, str]
) -> None:
    with pytest.raises(UsageError, match="time_format and zone are for"):
        config(path, **options, **option)

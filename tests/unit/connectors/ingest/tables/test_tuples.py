"""CSV records and Parquet rows as typed columns; what does not fit is dead and the others go on."""

import csv
import datetime
import io
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.lateness import dead_records, late_records
from levada.connectors.ingest.tables.tuple_rows import Tuples, tuples_of
from levada.connectors.sources.read_split import CsvChunk
from levada.connectors.sources.splits import FileSplit
from levada.core.event_time import MAX, MIN
from levada.core.rdf_terms import Kind

SCHEMA = "k:integer;v:double;b:boolean;s:string"


def reference(
    stop: int, start: int = 0, name: str = "a.csv", limit: int | None = None
) -> FileSplit:
    return FileSplit("s", "s", name, "/x", "csv", start, stop, 0, 1, 0, limit)


def run(
    text: str | bytes,
    columns: str = "k,v,b,s,ts",
    late_below: Any = MIN,
    future_above: Any = MAX,
    limit: Any = None,
    **options: Any,
) -> Tuples:
    data = text.encode() if isinstance(text, str) else text
    config = StreamConfig.from_options("s", "a.csv", **{"schema": SCHEMA, **options})
    chunk = CsvChunk(tuple(columns.split(",")), np.frombuffer(data, np.uint8))
    where = reference(100 + len(data), start=100, name="day_7.csv", limit=limit)
    return tuples_of(chunk, config, where, late_below=late_below, future_above=future_above)


def reasons(result: Tuples) -> list[tuple[int, str]]:
    return [(dead.offset, dead.reason) for dead in result.dead]


def test_typed_columns_in_any_order() -> None:
    result = run('5,"a ""q"", b",true,-1.5,7\r\n6,x,0,NaN,8\n', columns="ts,s,b,v,k")
    assert result.ts.tolist() == [5, 6]
    k, v, b, s = (result.columns[name] for name in "kvbs")
    assert (
        k.kind.tolist() == [Kind.INTEGER] * 2
        and k.facet("m").tolist() == [7, 8]
        and k.facet("d").tolist() == [7.0, 8.0]
    )
    assert (
        v.kind.tolist() == [Kind.DOUBLE] * 2
        and v.facet("d")[0] == -1.5
        and math.isnan(v.facet("d")[1])
    )
    assert b.kind.tolist() == [Kind.BOOLEAN] * 2 and b.facet("m").tolist() == [1, 0]
    assert s.text is not None and s.text.to_list() == ['a "q", b', "x"]
    assert (result.max_ts, result.times.tolist(), result.dead) == (6, [5, 6], [])


def test_an_empty_field_is_no_value_and_a_quoted_one_is_a_string() -> None:
    result = run(',,,,1\n1,1,1,"",2\n')
    assert [result.columns[c].kind.tolist()[0] for c in "kvbs"] == [Kind.UNBOUND] * 4
    text = result.columns["s"].text
    assert text is not None and text.to_list() == [None, ""]
    assert result.columns["k"].facet("m").tolist() == [0, 1]


@pytest.mark.parametrize("end", ["\n", ""])
def test_an_empty_last_field_behind_a_quoted_one_is_no_value(end: str) -> None:
    text = run(f'1,1,1,1,"",{end}', "ts,k,v,b,x,s").columns["s"].text
    assert text is not None and text.to_list() == [None]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("x,1,1,a,1", "k is not an integer: x"),
        ("1.5,1,1,a,1", "k is not an integer: 1.5"),
        ("9223372036854775808,1,1,a,1", "k is not an integer: 9223372036854775808"),
        ("1,1_0,1,a,1", "v is not a double: 1_0"),
        ("1,1,yes,a,1", "b is not a boolean: yes"),
        ("1,1,1,a", "4 fields where the header has 5"),
        ("1,1,1,a,1,", "6 fields where the header has 5"),
        ('1,1,1,a"b,1', "a quote inside a field"),
        ('1,1,1,"a"b,1', "a quote inside a field"),
        ("1,1,1,a,", "no time"),
        ("1,1,1,a,soon", "its time is not a number, date or dateTime: soon"),
        (
            "1,1,1,a,99999999999999999999",
            "its time is not a number, date or dateTime: 99999999999999999999",
        ),
        (b"1,1,1,\xff,1", "not UTF-8"),
    ],
)
def test_a_record_that_does_not_fit_is_dead_and_the_others_go_on(record: Any, reason: str) -> None:
    record = record if isinstance(record, bytes) else record.encode()
    result = run("1,1,1,é,1\n".encode() + record + b"\r\n\n2,2,0,b,2\n")
    assert result.ts.tolist() == [1, 2]
    assert result.columns["k"].facet("m").tolist() == [1, 2]
    assert reasons(result) == [(111, reason)]
    assert result.dead[0].text == record.decode("utf-8", "replace")


def test_a_quote_that_is_never_closed() -> None:
    result = run('1,1,1,a,1\n2,2,1,"b,2\n3,3,1,c,3\n')
    assert result.ts.tolist() == [1, 3]
    assert reasons(result) == [(110, "a quote that is never closed")]


def test_all_dead_and_nothing_at_all() -> None:
    assert run("a\nb\n").n == 0 and len(run("a\nb\n").dead) == 2
    empty = run("")
    assert (empty.n, empty.dead, empty.max_ts, empty.times.tolist()) == (0, [], MIN, [])


def test_blanks_around_values_do_not_matter() -> None:
    result = run(" 1 , 2.5 , TRUE , s , 7 \n,, , ,8\n")
    assert result.ts.tolist() == [7, 8]
    assert result.columns["v"].facet("d").tolist() == [2.5, 0.0]
    assert result.columns["b"].kind.tolist() == [Kind.BOOLEAN, Kind.UNBOUND]
    text = result.columns["s"].text
    assert text is not None and text.to_list() == [" s ", " "]


def test_other_columns_are_ignored_even_twice() -> None:
    result = run("1,2,3,4,5,6\n", columns="x,k,x,y,ts,y", schema="k:integer")
    assert (result.columns["k"].facet("m").tolist(), result.ts.tolist()) == ([2], [5])


@pytest.mark.parametrize(
    ("options", "field", "ts"),
    [
        ({}, "12", 12),
        ({"unit": "s"}, "12", 12_000),
        ({}, "1970-01-01T00:00:01", 1000),
        ({}, "1970-01-01T01:00:01.250+01:00", 1250),
        ({"time": "field:s"}, "nothing", 34),
        ({"time": r"filename:_(\d+)", "unit": "s"}, "nothing", 7000),
    ],
)
def test_where_the_time_comes_from(options: Any, field: str, ts: int) -> None:
    assert run(f"1,1,1,34,{field}\n", **options).ts.tolist() == [ts]


def test_late_future_cut_and_limit() -> None:
    text = "".join(f"{i},1,1,a,{ts}\n" for i, ts in enumerate([5, 50, 10, 99, 200, 20, 30, 40]))
    start: dict[str, Any] = {"from": 10, "to": 1000}
    result = run(text, late_below=11, future_above=100, limit=6, **start)
    assert result.ts.tolist() == [50, 99, 20, 30]
    assert result.late.ts.tolist() == [10]
    assert [d.text for d in result.dead] == ["4,1,1,a,200"]
    assert "future" in result.dead[0].reason
    assert (result.cut, result.passed, result.max_ts, result.times.tolist()) == (
        2,
        6,
        99,
        [20, 30, 50, 99],
    )


def test_records_for_the_side_outputs() -> None:
    result = run("1,1,1,a,1\nx\n", late_below=5)
    where = reference(0, name="a.csv")
    assert dead_records(where, result.dead) == [
        {
            "stream": "s",
            "source": "a.csv",
            "offset": 110,
            "reason": "1 fields where the header has 5",
            "text": "x",
        }
    ]
    assert late_records(where, result.late, 5) == [
        {
            "stream": "s",
            "source": "a.csv",
            "offset": 100,
            "ts": 1,
            "watermark": 5,
            "text": "1,1,1,a,1",
            "reason": "Its time 1970-01-01T00:00:00.001Z is below the watermark "
            "1970-01-01T00:00:00.005Z.",
        }
    ]


VALUES = st.text(st.sampled_from('a,"\né \r'), max_size=4)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.floats(), VALUES), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
)
def test_what_the_csv_module_writes_is_read(rows: Any, end: Any) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=end, quoting=csv.QUOTE_NONNUMERIC).writerows(
        (k, v, s, i) for i, (k, v, s) in enumerate(rows)
    )
    result = run(out.getvalue(), columns="k,v,s,ts", schema="k:integer;v:double;s:string")
    assert result.dead == [] and result.ts.tolist() == list(range(len(rows)))
    assert result.columns["k"].facet("m").tolist() == [k for k, _, _ in rows]
    assert np.array_equal(
        result.columns["v"].facet("d"), np.array([v for _, v, _ in rows], float), equal_nan=True
    )
    text = result.columns["s"].text
    assert text is not None and text.to_list() == [s for _, _, s in rows]


def parquet(table: pa.Table, schema: str, **options: Any) -> Tuples:
    config = StreamConfig.from_options("s", "a.parquet", schema=schema, **options)
    bounds = {"late_below": options.pop("late_below", MIN), "future_above": MAX}
    return tuples_of(
        table, config, reference(1000 + table.num_rows, start=1000, name="a.parquet"), **bounds
    )


def test_parquet_columns() -> None:
    table = pa.table(
        {
            "ts": [3, 1, None, 2],
            "k": pa.array([1, None, 3, 4], pa.int32()),
            "v": pa.array([1, 2, 3, 4], pa.uint8()),
            "b": [True, False, None, True],
            "s": pa.array(["x", "y", None, "x"]).dictionary_encode(),
        }
    )
    result = parquet(table, SCHEMA)
    assert result.ts.tolist() == [3, 1, 2]
    assert result.columns["k"].kind.tolist() == [Kind.INTEGER, Kind.UNBOUND, Kind.INTEGER]
    assert result.columns["v"].facet("d").tolist() == [1.0, 2.0, 4.0]
    assert result.columns["b"].facet("m").tolist() == [1, 0, 1]
    text = result.columns["s"].text
    assert text is not None and text.to_list() == ["x", "y", "x"]
    assert [(d.offset, d.reason) for d in result.dead] == [(1002, "no time")]
    assert result.dead[0].text == '{"ts": null, "k": 3, "v": 3, "b": null, "s": null}'


def test_parquet_values_that_do_not_fit() -> None:
    result = parquet(
        pa.table({"ts": [1, 2], "k": pa.array([2**64 - 1, 5], pa.uint64())}), "k:integer"
    )
    assert result.ts.tolist() == [2]
    assert result.dead[0].reason == f"k is not an integer: {2**64 - 1}"


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1_500, 2_000], pa.int64()),
        pa.array([1_500, 2_000], pa.timestamp("ms")),
        pa.array([1_500_000_000, 2_000_000_000], pa.timestamp("ns", "Europe/Berlin")),
        pa.array(["1970-01-01T00:00:01.5", "2000"]),
        pa.array(["1970-01-01T01:00:01.5+01:00", "2000"], pa.large_string()),
    ],
)
def test_parquet_times(column: Any) -> None:
    assert parquet(pa.table({"ts": column, "k": [1, 2]}), "k:integer").ts.tolist() == [1_500, 2_000]


def test_parquet_dates() -> None:
    days = pa.array([datetime.date(1970, 1, 2), None])
    result = parquet(pa.table({"ts": days, "k": [1, 2]}), "k:integer")
    assert result.ts.tolist() == [86_400_000] and len(result.dead) == 1


def test_the_rows_of_a_relation_come_or_go() -> None:
    result = run(
        "7,1000,+\n8,2000,-\n9,3000,*\n9,4000,\n",
        columns="k,ts,sign",
        schema="k:integer",
        sign="sign",
    )
    signs = result.columns["sign"].text
    assert signs is not None and signs.to_list() == ["+", "-"]
    assert reasons(result) == [
        (118, "sign is neither + nor -: *"),
        (127, "sign is neither + nor -: empty"),
    ]

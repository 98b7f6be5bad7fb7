"""``schema=auto`` and ``levada sample``: what a table shows is what an engine reads of it."""

import random
import shlex
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import levada
from levada.cli.main import main
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.config.time_format import check_format
from levada.connectors.ingest.tables.schema_inference import (
    FORMATS,
    InferredSchema,
    sniff,
    with_columns,
)
from levada.engine.python.query_once import query
from levada.errors import SourceError, UsageError

MEAN = "Rstream(Select Avg(M.v) As mean From M [Range 10 Minutes])"


def seen(folder: Path, text: str, name: str = "a.csv", **options: str) -> InferredSchema:
    path = folder / name
    path.write_text(text)
    return sniff(str(path), StreamConfig.from_options("a", path, schema="auto", **options))


def test_types_separator_and_quotes(tmp_path: Path) -> None:
    text = (
        'ts;k;x;"y;z";on;code;note\n1000;1;2.5;a;True;007;"one\ntwo; three"\n2000;;3;b;false;010;\n'
    )
    found = seen(tmp_path, text)
    assert found.separator == ";"
    assert found.types == {
        "ts": "integer", "k": "integer", "x": "double", "y;z": "string",
        "on": "boolean", "code": "string", "note": "string",
    }  # fmt: skip
    assert (found.time, found.unit, found.time_format) == ("ts", "ms", "")
    assert "y;z" not in dict(found.schema), "no schema= can hold the name"


@pytest.mark.parametrize(
    ("rows", "column", "unit", "form"),
    [
        (("2024-03-01 12:00:00", "2024-03-01 12:05:00"), "when", "ms", ""),
        (("2024-03-01T12:00:00Z", "2024-03-01T12:05:00+01:00"), "when", "ms", ""),
        (("1700000000", "1700000060"), "n", "s", ""),
        (("1700000000000", "1700000060000"), "n", "ms", ""),
        (("1700000000000000", "1700000060000000"), "n", "us", ""),
        (("1700000000000000000", "1700000060000000000"), "n", "ns", ""),
        (("31.01.2024 09:00", "01.02.2024 09:00"), "Zeit", "ms", "%d.%m.%Y %H:%M"),
        (("31.01.24 09:00", "1.2.24 09:00"), "Zeit", "ms", "%d.%m.%y %H:%M"),
        (("01/31/2024 11:05 PM", "02/01/2024 01:00 AM"), "x", "ms", "%m/%d/%Y %I:%M %p"),
        (("10/Oct/2000:13:55:36 -0700", "10/Oct/2000:13:56:00 -0700"), "x", "ms",
         "%d/%b/%Y:%H:%M:%S %z"),
    ],
)  # fmt: skip
def test_times_are_found_with_their_unit_or_format(
    tmp_path: Path, rows: tuple[str, ...], column: str, unit: str, form: str
) -> None:
    text = f"id,{column},v\n" + "".join(f"5,{row},1.5\n" for row in rows)
    found = seen(tmp_path, text)
    assert (found.time, found.unit, found.time_format) == (column, unit, form)


def test_year_of_two_digits_is_not_a_year_of_four(tmp_path: Path) -> None:
    found = seen(tmp_path, "month,v\nJan 2024,1\nFeb 2024,2\n")  # not 20 January of the year 24
    assert (found.time, found.time_format) == (None, "")


def test_a_day_first_is_told_from_a_month_first_by_the_order_else_said(tmp_path: Path) -> None:
    found = seen(tmp_path, "d,v\n11/01/2024,1\n12/01/2024,2\n01/02/2024,3\n")
    assert found.time_format == "%d/%m/%Y"
    found = seen(tmp_path, "d,v\n01/02/2024,1\n02/02/2024,2\n")
    assert any("could also be %m/%d/%Y" in note for note in found.notes)


def test_every_format_that_is_tried_is_one_that_a_stream_can_have() -> None:
    assert [check_format(form) for form in FORMATS] == list(FORMATS)


def test_json_has_types_of_its_own(tmp_path: Path) -> None:
    text = '{"ts": 1, "k": "7", "x": 1}\n{"ts": 2, "x": 2.5, "on": true, "more": [1]}\nbroken\n'
    found = seen(tmp_path, text, "a.ndjson")
    assert found.types == {
        "ts": "integer", "k": "string", "x": "double", "on": "boolean", "more": "string",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is empty"),
        ("1,2.5,3\n4,5,6\n", "is no header"),
        ("a,b\n", "no row yet"),
    ],
)
def test_what_is_no_table_is_said(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(SourceError, match=what):
        seen(tmp_path, text)


def test_repeated_and_empty_names_are_numbered_and_said(tmp_path: Path) -> None:
    found = seen(tmp_path, "ts,v,v,v_1,,,column_5\n1,2,3,4,,6,7\n2,3,4,5,,7,8\n")
    assert list(found.types) == ["ts", "v_1_", "v_2", "v_1", "column_6", "column_5"]
    assert list(found.notes) == [
        "The header has the column v 2 times: they are v_1_, v_2.",
        "Column 5 has neither a name nor values: it is left out.",
        "Column 6 has no name: it is called column_6.",
    ]


def test_the_end_of_a_long_file_is_looked_at_too(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i}\n" for i in range(200_000))
    assert seen(tmp_path, f"ts,v\n{rows}200000,1.5\n").types["v"] == "double"


def test_small_integers_are_times_where_the_user_says_so(tmp_path: Path) -> None:
    """By its name alone ``t`` would hold numbers."""
    text = "t,v\n1000,1\n2500,2\n"
    assert seen(tmp_path, text).time is None
    said = seen(tmp_path, text, time="field:t")
    assert (said.time, said.unit) == ("t", "ms")


def test_integers_by_a_format(tmp_path: Path) -> None:
    path = tmp_path / "days.csv"
    path.write_text("day,v\n20240301,1\n20240302,2\n")
    config = StreamConfig.from_options(
        "M", path, schema="auto", time="field:day", time_format="%Y%m%d"
    )
    found = with_columns(config)
    assert (found.schema, found.time_format) == ((("v", "integer"),), "%Y%m%d")


def test_what_is_said_is_not_overruled(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts,other,v\n1,2024-03-01,1\n")
    config = with_columns(StreamConfig.from_options("a", path, schema="auto", time="field:other"))
    assert config.time == "field:other"
    with pytest.raises(SourceError, match=r"column v of .* no times .* with '1'"):
        with_columns(
            StreamConfig.from_options(
                "a", path, schema="auto", time="field:v", time_format="%d.%m.%Y"
            )
        )
    with pytest.raises(UsageError, match="no column sig"):
        with_columns(StreamConfig.from_options("a", path, schema="auto", sign="sig"))


@pytest.mark.parametrize("index", ["at", None])
@pytest.mark.parametrize("every", ["3min", "7s", "1D"])
def test_a_range_is_a_rolling_window_of_pandas_on_what_pandas_writes(
    tmp_path: Path, index: str | None, every: str, random_seed: int
) -> None:
    draw = random.Random(random_seed)
    times = pd.date_range("2024-03-01", periods=60, freq=every)
    frame = pd.DataFrame(
        {"v": [round(draw.gauss(0, 9), 2) for _ in times], "n": range(60), "w": "a, b"},
        index=pd.Index(times, name=index),
    )
    path = tmp_path / "m.csv"
    frame.to_csv(path)
    found = query(MEAN, {"M": (path, {"schema": "auto"})}).to_pandas()
    mine = found.set_index("report")["mean"].reindex(times.tz_localize("UTC")).to_list()
    assert mine == pytest.approx(frame["v"].rolling("10min").mean().to_list(), abs=1e-9)


def test_what_was_found_at_the_first_start_stays(tmp_path: Path) -> None:
    """A later start takes it from the checkpoint, whatever the folder's first file is by then."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "b.csv").write_text("at,v\n2024-03-01 12:00:00,1\n2024-03-01 12:01:00,2\n")
    sums = [run(tmp_path, folder)]
    (folder / "a.csv").write_text("at;v\n1700000000;x\n")
    (folder / "c.csv").write_text("at,v\n2024-03-01 13:00:00,3\n")
    sums.append(run(tmp_path, folder))
    assert sums == [[1], [3, 2]], "up to what later elements make sure"


def run(tmp_path: Path, folder: Path) -> list[Any]:
    with levada.Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine.stream("M", folder, schema="auto")
        asked = engine.register("Rstream(Select Sum(M.v) As s From M [Range 10 Minutes])", name="q")
        engine.start(once=True, keep_open=True)
        engine.await_end()
        return asked.to_polars()["s"].to_list()


def test_the_option_that_sample_prints_reads_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    start = datetime(2024, 3, 1)
    rows = [f"{(start + timedelta(minutes=i)):%d.%m.%Y %H:%M}\t{i}\t{i / 2}" for i in range(5)]
    Path("my trips.tsv").write_text("Zeit\tk\tv\n" + "\n".join(rows) + "\n")
    assert main(["sample", "my trips.tsv"]) == 0
    printed = capfd.readouterr()
    assert "the event time" in printed.err
    option = shlex.split(printed.out)
    assert option[1] == (
        "my_trips=my trips.tsv,format=csv,schema=k:integer;v:double,time=field:Zeit,"
        "time_format=%d.%m.%Y %H:%M,separator=tab"
    )
    Path("q.cql").write_text("Rstream(Select Max(M.v) As m From my_trips [Range 1 Day] As M)")
    assert main(["run", "q.cql", *option, "--once", "--master", "none", "--format", "csv"]) == 0
    assert capfd.readouterr().out.splitlines()[-1].endswith(",2")


def test_the_mapping_that_sample_prints_reads_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("trips.csv").write_text("at,k,v\n2024-03-01 12:00:00,1,2.5\n")
    assert main(["sample", "trips.csv", "--mapping"]) == 0
    Path("m.yaml").write_text(capfd.readouterr().out)
    assert Path("m.yaml").read_text().startswith("# --stream trips=trips.csv,mapping=THIS_FILE")
    found = query(
        "SELECT ?v FROM NAMED WINDOW <w> ON <http://e/trips> [RANGE PT1M] "
        "WHERE { WINDOW <w> { ?r <http://example.org/trips#v> ?v } }",
        {"trips": ("trips.csv", {"mapping": "m.yaml", "time": "field:at"})},
    )
    assert found.to_dicts()[0]["v"] == 2.5

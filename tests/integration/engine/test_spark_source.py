"""The data source of Spark, called as Spark calls it, without a session: offsets, partitions and
rows are replayed.
"""

from __future__ import annotations

import datetime
import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType, FloatType, StructField, StructType

from levada.errors import CheckpointError, UsageError
from levada.spark import LevadaSource, ReportStreamReader, filter_range
from support.kept_checkpoint import run_kept


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_kept(tmp_path_factory.mktemp("kept"))


def source(checkpoint: Path, **options: str) -> Any:
    return LevadaSource({"checkpoint": str(checkpoint), "query": "warm", **options})


def stream(checkpoint: Path, **options: str) -> ReportStreamReader:
    read = source(checkpoint, **options)
    return read.streamReader(read.schema())


def rows_of(reader: Any, *offsets: Any) -> list[pa.Table]:
    """The tables of the partitions, read by a copy of the reader as an executor has it."""
    parts = reader.partitions(*offsets)
    executor = pickle.loads(pickle.dumps(reader))
    return [pa.Table.from_batches(list(executor.read(part))) for part in parts]


def test_partitions_of_a_batch_have_each_row_once_in_order(checkpoint: Path) -> None:
    read = source(checkpoint)
    parts = rows_of(read.reader(read.schema()))
    assert len(parts) > 1
    table = pa.concat_tables(parts)
    assert table.num_rows == 200 and read.schema().fieldNames() == table.column_names
    keys = list(zip(table["report"].to_pylist(), table["number"].to_pylist(), strict=True))
    assert keys == sorted(set(keys))


def test_the_same_offsets_give_the_same_partitions_after_the_checkpoint_grew(
    tmp_path: Path,
) -> None:
    checkpoint = run_kept(tmp_path, "--keep-open", rows=120)
    reader = stream(checkpoint)
    start = reader.initialOffset()
    end = reader.latestOffset(start)
    assert json.loads(json.dumps(end)) == end
    before = rows_of(reader, start, end)
    assert sum(part.num_rows for part in before) == 100
    assert reader.latestOffset(end) == end
    run_kept(tmp_path, start=120, rows=200)
    again = stream(checkpoint)
    for part, other in zip(before, rows_of(again, start, end), strict=True):
        assert part.equals(other)
    later = again.latestOffset(end)
    assert later["report"] > end["report"]
    whole = pa.concat_tables([*before, *rows_of(again, end, later)])
    read = source(checkpoint)
    assert whole.equals(pa.concat_tables(rows_of(read.reader(read.schema()))))


def test_ranges_columns_and_a_schema_of_the_user(checkpoint: Path) -> None:
    read = source(checkpoint, **{"from": "4000", "until": "8000", "columns": "t double"})
    table = pa.concat_tables(rows_of(read.reader(read.schema())))
    assert table.num_rows == 60 and str(table.schema.field("t").type) == "double"
    schema = StructType(
        [StructField("t", DoubleType()), StructField("number", read.schema()["number"].dataType)]
    )
    narrow = pa.concat_tables(rows_of(source(checkpoint).reader(schema)))
    assert narrow.column_names == ["t", "number"] and narrow.num_rows == 200
    with pytest.raises(UsageError, match=r"t cannot have the type float\. Known: bigint"):
        source(checkpoint).reader(StructType([StructField("t", FloatType())]))
    with pytest.raises(UsageError, match=r"no column tt\. "):
        source(checkpoint).reader(StructType([StructField("tt", DoubleType())]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"query": "wram"}, "There is no query wram. Did you mean warm?"),
        ({"query": ""}, "needs the option query"),
        ({"colums": "t"}, "no option colums. Did you mean columns?"),
        ({"lost": "skp"}, "Did you mean skip?"),
        ({"columns": "rom"}, "Did you mean room?"),
        ({"from": "noon"}, "noon is not a time"),
    ],
)
def test_wrong_options_are_refused(checkpoint: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as error:
        source(checkpoint, **options).schema()
    assert message in str(error.value)


@pytest.mark.parametrize("options", [{}, {"provider": "levada", "option.query": "warm"}])
def test_a_table_of_sparks_catalog_is_refused(options: dict[str, str]) -> None:
    """Spark passes the options of a table when it is made, and none when it is read."""
    with pytest.raises(UsageError, match=r"CREATE TEMPORARY VIEW \.\. USING levada OPTIONS"):
        LevadaSource(options)


def test_deleted_reports_are_an_error_or_skipped(tmp_path: Path) -> None:
    checkpoint = run_kept(tmp_path, "--keep-open", rows=80)
    reader = stream(checkpoint)
    start = reader.initialOffset()
    first = reader.latestOffset(start)
    run_kept(tmp_path, start=80, rows=320, keep="2")
    with pytest.raises(CheckpointError, match=r"not kept any more\. The oldest report is 1970"):
        stream(checkpoint).partitions(start, first)  # the first batch anew
    later = stream(checkpoint).latestOffset(first)
    with pytest.raises(CheckpointError, match="lost=skip"):
        stream(checkpoint).partitions(first, later)
    skipping = stream(checkpoint, lost="skip")
    assert sum(part.num_rows for part in rows_of(skipping, first, later)) > 0
    fresh = stream(checkpoint)
    begin = fresh.initialOffset()
    assert rows_of(fresh, begin, fresh.latestOffset(begin))  # a new stream begins with the oldest
    with pytest.raises(CheckpointError, match="The oldest report is"):
        source(checkpoint, **{"from": "0"}).reader(source(checkpoint).schema()).partitions()


def test_another_checkpoint_or_query_is_refused(checkpoint: Path) -> None:
    reader = stream(checkpoint)
    end = reader.latestOffset(reader.initialOffset())
    with pytest.raises(CheckpointError, match="another checkpoint"):
        reader.latestOffset({**end, "checkpoint": "x"})
    with pytest.raises(CheckpointError, match="The query warm is another one"):
        reader.partitions({**end, "since": 9}, end)


def test_comparisons_of_the_report_time_narrow_a_batch(checkpoint: Path) -> None:
    from pyspark.sql.datasource import EqualTo, GreaterThan, LessThanOrEqual

    def at(ms: int) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)

    read = source(checkpoint)
    reader = read.reader(read.schema())
    other = EqualTo(("room",), "http://e/r1")
    filters = [GreaterThan(("report",), at(4000)), other, LessThanOrEqual(("report",), at(8000))]
    assert list(reader.pushFilters(filters)) == [other]
    assert pa.concat_tables(rows_of(reader)).num_rows == 40
    micro = at(4000) + datetime.timedelta(microseconds=1)
    for kind, value, bounds in [
        ("EqualTo", at(4000), (3999, 4000)), ("EqualTo", micro, (4000, 4000)),
        ("GreaterThanOrEqual", micro, (4000, 2**62)), ("LessThan", micro, (-(2**62), 4000)),
    ]:  # fmt: skip
        assert filter_range(kind, value) == bounds
    assert filter_range("EqualTo", 5) is None and filter_range("In", at(1)) is None

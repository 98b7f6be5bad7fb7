"""Parquet files of some kilobytes that are gigabytes of rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources import parquet_bounds
from levada.connectors.sources.parquet_files import read_rows
from levada.errors import FileFault

ROWS = 1000


def written(path: Path, columns: dict[str, pa.Array], **options: object) -> str:
    pq.write_table(pa.table(columns), path, **options)
    return str(path)


def texts(length: int, repeats: int = ROWS) -> pa.Array:
    """Rows of a text of the dictionary."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * repeats, pa.int32()), ["x" * length])


def read(path: str, schema: str) -> pa.Table:
    return read_rows(
        path, 0, 10, StreamConfig.from_options("s", path, schema=schema, time="arrival")
    )


@pytest.fixture(autouse=True)
def bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_bounds, "MAX_DECODED", 1 << 20)


@pytest.mark.parametrize(
    ("columns", "schema"),
    [
        ({"k": texts(2000)}, "k:string"),
        ({"k": pa.StructArray.from_arrays([texts(2000)], ["a"])}, "k.a:string"),
        ({"k": pa.array([0] * 1_100_000)}, "k:integer"),
        ({"k": pa.array(["y" * 3_000_000])}, "k:string"),
    ],
)
def test_rows_that_are_huge_when_decoded_are_refused(
    tmp_path: Path, columns: dict[str, pa.Array], schema: str
) -> None:
    path = written(tmp_path / "a.parquet", columns, compression="zstd", row_group_size=1 << 21)
    with pytest.raises(FileFault, match="larger than"):
        read(path, schema)


def test_rows_below_the_bound_are_read(tmp_path: Path) -> None:
    numbers = pa.array([0] * ROWS + [1], pa.int32())
    few = pa.DictionaryArray.from_arrays(numbers, ["x" * 10, "z" * 2000])
    path = written(tmp_path / "a.parquet", {"k": few, "other": texts(5000, ROWS + 1)})
    assert read(path, "k:string").num_rows == 10, "one long text is no million"


def test_row_groups_of_a_range_count_together(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", {"k": texts(900)}, row_group_size=5)
    assert read(path, "k:string").num_rows == 10


def test_each_column_of_a_file_is_checked(tmp_path: Path) -> None:
    columns = {"k": texts(10), "other": texts(5000)}
    path = written(tmp_path / "a.parquet", columns)
    assert read(path, "k:string").num_rows == 10
    with pytest.raises(FileFault, match="larger than"):
        read(path, "other:string")


def test_a_time_that_is_a_huge_text_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", {"n": pa.array([0] * ROWS), "when": texts(5000)})
    config = StreamConfig.from_options("s", path, schema="n:integer", time="field:when")
    with pytest.raises(FileFault, match="larger than"):
        read_rows(path, 0, 10, config)


def test_a_file_without_rows_has_no_rows(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", {"k": pa.array([], pa.string())})
    config = StreamConfig.from_options("s", path, schema="k:string", time="arrival")
    assert read_rows(path, 0, 0, config).num_rows == 0

"""CSV and Parquet files as ranges of rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.tables.tuple_rows import tuples_of
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.parquet_files import with_schema
from levada.connectors.sources.read_split import CsvChunk, read_tuples
from levada.core.event_time import MAX, MIN
from levada.errors import SourceError

SCHEMA = "k:integer;v:double"


def source(path: Any, scratch: Any, final: bool = True, **options: Any) -> FileSource:
    options = {"schema": SCHEMA, **options} if not str(path).endswith("parquet") else options
    made = FileSource(with_schema(StreamConfig.from_options("s", path, **options)), scratch)
    made.discover(final)
    return made


def drain(made: Any, rows: Any) -> Any:
    position, out = {}, []
    while True:
        references, position = made.take(position, rows)
        if not references:
            return out, position
        out += references


def chunk_text(made: Any, reference: Any) -> str:
    chunk = read_tuples(reference, made.config)
    assert isinstance(chunk, CsvChunk)
    return chunk.data.tobytes().decode()


@pytest.mark.parametrize("rows", [1, 2, 100])
def test_csv_records_with_newlines_in_quotes(tmp_path: Path, rows: int) -> None:
    body = '1,1,"a\nb"\r\n\r\n2,2,"say ""x"",\n"\r\n3,3,c'
    (tmp_path / "a.csv").write_text(
        ' k,v ,"t",ts\r\n'.replace(",ts", "").replace('"t"', "ts") + body, newline=""
    )
    made = source(tmp_path / "a.csv", tmp_path)
    references, position = drain(made, rows)
    assert "".join(chunk_text(made, r) for r in references) == body
    assert (
        [r.elements for r in references] == [1, 1, 1]
        if rows == 1
        else sum(r.elements for r in references) == 3
    )
    chunk = read_tuples(references[-1], made.config)
    assert isinstance(chunk, CsvChunk) and chunk.columns == ("k", "v", "ts")
    assert made.is_ended(position)


def test_a_growing_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("k,v,t")
    made = source(path, tmp_path, final=False)
    assert not made.backlog({}) and made.partition_states({}) == {}
    path.write_text("k,v,ts\n")
    made.discover()
    assert not made.backlog({})
    path.write_text("k,v,ts\n1,2,3\n4,5")
    made.discover()
    (reference,), position = made.take({}, 10)
    assert chunk_text(made, reference) == "1,2,3\n"
    assert made.partition_states(position) == {"s": False}
    made.freeze()
    assert chunk_text(made, made.take(position, 10)[0][0]) == "4,5"


def test_a_byte_order_mark_and_a_header_alone(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfk,v,ts\n1,2,3\n")
    (tmp_path / "b.csv").write_bytes(b"k,v,ts")
    made = source(tmp_path / "*.csv", tmp_path)
    references, position = drain(made, 10)
    assert [chunk_text(made, r) for r in references] == ["1,2,3\n"]
    assert made.is_ended(position)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("k,w,ts", "no column v"),
        ("k,v", "no column ts"),
        ("k,v,k,ts", "column k twice.*Say k_1 or k_2"),
        ("k,V,ts", "no column v"),
        ('k,"v,w",vw,ts', r"no column v\. Did you mean vw\?"),
    ],
)
def test_headers_that_do_not_fit(tmp_path: Path, header: str, says: str) -> None:
    (tmp_path / "a.csv").write_text(header + "\n1,2,3\n")
    with pytest.raises(SourceError, match=says):
        source(tmp_path / "a.csv", tmp_path).take({}, 1)


def test_columns_with_repeated_or_empty_names_are_read_by_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,,ts,k\n1,2,3,4\n")
    schema = "k_1:integer;column_2:integer;k_2:integer"
    made = source(tmp_path / "a.csv", tmp_path, schema=schema)
    (reference,), _ = made.take({}, 10)
    chunk = read_tuples(reference, made.config)
    found = tuples_of(chunk, made.config, reference, late_below=MIN, future_above=MAX)
    assert [found.columns[n].facet("m").tolist() for n in dict(made.config.schema)] == [
        [1],
        [2],
        [4],
    ]


def table(n: Any, first: int = 0) -> pa.Table:
    k = np.arange(first, first + n)
    return pa.table({"ts": k * 10, "v": k / 2, "k": k, "note": pa.array([[1]] * n)})


@pytest.mark.parametrize("rows", [1, 7, 10, 1000])
def test_parquet_ranges(tmp_path: Path, rows: int) -> None:
    pq.write_table(table(35), tmp_path / "a.parquet", row_group_size=10)
    made = source(tmp_path / "a.parquet", tmp_path)
    references, position = drain(made, rows)
    assert made.config.schema == (("ts", "integer"), ("v", "double"), ("k", "integer"))
    assert [r.elements for r in references] == [r.stop - r.start for r in references]
    read = pa.concat_tables([read_tuples(r, made.config) for r in references])
    assert read.column("k").to_pylist() == list(range(35))
    assert read.column_names == ["ts", "v", "k"]
    assert made.is_ended(position) and position["taken"] == 35
    if rows == 1000:
        assert len(references) == 1


def test_big_row_groups_are_ranges_of_their_own(tmp_path: Path) -> None:
    pq.write_table(
        table(400_000), tmp_path / "a.parquet", row_group_size=150_000, use_dictionary=False
    )
    references, _ = source(tmp_path / "a.parquet", tmp_path).take({}, 1_000_000)
    assert [(r.start, r.stop) for r in references] == [
        (0, 150_000),
        (150_000, 300_000),
        (300_000, 400_000),
    ]
    assert [r.index for r in references] == [0, 1, 2]


def test_a_parquet_file_that_is_still_written_waits(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(table(5), folder / "a.parquet")
    whole = (folder / "a.parquet").read_bytes()
    (folder / "b.parquet").write_bytes(whole[:-30])
    made = FileSource(with_schema(StreamConfig.from_options("s", folder)), tmp_path)
    made.discover()
    references, position = made.take({}, 100)
    assert [r.name for r in references] == ["a.parquet"]
    assert not made.backlog(position)
    (folder / "b.parquet").write_bytes(whole)
    made.discover()
    assert [r.name for r in made.take(position, 100)[0]] == ["b.parquet"]
    (folder / "c.parquet").write_bytes(whole[:-30])
    made.discover(final=True)
    assert not made.take({"file": "b.parquet", "at": 5}, 100)[0]
    assert "no Parquet" in made.broken["c.parquet"]


@pytest.mark.parametrize(
    ("columns", "schema", "says"),
    [
        ({"ts": [1], "k": ["x"]}, "k:integer", "is string, but the schema of s says integer"),
        ({"ts": [1], "k": [1.5]}, "k:integer", "is double"),
        ({"ts": [1], "k": [1]}, "k:string", "is int64"),
        ({"ts": [True], "k": [1]}, "k:integer", "no event time"),
        ({"k": [1]}, "k:integer", "no column ts"),
        ({"ts": [1]}, "k:integer", "no column k"),
    ],
)
def test_types_that_do_not_fit_the_schema(
    tmp_path: Path, columns: Any, schema: str, says: str
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=says):
        source(tmp_path / "a.parquet", tmp_path, schema=schema).take({}, 1)


def test_without_a_file_there_is_no_schema(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no schema"):
        with_schema(StreamConfig.from_options("s", tmp_path, format="parquet"))

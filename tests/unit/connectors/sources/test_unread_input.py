"""The unread input of files: how much there is after a position, and since when."""

import gzip
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.unread_input import MAX_NOTES, ArrivalTimes


def line(i: int) -> str:
    return f"<http://e/s{i:05d}> <http://e/p> <http://e/o> {i:05d} .\n"


def text(*numbers: int) -> str:
    return "".join(map(line, numbers))


SIZE = len(line(0))


def source(path: Path, scratch: Path, **options: Any) -> FileSource:
    made = FileSource(StreamConfig.from_options("s", path, **options), scratch)
    made.discover()
    return made


def read(made: FileSource, position: dict[str, Any], rows: int) -> dict[str, Any]:
    """Reads so many elements and commits them."""
    references, after = made.take(position, rows)
    made.forget(after)
    made.discover(position=after)
    assert references
    return after


def test_what_is_left_of_a_folder_and_when_it_arrived(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "a.csv").write_text("ts,v\n" + "00001,2\n" * 10)
    os.utime(folder / "a.csv", (50, 50))
    made = source(folder, tmp_path, format="csv", schema="v:integer")
    unread = made.unread(100_000)
    assert (unread.elements, unread.size, unread.oldest_ms, unread.taken) == (None, 85, 50_000, 0)
    position = read(made, {}, 5)
    unread = made.unread(101_000)
    assert (unread.elements, unread.size, unread.oldest_ms, unread.taken) == (5, 40, 50_000, 5)
    (folder / "b.csv").write_text("ts,v\n" + "00001,2\n" * 4)
    os.utime(folder / "b.csv", (60, 60))
    made.discover(position=position)
    assert made.unread(102_000).size == 77
    position = read(made, position, 5)
    unread = made.unread(103_000)
    assert (unread.size, unread.oldest_ms) == (37, 102_000), "noted when it was found"
    read(made, position, 4)
    unread = made.unread(104_000)
    assert (unread.elements, unread.size, unread.oldest_ms, unread.taken) == (0, 0, None, 14)


def test_an_incomplete_line_is_not_unread(tmp_path: Path) -> None:
    path = tmp_path / "a.nt"
    path.write_text(text(1, 2, 3))
    made = source(path, tmp_path)
    position = read(made, {}, 3)
    path.write_text(text(1, 2, 3) + line(4)[:-3])
    made.discover(position=position)
    assert not made.backlog(position)
    assert made.unread(0).size == 0
    path.write_text(text(1, 2, 3, 4))
    made.discover(position=position)
    assert made.unread(0).elements == 1


@pytest.mark.parametrize("files", ["sequence", "parallel"])
def test_packed_files_count_by_their_size_on_disk(tmp_path: Path, files: str) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    packed = gzip.compress(text(*range(100)).encode())
    for name in ("a", "b"):
        (folder / f"{name}.nt.gz").write_bytes(packed)
    made = source(folder, tmp_path, files=files)
    assert made.unread(0).size == 2 * len(packed)
    read(made, {}, 100)
    left = made.unread(0).size
    assert left == pytest.approx(len(packed), abs=2)


def test_rows_of_parquet(tmp_path: Path) -> None:
    rows = pa.table({"ts": pa.array(range(1000), pa.int64()), "v": pa.array(range(1000))})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=100)
    made = source(tmp_path / "a.parquet", tmp_path, format="parquet", schema="v:integer")
    position = read(made, {}, 400)
    unread = made.unread(0)
    assert (unread.elements, unread.taken) == (600, position["taken"])
    assert unread.size == pytest.approx(0.6 * (tmp_path / "a.parquet").stat().st_size, abs=1)


def test_a_limit_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(text(*range(10)))
    made = source(tmp_path / "a.nt", tmp_path, limit=4)
    read(made, {}, 4)
    assert made.unread(0).elements == 0


def test_notes_are_bounded() -> None:
    times = ArrivalTimes()
    for k in range(10 * MAX_NOTES):
        times.note(1000 * k, k)
    assert len(times._notes) <= MAX_NOTES + 1
    arrived = times.arrival(5 * MAX_NOTES, lambda: None)
    assert arrived is not None
    assert 5 * MAX_NOTES <= arrived / 1000 <= 5.2 * MAX_NOTES

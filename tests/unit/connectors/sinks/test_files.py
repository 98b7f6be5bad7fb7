"""Files that are there whole: names, parts, atomicity, and what a full or forbidden folder says."""

import errno
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.connectors.serialization.result_formats import Format
from levada.connectors.serialization.serialize import Batch
from levada.connectors.sinks.dead_letter_files import Letter, LetterFiles
from levada.connectors.sinks.file_sink import OWNER, FileSink, Roll, existing_results, hold_claim
from levada.core.durable_files import sink_error, write_atomic
from levada.errors import SinkError, UsageError


def batch(n: Any) -> Any:
    return Batch(
        np.arange(n),
        columns={"x": pl.Series([f"<http://e/{i}>" for i in range(n)], dtype=pl.String)},
    )


def names(folder: Any) -> Any:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_results_of_a_query_are_files_in_its_folder(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "out", Format.NDJSON)
    assert sink.publish("q1", ["x"], 7, batch(3)) == ["q1/000000007-0000.ndjson"]
    lines = (tmp_path / "out/q1/000000007-0000.ndjson").read_text().splitlines()
    assert [json.loads(line)["report"] for line in lines] == [0, 1, 2]
    assert names(tmp_path) == ["out/q1/000000007-0000.ndjson"]


def test_publishing_twice_gives_the_same_files(tmp_path: Path) -> None:
    sink = FileSink(tmp_path, Format.CSV, Roll(bytes=40))
    first = sink.publish("q", ["x"], 1, batch(9))
    before = {name: (tmp_path / name).read_bytes() for name in first}
    assert sink.publish("q", ["x"], 1, batch(9)) == first
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before


def test_parts_are_cut_at_records_and_each_has_its_header(tmp_path: Path) -> None:
    sink = FileSink(tmp_path, Format.CSV, Roll(bytes=40))
    published = sink.publish("q", ["x"], 1, batch(9))
    assert len(published) > 2
    parts = [(tmp_path / name).read_text().splitlines() for name in published]
    assert all(part[0] == "report,x" and len(part) > 1 for part in parts)
    assert [line for part in parts for line in part[1:]] == [f"{i},http://e/{i}" for i in range(9)]


def test_a_batch_without_a_line_makes_no_file(tmp_path: Path) -> None:
    assert FileSink(tmp_path, Format.CSV).publish("q", ["x"], 1, batch(0)) == []
    assert names(tmp_path) == []


@given(sizes=st.lists(st.integers(1, 30), max_size=30), limit=st.integers(1, 60))
def test_a_cut_keeps_every_record_in_order_and_few_bytes_too_many(sizes: Any, limit: Any) -> None:
    parts = Roll(bytes=limit).cut(np.array(sizes, np.int64))
    assert [row for start, stop in parts for row in range(start, stop)] == list(range(len(sizes)))
    assert all(start < stop for start, stop in parts)
    assert all(sum(sizes[start:stop]) < limit + max(sizes) for start, stop in parts)


@pytest.mark.parametrize(
    ("size", "age", "due"), [(10, 10, False), (100, 0, True), (0, 1000, True), (99, 999, False)]
)
def test_a_file_is_due_by_size_or_age(size: int, age: int, due: bool) -> None:
    assert Roll(bytes=100, age=1000).is_due(size, age) is due


def test_a_reader_never_sees_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the bytes are being forced to the disk, the name is not there yet; the old file still
    is.
    """
    path = tmp_path / "q" / "a.csv"
    write_atomic(path, b"old")
    seen = []
    real = os.fsync

    def watch(descriptor: Any) -> None:
        seen.append((path.read_bytes(), sorted(p.name for p in path.parent.iterdir())))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    write_atomic(path, b"new")
    (old, (hidden, name)), after = seen
    assert (old, name) == (b"old", "a.csv") and re.fullmatch(r"\.a\.csv\..*", hidden)
    assert after == (b"new", ["a.csv"])


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SinkError, match=r"The disk that holds .*q is full\. Free some space"):
        write_atomic(tmp_path / "q" / "a.csv", b"new")
    assert names(tmp_path) == []


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(SinkError, match=r"out/q is not a folder\."):
        FileSink(tmp_path / "out", Format.CSV).publish("q", ["x"], 1, batch(1))
    with pytest.raises(SinkError, match=r"out is not a folder\."):
        existing_results(tmp_path / "out")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EPERM])
def test_a_forbidden_folder(number: Any) -> None:
    assert "out may not be written to" in str(
        sink_error(OSError(number, os.strerror(number)), Path("out"))
    )


def test_any_other_failure_says_what_the_system_said() -> None:
    assert (
        str(sink_error(OSError(errno.EIO, "Input/output error"), "out"))
        == "out cannot be written: Input/output error."
    )


def test_a_folder_has_one_run_at_a_time_also_before_its_first_result(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    with hold_claim(out, "first", overwrite=False):
        with (
            pytest.raises(UsageError, match=r"Another run is writing to .*out\."),
            hold_claim(out, "other", overwrite=True),
        ):
            pass
        assert (out / OWNER).read_text() == "first"
    with hold_claim(out, "other", overwrite=False):
        assert (out / OWNER).read_text() == "other"


def test_a_claimed_folder_that_is_gone_is_told_and_not_made_anew(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sink = FileSink(out, Format.CSV, claimed=True)
    with hold_claim(out, "id", overwrite=False):
        assert sink.publish("q", ["x"], 1, batch(5))
        out.rename(tmp_path / "moved")
        with pytest.raises(SinkError, match="is gone: it was deleted or moved"):
            sink.publish("q", ["x"], 2, batch(6))
    assert not out.exists()


def test_existing_results(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert existing_results(out) == set()
    FileSink(out, Format.CSV).publish("q", ["x"], 1, batch(1))
    LetterFiles(out).publish(Letter.LATE, 2, [{"ts": 1}])
    (out / "q" / ".000000009-0000.csv.tmp").write_text("")
    (out / "q" / "notes.txt").write_text("")
    (out / "q" / "mine.csv").write_text("")
    (out / "loose.csv").write_text("")
    assert existing_results(out) == {"q/000000001-0000.csv", "late/000000002-0000.ndjson"}


def test_letters(tmp_path: Path) -> None:
    letters = LetterFiles(tmp_path)
    records: list[dict[str, Any]] = [
        {"stream": "s", "source": "a.nt", "offset": 0, "reason": "é", "text": 'x "y"\n'},
        {"stream": "s"},
    ]
    assert letters.publish(Letter.DEAD, 3, records) == ["dead-letter/000000003-0000.ndjson"]
    text = (tmp_path / "dead-letter/000000003-0000.ndjson").read_text()
    assert text.endswith("\n")
    assert [json.loads(line) for line in text.splitlines()] == records
    assert letters.publish(Letter.LATE, 3, []) == []
    assert letters.publish(Letter.DEAD, 3, records[:1], part=1) == [
        "dead-letter/000000003-0001.ndjson"
    ]

"""A file that is replaced or deleted between the decision to read it and a replay of that epoch:
what came in its place is never taken for it, and what is gone ends no engine.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from levada.checkpoint.manifest import EpochIntent, Manifest
from levada.connectors.sources.fingerprint import HEAD
from levada.engine.engine import Engine
from levada.errors import EngineError, SourceError
from levada.runtime.epoch_pipeline import EpochRunner
from levada.testing.memory_sink import MemorySink

QUERY = """SELECT ?o FROM NAMED WINDOW <w> ON <s> [RANGE PT10S STEP PT10S]
WHERE { WINDOW <w> { ?s <http://e/p> ?o } }"""
CQL = "Select v From s [Range 10 Seconds Slide 10 Seconds]"


def _lines(first: int, n: int = 40) -> str:
    return "".join(
        f'<http://e/a> <http://e/p> "{first + i}" {1000 + 100 * i} .\n' for i in range(n)
    )


def _write(path: Path, first: int, n: int = 40) -> None:
    """A file of rows or triples whose values say from which file they are."""
    if path.suffix == ".parquet":
        pl.DataFrame(
            {"ts": [1000 + 100 * i for i in range(n)], "v": [first + i for i in range(n)]}
        ).write_parquet(path)
    elif path.suffix == ".csv":
        rows = "".join(f"{1000 + 100 * i},{first + i}\n" for i in range(n))
        path.write_text("ts,v\n" + rows)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(_lines(first, n).encode()))
    else:
        path.write_text(_lines(first, n))


def _replace(path: Path, first: int, n: int = 40) -> None:
    """Another file under the name, as `mv` does it: the old one stays as it was."""
    path.rename(path.parent.parent / "old")
    _write(path, first, n)


def _started(folder: Path, sink: MemorySink, name: str, files: str) -> Engine:
    tabular = name.endswith((".csv", ".parquet"))
    engine = Engine(spark=False, checkpoint=folder / "c", sink=sink, partitions=2)
    how: dict[str, Any] = {"files": files, "format": name.removesuffix(".gz").rpartition(".")[2]}
    if tabular:
        how |= {"schema": {"v": "integer"}, "time": "field:ts"}
    engine.stream("s", folder / "in", **how)
    engine.register(CQL if tabular else QUERY, name="q", dialect="cql" if tabular else "rspql")
    return engine


def _die_in_an_epoch(folder: Path, name: str, files: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that has written down what it will read, and no more."""

    def dies(self: EpochRunner, intention: object) -> None:
        raise RuntimeError("as if the process had ended here")

    with monkeypatch.context() as patched:
        patched.setattr(EpochRunner, "run", dies)
        with (
            pytest.raises(EngineError, match="as if the process"),
            _started(folder, MemorySink(), name, files) as engine,
        ):
            engine.start(once=True, keep_open=True)
            engine.await_end()
    assert (folder / "c" / "intentions" / "open").exists()


def _values(sink: MemorySink) -> set[int]:
    """The values of all solutions that came."""
    return {
        int("".join(c for c in str(value).split("^")[0] if c.isdigit()))
        for report in sink.reports.get("q", [])
        for solution in report.solutions
        for _, value in solution
    }


@pytest.mark.parametrize("name", ["a.nt", "a.csv", "a.parquet", "a.nt.gz"])
@pytest.mark.parametrize("files", ["sequence", "parallel"])
@pytest.mark.parametrize("n", [40, 25])  # as long as it was, and shorter
def test_what_came_in_its_place_is_not_read_as_if_it_were_the_file(
    name: str, files: str, n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / name
    _write(path, 1000)
    _die_in_an_epoch(tmp_path, name, files, monkeypatch)
    _replace(path, 5000, n)
    sink, told = MemorySink(), list[Manifest]()
    for keep_open in (True, False):
        with _started(tmp_path, sink, name, files) as engine:
            engine._on_epoch(told.append)
            engine.start(once=True, keep_open=keep_open)
            engine.await_end()
    (record,) = told[-1].streams.values()
    if name.endswith(".gz"):  # its unpacked copy is there, and is the file that is meant
        assert record.dead_letters == 0
        assert _values(sink) >= set(range(1000, 1040))
        return
    assert record.dead_letters == 1
    assert "was replaced by another before it was read" in record.dead_letter_reasons[0]
    assert (record.elements, record.unaccounted_elements, record.replaced_files) == (n, 0, 1)
    assert _values(sink) == set(range(5000, 5000 + n))


@pytest.mark.parametrize("name", ["a.nt", "a.csv", "a.parquet", "a.nt.gz"])
@pytest.mark.parametrize("files", ["sequence", "parallel"])
def test_what_was_deleted_ends_no_engine(
    name: str, files: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / name
    _write(path, 1000)
    _die_in_an_epoch(tmp_path, name, files, monkeypatch)
    path.unlink()
    _write(path.with_name("b" + name[1:]), 5000)
    sink, told = MemorySink(), list[Manifest]()
    for keep_open in (True, False):
        with _started(tmp_path, sink, name, files) as engine:
            engine._on_epoch(told.append)
            engine.start(once=True, keep_open=keep_open)
            engine.await_end()
    (record,) = told[-1].streams.values()
    if name.endswith(".gz"):  # its unpacked copy is there
        assert (record.dead_letters, record.elements + record.late) == (0, 80)
        assert _values(sink) >= set(range(1000, 1040))
        return
    assert record.dead_letters == 1
    assert f"{path} was deleted before it was read" in record.dead_letter_reasons[0]
    assert (record.elements, record.unaccounted_elements) == (40, 0)
    assert _values(sink) == set(range(5000, 5040))


def _many(path: Path, changed: range, end: str = "\n") -> None:
    """A file of which the first 4 KB are always the same, with other values in some rows."""
    values = [8000 + i if i in changed else 1000 + i for i in range(500)]
    times = [1000 + 10 * i for i in range(500)]
    if path.suffix == ".csv":
        rows = "".join(f"{t},{v}{end}" for t, v in zip(times, values, strict=True))
        path.write_bytes(f"ts,v{end}{rows}".encode())
    else:
        text = "".join(
            f'<http://e/a> <http://e/p> "{v}" {t} .{end}'
            for t, v in zip(times, values, strict=True)
        )
        path.write_bytes(text.encode())


def _replayed(folder: Path, name: str, files: str) -> tuple[MemorySink, Manifest]:
    sink, told = MemorySink(), list[Manifest]()
    with _started(folder, sink, name, files) as engine:
        engine._on_epoch(told.append)
        engine.start(once=True)
        engine.await_end()
    return sink, told[-1]


@pytest.mark.parametrize(
    ("name", "files", "end"),
    [
        ("a.nt", "sequence", "\r\n"),
        ("a.nt", "parallel", "\r"),
        ("a.csv", "sequence", "\r"),
        ("a.csv", "parallel", "\n"),
    ],
)
def test_what_was_written_into_a_file_is_told(
    name: str, files: str, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place, as long as it was, with the same beginning: it is another file, read anew."""
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / name
    _many(path, range(0), end)
    assert path.stat().st_size > HEAD
    _die_in_an_epoch(tmp_path, name, files, monkeypatch)
    before = path.stat()
    _many(path, range(498, 499), end)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert (path.stat().st_size, path.stat().st_ino) == (before.st_size, before.st_ino)
    sink, last = _replayed(tmp_path, name, files)
    (record,) = last.streams.values()
    assert (
        record.dead_letters,
        record.elements,
        record.unaccounted_elements,
        record.replaced_files,
    ) == (1, 500, 0, 1)
    (reason,) = record.dead_letter_reasons
    assert f"The file {path} was rewritten (bytes " in reason
    assert _values(sink) == {*range(1000, 1500), 8498} - {1498}


@pytest.mark.parametrize(
    ("name", "files", "end"), [("a.nt", "sequence", "\n"), ("a.csv", "parallel", "\r\n")]
)
def test_what_was_written_behind_is_no_matter(
    name: str, files: str, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is another time, or a copy on another disk."""
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / name
    _many(path, range(0), end)
    _die_in_an_epoch(tmp_path, name, files, monkeypatch)
    more = f"19000,7{end}" if name == "a.csv" else f'<http://e/a> <http://e/p> "7" 19000 .{end}'
    (tmp_path / "copy").write_bytes(path.read_bytes() + more.encode())
    (tmp_path / "copy").rename(path)
    sink, last = _replayed(tmp_path, name, files)
    (record,) = last.streams.values()
    assert (
        record.dead_letters,
        record.elements,
        record.unaccounted_elements,
        record.replaced_files,
    ) == (0, 501, 0, 0)
    assert _values(sink) == {*range(1000, 1500), 7}


def test_a_file_that_was_cut_short_is_named_and_goes_on_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.nt"
    _many(path, range(0))
    _die_in_an_epoch(tmp_path, "a.nt", "sequence", monkeypatch)
    whole = path.read_bytes()
    os.truncate(path, 7000)
    with pytest.raises(SourceError, match=f"{path} is shorter than what was found of it: 7000"):
        _replayed(tmp_path, "a.nt", "sequence")
    path.write_bytes(whole)
    sink, _ = _replayed(tmp_path, "a.nt", "sequence")
    assert _values(sink) == set(range(1000, 1500))


def test_without_its_folder_the_epoch_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a disk that is not mounted: a sentence, and nothing is lost."""
    (tmp_path / "in").mkdir()
    _write(tmp_path / "in" / "a.nt", 1000)
    _die_in_an_epoch(tmp_path, "a.nt", "sequence", monkeypatch)
    (tmp_path / "in").rename(tmp_path / "away")
    for _ in range(2):
        with (
            pytest.raises(SourceError, match="is not there: no file or directory"),
            _started(tmp_path, MemorySink(), "a.nt", "sequence") as engine,
        ):
            engine.start(once=True)
    (tmp_path / "away").rename(tmp_path / "in")
    sink = MemorySink()
    with _started(tmp_path, sink, "a.nt", "sequence") as engine:
        engine.start(once=True)
        engine.await_end()
    assert _values(sink) == set(range(1000, 1040))


def test_a_single_file_that_is_deleted_in_mid_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it is there again, whatever it holds, the run goes on."""
    path = tmp_path / "in.nt"
    _write(path, 1000)

    def started(sink: MemorySink) -> Engine:
        engine = Engine(spark=False, checkpoint=tmp_path / "c", sink=sink, partitions=1)
        engine.stream("s", path)
        engine.register(QUERY, name="q")
        return engine

    run = EpochRunner.run

    def deletes(self: EpochRunner, intention: EpochIntent) -> None:
        path.unlink()
        run(self, intention)

    sink, told = MemorySink(), list[Manifest]()
    with monkeypatch.context() as patched:
        patched.setattr(EpochRunner, "run", deletes)
        with started(sink) as engine:
            engine._on_epoch(told.append)
            engine.start(once=True, keep_open=True)
            engine.await_end()
    (record,) = told[-1].streams.values()
    assert (record.dead_letters, record.elements, record.unaccounted_elements) == (1, 0, 0)
    assert "was deleted before it was read" in record.dead_letter_reasons[0]
    with pytest.raises(SourceError, match="is not there"), started(sink) as engine:
        engine.start(once=True)
    _write(path, 5000)
    with started(sink) as engine:
        engine.start(once=True)
        engine.await_end()
    assert _values(sink) == set(range(5000, 5040))

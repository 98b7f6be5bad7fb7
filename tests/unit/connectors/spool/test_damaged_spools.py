"""Rows that wait in a spool for their epoch: a file with other bytes than were accepted is a
sentence that names it, for the driver that cuts it and for the task that reads it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple

import polars as pl
import pytest

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources import spooled_files
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.source_reader import read
from levada.connectors.sources.split_enumerator import source_of
from levada.connectors.sources.splits import FileSplit
from levada.connectors.spool.message_log import Log, Message
from levada.connectors.spool.push_spool import PushLog, push_spool
from levada.connectors.spool.python_spool import PythonSpool, python_spool
from levada.connectors.spool.stdin_spool import stdin_spool
from levada.errors import CheckpointError

LINES = b"".join(b'<http://e/a> <http://e/n> "%d" %d .\n' % (i, 10 * i) for i in range(40))
RECORDS = b"k,ts\n" + b"".join(b"%d,%d\n" % (i, 10 * i) for i in range(40))


class Spooled(NamedTuple):
    """A stream with one file in its spool."""

    config: StreamConfig
    file: Path

    def references(self, rows: int = 1000) -> list[FileSplit]:
        """What a driver gives to tasks."""
        source = source_of(self.config, self.file.parent / "scratch")
        assert isinstance(source, FileSource)
        source.discover(final=True)
        found: list[FileSplit] = []
        taken, position = source.take({}, rows)
        while taken:
            found += taken
            taken, position = source.take(position, rows)
        return found

    def read(self) -> None:
        """What tasks do."""
        for reference in self.references():
            read(reference, self.config)


def pushed(root: Path) -> Spooled:
    spool = push_spool(StreamConfig.from_options("s", "push:", format="nq"), root)
    spool.start(once=True)
    data = Path(spool.config.path)
    PushLog(data, "nq").append(LINES, {}, 500)
    return Spooled(spool.config, only(data))


def piped(root: Path, form: str, data: bytes, **options: str) -> Spooled:
    spool = stdin_spool(StreamConfig.from_options("s", "-", format=form, **options), root)
    reader, writer = os.pipe()
    spool._descriptor = reader
    os.write(writer, data)
    os.close(writer)
    spool.start(once=True)
    os.close(reader)
    return Spooled(spool.config, only(Path(spool.config.path)))


def frame(root: Path) -> Spooled:
    rows = pl.DataFrame({"k": range(40), "ts": range(0, 400, 10)})
    spool: PythonSpool = python_spool("s", rows, root, {"time": "field:ts"})
    spool.open_in(root / "spool")
    spool.start(once=True)
    return Spooled(spool.config, only(Path(spool.config.path)))


def feed(root: Path) -> Spooled:
    config = StreamConfig.from_options("s", "mqtt://localhost/t", format="nt", time="arrival")
    Log(root / "data").append([Message(LINES, "t", 7, note="12"), Message(LINES, "t", 8)])
    config = replace(config, path=str(root / "data"), settled=True)
    return Spooled(config, only(root / "data"))


KINDS: dict[str, Callable[[Path], Spooled]] = {
    "pushed": pushed,
    "stdin nt": lambda root: piped(root, "nt", LINES),
    "stdin csv": lambda root: piped(root, "csv", RECORDS, schema="k:integer", time="field:ts"),
    "frame": frame,
    "feed": feed,
}


def only(folder: Path) -> Path:
    (file,) = (path for path in folder.iterdir() if path.is_file())
    return file


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


@pytest.fixture(params=KINDS)
def spool(request: pytest.FixtureRequest, tmp_path: Path) -> Spooled:
    return KINDS[request.param](tmp_path)


def test_a_spool_without_damage_is_read(spool: Spooled) -> None:
    assert sum(r.elements for r in spool.references()) in (2, 40)
    spool.read()


def test_any_bit_of_a_spooled_file_is_told(spool: Spooled, random_seed: int) -> None:
    drawn = random.Random(random_seed)
    for bit in drawn.sample(range(8 * spool.file.stat().st_size), 200):
        flip(spool.file, bit)
        with pytest.raises(CheckpointError, match=spool.file.name) as told:
            spool.read()
        assert f"rename that file to {spool.file.name}.part: the rows" in told.value.hint
        flip(spool.file, bit)


@pytest.mark.parametrize("size", [0, 1, 100, -1])
def test_a_spooled_file_that_is_cut_short_is_told(spool: Spooled, size: int) -> None:
    spool.file.write_bytes(spool.file.read_bytes()[:size])
    with pytest.raises(CheckpointError, match=spool.file.name):
        spool.read()


def test_a_bit_that_turns_after_the_driver_has_cut_is_told_by_a_task(
    spool: Spooled, random_seed: int
) -> None:
    drawn, references = random.Random(random_seed), spool.references(7)
    place = len(references) // 2
    text = references[place].format != "parquet"
    assert len(references) > 4 * text
    start, stop = references[place].start, references[place].stop
    places = range(8 * start, 8 * stop) if text else range(8 * spool.file.stat().st_size)
    for bit in drawn.sample(places, 40):
        flip(spool.file, bit)
        with pytest.raises(CheckpointError, match=spool.file.name):
            read(references[place], spool.config)
        flip(spool.file, bit)
        read(references[place], spool.config)


def test_the_header_of_csv_is_checked_by_tasks(tmp_path: Path) -> None:
    spool = KINDS["stdin csv"](tmp_path)
    references = spool.references()
    spool.file.write_bytes(spool.file.read_bytes().replace(b"k,ts", b"ts,k"))
    with pytest.raises(CheckpointError, match=spool.file.name):
        read(references[0], spool.config)


def test_a_large_file_is_checked_by_blocks(
    spool: Spooled, random_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spooled_files, "WHOLE", 100)
    spool.read()
    drawn = random.Random(random_seed)
    for bit in drawn.sample(range(8 * spool.file.stat().st_size), 50):
        flip(spool.file, bit)
        with pytest.raises(CheckpointError, match=spool.file.name):
            spool.references()
        flip(spool.file, bit)


def test_a_driver_reads_a_small_file_once(spool: Spooled, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def watch(path: str, mode: str, *, buffering: int) -> IO[bytes]:
        opened.append(path)
        return open(path, mode, buffering=buffering)

    monkeypatch.setattr(spooled_files, "open", watch, raising=False)
    spool.references(7)
    assert opened == [str(spool.file)]


def test_the_note_of_a_damaged_feed_is_not_believed(tmp_path: Path) -> None:
    spool = feed(tmp_path)
    assert Log(tmp_path / "data").note == "12"
    spool.file.write_bytes(spool.file.read_bytes().replace(b"12", b"13"))
    with pytest.raises(CheckpointError, match=spool.file.name):
        Log(tmp_path / "data")
    spool.file.rename(f"{spool.file}.part")
    log = Log(tmp_path / "data")
    assert (log.received, log.note) == (2, ""), "numbers go on, and what is behind it is asked for"


def pushed_files(root: Path) -> tuple[FileSource, list[Path]]:
    """A stream with four files, and these."""
    spool = push_spool(StreamConfig.from_options("s", "push:", format="nq"), root)
    spool.start(once=True)
    data = Path(spool.config.path)
    log = PushLog(data, "nq")
    for n in range(4):
        log.append(b'<http://e/a> <http://e/n> "%d" %d .\n' % (n, n), {})
    return FileSource(spool.config, root / "scratch"), sorted(data.iterdir())


def names(source: FileSource) -> list[str]:
    return [reference.name for reference in source.take({}, 1000)[0]]


def test_a_file_that_is_missing_is_told_until_it_is_given_up(tmp_path: Path) -> None:
    source, files = pushed_files(tmp_path)
    for path in files[1:3]:
        path.unlink()
    source.discover()
    for number in (2, 3):
        message = f"data cannot be read: its file number {number} is missing"
        with pytest.raises(CheckpointError, match=message) as told:
            names(source)
        part = f"{number:015d}.part"
        assert f"make an empty file {part} there" in told.value.hint
        (files[0].parent / part).touch()
    assert names(source) == [files[0].name, files[3].name]


def test_a_file_that_is_given_up_is_passed_over(tmp_path: Path) -> None:
    source, files = pushed_files(tmp_path)
    for path in files[:1] + files[2:3]:
        path.rename(f"{path}.part")
    source.discover()
    assert names(source) == [files[1].name, files[3].name]
    found = source.take({"file": files[0].name, "at": 3}, 1000)[0]
    assert [reference.name for reference in found] == [files[1].name, files[3].name]


def test_a_file_that_a_look_has_missed_is_waited_for(tmp_path: Path) -> None:
    source, files = pushed_files(tmp_path)
    files[1].rename(tmp_path / "aside")
    source.discover()
    (tmp_path / "aside").rename(files[1])
    assert names(source) == [files[0].name]
    source.discover()
    assert names(source) == [path.name for path in files]


def test_messages_of_a_feed_that_are_missing_are_told(tmp_path: Path) -> None:
    config = StreamConfig.from_options("s", "mqtt://localhost/t", format="nt", time="arrival")
    log = Log(tmp_path / "data")
    for n in range(3):
        log.append([Message(LINES, "t", n), Message(LINES, "t", n)])
    config = replace(config, path=str(tmp_path / "data"), settled=True)
    files = sorted((tmp_path / "data").iterdir())
    files[1].unlink()
    source = source_of(config, tmp_path / "scratch")
    source.discover()
    with pytest.raises(CheckpointError, match="its file number 2 is missing") as told:
        source.take({}, 1000)
    assert "make an empty file 000000000000002-0000002.part there" in told.value.hint
    (tmp_path / "data" / "000000000000002-0000002.part").touch()
    assert len(source.take({}, 1000)[0]) == 2


def test_every_bit_of_the_keys_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    PushLog(tmp_path / "data", "nq").append(LINES, {"one": "digest"})
    path = only(tmp_path / "keys")
    for bit in range(8 * path.stat().st_size):
        flip(path, bit)
        with pytest.raises(CheckpointError, match=f"keys/{path.name} cannot be read"):
            PushLog(tmp_path / "data", "nq")
        flip(path, bit)
    assert PushLog(tmp_path / "data", "nq").find_by_key("one") == "digest"

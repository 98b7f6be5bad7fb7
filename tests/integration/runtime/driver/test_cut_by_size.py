"""Files that the driver cuts by size, and of which tasks are the first readers: results, letters
and counts are those of files that it reads, what it reads is little, and positions know a file as
well.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from levada.checkpoint.leadership.rollback import rollback
from levada.checkpoint.manifest import EpochIntent, Manifest
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources import file_splitter, fingerprint, source_reader
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.fingerprint import Fingerprint
from levada.connectors.sources.splits import FileSplit
from levada.core.checksummed_files import read_sealed
from levada.engine.engine import Engine
from levada.errors import CheckpointError, EngineError
from levada.runtime.epoch_pipeline import EpochRunner
from levada.testing.memory_sink import MemorySink

QUERY = """SELECT ?s ?o FROM NAMED WINDOW <w> ON <s> [RANGE PT10S STEP PT10S]
WHERE { WINDOW <w> { ?s <http://e/p> ?o } }"""
CQL = "Select k, v From s [Range 10 Seconds Slide 10 Seconds]"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Files of some kilobytes are cut by size, into several ranges."""
    monkeypatch.setattr(file_splitter, "READ", 500)
    monkeypatch.setattr(file_splitter, "_LEAST_WINDOW", 600)
    monkeypatch.setattr(file_splitter, "WINDOW", 3000)
    monkeypatch.setattr(file_splitter, "LOOKS", (60, 400))
    monkeypatch.setattr(fingerprint, "BLOCK", 256)
    return monkeypatch


def text_of(form: str, end: str, n: int = 400) -> str:
    """Elements with times that rise, some that are late, some that are none."""
    lines = []
    for i in range(n):
        ts = 100 * i if i % 50 else 1
        if form == "ndjson":
            lines.append(json.dumps({"k": i, "v": "ab"[i % 2], "ts": ts}))
        else:
            graph = f" <http://e/g{i // 5}>" if form == "nq" else ""
            lines.append(f'<http://e/s{i // 3}> <http://e/p> "{i}"{graph} {ts} .')
        if i % 70 == 3:
            lines += ["nothing", "", "# comment"]
    return "".join(line + end for line in lines)


class Ran:
    """What a run has read and told."""

    def __init__(self, folder: Path, **how: Any) -> None:
        self.sink, self.manifests = MemorySink(), list[Manifest]()
        self.folder, self.how = folder, how

    def run(self, **start: Any) -> Ran:
        tabular = self.how.get("format") == "ndjson" and "mapping" not in self.how
        options = {**self.how, **({"schema": {"k": "integer", "v": "string"}} if tabular else {})}
        if "mapping" in self.how:
            options["mapping"] = self.folder / "m.yaml"
            options["mapping"].write_text(self.how["mapping"])
        with Engine(
            spark=False, checkpoint=self.folder / "c", sink=self.sink, partitions=2, seed=7,
            epoch_rows=150, letters=self.folder / "letters",
        ) as engine:  # fmt: skip
            engine.stream("s", self.folder / "in", **options)
            engine.register(
                CQL if tabular else QUERY, name="q", dialect="cql" if tabular else "rspql"
            )
            engine._on_epoch(self.manifests.append)
            engine.start(**{"once": True, **start})
            engine.await_end()
        return self

    @property
    def letters(self) -> list[dict[str, Any]]:
        """Dead letters and late elements."""
        found = [
            json.loads(line)
            for path in (self.folder / "letters").rglob("*.ndjson")
            for line in path.read_text().splitlines()
        ]
        for letter in found:
            if "watermark" in letter:  # a late element, behind what its epoch has seen
                del letter["watermark"], letter["reason"]
        return sorted(found, key=str)

    @property
    def counts(self) -> tuple[int, ...]:
        (record,) = self.manifests[-1].streams.values()
        return (
            record.elements,
            record.late,
            record.dead_letters,
            record.cut,
            record.unaccounted_elements,
        )

    @property
    def measured(self) -> int:
        """How many ranges tasks were the first to read."""
        return sum(
            bool(m.digest)
            for f in self.manifests
            for own in f.measured_splits.values()
            for m in own
        )


def write(folder: Path, form: str, end: str, n: int = 400) -> Path:
    (folder / "in").mkdir(parents=True)
    for name in "ab":
        (folder / "in" / f"{name}.{form}").write_bytes(text_of(form, end, n).encode())
    return folder


@pytest.mark.long
@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("nt", {}),
        ("nt", {"files": "parallel"}),
        ("nq", {"element": "subject"}),
        ("nq", {"element": "graph"}),
        ("nt", {"element": "blankline"}),
        ("ndjson", {}),
        ("ndjson", {"mapping": "triples: ['<http://e/s{k}> <http://e/p> {v}']"}),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_files_cut_by_size_give_the_results_of_files_that_are_read(
    tmp_path: Path, form: str, options: dict[str, str], end: str, small: pytest.MonkeyPatch
) -> None:
    one = Ran(write(tmp_path / "one", form, end), format=form, **options).run()
    small.setattr(file_splitter, "READ", 1 << 30)
    other = Ran(write(tmp_path / "other", form, end), format=form, **options).run()
    assert other.measured == 0
    assert one.measured > 4 and one.counts[-1] == 0
    assert not any(
        m.blocks for f in one.manifests for own in f.measured_splits.values() for m in own
    )
    if "files" not in options:  # what is late goes by the turns of partitions
        assert (one.sink.reports, one.counts) == (other.sink.reports, other.counts)
        assert one.letters == other.letters
    (position,) = one.manifests[-1].positions.values()
    for name, found in position["fingerprints"].items():
        known, path = Fingerprint.parse(found), tmp_path / "one" / "in" / name
        state = (path.stat().st_ino, path.stat().st_size)
        assert known == Fingerprint.from_file(str(path), state, whole=-1, read=known.read)


def test_driver_reads_little_of_files_that_are_cut_by_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.nt"
    path.write_text("".join(f"<http://e/s{i:06}> <http://e/p> <o> {i} .\n" for i in range(400_000)))
    read: list[int] = []

    def counting(name: str, size: Any) -> None:
        call = getattr(os, name)

        def counted(*given: Any) -> Any:
            found = call(*given)
            read.append(size(found))
            return found

        monkeypatch.setattr(os, name, counted)

    counting("preadv", int)
    counting("pread", len)
    source = FileSource(StreamConfig.from_options("s", path), tmp_path)
    source.discover()
    assert source.backlog({})
    taken, position = source.take({}, 1_000_000)
    assert sum(r.size for r in taken) == path.stat().st_size > 16 << 20
    assert not source.backlog(position) and source.partition_states(position) == {"s": False}
    # looks at the beginning, at each cut and at the file's end, and what a fingerprint reads
    assert sum(read) < 600 << 10


def test_blocks_of_parquet_files_are_hashed_by_tasks(
    tmp_path: Path, small: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in "ab":
        rows = {"ts": [100 * i for i in range(400)], "v": [f"{name}{i}" for i in range(400)]}
        pl.DataFrame(rows).write_parquet(folder / f"{name}.parquet")
    config = StreamConfig.from_options("s", folder, files="parallel")
    source = FileSource(config, tmp_path)
    source.discover(final=True)
    taken, position = source.take({}, 500)
    waiting = [Fingerprint.parse(text) for text in position["fingerprints"].values()]
    assert all(known.missing[1] - known.missing[0] > 1000 for known in waiting)
    measured = [
        m for r in taken if (m := source_reader.read(r, config).reference.measured) is not None
    ]
    assert len(measured) == 2 and all(m.blocks and not m.digest for m in measured)
    source.complete(position, taken, measured)
    for name, text in position["fingerprints"].items():
        known, path = Fingerprint.parse(text), folder / name
        state = (path.stat().st_ino, path.stat().st_size)
        assert known == Fingerprint.from_file(str(path), state, whole=-1, read=known.read)
    later, _ = source.take(position, 500)
    assert later and not any(source_reader.read(r, config).reference.measured for r in later)


def test_backlog_is_known_where_tasks_have_measured_a_position(
    tmp_path: Path, small: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"ts": range(400), "v": [f"a{i}" for i in range(400)]}).write_parquet(path)
    source = FileSource(config := StreamConfig.from_options("s", path), tmp_path)
    source.discover(final=True)
    taken, position = source.take({}, 300)
    assert source.backlog(position)
    read = (source_reader.read(r, config).reference.measured for r in taken)
    intended = json.loads(json.dumps(position))
    source.complete(intended, taken, [measured for measured in read if measured is not None])
    assert intended != position
    small.setattr(source, "_take", None)
    assert source.backlog(intended) and not source.is_ended(intended)


def test_last_line_waits_for_its_end(tmp_path: Path, small: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.nt"
    whole = text_of("nt", "\n")
    for size in range(len(whole) - 200, len(whole)):
        path.write_text(whole[:size])
        source = FileSource(StreamConfig.from_options("s", path), tmp_path)
        source.discover()
        taken, position = source.take({}, 100_000)
        assert position["at"] == whole.rindex("\n", 0, size) + 1
        assert not all(r.counted for r in taken)
        assert not source.backlog(position)


def died(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> EpochIntent:
    """A run that has ended with an intention written ahead, its second."""
    run, epochs = EpochRunner.run, []

    def dies(self: EpochRunner, intention: EpochIntent) -> Any:
        epochs.append(intention)
        if len(epochs) == 2:
            raise RuntimeError("as if the process had ended here")
        return run(self, intention)

    with monkeypatch.context() as patched:
        patched.setattr(EpochRunner, "run", dies)
        with pytest.raises(EngineError, match="as if the process"):
            ran.run(keep_open=True)
    return msgspec.json.decode(
        read_sealed(ran.folder / "c" / "intentions" / "open"), type=EpochIntent
    )


def test_replay_reads_the_same_ranges_of_files_that_grew(
    tmp_path: Path, small: pytest.MonkeyPatch
) -> None:
    expected = Ran(write(tmp_path / "whole", "nt", "\n"), format="nt").run()
    ran = Ran(write(tmp_path / "cut", "nt", "\n"), format="nt")
    path = ran.folder / "in" / "b.nt"
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2])
    intention = died(ran, small)
    assert any(not r.counted for r in intention.references if isinstance(r, FileSplit))
    path.write_text(whole)
    first = len(ran.manifests)
    ran.run()
    again = ran.manifests[first].measured_splits["s"]
    wanted = [(r.name, r.start) for r in intention.references if isinstance(r, FileSplit)]
    assert [(m.name, m.start) for m in again] == wanted
    assert (ran.sink.reports, ran.counts) == (expected.sink.reports, expected.counts)


def test_run_that_was_stopped_cuts_the_same_epochs(
    tmp_path: Path, small: pytest.MonkeyPatch
) -> None:
    expected = Ran(write(tmp_path / "whole", "nt", "\n"), format="nt").run()
    ran = Ran(write(tmp_path / "stopped", "nt", "\n"), format="nt")
    died(ran, small)
    ran.run()
    assert len(ran.manifests) > 4
    assert [m.measured_splits for m in ran.manifests] == [
        m.measured_splits for m in expected.manifests
    ]


def test_ranges_that_were_read_first_by_tasks_are_compared_by_a_rollback(
    tmp_path: Path, small: pytest.MonkeyPatch
) -> None:
    ran = Ran(write(tmp_path, "nt", "\n"), format="nt").run(keep_open=True)
    root, (*_, last) = tmp_path / "c", ran.manifests
    reports = dict(ran.sink.reports)
    measured = next(m for m in last.measured_splits["s"] if m.digest)
    path = tmp_path / "in" / measured.name
    whole = path.read_bytes()
    at = whole.index(b'"', measured.start + 300) + 1
    path.write_bytes(whole[:at] + b"7" + whole[at + 1 :])
    with pytest.raises(CheckpointError, match="was rewritten"):
        rollback(root, None, wall=0)
    path.write_bytes(whole)
    assert rollback(root, None, wall=0) == last.epoch - 1
    ran.run(keep_open=True)
    assert ran.sink.reports == reports

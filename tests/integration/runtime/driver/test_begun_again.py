"""Tasks that are run twice, of which some readers have the first answer and others the second: what
Spark does where an executor is lost with what its tasks have sent. Results and all that is counted
are as of one; where a file was written into meanwhile, the epoch is run again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from levada.checkpoint.manifest import Manifest
from levada.engine.engine import Engine
from levada.runtime import epoch_pipeline
from levada.runtime.driver import stream_progress
from levada.runtime.executor import Job, LocalExecutor, deliver, outcome, resolve
from levada.testing.memory_sink import MemorySink
from support.cluster_like_executor import Elsewhere
from support.fault_injection import nobody

QUERY = """PREFIX : <http://e/>
SELECT ?b (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT1S]
WHERE { WINDOW :w { ?a :p ?b . ?a :q ?c } } GROUP BY ?b
"""
PARTS = 3
Run = Callable[[Job], list[bytes]]


def lines(first: int, n: int = 200) -> str:
    return "".join(
        f"<http://e/a{i % 17}> <http://e/{'pq'[i % 2]}> <http://e/b{i * 7 % 11}> {10 * i} .\n"
        for i in range(first, first + n)
    )


def write(folder: Path, other: str = "b") -> Path:
    """A stream of some epochs with a line that is late and one that is none; one line, behind what
    a file is known by, has this letter.
    """
    text = lines(0, 250) + "<http://e/a> <http://e/p> <http://e/l> 1 .\nnothing\n" + lines(250)
    wanted = next(line for line in text.splitlines() if line.endswith(" 2000 ."))
    path = folder / "s.nt"
    path.write_text(text.replace(wanted, wanted.replace("/e/b", f"/e/{other}")))
    return path


def rewrite(path: Path) -> None:
    """Another one in its place, as long as it was."""
    before = path.stat()
    write(path.parent, "z")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


def ran(root: Path, run: Run | None) -> tuple[Any, list[Manifest]]:
    """The reports and manifests of a run whose jobs another executor runs."""
    sink, told = MemorySink(), list[Manifest]()
    with (
        patch.object(LocalExecutor, "run", run) if run else nullcontext(),
        Engine(
            spark=False, checkpoint=root / "ck", partitions=PARTS, epoch_rows=150, sink=sink,
            seed=7, slices="1d",
        ) as engine,
    ):  # fmt: skip
        engine.stream("http://e/s", root / "s.nt")
        engine.register(QUERY, name="q")
        engine._on_epoch(told.append)
        engine.start(once=True)
        engine.await_end()
    return sink.reports, told


def counted(manifest: Manifest) -> dict[str, Any]:
    """The counts of a manifest, but seconds, clocks, and bytes that follow from how these are
    written; names of files are those of an attempt.
    """
    records = {name: msgspec.structs.asdict(record) for name, record in manifest.streams.items()}
    for record in records.values():
        for name in ("lead", "costliest_lead"):
            if record[name] is not None:
                record[name] = msgspec.structs.replace(record[name], wall_ms=0)
    sent = msgspec.json.decode(manifest.slice_counts)["links"]
    links = {a: {b: [rows, blobs] for b, (rows, _, blobs) in to.items()} for a, to in sent.items()}
    side = [(kind, n) for kind, _, n in manifest.letter_files]
    names = ("counts", "totals", "input_rows", "state_rows", "pattern_matches", "results")
    same: dict[str, Any] = {name: getattr(manifest, name) for name in names}
    same["streams"] = records
    return same | {"links": links, "side": side, "pending": manifest.pending_group_counts}


def test_what_is_sent_twice_counts_once(tmp_path: Path) -> None:
    once, twice = tmp_path / "once", tmp_path / "twice"
    for root in (once, twice):
        root.mkdir()
        write(root)
    reports, told = ran(once, None)
    again, told_again = ran(twice, Elsewhere(7, twice=1.0).run)
    assert again == reports
    assert len(reports["q"]) >= 4
    assert [counted(m) for m in told_again] == [counted(m) for m in told]
    (record,) = told[-1].streams.values()
    assert (record.late, record.dead_letters) == (1, 1)
    assert all(msgspec.json.decode(told[-1].slice_counts)["links"].values())


class Changing:
    """In the second job a file is rewritten between two readings, of which some have the first:
    partitions of the first stage (those that are ``first``), or (``later``) the first partition of
    the second stage, while the others have what those which are not ``first`` make of the second.
    """

    def __init__(self, path: Path, first: range, *, later: bool = False) -> None:
        self._path, self._first, self._later = path, first, later
        self.jobs = 0

    def run(self, job: Job) -> list[bytes]:
        """As ``LocalExecutor``."""
        self.jobs += 1
        intake, stage = (resolve(name) for name in job.functions)

        def read() -> list[list[Any]]:
            sent = [pair for payload in job.payloads for pair in intake(job.context, payload)]
            return deliver(sent, job.partitions)

        one = two = read()
        if self.jobs == 2:
            rewrite(self._path)
            two = read()
        every, sent = range(job.partitions), list[list[Any]]()
        if not self._later:
            one = two = [(one if p in self._first else two)[p] for p in every]
        for number in range(1, job.stages + 1):
            sent = [stage(job.context, number, p, one[p]) for p in every]
            again = [p for p in every if p not in self._first and one is not two]
            other = {p: stage(job.context, number, p, two[p]) for p in again}
            one = deliver(flat(sent), job.partitions) if number < job.stages else []
            two = (
                deliver(flat([other.get(p, sent[p]) for p in every]), job.partitions) if one else []
            )
            one = two = [*one[:1], *two[1:]]
        return [outcome(target, blob) for target, blob in flat(sent)]


def flat(sent: list[list[Any]]) -> list[Any]:
    return [pair for own in sent for pair in own]


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("first", [range(1), range(1, PARTS)])
def test_a_file_that_is_rewritten_between_has_the_epoch_run_again(
    tmp_path: Path, first: range, later: bool
) -> None:
    """And all have the dead letter that says so."""
    (tmp_path / "alone").mkdir()
    alone = Changing(write(tmp_path / "alone"), range(0))
    expected, of_alone = ran(tmp_path / "alone", alone.run)
    assert alone.jobs == len(of_alone), "where all have the second reading nothing is run again"
    executor = Changing(write(tmp_path), first, later=later)
    with (
        patch("levada.engine.epoch_loop.PAUSES", (0.0, 0.0, 0.0)),
        patch.object(stream_progress, "find_crashes", nobody),
        patch.object(epoch_pipeline, "rehearse", lambda job: None),
        pytest.warns(match="was written into while tasks were begun again"),
    ):
        reports, told = ran(tmp_path, executor.run)
    assert executor.jobs == len(told) + 1
    assert reports == expected
    (record,) = told[-1].streams.values()
    assert any("was rewritten" in reason for reason in record.dead_letter_reasons)
    assert record.unaccounted_elements == 0
    assert (
        record.dead_letters == of_alone[-1].streams[next(iter(of_alone[-1].streams))].dead_letters
    )


@pytest.mark.parametrize("other", [False, True])
def test_who_sees_another_file_than_the_driver_is_no_judge(tmp_path: Path, other: bool) -> None:
    """Found: an executor on a host that has an empty folder under the path of a stream, or another
    file, said that the file was deleted, and all that it was to read became dead letters.
    """
    once = tmp_path / "once"
    once.mkdir()
    write(once)
    expected, _ = ran(once, None)
    path, jobs = write(tmp_path), list[int]()
    run = LocalExecutor.run

    def misses(self: LocalExecutor, job: Job) -> list[bytes]:
        jobs.append(len(jobs))
        if len(jobs) != 2:
            return run(self, job)
        path.rename(tmp_path / "away")
        if other:
            path.write_text(lines(7))
        try:
            return run(self, job)
        finally:
            (tmp_path / "away").rename(path)

    with (
        patch("levada.engine.epoch_loop.PAUSES", (0.0, 0.0, 0.0)),
        patch.object(stream_progress, "find_crashes", nobody),
        patch.object(epoch_pipeline, "rehearse", lambda job: None),
        pytest.warns(match=f"does not see {path} as the driver does"),
    ):
        reports, told = ran(tmp_path, misses)  # type: ignore[arg-type]
    assert len(jobs) == len(told) + 1
    assert reports == expected
    (record,) = told[-1].streams.values()
    assert (record.late, record.dead_letters, record.unaccounted_elements) == (1, 1, 0)

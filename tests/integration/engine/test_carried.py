"""How rows get from task to task, counted as blobs come and told after the run: within a call, by
file on one host, through the shuffle.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

import levada
from levada.checkpoint.checkpoint_folder import newest_manifest, plan_of
from levada.checkpoint.manifest import Manifest, TransportStats
from levada.cli.main import main
from levada.core.checkpoint_files import facts_of
from levada.engine.placement.edge_transport import edges_of
from levada.runtime.driver import parallelism
from levada.runtime.executor import Job, LocalExecutor, deliver, outcome, resolve
from levada.runtime.spark.blob_transport import BlobTransport, Sender, receive
from levada.testing.memory_sink import MemorySink

QUERY = """PREFIX : <http://e/>
SELECT ?k (COUNT(?v) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S]
WHERE { WINDOW :w { ?k :p ?v . ?v :q ?w } } GROUP BY ?k
"""
PARTS = 2
Run = Callable[[Job], list[bytes]]


def carrying(folder: Path, threshold: int) -> Run:
    """Runs jobs as executors of one host do: blobs of so many bytes and more go by file."""
    names = itertools.count()

    def carry(source: int, blobs: Any) -> Any:
        how = BlobTransport(str(folder), threshold)
        with Sender(how, source, f"{next(names)}") as sender:
            return [(target, b"".join(sender.wrap(blob, target))) for target, blob in blobs]

    def run(job: Job) -> list[bytes]:
        intake, stage = map(resolve, job.functions)
        outs = [intake(job.context, payload) for payload in job.payloads]
        for number in range(1, job.stages + 1):
            sent = [pair for source, out in enumerate(outs) for pair in carry(source, out)]
            boxes = deliver(sent, job.partitions)
            outs = [
                stage(job.context, number, p, receive(map(bytes, box)))
                for p, box in enumerate(boxes)
            ]
        return [outcome(target, blob) for out in outs for target, blob in out]

    return run


def ran(root: Path, run: Run | None) -> tuple[Any, Manifest]:
    """The reports and the last manifest of a run, whose jobs go so."""
    root.mkdir()
    lines = (
        f"<http://e/a{i % 9}> <http://e/{'pq'[i % 2]}> <http://e/a{i * 7 % 9}> {i * 10} .\n"
        for i in range(2_000)
    )
    (root / "s.nt").write_text("".join(lines))
    sink, executor = MemorySink(), run or LocalExecutor().run
    with (
        patch.object(parallelism, "MOST_BYTES", -1),  # else small epochs are one call
        patch.object(LocalExecutor, "run", lambda self, job: executor(job)),
        patch.object(LocalExecutor, "miss_counts", lambda self: (1, 16), create=True),
        levada.Engine(
            spark=False, checkpoint=root / "ck", partitions=PARTS, epoch_rows=500, sink=sink
        ) as engine,
    ):
        engine.stream("http://e/s", root / "s.nt")
        engine.register(QUERY, name="q")
        engine.start(once=True)
        engine.await_end()
    manifest = newest_manifest(root / "ck")
    assert manifest is not None
    return sink.reports, manifest


def states(root: Path, manifest: Manifest, way: str = "spread") -> set[str]:
    """Those of edges if the last epoch went so: a run without Spark is always "in_process"."""
    assert manifest.epoch_costs is not None and manifest.epoch_costs.last_epoch.mode == "in_process"
    last = msgspec.structs.replace(manifest.epoch_costs.last_epoch, mode=way)
    costs = msgspec.structs.replace(manifest.epoch_costs, last_epoch=last)
    manifest = msgspec.structs.replace(manifest, epoch_costs=costs)
    plan = plan_of(root / "ck", facts_of(root / "ck"), manifest.plan)
    return {edge.state for edge in edges_of(plan, manifest)}


def test_what_goes_by_file_and_what_by_value_is_counted_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_file, by_value, within = (tmp_path / name for name in ("file", "value", "within"))
    reports, plain = ran(within, None)
    assert plain.transport is not None and not plain.transport.stages
    assert states(within, plain, "in_process") == {"fused"}

    again, filed = ran(by_file, carrying(tmp_path, 1))
    other, valued = ran(by_value, carrying(tmp_path, 1 << 30))
    assert reports == again == other and len(reports["q"]) > 4
    assert filed.transport is not None and valued.transport is not None
    assert states(by_file, filed) == {"fused", "same host"}
    assert states(by_value, valued) == {"fused", "network"}
    stages, shuffled = filed.transport.stages, valued.transport.stages
    assert stages.keys() == shuffled.keys() and len(stages) >= 2
    assert all(counts[0] and not counts[2] for counts in stages.values())
    assert {s: [*c[2:], *c[:2]][0] for s, c in shuffled.items()} == {
        s: c[0] for s, c in stages.items()
    }
    assert filed.transport.repeated_jobs == filed.epoch, "one in each epoch"
    assert states(by_file, filed, "one_task") == {"fused"}

    for command in (["status", "--verbose"], ["explain", "--placement"]):
        assert main([*command, str(by_file / "ck")]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "went by file on one host, 0 (0.0 MB) through the shuffle" in text
        assert "a file was not there" in text and "the next 16 go so, too" in text
        assert main([*command, str(by_file / "ck"), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["transport"]["file_blobs"] == sum(counts[0] for counts in stages.values())
        assert told["transport"]["repeated_jobs"] == filed.epoch
    assert {edge["state"] for edge in told["edges"]} == {"fused"}, "without Spark"


def test_most_bytes_say_what_an_edge_is(tmp_path: Path) -> None:
    _, manifest = ran(tmp_path / "run", carrying(tmp_path, 1))
    for counts, state in (
        ([9, 100, 1, 200], "network"),
        ([1, 200, 9, 100], "same host"),
    ):
        known = TransportStats(dict.fromkeys(range(1, 9), counts))
        mixed = msgspec.structs.replace(manifest, transport=known)
        assert states(tmp_path / "run", mixed) == {"fused", state}
    earlier = msgspec.structs.replace(manifest, transport=None)
    assert states(tmp_path / "run", earlier) == {"fused", "unknown"}

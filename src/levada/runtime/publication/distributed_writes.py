"""Lets tasks write large results in place of the driver, which chooses the file names
(docs/decisions/0052-files-by-tasks.md).

The files are equal to those of the driver. The driver writes small results itself. It also writes
if tasks run in its own process, and after a host has reported that it does not see the folder.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.manifest import Manifest
from levada.connectors.sinks import Sink
from levada.connectors.sinks.file_sink import FileSink
from levada.core.size_thresholds import register
from levada.runtime.executor import Executor, Job
from levada.runtime.task.write_results import FUNCTIONS, Writing, Written, mark_of, shares
from levada.runtime.warmup_executor import runs_here

MUCH = register(f"{__name__}.MUCH", 4 << 20)  # bytes of segments, some 100,000 rows
TASKS = 8  # at most: each reads all rows of the operators of its queries
_unseen: set[Path] = set()


def write_by_tasks(
    checkpoint: Checkpoint, sink: FileSink, manifest: Manifest, executor: Executor
) -> dict[str, int] | None:
    """Writes the results that a manifest publishes, if they are large. Returns the number of
    reports of each query; None if nothing was written. Raises ``SinkError``, and any error of a
    failed job.
    """
    if not is_for_tasks(sink, manifest):
        return None
    job = _job(checkpoint, sink, manifest)
    if runs_here(executor, job):
        return None
    written_parts = [msgspec.json.decode(blob, type=Written) for blob in executor.run(job)]
    if any(written.unseen for written in written_parts):
        _unseen.add(sink.out)
        return None
    sink.unwritable.extend(result for written in written_parts for result in written.unwritable)
    return {name: n for written in written_parts for name, n in written.reports.items()}


def is_for_tasks(sink: Sink | None, manifest: Manifest) -> bool:
    """Whether the results are large, and their files visible to all hosts, as far as is known."""
    much = sum(held.segment_bytes for held in manifest.results_to_publish) >= MUCH
    return isinstance(sink, FileSink) and much and sink.out not in _unseen


def _job(checkpoint: Checkpoint, sink: FileSink, manifest: Manifest) -> Job:
    plans = {
        held.plan: str(checkpoint.plan_path(held.plan)) for held in manifest.results_to_publish
    }
    out = sink.out.absolute()
    roll, mark = sink.roll, mark_of(sink.out)
    writing = Writing(
        str(checkpoint.root), manifest.results_to_publish, plans, str(out), str(sink.format),
        roll.bytes, roll.age, sink.terms, sink.claimed, mark,
    )  # fmt: skip
    counts = manifest.counts.by_name(checkpoint.load_plan(manifest.plan))
    names = {
        query: counts.get(query, (0,))[0]
        for held in manifest.results_to_publish
        for query in checkpoint.load_plan(held.plan).queries
    }
    payloads = [msgspec.json.encode(names_of_task) for names_of_task in shares(names, TASKS)]
    return Job(msgspec.json.encode(writing), payloads, 1, 1, FUNCTIONS)

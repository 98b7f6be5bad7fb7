"""Lets tasks write large results in place of the driver, which chooses the file names
(docs/decisions/0052-files-by-tasks.md).

The files are equal to those of the driver. The driver writes small results itself. It also writes
if tasks run in its own process, and after a host has reported that it does not see the folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.epoch_context import load_plan
from levada.checkpoint.manifest import Manifest, UnpublishedResults
from levada.connectors.serialization.merge_epochs import merge_epochs
from levada.connectors.serialization.result_formats import Format
from levada.connectors.serialization.unwritable_results import Unwritable
from levada.connectors.sinks import Sink
from levada.connectors.sinks.file_sink import OWNER, FileSink, Roll
from levada.core.event_time import distinct
from levada.core.size_thresholds import register
from levada.runtime.executor import OUTCOME, Blob, Executor, Job
from levada.runtime.task.read_results import read_epoch
from levada.runtime.warmup_executor import runs_here

# Writes result files in tasks: each query's by one task, under the names that the driver would use
# (docs/decisions/0052-files-by-tasks.md).
#
# Name and content of a file are functions of query and epoch. So a repeated task writes the same
# files, and so does the driver if it writes after all. A host that does not see the folder of the
# results (``mark``) writes nothing and reports it.
#
# Cost: that of decoding and writing the rows of the task's queries, and of sorting all rows of the
# operators of these queries.


FUNCTIONS = (
    "levada.runtime.publication.distributed_writes:write",
    "levada.runtime.publication.distributed_writes:collect_results",
)


class Writing(msgspec.Struct):
    """The work: epochs of results, the files of their ``plans`` by number, and the options of the
    sink. ``mark``: the content of the folder's hidden file (None: it has none).
    """

    root: str
    epochs: list[UnpublishedResults]
    plans: dict[int, str]
    out: str
    format: str
    bytes: int
    age: int
    terms: bool
    claimed: bool
    mark: str | None

    @property
    def sink(self) -> FileSink:
        """Returns the sink that writes."""
        roll = Roll(self.bytes, self.age)
        return FileSink(Path(self.out), Format(self.format), roll, self.terms, self.claimed)


class Written(msgspec.Struct):
    """The outcome: the number of reports of each query. ``unseen``: the folder is not here, and
    nothing was written. ``unwritable``: the results that the format could not represent.
    """

    reports: dict[str, int] = {}
    unseen: bool = False
    unwritable: list[Unwritable] = []


def mark_of(out: Path) -> str | None:
    """Returns the content of the hidden file of a folder of results."""
    mark = out / OWNER
    return mark.read_text() if mark.is_file() else None


def write(context: bytes, payload: bytes) -> list[tuple[int, Blob]]:
    """Writes the files of the queries named in the ``payload`` (JSON). Raises ``SinkError``."""
    writing = msgspec.json.decode(context, type=Writing)
    sink, names = writing.sink, frozenset(msgspec.json.decode(payload, type=list[str]))
    if mark_of(sink.out) != writing.mark:
        return [(0, msgspec.json.encode(Written(unseen=True)))]
    reports: dict[str, int] = {}
    for epoch, query, batch in merge_epochs(_batches(writing, names)):
        sink.publish(query.name, query.variables, epoch, batch)
        reports[query.name] = reports.get(query.name, 0) + len(distinct(batch.report))
    return [(0, msgspec.json.encode(Written(reports, unwritable=sink.unwritable)))]


def _batches(writing: Writing, names: frozenset[str]) -> Iterator[tuple[int, Any, Any]]:
    for held in writing.epochs:
        plan = load_plan(writing.plans[held.plan])
        for query, batch in read_epoch(writing.root, plan, held, names):
            yield held.epoch, query, batch


def collect_results(
    context: bytes, stage: int, partition: int, blobs: list[Blob]
) -> list[tuple[int, Blob]]:
    """Returns the reports of all tasks."""
    return [(OUTCOME, blob) for blob in blobs]


def shares(sizes: Mapping[str, int], tasks: int) -> list[list[str]]:
    """Divides names among tasks evenly: the largest first, each to the task with the least.

    >>> shares({"a": 5, "b": 3, "c": 2}, 2)
    [['a'], ['b', 'c']]
    """
    names_by_task: list[list[str]] = [[] for _ in range(max(min(tasks, len(sizes)), 1))]
    loads = [0] * len(names_by_task)
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        least = loads.index(min(loads))
        names_by_task[least].append(name)
        loads[least] += sizes[name]
    return names_by_task


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

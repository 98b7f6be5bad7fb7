"""The driver's side of derived streams, which CONSTRUCT queries produce
(docs/semantics.md#streams-that-queries-make).

Epoch N + 1 reads the results in the segments of epoch N, by reference. Report r with a triple is an
element of time r. So a derived stream needs no files and no position: the last manifest names its
input, and an epoch reads all of it. Epochs continue while a query reads a derived stream with new
results. Each task of the producer's last stage writes a segment. As many tasks read them, but no
more than run at once, and one for ``EACH`` solutions (``runtime.task.derived_rows``). Cost:
references for each derived stream with results, a look at the size of each segment, and a few
comparisons for each other stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

import msgspec

from levada.checkpoint import state_files
from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.epoch_context import StreamState
from levada.checkpoint.manifest import Manifest, StreamRecord
from levada.checkpoint.result_counts import ResultCounts
from levada.connectors.sources.splits import DerivedSplit
from levada.core.event_time import MAX, MIN, WindowKind
from levada.core.names import is_derived
from levada.core.query_model import Form
from levada.core.rdf_terms import Blank
from levada.core.size_thresholds import register
from levada.kernels.text.canonical_text import ENGINE
from levada.plan.execution.plan import Plan, QueryPlan
from levada.runtime.task.result_writer import select_stage

# solutions, some 5 ms: the work that an additional task must have (``parallelism.TASK``)
EACH = register(f"{__name__}.EACH", 4_096)


def state(stream: str, plan: Plan, last: Manifest) -> StreamState:
    """Returns the state of a derived stream at the beginning of the epoch after ``last``. A stream
    without a producer has ended; others end one epoch after the last of their producer's streams.

    Watermark: after epoch N all reports r with r <= W_q are made (r < W_q if reports are made once
    W_q > r), and epoch N + 1 reads them. Then the stream's watermark is W_q + 1 (or W_q), with the
    producer's W_q after epoch N.
    """
    record = last.streams.get(stream, StreamRecord())
    maker = plan.queries.get(plan.made.get(stream, ""))
    if maker is None or _has_ended(maker, last):
        return StreamState(record.watermark, has_ended=True, max_ts=record.max_ts)
    floor = _next_report(maker, last)
    return StreamState(
        record.watermark, floor=floor, complete_until=record.complete_until, max_ts=record.max_ts
    )


def _has_ended(maker: QueryPlan, last: Manifest) -> bool:
    return all(last.streams.get(s, StreamRecord()).has_ended for s in maker.streams)


def _next_report(maker: QueryPlan, last: Manifest) -> int:
    """Returns the least time at which the producer can still report."""
    w = min((last.streams.get(s, StreamRecord()).watermark for s in maker.streams), default=MIN)
    reaches = all(on.window.kind is WindowKind.CLOSE_OPEN for on in maker.windows)
    return w + 1 if reaches and MIN < w < MAX else w


def references(
    plan: Plan, last: Manifest, checkpoint: Checkpoint, load: Callable[[int], Plan], tasks: int
) -> Iterator[DerivedSplit]:
    """Returns references to the results in derived streams that the epoch after ``last`` reads.
    ``load`` returns the plan of ``last``. ``tasks``: how many tasks run at once (0: one a
    partition).

    A stream that begins with this epoch does not contain earlier reports of its producer.
    """
    if not plan.made or not len(last.counts):
        return
    made_by, read = load(last.plan), plan.read_streams
    size_of = cache(partial(state_files.size_of, str(checkpoint.root)))
    path = str(checkpoint.plan_path(last.plan))
    tasks = tasks or checkpoint.tables.load(last.group_table_version).partitions
    for stream, name in plan.made.items():
        maker = made_by.queries.get(name)
        counts = last.counts.query_counts(maker)
        if maker is None or counts is None or stream not in read or stream not in last.streams:
            continue
        whole = DerivedSplit(stream, name, path, (), 0, counts[3], int(ENGINE))
        segments = select_stage(last.segments, made_by.nodes[maker.node].stage)
        most = min(len(segments), tasks, -(-counts[0] // EACH))
        yield from _parts(whole, segments, most, size_of, numbered=_has_nodes(maker))


def _parts(
    whole: DerivedSplit,
    segments: Sequence[str],
    parts: int,
    size_of: Callable[[str], int],
    *,
    numbered: bool,
) -> Iterator[DerivedSplit]:
    """Divides a reference into so many, each with its share of the segments. ``numbered``: blank
    nodes are numbered through all of them.
    """
    for i in range(parts):
        first, stop = (len(segments) * at // parts for at in (i, i + 1))
        part_segments, before = (
            tuple(segments[first:stop]),
            tuple(segments[:first]) if numbered else (),
        )
        yield msgspec.structs.replace(
            whole,
            segments=part_segments,
            size=sum(map(size_of, part_segments)),
            elements=whole.elements * (i + 1) // parts - whole.elements * i // parts,
            parts=parts,
            before=before,
        )


def _has_nodes(maker: QueryPlan) -> bool:
    """Whether the template of a query has blank nodes."""
    return any(isinstance(p, Blank) for triple in maker.template for p in triple.positions)


def unread(plan: Plan) -> Sequence[int]:
    """Returns the numbers of derived streams that no query reads. They cause no epochs."""
    read = plan.read_streams
    return [i for i, stream in enumerate(plan.streams) if is_derived(stream) and stream not in read]


def bases(plan: Plan, stream: str) -> set[str]:
    """Returns the external streams that a stream depends on: itself, or the streams of its
    producer.

    An operator that waits for a derived stream waits for these.
    """
    if not is_derived(stream):
        return {stream}
    maker = plan.queries.get(plan.made.get(stream, ""))
    return set() if maker is None else {base for s in maker.streams for base in bases(plan, s)}


def latest(plan: Plan, last: Manifest, counts: ResultCounts) -> dict[str, int]:
    """Returns the last report with a result of each query that can produce a stream, including
    those of a new epoch (``counts``).

    Reports of an earlier query of the same name do not count.
    """
    if not last.last_reports and Form.CONSTRUCT not in plan.forms:
        return {}
    reports = {
        n: t
        for n, t in last.last_reports.items()
        if n in plan.queries and plan.queries[n].since <= last.plan
    }
    made_streams = (
        (n, c[2])
        for n, c in (counts.by_name(plan) if Form.CONSTRUCT in plan.forms else {}).items()
        if plan.queries[n].form is Form.CONSTRUCT
    )
    return reports | {n: max(t, reports.get(n, MIN)) for n, t in made_streams}


def shared_streams(plan: Plan) -> list[list[int]]:
    """Returns, for each external stream, the streams that share a query with it, also through a
    derived stream.
    """
    numbers = {name: i for i, name in enumerate(plan.streams)}
    shared: list[set[int]] = [set() for _ in plan.streams]
    for streams in plan.stream_sets:
        ids = [numbers[base] for s in streams for base in bases(plan, s)]
        for i in ids:
            shared[i].update(j for j in ids if j != i)
    return [sorted(s) for s in shared]


def shared_stream_names(plan: Plan, shared: Sequence[Sequence[int]]) -> dict[str, list[str]]:
    """Returns ``shared_streams`` by names."""
    return {plan.streams[i]: [plan.streams[j] for j in js] for i, js in enumerate(shared)}

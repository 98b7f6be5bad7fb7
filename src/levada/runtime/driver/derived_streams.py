"""Streams that queries make, seen from the driver (docs/semantics.md#streams-that-queries-make).

What a CONSTRUCT has put into the segments of epoch N is read in epoch N + 1, by reference: report r
with a triple is an element of time r. So a made stream needs neither files of its own nor a
position: the last manifest names what is to be read, and an epoch reads all of it. Epochs go on as
long as one of these streams, that some query reads, has more to say.

The tasks of the maker's last stage have written a segment each, and as many tasks read them, but no
more than there are at once, and one for ``EACH`` solutions: each has a reference to some of the
segments (``runtime.task.derived_rows`` says what they guarantee together).

Watermark: no later report of the maker can be below it. After epoch N all reports r with r <= W_q
are made (r < W_q where they are made once W_q > r), and in epoch N + 1 all of them are read: then
the stream's watermark is W_q + 1 (or W_q), with the maker's W_q after epoch N. It ends one epoch
after the last of its maker's streams.

Cost: references for each made stream with results, a look at the size of each segment once, a few
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
from levada.runtime.task.result_writer import of_stage

# solutions, some 5 ms: what another task has to be worth (``task_count.TASK``)
EACH = register(f"{__name__}.EACH", 4_096)


def state(stream: str, plan: Plan, last: Manifest) -> StreamState:
    """A made stream as the epoch after ``last`` begins; one whose maker is gone has ended."""
    record = last.streams.get(stream, StreamRecord())
    maker = plan.queries.get(plan.made.get(stream, ""))
    if maker is None or _has_ended(maker, last):
        return StreamState(record.watermark, ended=True, latest=record.max_ts)
    floor = _next_report(maker, last)
    return StreamState(record.watermark, floor=floor, known=record.known, latest=record.max_ts)


def _has_ended(maker: QueryPlan, last: Manifest) -> bool:
    return all(last.streams.get(s, StreamRecord()).ended for s in maker.streams)


def _next_report(maker: QueryPlan, last: Manifest) -> int:
    """The least time at which the maker can still report."""
    w = min((last.streams.get(s, StreamRecord()).watermark for s in maker.streams), default=MIN)
    reaches = all(on.window.kind is WindowKind.CLOSE_OPEN for on in maker.windows)
    return w + 1 if reaches and MIN < w < MAX else w


def references(
    plan: Plan, last: Manifest, checkpoint: Checkpoint, load: Callable[[int], Plan], tasks: int
) -> Iterator[DerivedSplit]:
    """What the made streams say in the epoch after ``last``, of whose plan ``load`` gives what it
    was. ``tasks``: how many there are at once (0: one a partition).

    A stream that begins with this epoch says nothing of what its maker reported before.
    """
    if not plan.made or not len(last.counts):
        return
    made_by, read = load(last.plan), plan.read_streams
    size_of = cache(partial(state_files.size_of, str(checkpoint.root)))
    path = str(checkpoint.plan_path(last.plan))
    tasks = tasks or checkpoint.tables.load(last.groups).partitions
    for stream, name in plan.made.items():
        maker = made_by.queries.get(name)
        counts = last.counts.of_query(maker)
        if maker is None or counts is None or stream not in read or stream not in last.streams:
            continue
        whole = DerivedSplit(stream, name, path, (), 0, counts[3], int(ENGINE))
        segments = of_stage(last.segments, made_by.nodes[maker.node].stage)
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
    """So many references, each to its share of the segments. ``numbered``: nodes are numbered
    through all of them.
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
    """The numbers of made streams that no query reads: no epoch is for their sake."""
    read = plan.read_streams
    return [i for i, stream in enumerate(plan.streams) if is_derived(stream) and stream not in read]


def bases(plan: Plan, stream: str) -> set[str]:
    """The streams from outside that a stream follows from: itself, or those of its maker.

    What waits for a made stream waits for these.
    """
    if not is_derived(stream):
        return {stream}
    maker = plan.queries.get(plan.made.get(stream, ""))
    return set() if maker is None else {base for s in maker.streams for base in bases(plan, s)}


def latest(plan: Plan, last: Manifest, counts: ResultCounts) -> dict[str, int]:
    """The last report with a result of each query that can make a stream, with those of a new epoch
    (``counts``).

    What a query of the same name reported before it came is not its own.
    """
    reports = {
        n: t
        for n, t in last.latest.items()
        if n in plan.queries and plan.queries[n].since <= last.plan
    }
    made = (
        (n, c[2])
        for n, c in (counts.by_name(plan) if Form.CONSTRUCT in plan.forms else {}).items()
        if plan.queries[n].form is Form.CONSTRUCT
    )
    return reports | {n: max(t, reports.get(n, MIN)) for n, t in made}


def shared_streams(plan: Plan) -> list[list[int]]:
    """For each stream from outside those that it shares a query with, or by a made one."""
    numbers = {name: i for i, name in enumerate(plan.streams)}
    shared: list[set[int]] = [set() for _ in plan.streams]
    for streams in plan.stream_sets:
        ids = [numbers[base] for s in streams for base in bases(plan, s)]
        for i in ids:
            shared[i].update(j for j in ids if j != i)
    return [sorted(s) for s in shared]


def shared_stream_names(plan: Plan, shared: Sequence[Sequence[int]]) -> dict[str, list[str]]:
    """The same by names."""
    return {plan.streams[i]: [plan.streams[j] for j in js] for i, js in enumerate(shared)}

"""Reports on a checkpoint. ``levada status`` shows the results of its queries and what they wait
for; ``levada verify`` checks its files; ``levada backup`` copies them; ``levada rollback`` returns
to an earlier manifest. The first three work while an engine runs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console, Group, RenderableType
from rich.progress import DownloadColumn as BytesColumn
from rich.progress import Progress, SpinnerColumn, TransferSpeedColumn
from rich.text import Text

from levada.checkpoint import verify as store
from levada.checkpoint.executor_affinity import AffinityStats
from levada.checkpoint.leadership.rollback import reopen, rollback_hint
from levada.checkpoint.leadership.rollback import rollback as back
from levada.checkpoint.manifest import Decision, Preferences, RebalanceReport
from levada.connectors.ingest.static_load_report import describe_load as read_of
from levada.connectors.ingest.static_load_report import describe_table
from levada.core.count_text import count_text
from levada.core.event_time import MAX, instant
from levada.engine.delivery.delivery_lag import OutputStatus
from levada.engine.driver.epoch_pacing import wall_clock_ms
from levada.engine.placement.edge_transport import describe_transport
from levada.engine.status.execution_status import lessons, sentences
from levada.engine.status.join_strategy_status import FormStatus
from levada.engine.status.sharing_status import RelaxedStatus
from levada.engine.status.status import (
    QueryStatus,
    Status,
    read_status,
)
from levada.engine.status.status_document import status_document
from levada.engine.status.summary import StreamCounts, remarks, table

OVERLOADED = "Overloaded: too few partitions have time, and there may be no more."
CHARGE_HEADS = ("query", "CPU s", "rows", "state bytes")


def status(checkpoint: Path, *, as_json: bool, verbose: bool) -> None:
    """Prints the status of a checkpoint, as tables (``verbose``: with internals) or as JSON."""
    checkpoint_status = read_status(checkpoint)
    if as_json:
        document = status_document(checkpoint, checkpoint_status, time.time())
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        Console().print(show(checkpoint_status, verbose=verbose))


def verify(checkpoint: Path) -> None:
    """Prints the result of a check of all files of a checkpoint. Exits with code 1 if files are
    damaged.
    """
    with _bytes_bar() as tell:
        report = store.verify(checkpoint, tell)
    Console().print(show_report(report))
    for damage in report.damaged:
        print(damage.fault)
    mended = any(damage.item.kind not in store.OF_NO_MANIFEST for damage in report.damaged)
    if mended and not report.running and (way := rollback_hint(checkpoint)):
        print(way)
    if report.damaged:
        raise typer.Exit(1)


def backup(checkpoint: Path, destination: Path) -> None:
    """Copies a checkpoint, and prints what the copy has."""
    from levada.checkpoint.backup import backup as copy

    with _bytes_bar() as tell:
        report = copy(checkpoint, destination.absolute(), tell)
    Console().print(show_report(report))


@contextmanager
def _bytes_bar() -> Iterator[store.Tell]:
    """Shows how many bytes were read."""
    columns = (SpinnerColumn(), BytesColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda size: bar.advance(task, size)


def rollback(checkpoint: Path, to: int | None) -> None:
    """Returns a checkpoint to the manifest of epoch ``to`` (None: the one before the last) and
    prints a message.
    """
    if to is None and reopen(checkpoint, wall=wall_clock_ms()):
        print(
            f"The streams of {checkpoint} are open again, as before they ended. The reports "
            "of the end stay published, and come again, complete, when their windows close."
        )
        return
    epoch = back(checkpoint, to, wall=wall_clock_ms())
    print(
        f"{checkpoint} is as after epoch {epoch:,}. The next run does epoch {epoch + 1:,} again, "
        "which gives the same results, and goes on from there."
    )


def show_report(report: store.Report) -> RenderableType:
    """Returns the result of a check as a table, a row for each kind of file."""
    kinds = dict.fromkeys(f.item.kind for f in report.files)
    rows = []
    for kind in kinds:
        files = [f for f in report.files if f.item.kind == kind]
        wrong = sum(bool(f.fault) for f in files)
        size = sum(f.size for f in files)
        rows.append((kind, str(len(files)), f"{size:,}", str(wrong) if wrong else "-"))
    running = ", an engine is running on it" if report.running else ""
    heads = ("what", "files", "bytes", "damaged")
    return Group(Text(f"after epoch {report.epoch:,}{running}"), table(heads, rows))


def show(status: Status, *, verbose: bool = False) -> RenderableType:
    """Returns the status for people: what is read, how far, what waits, what is wrong. ``verbose``:
    also patterns, costs and other internals.
    """
    parts: list[RenderableType] = [*map(Text, drivers(status)), _stream_table(status)]
    tables = map(describe_table, status.tables)
    parts += map(Text, (*remarks(status.streams), *_stream_notes(status), *tables))
    queries = [(q.name, f"{q.results:,}", instant(q.watermark), _next(q)) for q in status.queries]
    parts.append(table(("query", "results", "watermark", "next report"), queries))
    for q in status.queries:
        reasons = [q.reason] if q.reason else q.unmatched_patterns
        parts += [Text(f"{q.name}: {sentence}") for sentence in reasons]
    parts += map(Text, (*ends(status), *status.suspended_queries.values()))
    if status.outputs:
        outs = [(o.query, o.target, f"{o.pending_reports:,}", _oldest(o)) for o in status.outputs]
        parts.append(table(("output", "to", "behind", "since"), outs))
        parts += [Text(line) for output in status.outputs for line in _output_text(output)]
    if status.balance is not None and status.balance.is_overloaded:
        parts.append(Text(OVERLOADED))
    end = ", ended" if status.has_ended else ""
    head = Text(f"after epoch {status.epoch:,}{end}")
    return Group(head, *parts, *(_internals(status) if verbose else ()))


def _stream_table(status: Status) -> RenderableType:
    rows = [(name, *_stream_counts(s)) for name, s in status.streams.items()]
    return table(("stream", "elements", "unread", "late", "dead", "watermark"), rows)


def _stream_notes(status: Status) -> Iterator[str]:
    """Yields sentences about streams that were added or do not answer, and about the clock."""
    yield from (f"{name} was added while an engine ran." for name in status.runtime_streams)
    for one in status.unavailable_streams:
        yield f"{one.reason.rstrip('.')}, since {instant(one.since_ms)}."
    if status.clock_step:
        yield status.clock_step


def _internals(status: Status) -> Iterator[RenderableType]:
    """Yields tables and sentences for diagnosis: what was matched, what it costs, where it runs."""
    if status.memory is not None:
        memory = (status.memory.driver_bytes, status.memory.task_bytes)
        driver, tasks = (round(size / 1e6) for size in memory)
        yield Text(f"Memory: {driver:,} MB, its child processes {tasks:,} MB.")
    yield table(CHARGE_HEADS, [(q.name, *_charges(q)) for q in status.queries])
    for q in status.queries:
        if q.patterns:
            rows = [(p.text, p.stream, _count_text(p.matched_triples)) for p in q.patterns]
            yield table((f"patterns of {q.name}", "stream", "matched"), rows)
    yield from map(Text, describe_sharing(status))
    yield from (Text(f"{name}: goes over to other operators.") for name in status.migrating_queries)
    if status.relaxed_joins:
        heads = ("relaxed", "given", "made", "wanted", "picked", "work / apart")
        yield table(heads, [_pattern_counts(one) for one in status.relaxed_joins])
    if status.join_strategies:
        heads = ("join", "of", "form", "changed", "one step, us", "two at a time, us")
        yield table(heads, [_join_forms(one) for one in status.join_strategies])
    if status.static_load is not None:
        yield Text(read_of(status.static_load))
    if status.executors is not None:
        yield Text(executors(status.executors))
    yield from map(Text, places(status))
    if status.balance is not None:
        yield from _balance(status.balance)
    if status.epoch_costs is not None:
        yield from map(Text, sentences(status.epoch_costs))


def _stream_counts(counts: StreamCounts) -> tuple[str, ...]:
    """Returns the cells of a stream: its counts, its unread input, and its watermark."""
    unread = "-"
    if counts.backlog is not None:
        count, size = counts.backlog.elements, counts.backlog.size_bytes or 0
        unread = f"{size:,} B" if count is None else f"{count:,}"
    elements, late = f"{counts.elements:,}", f"{counts.late:,}"
    return elements, unread, late, f"{counts.dead_letters:,}", instant(counts.watermark)


def _count_text(count: int | None) -> str:
    return "not counted" if count is None else f"{count:,}"


def _charges(query: QueryStatus) -> tuple[str, ...]:
    """Returns the charges of a query: CPU seconds, rows of its operators, bytes of state."""
    kept = "-" if query.state_bytes is None else f"{query.state_bytes:,}"
    return f"{query.cpu_seconds:,.2f}", f"{query.input_rows:,}", kept


def describe_sharing(status: Status) -> Iterator[str]:
    """Yields a sentence for each query that shares operators with others."""
    for query in status.queries:
        if query.shared_operators:
            partners = ", ".join(
                f"{one.operator} with {one.queries - 1:,}" for one in query.shared_operators
            )
            yield f"{query.name}: shares {partners}."


def ends(status: Status) -> Iterator[str]:
    """Yields sentences about queries that have an end, and about queries that have ended."""
    for query in status.queries:
        if query.until is not None:
            yield f"{query.name}: reports until {instant(query.until)}, and leaves then."
    for name, until in status.ended_queries.items():
        yield f"{name}: has ended, as it said, with its reports until {instant(until)}."


def drivers(status: Status) -> Iterator[str]:
    """Yields sentences about the driver at work and its troubles, and about standbys."""
    if (at := status.active_driver) is not None:
        yield f"At work: process {at.pid} on {at.host}, since {instant(at.since_ms)}."
    if status.lost_tasks:
        yield status.lost_tasks
    if status.failed_migrations:
        times = count_text(status.failed_migrations, "time")
        yield f"Levada has failed {times} as it moved queries; levada explain --shared says where."
    if status.token_faults:
        lines = count_text(status.token_faults, "line")
        yield f"The server does not take {lines} of its file of tokens; its log says why."
    for one in status.standby_drivers:
        yield f"Standby: process {one.pid} on {one.host}, since {instant(one.since_ms)}."


def _pattern_counts(one: RelaxedStatus) -> tuple[str, ...]:
    numbers = (one.input_rows, one.joined_pairs, one.needed_pairs, one.picked_rows)
    return one.join, *(f"{number:,}" for number in numbers), f"{one.work_ratio:.2f}"


def _join_forms(one: FormStatus) -> tuple[str, ...]:
    numbers = (one.changes, one.one_step_cpu_us, one.two_at_a_time_cpu_us)
    return one.join, ", ".join(one.queries), one.strategy, *(f"{number:,}" for number in numbers)


def _oldest(output: OutputStatus) -> str:
    return "-" if output.oldest_pending_ms is None else instant(output.oldest_pending_ms)


def _output_text(output: OutputStatus) -> Iterator[str]:
    """Yields why an output is behind, and whether the intake waits for it."""
    if output.note:
        yield output.note
    if output.reason:
        yield output.reason
    if output.blocks_intake:
        why = "it is behind by what is kept"
        yield f"The intake waits until {output.target} has taken more: {why}."


def places(status: Status) -> Iterator[str]:
    """Yields sentences about the placement and the transport of blobs between tasks."""
    if status.placement is not None:
        yield describe_placement(status.placement)
        yield from lessons(status.placement.learning_steps)
    yield from describe_transport(status.transport)


def describe_placement(status: Preferences) -> str:
    """Describes the state of a placement in a sentence or two.

    >>> describe_placement(Preferences("p.json", 2))
    'Placed by p.json: no task has run on executors yet.'
    >>> status = Preferences("p.json", 2, 9, 1, 13, 100, ["executor_h_0", ""], predicted_share=0.12)
    >>> describe_placement(status)  # doctest: +ELLIPSIS
    'Placed by p.json on 2 machines: 9 tasks, ...from others, predicted 12.0%. Machine 0 is ...'
    """
    if not status.preferred_tasks:
        return f"Placed by {status.name}: no task has run on executors yet."
    share = status.remote_bytes / status.read_bytes if status.read_bytes else 0.0
    said = f", predicted {status.predicted_share:.1%}" if status.predicted_share >= 0 else ""
    at = (f"{i} is {e}" if e else f"{i} has none" for i, e in enumerate(status.executors))
    return (
        f"Placed by {status.name} on {count_text(status.machines, 'machine')}: "
        f"{count_text(status.preferred_tasks, 'task')}, "
        f"{status.displaced_tasks:,} elsewhere; {share:.1%} of their bytes from others{said}. "
        f"Machine {'; '.join(at)}."
    )


def executors(status: AffinityStats) -> str:
    """Describes the executors, whether partitions stay on theirs, and which are whose.

    >>> executors(AffinityStats(200, 197, 4, 4))
    'Executors: 4, with 4 cores; 98.5% of 200 stage tasks ran where they did in the epoch before.'
    >>> executors(AffinityStats(0, 0, 2, 2, ("0", "1", "0")))
    'Executors: 2, with 2 cores. Executor 0: partitions 0, 2; executor 1: partition 1.'
    """
    text = f"Executors: {status.executors:,}, with {status.cores:,} cores"
    if status.recurring_tasks:
        stayed = status.same_executor_tasks / status.recurring_tasks
        share = f"{stayed:.1%} of {count_text(status.recurring_tasks, 'stage task')}"
        text += f"; {share} ran where they did in the epoch before"
    partitions: dict[str, list[int]] = {}
    for partition, executor in enumerate(status.homes):
        partitions.setdefault(executor or "none", []).append(partition)
    each = [
        f"executor {executor}: partition{'s' * (len(numbers) > 1)} "
        + ", ".join(map(str, numbers[:MOST_PARTITIONS]))
        + ", .." * (len(numbers) > MOST_PARTITIONS)
        for executor, numbers in sorted(partitions.items())[:MOST_EXECUTORS]
    ]
    more = "; .." * (len(partitions) > MOST_EXECUTORS)
    return f"{text}." + (f" {'; '.join(each).capitalize()}{more}." if each else "")


MOST_EXECUTORS, MOST_PARTITIONS = 16, 8
"""How many executors, and partitions of each, are shown."""


def _balance(balance: RebalanceReport) -> Iterator[RenderableType]:
    """Yields the loads of the last round, and the latest decisions."""
    yield Text(
        f"Balance after epoch {balance.epoch - 1:,}: "
        f"{count_text(balance.partitions, 'partition')}, the busiest took "
        f"{balance.ratio:g} times the mean."
    )
    if balance.is_overloaded:
        yield Text(OVERLOADED)
    if balance.imbalance_reason:
        yield Text(balance.imbalance_reason)
    loads = [
        (
            str(p.partition),
            p.kind,
            f"{p.occupancy:.2f}",
            _ms(p.seconds),
            _ms(p.cpu_seconds),
            f"{p.input_rows:,}",
        )
        for p in balance.loads
    ]
    yield table(("partition", "is a", "full", "ms an epoch", "CPU ms", "rows"), loads)
    decided = [
        (
            f"{d.epoch:,}",
            d.action,
            f"{d.groups:,}",
            f"{d.ratio_before:g}",
            f"{d.expected_ratio:g}",
            _seen_text(d),
            d.reason,
        )
        for d in balance.decisions
    ]
    if decided:
        heads = ("from epoch", "what", "groups", "busiest by mean", "expected", "seen", "why")
        yield table(heads, decided)


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.1f}"


def _seen_text(decision: Decision) -> str:
    return "-" if decision.measured_ratio is None else f"{decision.measured_ratio:g}"


def _next(q: QueryStatus) -> str:
    if q.watermark >= MAX:
        return "-"
    held = f", held back by {q.blocking_stream}" if q.blocking_stream else ""
    return (instant(q.next_report) if q.next_report is not None else "at the next change") + held

"""Reports on a checkpoint. ``levada status`` shows the results of its queries and what they wait
for; ``levada verify`` checks its files; ``levada rollback`` returns to an earlier manifest. The
first two work while an engine runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import msgspec
import typer
from rich.console import Console, Group, RenderableType
from rich.progress import DownloadColumn as BytesColumn
from rich.progress import Progress, SpinnerColumn, TransferSpeedColumn
from rich.text import Text

from levada.checkpoint import verify as store
from levada.checkpoint.leadership.rollback import rollback as back
from levada.checkpoint.leadership.rollback import rollback_hint
from levada.connectors.ingest.static_load_report import Loaded
from levada.connectors.ingest.static_load_report import describe_load as read_of
from levada.core.event_time import MAX, MIN, instant
from levada.engine.delivery.delivery_lag import OutputStatus
from levada.engine.driver.epoch_pacing import wall_clock_ms
from levada.engine.placement.cpu_pinning import describe_pinning
from levada.engine.placement.edge_transport import describe_transport
from levada.engine.status.execution_status import lessons, sentences
from levada.engine.status.join_strategy_status import FormStatus
from levada.engine.status.rebalance_status import BalanceStatus, DecisionStatus
from levada.engine.status.sharing_status import RelaxedStatus
from levada.engine.status.status import (
    ExecutorsStatus,
    PlacedStatus,
    QueryStatus,
    Status,
    read_status,
)
from levada.engine.status.stream_remarks import remarks
from levada.engine.status.summary import table

CHARGE_HEADS = ("query", "CPU s", "rows", "state bytes")


def status(checkpoint: Path, *, as_json: bool) -> None:
    """Prints the status of a checkpoint, as tables or as JSON."""
    checkpoint_status = read_status(checkpoint)
    if as_json:
        print(json.dumps(tell(checkpoint_status), indent=2, ensure_ascii=False))
    else:
        Console().print(show(checkpoint_status))


def verify(checkpoint: Path) -> None:
    """Prints the result of a check of all files of a checkpoint. Exits with code 1 if files are
    damaged.
    """
    columns = (SpinnerColumn(), BytesColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        report = store.verify(checkpoint, lambda size: bar.advance(task, size))
    Console().print(show_report(report))
    for damage in report.damaged:
        print(damage.wrong)
    mended = any(damage.item.kind not in store.OF_NO_MANIFEST for damage in report.damaged)
    if mended and not report.running and (way := rollback_hint(checkpoint)):
        print(way)
    if report.damaged:
        raise typer.Exit(1)


def rollback(checkpoint: Path, to: int | None) -> None:
    """Returns a checkpoint to the manifest of epoch ``to`` (None: the one before the last) and
    prints a message.
    """
    epoch = back(checkpoint, to, wall=wall_clock_ms())
    print(
        f"{checkpoint} is as after epoch {epoch:,}. The next run does epoch {epoch + 1:,} again, "
        "which gives the same results, and goes on from there."
    )


def show_report(report: store.Report) -> RenderableType:
    """Returns the result of a check as a table, a row for each kind of file."""
    kinds = dict.fromkeys(f.item.kind for f in report.found)
    rows = []
    for kind in kinds:
        files = [f for f in report.found if f.item.kind == kind]
        wrong = sum(bool(f.wrong) for f in files)
        size = sum(f.size for f in files)
        rows.append((kind, str(len(files)), f"{size:,}", str(wrong) if wrong else "-"))
    running = ", an engine is running on it" if report.running else ""
    heads = ("what", "files", "bytes", "damaged")
    return Group(Text(f"after epoch {report.epoch:,}{running}"), table(heads, rows))


def tell(status: Status) -> dict[str, object]:
    """Returns the status as JSON-able values. A watermark is in ms, null before any element, "end"
    after the last.
    """
    streams = {
        name: {
            "watermark": _time(s.watermark),
            "elements": s.elements,
            "triples": s.triples,
            "late": s.late,
            "dead": s.dead,
            "overtaken": s.overtaken,
            "gone": s.gone,
            "replaced": s.replaced,
            "nulls": s.nulls,
            "unit": s.unit,
            "reasons": s.reasons,
            "behind": s.behind,
            "added": name in status.added,
        }
        for name, s in status.streams.items()
    }
    queries = [asdict(q) | {"watermark": _time(q.watermark)} for q in status.queries]
    return {
        "epoch": status.epoch,
        "ended": status.ended,
        "streams": streams,
        "queries": queries,
        "suspended": status.suspended,
        "over": status.over,
        "goes_over": list(status.goes_over),
        "relaxed": [asdict(one) for one in status.relaxed],
        "forms": [asdict(one) for one in status.forms],
        "outputs": [asdict(output) for output in status.outputs],
        "placed": None if status.placed is None else asdict(status.placed),
        "pinned": None if status.pinned is None else asdict(status.pinned),
        "active": None if status.active is None else asdict(status.active),
        "lost": status.lost,
        "standby": [asdict(one) for one in status.standby],
        "away": [asdict(one) for one in status.away],
        "clock": status.clock,
        "balance": None if status.balance is None else asdict(status.balance),
        "carried": None if status.carried is None else asdict(status.carried),
        "static": None if status.static is None else _read(status.static),
        "executors": None if status.executors is None else asdict(status.executors),
        "epochs": None if status.costs is None else asdict(status.costs),
        "token_faults": status.token_faults,
    }


def _read(static: Loaded) -> dict[str, object]:
    """Returns the load of static data as JSON-able values; ``imprints`` is the number of new
    imprint files.
    """
    return msgspec.structs.asdict(static) | {"imprints": len(static.imprints)}


def _time(ms: int) -> int | str | None:
    return None if ms <= MIN else "end" if ms >= MAX else ms


def show(status: Status) -> RenderableType:
    """Returns the status for people: tables of streams, queries, patterns and charges, and
    remarks.
    """
    end = ", ended" if status.ended else ""
    streams = [
        (
            name,
            f"{s.elements:,}",
            f"{s.triples:,}",
            f"{s.late:,}",
            f"{s.dead:,}",
            instant(s.watermark),
        )
        for name, s in status.streams.items()
    ]
    queries = [(q.name, f"{q.results:,}", instant(q.watermark), _next(q)) for q in status.queries]
    parts: list[RenderableType] = [
        Text(f"after epoch {status.epoch:,}{end}"),
        *map(Text, drivers(status)),
        table(("stream", "elements", "triples", "late", "dead", "watermark"), streams),
        *map(Text, [f"Added while an engine ran: {', '.join(status.added)}."] * bool(status.added)),
        *map(Text, remarks(status.streams)),
        *(Text(f"{one.why.rstrip('.')}, since {instant(one.since)}.") for one in status.away),
        *map(Text, [status.clock] * bool(status.clock)),
        table(("query", "results", "watermark", "next report"), queries),
    ]
    parts.append(table(CHARGE_HEADS, [(q.name, *_charges(q)) for q in status.queries]))
    for q in status.queries:
        if q.patterns:
            rows = [
                (p.text, p.stream, "not counted" if p.matched is None else f"{p.matched:,}")
                for p in q.patterns
            ]
            parts.append(table((f"patterns of {q.name}", "stream", "matched"), rows))
        if q.why:
            parts.append(Text(f"{q.name}: {q.why}"))
    parts += [Text(sentence) for sentence in (*describe_sharing(status), *ends(status))]
    parts += [Text(why) for why in status.suspended.values()]
    parts += [Text(f"{name}: goes over to other operators.") for name in status.goes_over]
    if status.outputs:
        outs = [(o.query, o.to, f"{o.behind:,}", _oldest_text(o)) for o in status.outputs]
        parts.append(table(("output", "to", "behind", "since"), outs))
        parts += [Text(line) for output in status.outputs for line in _output_text(output)]
    if status.relaxed:
        heads = ("relaxed", "given", "made", "wanted", "picked", "work / apart")
        parts.append(table(heads, [_pattern_counts(one) for one in status.relaxed]))
    if status.forms:
        heads = ("join", "of", "form", "changed", "one step, us", "two at a time, us")
        parts.append(table(heads, [_join_forms(one) for one in status.forms]))
    parts += [Text(read_of(one)) for one in [status.static] if one is not None]
    if status.executors is not None:
        parts.append(Text(executors(status.executors)))
    parts += [Text(sentence) for sentence in places(status)]
    if status.balance is not None:
        parts += _balance(status.balance)
    if status.costs is not None:
        parts += [Text(sentence) for sentence in sentences(status.costs)]
    return Group(*parts)


def _charges(query: QueryStatus) -> tuple[str, ...]:
    """Returns the charges of a query: CPU seconds, rows of its operators, bytes of state."""
    kept = "-" if query.state_bytes is None else f"{query.state_bytes:,}"
    return f"{query.cpu_seconds:,.2f}", f"{query.rows:,}", kept


def describe_sharing(status: Status) -> Iterator[str]:
    """Yields a sentence for each query that shares operators with others."""
    for query in status.queries:
        if query.shares:
            partners = ", ".join(f"{one.operator} with {one.queries - 1:,}" for one in query.shares)
            yield f"{query.name}: shares {partners}."


def ends(status: Status) -> Iterator[str]:
    """Yields sentences about queries that have an end, and about queries that have ended."""
    for query in status.queries:
        if query.until is not None:
            yield f"{query.name}: reports until {instant(query.until)}, and leaves then."
    for name, until in status.over.items():
        yield f"{name}: has ended, as it said, with its reports until {instant(until)}."


def drivers(status: Status) -> Iterator[str]:
    """Yields sentences about the driver at work and its troubles, and about standbys."""
    if (at := status.active) is not None:
        yield f"At work: process {at.pid} on {at.host}, since {instant(at.since)}."
    if status.lost:
        yield status.lost
    if status.token_faults:
        lines = "1 line" if status.token_faults == 1 else f"{status.token_faults:,} lines"
        yield f"The server does not take {lines} of its file of tokens; its log says why."
    for one in status.standby:
        yield f"Standby: process {one.pid} on {one.host}, since {instant(one.since)}."


def _pattern_counts(one: RelaxedStatus) -> tuple[str, ...]:
    numbers = (one.given, one.made, one.wanted, one.picked)
    return one.join, *(f"{number:,}" for number in numbers), f"{one.work:.2f}"


def _join_forms(one: FormStatus) -> tuple[str, ...]:
    numbers = (one.changed, one.one_step, one.two_at_a_time)
    return one.join, ", ".join(one.queries), one.form, *(f"{number:,}" for number in numbers)


def _oldest_text(output: OutputStatus) -> str:
    return "-" if output.oldest is None else instant(output.oldest)


def _output_text(output: OutputStatus) -> Iterator[str]:
    """Yields why an output is behind, and whether the intake waits for it."""
    if output.note:
        yield output.note
    if output.why:
        yield output.why
    if output.holds:
        yield f"The intake waits until {output.to} has taken more: it is behind by what is kept."


def places(status: Status) -> Iterator[str]:
    """Yields sentences about the placement, the transport of blobs between tasks, and the
    processors of tasks.
    """
    if status.placed is not None:
        yield describe_placement(status.placed)
        yield from lessons(status.placed.lessons)
    yield from describe_transport(status.carried)
    if (bound := status.pinned) is not None:
        yield f"Tasks are bound by {bound.name}: {describe_pinning(bound.places)}."


def describe_placement(status: PlacedStatus) -> str:
    """Describes the state of a placement in a sentence or two.

    >>> describe_placement(PlacedStatus("p.json", 2))
    'Placed by p.json: no task has run on executors yet.'
    >>> status = PlacedStatus("p.json", 2, 9, 1, 13, 100, ("executor_h_0", ""), predicted=0.12)
    >>> describe_placement(status)  # doctest: +ELLIPSIS
    'Placed by p.json on 2 machines: 9 tasks, ...from others, predicted 12.0%. Machine 0 is ...'
    """
    if not status.wanted:
        return f"Placed by {status.name}: no task has run on executors yet."
    share = status.remote / status.read if status.read else 0.0
    said = f", predicted {status.predicted:.1%}" if status.predicted >= 0 else ""
    at = (f"{i} is {e}" if e else f"{i} has none" for i, e in enumerate(status.executors))
    return (
        f"Placed by {status.name} on {status.machines} machines: {status.wanted:,} tasks, "
        f"{status.missed:,} elsewhere; {share:.1%} of their bytes from others{said}. "
        f"Machine {'; '.join(at)}."
    )


def executors(status: ExecutorsStatus) -> str:
    """Describes the executors, and whether partitions stay on theirs.

    >>> executors(ExecutorsStatus(4, 4, 200, 197))
    'Executors: 4, with 4 cores; 98.5% of 200 stage tasks ran where they did in the epoch before.'
    """
    head = f"Executors: {status.executors:,}, with {status.cores:,} cores"
    if not status.tasks:
        return f"{head}."
    share = f"{status.stayed / status.tasks:.1%} of {status.tasks:,} stage tasks"
    return f"{head}; {share} ran where they did in the epoch before."


def _balance(balance: BalanceStatus) -> Iterator[RenderableType]:
    """Yields the loads of the last round, and the latest decisions."""
    yield Text(
        f"Balance after epoch {balance.epoch - 1:,}: {balance.partitions} partitions, the busiest "
        f"took {balance.ratio:g} times the mean."
    )
    if balance.overloaded:
        yield Text("Overloaded: too few partitions have time, and there may be no more.")
    if balance.remark:
        yield Text(balance.remark)
    loads = [
        (str(p.partition), p.kind, f"{p.occupancy:.2f}", _ms(p.seconds), _ms(p.cpu), f"{p.rows:,}")
        for p in balance.loads
    ]
    yield table(("partition", "is a", "full", "ms an epoch", "CPU ms", "rows"), loads)
    decided = [
        (
            f"{d.epoch:,}",
            d.what,
            f"{d.groups:,}",
            f"{d.before:g}",
            f"{d.expected:g}",
            _seen_text(d),
            d.why,
        )
        for d in balance.decided
    ]
    if decided:
        heads = ("from epoch", "what", "groups", "busiest by mean", "expected", "seen", "why")
        yield table(heads, decided)


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.1f}"


def _seen_text(decision: DecisionStatus) -> str:
    return "-" if decision.seen is None else f"{decision.seen:g}"


def _next(q: QueryStatus) -> str:
    if q.watermark >= MAX:
        return "-"
    held = f", held back by {q.holds_back}" if q.holds_back else ""
    return (instant(q.next_report) if q.next_report is not None else "at the next change") + held

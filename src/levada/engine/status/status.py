"""The status of a checkpoint and its queries, also while an engine runs on it. It explains why a
query has no result.

All of it comes from the last manifest and its plan: watermarks, elements of streams, matches of
patterns, and the earliest next report. Nothing is locked, so a file may be deleted during the read;
then it is read again.

The engine makes report r when the lowest watermark of the query's streams reaches r or passes it.
It must reach r for windows on close with bounds ``[)``, and pass it for all others
(docs/semantics.md#progress).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Any, NamedTuple

from levada.checkpoint import state_files
from levada.checkpoint.checkpoint_folder import newest_manifest, plan_of
from levada.checkpoint.crash_counter import read_losses
from levada.checkpoint.executor_affinity import AffinityStats
from levada.checkpoint.leadership.commit_log import last_takeover
from levada.checkpoint.leadership.heartbeat import Away, Load, read_pulse, read_standbys
from levada.checkpoint.manifest import (
    Costs,
    Manifest,
    Preferences,
    RebalanceReport,
    StreamRecord,
)
from levada.checkpoint.query_totals import solutions_of
from levada.checkpoint.request_files import read_ledger, read_server_report
from levada.connectors.ingest.static_load_report import Loaded, TableState, read_states
from levada.core.checkpoint_files import facts_of
from levada.core.count_text import count_text
from levada.core.event_time import MAX, MIN, WindowKind, instant
from levada.core.expression_budget import Charge
from levada.core.frozen import frozen
from levada.core.names import display_name, is_derived, is_left
from levada.engine.delivery.delivery_lag import OutputStatus, outputs_of
from levada.engine.placement.edge_transport import CarriedStatus, carried_status
from levada.engine.python.notebook import rows_html
from levada.engine.status.execution_status import with_operator_names
from levada.engine.status.join_strategy_status import FormStatus, forms
from levada.engine.status.sharing_status import RelaxedStatus, ShareStatus, relaxed_joins, shares
from levada.engine.status.summary import (
    MAX_SHOWN,
    AllRunsTotals,
    Progress,
    StreamCounts,
    describe_empty_columns,
    describe_pattern,
)
from levada.engine.suspended_queries import Suspension, describe_suspension, read_suspended
from levada.errors import CheckpointError
from levada.operators.state.checksummed_frames import CheckedFrames
from levada.operators.state.state_parts import read_head
from levada.plan.execution.pattern_text import patterns_read, starving_patterns
from levada.plan.execution.plan import Charges, Plan, QueryPlan, gather_up
from levada.plan.execution.query_charges import charge_members
from levada.runtime.cost_model import decision_log_file

# The charges of each query for a status: CPU seconds, rows, bytes of state.
#
# Operators are charged, and queries get their parts on request. An operator's amount is divided
# equally among its members. A member's amount is divided among the members that read it, down to
# the last operators of the queries. So the parts of all queries add up to the amounts of the
# operators. Reading and matching streams is not charged.
#
# Cost: the heads of all state files, and a pass over all members of the plan in arrays.


class QueryCharges(NamedTuple):
    """The charges of a query. ``state_bytes`` is None if unknown."""

    cpu_seconds: float
    input_rows: int
    state_bytes: int | None


def charges(root: Path, manifest: Manifest, plan: Plan) -> dict[str, QueryCharges]:
    """Returns the charges of each query after an epoch, by name."""
    seconds = _divide(plan, {n: seconds for n, (seconds, _) in manifest.node_charges.items()})
    rows = _divide(plan, {n: rows for n, (_, rows) in manifest.node_charges.items()})
    kept: Charges | None = None
    with suppress(CheckpointError):  # a file was deleted meanwhile, or is damaged
        kept = _divide(plan, _state_bytes(str(root), manifest))
    return {
        name: QueryCharges(
            round(_amount(seconds, query.node, query.member), 6),
            round(_amount(rows, query.node, query.member)),
            None if kept is None else round(_amount(kept, query.node, query.member)),
        )
        for name, query in plan.queries.items()
    }


def _divide(plan: Plan, amounts: Mapping[int, float]) -> Charges:
    member_charges = charge_members(
        plan, [Charge(node, None, amount) for node, amount in amounts.items()]
    )
    return gather_up(plan, member_charges, divided=True)


def _amount(parts: Charges, node: int, member: int) -> float:
    return float(parts[node][member]) if node in parts else 0.0


def _state_bytes(root: str, manifest: Manifest) -> dict[int, float]:
    """Returns the bytes in files that operators keep in all partitions, by node. Raises
    ``CheckpointError``.
    """
    bytes_by_node, sizes = Counter[int](), dict[str, Counter[str]]()
    for name in manifest.state.values():
        pieces = read_head(state_files.map_(root, name)[1]).pieces
        for key, key_pieces in pieces.items():
            number = key.split(".", 1)[0]
            for piece in key_pieces if number.isdigit() else ():
                file = piece.file or name
                if file not in sizes:
                    sizes[file] = _sizes(root, file)
                bytes_by_node[int(number)] += sizes[file][piece.name]
    return dict(bytes_by_node)


def _sizes(root: str, file: str) -> Counter[str]:
    """Returns the bytes of each piece in a file."""
    frames, sizes = state_files.map_(root, file)[0], Counter[str]()
    assert isinstance(frames, CheckedFrames), "files of state are checked"
    for name, size in frames.sizes().items():
        sizes[name.split(".", 1)[0]] += size
    return sizes


ATTEMPTS = 5


@frozen
class PatternStatus:
    """A pattern of a query over a stream. ``matched_triples``: the triples that matched it (None:
    not counted).
    """

    stream: str
    text: str
    matched_triples: int | None


@frozen
class QueryStatus:
    """The status of a query. ``results``: so far. ``watermark``: ms. ``blocking_stream``: the
    stream that the query waits for. ``next_report``: ms (None: at a change). ``reason``: why it has
    no results. ``until``: its end, ms (None: open). ``shared_operators``: those that other queries
    use, too. Its charges since it was added: ``cpu_seconds``, ``input_rows`` of its operators,
    ``state_bytes`` (None: unknown). ``unmatched_patterns``: sentences about patterns that no triple
    has matched.
    """

    name: str
    results: int
    watermark: int
    blocking_stream: str | None
    patterns: tuple[PatternStatus, ...]
    next_report: int | None
    reason: str
    until: int | None = None
    shared_operators: tuple[ShareStatus, ...] = ()
    cpu_seconds: float = 0.0
    input_rows: int = 0
    state_bytes: int | None = None
    unmatched_patterns: tuple[str, ...] = ()


@frozen
class DriverStatus:
    """An active or waiting engine. ``since_ms``: the instant of its start by its clock (ms)."""

    host: str
    pid: int
    since_ms: int


@frozen
class MemoryStatus:
    """Resident bytes of an engine on its machine: of its process, and of its child processes."""

    driver_bytes: int
    task_bytes: int


@frozen
class Status:
    """A checkpoint after its last epoch.

    ``suspended_queries``: the reason for each suspended query. ``outputs``: the lag of outputs.
    ``placement``: the effect of the last placement. ``active_driver``: the engine that has taken
    the checkpoint over, and has not left. ``standby_drivers``: engines that wait. ``lost_tasks``:
    how often the next epoch has lost tasks, and why. ``balance``: the loads of the last round, and
    recent decisions. ``epoch_costs``: measured and predicted costs of epochs.

    ``unavailable_streams``: the streams whose sources do not answer the active engine.
    ``runtime_streams``: the streams that were added to a running engine. ``ended_queries``: the
    ends (ms) of the program's ended queries. ``relaxed_joins``: the costs of relaxed joins.
    ``join_strategies``: the forms of joins whose form is chosen. ``transport``: the transport of
    blobs between tasks. ``migrating_queries``: the queries that migrate to another order of joins.
    ``static_load``: the last read of static data. ``tables``: the static tables, as they were read
    last. ``token_faults``: rejected lines of the server's file of tokens. ``failed_migrations``:
    how often a failure of Levada has ended the migrations of a run. ``clock_step``: the last step
    of the active engine's clock. ``memory``: of the active or last engine.
    """

    epoch: int
    has_ended: bool
    streams: dict[str, StreamCounts]
    queries: tuple[QueryStatus, ...]
    suspended_queries: dict[str, str] = field(default_factory=dict)
    outputs: tuple[OutputStatus, ...] = ()
    placement: Preferences | None = None
    active_driver: DriverStatus | None = None
    standby_drivers: tuple[DriverStatus, ...] = ()
    lost_tasks: str = ""
    balance: RebalanceReport | None = None
    epoch_costs: Costs | None = None
    unavailable_streams: tuple[Away, ...] = ()
    runtime_streams: tuple[str, ...] = ()
    executors: AffinityStats | None = None
    ended_queries: dict[str, int] = field(default_factory=dict)
    relaxed_joins: tuple[RelaxedStatus, ...] = ()
    join_strategies: tuple[FormStatus, ...] = ()
    transport: CarriedStatus | None = None
    migrating_queries: tuple[str, ...] = ()
    static_load: Loaded | None = None
    tables: tuple[TableState, ...] = ()
    token_faults: int = 0
    failed_migrations: int = 0
    clock_step: str = ""
    memory: MemoryStatus | None = None

    def _repr_html_(self) -> str:
        state = "ended" if self.has_ended else "running"
        rows = [(q.name, str(q.results), q.reason) for q in self.queries]
        read = ", ".join(f"{name} {c.elements}" for name, c in self.streams.items())
        caption = f"epoch {self.epoch}, {state}; elements: {read or 'none'}"
        return rows_html(("query", "results", "why none"), rows, caption)


def read_status(root: Path) -> Status:
    """Reads the status of a checkpoint. Raises ``CheckpointError`` if the folder is not a
    checkpoint, or has had no epoch.
    """
    facts = facts_of(root)
    for attempt in range(ATTEMPTS):
        try:
            manifest = newest_manifest(root)
            if manifest is None:
                raise CheckpointError(f"The checkpoint {root} has had no epoch yet.")
            plan = plan_of(root, facts, manifest.plan)
            status = status_of(root, manifest, plan, read_suspended(root))
            ledger = read_ledger(root)
            came = tuple(named.name for named in ledger.added_streams)
            over = {name: one.until for name, one in ledger.ended_queries.items()}
            known = tuple(name for name in came if name in status.streams)
            driver_fields, load = _drivers(root, manifest.epoch), last_load(root)
            return replace(
                status,
                streams=with_backlog(status.streams, load),
                memory=memory_of(load),
                outputs=outputs_of(root),
                runtime_streams=known,
                ended_queries=over,
                **driver_fields,
            )
        except (CheckpointError, OSError):
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def _drivers(root: Path, epoch: int) -> dict[str, Any]:
    """Returns the fields about active and waiting engines, and about failures of the next epoch."""
    lost = read_losses(root)
    return {
        "active_driver": _active(root),
        "unavailable_streams": sources_away(root),
        "clock_step": clock_step(root),
        "standby_drivers": tuple(
            DriverStatus(w.host, w.pid, w.since_ms) for w in read_standbys(root).values()
        ),
        "lost_tasks": str(lost) if lost is not None and lost.epoch > epoch else "",
        "token_faults": read_server_report(root).token_faults,
        "failed_migrations": failed_migrations(root),
    }


def failed_migrations(root: Path) -> int:
    """Returns how often a failure of Levada has ended the migrations of a run."""
    return decision_log_file.open_journal(root).kept.failed_migrations


def sources_away(root: Path) -> tuple[Away, ...]:
    """Returns the streams whose sources did not answer the engine on a checkpoint within the last
    second, or at its death. After a clean end it is empty.
    """
    pulse = read_pulse(root)
    return () if pulse is None else pulse.unavailable_streams


def last_load(root: Path) -> Load:
    """Returns the last measurements of the engine on a checkpoint; empty without any."""
    pulse = read_pulse(root)
    return Load() if pulse is None else pulse.load


def with_backlog(streams: Mapping[str, StreamCounts], load: Load) -> dict[str, StreamCounts]:
    """Returns the counts of streams with their unread input."""
    return {name: replace(c, backlog=load.backlog.get(name)) for name, c in streams.items()}


def memory_of(load: Load) -> MemoryStatus | None:
    """Returns the memory that was measured; None if it was not."""
    return MemoryStatus(load.driver_bytes, load.task_bytes) if load.driver_bytes else None


def clock_step(root: Path) -> str:
    """Returns the last step of the clock of the engine on a checkpoint; "" without one."""
    pulse = read_pulse(root)
    return "" if pulse is None else pulse.clock_step


def _active(root: Path) -> DriverStatus | None:
    by, pulse = last_takeover(root), read_pulse(root)
    if by is None or (pulse is not None and pulse.leadership == by.leadership and pulse.is_last):
        return None
    return DriverStatus(by.host, by.pid, by.wall_ms)


def status_of(
    root: Path, manifest: Manifest, plan: Plan, suspended: Mapping[str, Suspension] | None = None
) -> Status:
    """Returns the status of all queries, from a manifest of a checkpoint and its plan."""
    had, common = solutions_of(str(root), manifest, plan), shares(plan)
    statuses = [_query(q, had.get(q.name, 0), manifest, plan) for q in plan.queries.values()]
    parts = charges(root, manifest, plan)
    queries = tuple([
        replace(q, shared_operators=common.get(q.name, ()), **parts[q.name]._asdict())
        for q in statuses
    ])  # fmt: skip
    streams = {name: counts_of(record) for name, record in live_streams(manifest, plan).items()}
    why = {name: describe_suspension(name, s) for name, s in (suspended or {}).items()}
    costs, muted = manifest.epoch_costs, plan.muted
    return Status(
        manifest.epoch, manifest.has_ended, streams, queries, why,
        placement=manifest.placement, balance=manifest.balance,
        epoch_costs=None if costs is None else with_operator_names(costs, plan),
        executors=manifest.executors,
        relaxed_joins=tuple(relaxed_joins(manifest.relaxed_joins)),
        join_strategies=tuple(forms(manifest.join_strategies, plan)),
        transport=carried_status(manifest.transport), static_load=manifest.static_load,
        tables=tuple(read_states(root)),
        migrating_queries=tuple(plan.nodes[at].members.query_at(member) for at, member in muted),
    )  # fmt: skip


def reasons(status: Status) -> dict[str, str]:
    """Returns a sentence for each query that has no result or is suspended."""
    return {q.name: q.reason for q in status.queries if q.reason} | status.suspended_queries


def counts_of(record: StreamRecord) -> StreamCounts:
    """Returns the counts of a stream's record that users need."""
    return StreamCounts(
        record.elements,
        record.triples,
        record.late,
        record.dead_letters,
        record.watermark,
        record.late_files,
        record.deleted_files,
        record.replaced_files,
        record.suspected_unit,
        tuple(record.dead_letter_reasons),
        record.null_messages,
        behind(record),
        describe_empty_columns(record.empty_columns, record.elements, record.members),
    )


def behind(record: StreamRecord) -> str:
    """Describes the element behind which most others were late, from when on, and how many; ""
    without one.
    """
    leads = [
        lead for lead in (record.lead, record.costliest_lead) if lead is not None and lead.late
    ]
    if not leads:
        return ""
    lead = max(leads, key=lambda each: each.late)
    many = count_text(lead.late, "element was", "elements were")
    return (
        f"{many} late behind the one at {lead.place}, of {instant(lead.ts)}, which moved the "
        f"watermark on {instant(lead.wall_ms)}."
    )


def progress_of(
    manifest: Manifest, before: Manifest | None, results: int, seconds: float
) -> Progress:
    """Returns the progress of a run after ``seconds`` with ``results``. ``before``: the last
    manifest of earlier runs.
    """
    streams = {n: s for n, s in manifest.streams.items() if not is_derived(n)}
    w = {n: s.watermark for n, s in streams.items()}
    ever, past = (
        _all_runs_totals(manifest),
        AllRunsTotals() if before is None else _all_runs_totals(before),
    )
    return Progress(
        ever.epochs - past.epochs,
        ever.elements - past.elements,
        results,
        seconds,
        w,
        all_runs=None if before is None else ever,
    )


def _all_runs_totals(manifest: Manifest) -> AllRunsTotals:
    records = manifest.streams.items()
    elements = sum(s.elements for n, s in records if is_left(n) or not is_derived(n))
    return AllRunsTotals(manifest.epoch, elements, manifest.results)


def live_streams(manifest: Manifest, plan: Plan) -> dict[str, StreamRecord]:
    """Returns the records of streams by display name: outside ones, and derived ones that queries
    read.
    """
    streams = manifest.streams.items()
    return {
        display_name(n): record
        for n, record in streams
        if not is_derived(n) or (n in plan.made and n in plan.read_streams)
    }


def _query(query: QueryPlan, results: int, manifest: Manifest, plan: Plan) -> QueryStatus:
    w = {name: manifest.streams.get(name, StreamRecord()).watermark for name in query.streams}
    least = min(w.values(), default=MAX)
    holder = display_name(min(w, key=lambda n: w[n])) if len(w) > 1 and least < MAX else None
    patterns = tuple(_patterns(query, manifest, plan))
    due = _next_report(query, least)
    why = "" if results else _why(query, manifest, plan) or _wait_text(least, due, holder)
    until = query.until if query.until < MAX else None
    return QueryStatus(
        query.name, results, least, holder, patterns, due, why, until,
        unmatched_patterns=tuple(_describe_unmatched(patterns, query, manifest)),
    )  # fmt: skip


def _describe_unmatched(
    patterns: Iterable[PatternStatus], query: QueryPlan, manifest: Manifest
) -> Iterator[str]:
    """Yields a sentence for each of the first patterns that no triple of a read stream matched."""
    records = {display_name(name): manifest.streams.get(name) for name in query.streams}
    wanting = [p for p in patterns if p.matched_triples == 0]
    for pattern in wanting[:MAX_SHOWN]:
        record = records.get(pattern.stream)
        if record is not None and record.elements:
            yield describe_pattern(pattern.stream, pattern.text, record.members)


def _patterns(query: QueryPlan, manifest: Manifest, plan: Plan) -> Iterator[PatternStatus]:
    seen = set()
    for stream, text in patterns_read(plan, query.node, query.member):
        if (stream, text) in seen:
            continue
        seen.add((stream, text))
        if not text:
            yield PatternStatus(
                stream, "its rows", manifest.streams.get(stream, StreamRecord()).elements
            )
        else:
            yield PatternStatus(
                display_name(stream), text, manifest.pattern_matches.get(stream, {}).get(text)
            )


def _next_report(query: QueryPlan, least: int) -> int | None:
    """Returns the first unreported close of a window, or of the clock; None if nothing closes."""
    windows = [on.window for on in query.windows] if query.clock is None else [query.clock]
    closing = [w for w in windows if w.kind.on_close]
    if not closing or not MIN < least < MAX:
        return None
    return min(
        w.next_close(least if w.kind is WindowKind.CLOSE_OPEN else least - 1) for w in closing
    )


def _why(query: QueryPlan, manifest: Manifest, plan: Plan) -> str:
    """Returns a sentence for a query without results, if its sources explain that; else ""."""
    if not query.streams:
        return "Nothing in the static data answers it."
    for name in query.streams:
        record = manifest.streams.get(name, StreamRecord())
        if not record.elements:
            letters = count_text(record.dead_letters, "dead letter")
            dead = f": it has {letters}." if record.dead_letters else "."
            return f"No element of {display_name(name)} has been read{dead}"
    wanting = starving_patterns(
        plan,
        query.node,
        query.member,
        lambda stream, text: manifest.pattern_matches.get(stream, {}).get(text),
    )
    if not wanting:
        return ""
    streams = " or ".join(dict.fromkeys(display_name(stream) for stream, _ in wanting))
    patterns = " or ".join(dict.fromkeys(text for _, text in wanting))
    record = manifest.streams.get(wanting[0][0], StreamRecord())
    members = record.members if len(set(wanting)) == 1 else ()
    return describe_pattern(streams, patterns, members)


def _wait_text(least: int, due: int | None, holder: str | None) -> str:
    """Describes what a query without results waits for."""
    if least >= MAX:
        return "Nothing came through the query's joins, filters and windows."
    if due is not None:
        late = ""
        if holder is not None:
            late = (
                f" {holder} holds it back: if it is silent or finished, say idle=5s; if its rows "
                "have no times, read it as a table."
            )
        here, there = instant(least), instant(due)
        return f"The next report can be made when the watermark, at {here}, reaches {there}.{late}"
    return "Nothing has come through the query's joins, filters and windows yet."

"""Why is there no result? What a checkpoint says about each query, also while an engine runs on it.

Everything comes from the last manifest and its plan: the watermark of each stream, how many
elements came and how many matched each pattern, and when the next report can be. Nothing is locked,
so a file may go while it is read: then it is read again.

The rule by which a report comes is that of docs/semantics.md#progress: report r is made when the
least watermark of the query's streams reaches r (windows on close with bounds ``[)``) or passes it
(all others).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from levada.engine.summary import Progress, StreamCounts
from levada.errors import CheckpointError
from levada.model.names import is_derived, shown
from levada.model.time import MAX, MIN, WindowKind
from levada.plan.sealed.patterns import patterns_read, starved
from levada.plan.sealed.plan import Plan, QueryPlan
from levada.runtime.store.checkpoint import facts_of, newest_manifest, plan_of
from levada.runtime.store.manifest import Manifest, StreamRecord

ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class PatternStatus:
    """A pattern of a query over a stream, and how many triples matched it (None: not counted)."""

    stream: str
    text: str
    matched: int | None


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """A query: results so far, its watermark (ms), the stream that holds it back, its next report
    (ms; None: at a change).
    """

    name: str
    results: int
    watermark: int
    holds_back: str | None
    patterns: tuple[PatternStatus, ...]
    next_report: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Status:
    """A checkpoint after its last epoch."""

    epoch: int
    ended: bool
    streams: dict[str, StreamCounts]
    queries: tuple[QueryStatus, ...]


def read_status(root: Path) -> Status:
    """The status of a checkpoint. Raises ``CheckpointError`` if it is none, or has had no epoch."""
    facts = facts_of(root)
    for attempt in range(ATTEMPTS):
        try:
            manifest = newest_manifest(root)
            if manifest is None:
                raise CheckpointError(f"The checkpoint {root} has had no epoch yet.")
            return status_of(manifest, plan_of(root, facts, manifest.plan))
        except (CheckpointError, OSError):
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def status_of(manifest: Manifest, plan: Plan) -> Status:
    """What a manifest and its plan say of all queries."""
    queries = tuple(_query(query, manifest, plan) for query in plan.queries.values())
    streams = {name: counts_of(record) for name, record in living(manifest, plan).items()}
    return Status(manifest.epoch, manifest.ended, streams, queries)


def counts_of(record: StreamRecord) -> StreamCounts:
    """What a stream's record says that people ask for."""
    return StreamCounts(
        record.elements,
        record.triples,
        record.late,
        record.dead,
        record.watermark,
        record.overtaken,
    )


def progress_of(manifest: Manifest, seconds: float) -> Progress:
    """Where a run is that has gone on for so long."""
    # others wait for these
    given = {n: s for n, s in manifest.streams.items() if not is_derived(n)}
    w = {n: s.watermark for n, s in given.items()}
    open_ = {n: v for n, v in w.items() if v < MAX}
    holder = min(open_, key=lambda n: open_[n]) if len(w) > 1 and open_ else None
    elements = sum(s.elements for s in given.values())
    results = manifest.gone + sum(n for n, _ in manifest.totals.values())
    return Progress(manifest.epoch, elements, results, seconds, w, holder)


def living(manifest: Manifest, plan: Plan) -> dict[str, StreamRecord]:
    """The streams by their names for people: those from outside, and those made and read here."""
    streams = manifest.streams.items()
    return {
        shown(n): record
        for n, record in streams
        if not is_derived(n) or (n in plan.made and n in plan.read)
    }


def _query(query: QueryPlan, manifest: Manifest, plan: Plan) -> QueryStatus:
    results = manifest.totals.get(query.name, [0, 0])[0]
    w = {name: manifest.streams.get(name, StreamRecord()).watermark for name in query.streams}
    least = min(w.values(), default=MAX)
    holder = shown(min(w, key=lambda n: w[n])) if len(w) > 1 and least < MAX else None
    patterns = tuple(_patterns(query, manifest, plan))
    due = _next_report(query, least)
    why = "" if results else _why(query, manifest, plan) or _wait(least, due, holder)
    return QueryStatus(query.name, results, least, holder, patterns, due, why)


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
            yield PatternStatus(shown(stream), text, manifest.hits.get(stream, {}).get(text))


def _next_report(query: QueryPlan, least: int) -> int | None:
    """The first time at which a window closes that has not been reported, or of the clock; None if
    nothing closes.
    """
    windows = [on.window for on in query.windows] if query.clock is None else [query.clock]
    closing = [w for w in windows if w.kind.on_close]
    if not closing or not MIN < least < MAX:
        return None
    return min(
        w.next_close(least if w.kind is WindowKind.CLOSE_OPEN else least - 1) for w in closing
    )


def _why(query: QueryPlan, manifest: Manifest, plan: Plan) -> str:
    """A sentence for a query without results, if its sources say why; else none."""
    if not query.streams:
        return "Nothing in the static data answers it."
    for name in query.streams:
        if not manifest.streams.get(name, StreamRecord()).elements:
            return f"No element of {shown(name)} has been read."
    wanting = starved(
        plan, query.node, query.member, lambda stream, text: manifest.hits.get(stream, {}).get(text)
    )
    if not wanting:
        return ""
    streams = " or ".join(dict.fromkeys(shown(stream) for stream, _ in wanting))
    patterns = " or ".join(dict.fromkeys(text for _, text in wanting))
    return f"No triple of {streams} has matched the pattern {patterns}."


def _wait(least: int, due: int | None, holder: str | None) -> str:
    """What a query without results waits for."""
    if least >= MAX:
        return "Nothing came through the query's joins, filters and windows."
    if due is not None:
        late = f" {holder} holds it back." if holder is not None else ""
        return f"The next report can be made when the watermark, at {least}, reaches {due}.{late}"
    return "Nothing has come through the query's joins, filters and windows yet."

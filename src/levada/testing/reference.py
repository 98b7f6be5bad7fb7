"""The naive reference: the meaning of a continuous query, recomputed at every report
(docs/semantics.md).

It judges the engine, so it is short and slow, and shares only ``core.event_time`` with it:

1. every occurrence of a triple (or row) is in a window from its ``enter`` to its ``leave``: a
   ``Stay``;
2. the report times of a query follow from its windows' stays (``report_times``);
3. at each of them the windows' contents are collected, and another engine evaluates the query over
   them: SPARQL by pyoxigraph, SQL by SQLite (``oracle_engines``);
4. consecutive results are subtracted as bags (IStream, DStream, a relation's changes).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from levada.core.event_time import MAX, MIN, TIMELESS, Window
from levada.testing.oracle_engines import answer
from levada.testing.reference_model import (
    Answer,
    Bag,
    Element,
    Graphs,
    Item,
    Question,
    ReferenceQuery,
    ReferenceSql,
    Report,
    Row,
    Solution,
    Streams,
    TripleTemplate,
    value_of,
)
from levada.testing.window_membership import Stay, content, occurrences, relation_stays, stays

__all__ = [
    "Bag",
    "Element",
    "Graphs",
    "ReferenceQuery",
    "ReferenceSql",
    "Report",
    "Row",
    "Solution",
    "Streams",
    "evaluate",
]


Held = Mapping[str, Sequence[Stay]]
"""The stays of each window of a query, by the window's name."""


def evaluate(
    query: Question,
    streams: Streams,
    static: Graphs | None = None,
    replaced: Sequence[tuple[int, Graphs]] = (),
) -> list[Report]:
    """Returns the reports of a query, in time order: non-empty ones, or all with ``empty_reports``.

    ``static``: the initial static graphs. ``replaced``: pairs of a time (ms) and the graphs after
    it, in order: a query without windows is evaluated over all of them in turn.

    Streams are sequences of ``Element`` or ``Row`` in any order and end after their last element.
    The caller leaves out late elements. Times are milliseconds. Cost: reports x (occurrences + an
    evaluation). A window that never empties, together with one that reports on close, costs a
    report for each close, also in a gap of a year.

    >>> from levada.core.event_time import WindowKind
    >>> window = Window(WindowKind.RANGE, range=4000)
    >>> query = ReferenceQuery("SELECT ?s { GRAPH <a:w> { ?s ?p ?o } }", {"a:w": ("s", window)})
    >>> stream = [Element(1000, ("<a:a> <a:b> <a:c>",))]
    >>> [(r.time, len(r.solutions)) for r in evaluate(query, {"s": stream})]
    [(1000, 1)]
    """
    if not query.windows:
        return [
            _timeless_report(query, graphs)
            for graphs in (static or {}, *(graphs for _, graphs in replaced))
        ]
    views = query.views if isinstance(query, ReferenceSql) else {}
    beneath = _source_streams(query, views)
    relations = set(query.relations) if isinstance(query, ReferenceSql) else set()
    for name, view in views.items():
        unknown = {n: v for n, v in view.views.items() if n not in streams}
        asked = replace(
            view, after=max(view.after, query.after), relations=frozenset(relations), views=unknown
        )
        streams = {**streams, name: rows_of(evaluate(asked, streams), list(view.types))}
        relations |= {name} if view.output == "RELATION" else set()
    seen = {
        on: occurrences(streams[on], query.after)
        for on in {on for on, _ in query.windows.values()} | beneath
    }
    held = {name: _window_stays(query, name, streams, seen, relations) for name in query.windows}
    windows = {name: window for name, (_, window) in query.windows.items()}
    begin = min(window.start for window in windows.values())
    counted = [ts for on in beneath for ts, _ in seen[on] if ts >= begin]
    out: list[Report] = []
    before: Answer = None
    latest = max((ts for on in beneath for ts, _ in seen[on]), default=MIN)
    for time in report_times(
        windows, held, counted if query.empty_reports else (), query.clock, latest
    ):
        contents = {name: content(held[name], time) for name in held}
        if query.nonempty and not any(contents.values()):
            continue
        now: Answer = None
        if any(contents.values()) or query.empty_reports:
            now = answer(query, contents, _graphs_at(static or {}, replaced, time), time)
        out += _reports(query, time, before, now)
        before = now
    return out


def _source_streams(query: Question, views: Mapping[str, ReferenceSql]) -> set[str]:
    """Returns the external streams that a query reads, itself or by views."""
    streams: set[str] = set()
    for on, _ in query.windows.values():
        streams |= _source_streams(views[on], {**views, **views[on].views}) if on in views else {on}
    return streams


def _graphs_at(static: Graphs, replaced: Sequence[tuple[int, Graphs]], time: int) -> Graphs:
    """Returns the static graphs at an instant."""
    return ([static] + [graphs for after, graphs in replaced if after < time])[-1]


def _timeless_report(query: Question, static: Graphs) -> Report:
    """Returns the only report of a query without windows, also if it is empty."""
    result = answer(query, {}, static, 0)
    if isinstance(result, bool):
        return Report(TIMELESS, boolean=result)
    return _report(query, TIMELESS, None, result or Counter())


def _window_stays(
    query: Question,
    name: str,
    streams: Streams,
    seen: Mapping[str, list[tuple[int, Item]]],
    relations: Collection[str],
) -> list[Stay]:
    """Returns the stays of a window."""
    on, window = query.windows[name]
    if on in relations:
        rows = [
            e
            for e in streams[on]
            if isinstance(e, Row) and e.ts > query.after and e.ts >= window.start
        ]
        return relation_stays(rows)
    by = query.partitions.get(name, ()) if isinstance(query, ReferenceSql) else ()
    if not by:
        return stays(window, seen[on])
    assert isinstance(query, ReferenceSql), "a partition is CQL's"
    at = [list(query.schemas[on]).index(column) for column in by]
    parts: dict[tuple[object, ...], list[tuple[int, Item]]] = {}
    for ts, item in seen[on]:
        parts.setdefault(tuple(item[i] for i in at), []).append((ts, item))
    return [stay for part in parts.values() for stay in stays(window, part)]


def rows_of(reports: Iterable[Report], columns: Sequence[str]) -> list[Row]:
    """Returns the reports of a view as the rows of a stream or relation."""
    rows = []
    for report in reports:
        for solution in report.solutions.elements():
            bound = {name: value_of(text) for name, text in solution}
            row = tuple(bound.get(name) for name in columns)
            rows.append(Row(report.time, row, -1 if report.change == "delete" else 1))
    return rows


def report_times(
    windows: Mapping[str, Window],
    held: Held,
    counted: Sequence[int] = (),
    clock: Window | None = None,
    latest: int = MIN,
) -> list[int]:
    """Returns the times at which a query is evaluated: the union over its windows.

    These are the closes of the windows that report on close, and the enters and leaves of the
    others. If all windows stay empty, only the first such time after content counts. With a window
    that never empties the times end with the last change of any window's content. They end at
    ``latest`` (the last event time of any element) if that is later, since the streams may not have
    ended by then. With ``counted`` (the event times of all elements, for ``empty_reports``) every
    close after the first element counts, up to the last report or element. With a ``clock`` its
    closes replace all these, up to the first at or after the last change, or the last up to
    ``latest``.
    """
    occupied = _spans(s for name in held for s in held[name])
    last = max((t for name in held for t in _changes(held[name])), default=MIN)
    closing = [w for w in windows.values() if w.kind.on_close]
    times = {t for name in held if not windows[name].kind.on_close for t in _changes(held[name])}
    if clock is not None:
        closing, times, last = [clock], set(), clock.next_close(last - 1) if last > MIN else MIN
    last = max(last, latest)
    for start, end in occupied:
        for window in closing:
            times.update(_closes(window, start, min(end, last)))
            if end < MAX:
                times.add(window.next_close(end - 1))
    kept = _after_content(sorted(times), occupied)
    if counted:
        ends = [clock.next_close(end - 1) for _, end in occupied if end < MAX] if clock else []
        for window in closing:
            kept += _closes(window, min(counted) + 1, max(*counted, *kept, *ends, MIN))
    return sorted(set(kept))


def _changes(held: Iterable[Stay]) -> set[int]:
    """Returns the instants at which an occurrence enters or leaves."""
    return {t for s in held for t in (s.enter, s.leave) if t < MAX}


def _spans(every: Iterable[Stay]) -> list[tuple[int, int]]:
    """Returns the times at which a window is not empty, as disjoint intervals [start, end) in
    order.
    """
    merged: list[tuple[int, int]] = []
    for enter, leave in sorted((s.enter, s.leave) for s in every):
        if merged and enter <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(leave, merged[-1][1]))
        else:
            merged.append((enter, leave))
    return merged


def _closes(window: Window, first: int, last: int) -> Iterator[int]:
    """Yields the closes in [first, last]."""
    close = window.next_close(first - 1)
    while close <= last:
        yield close
        close = window.next_close(close)


def _after_content(times: Iterable[int], occupied: Sequence[tuple[int, int]]) -> list[int]:
    """Removes the times at which all windows are empty and were empty at the time before."""
    starts = [start for start, _ in occupied]
    kept = []
    before = False
    for time in times:
        at = bisect_right(starts, time) - 1
        now = at >= 0 and time < occupied[at][1]
        if now or before:
            kept.append(time)
        before = now
    return kept


def _reports(query: Question, time: int, before: Answer, now: Answer) -> Iterator[Report]:
    """Yields the reports at this time. The first ASK counts as changed."""
    if isinstance(now, bool) or isinstance(before, bool):
        if now is not None and (query.output == "RSTREAM" or now is not before):
            yield Report(time, boolean=bool(now))
        return
    changes = differences(query.output, before or Counter(), now or Counter())
    # a relation's empty report is written once
    said = [one for one in changes if one[1]] or changes[-1:] * query.empty_reports
    for change, bag in said:
        yield _report(query, time, change, bag)


def differences(output: str, before: Bag, now: Bag) -> list[tuple[str | None, Bag]]:
    """Returns the output of a relation-to-stream operator for two consecutive results, as bags.

    >>> a, b = frozenset({("x", "1")}), frozenset({("x", "2")})
    >>> told = differences("ISTREAM", Counter({a: 1}), Counter({a: 2, b: 1}))
    >>> told == [(None, Counter({a: 1, b: 1}))]
    True
    """
    match output:
        case "RSTREAM":
            return [(None, now)]
        case "ISTREAM":
            return [(None, now - before)]
        case "DSTREAM":
            return [(None, before - now)]
        case _:
            return [("delete", before - now), ("insert", now - before)]


def _report(query: Question, time: int, change: str | None, bag: Bag) -> Report:
    if isinstance(query, ReferenceSql):
        return Report(time, bag, change=change)
    if query.template:
        return Report(time, graph=construct(query.template, bag), change=change)
    size = None
    if query.limit is not None:
        size = max(min(bag.total() - query.offset, query.limit), 0)
    return Report(time, bag, change=change, size=size)


def elements_of(name: str, query: ReferenceQuery, reports: Iterable[Report]) -> tuple[Element, ...]:
    """Returns the reports of a CONSTRUCT as a stream, without empty graphs.

    A node of the template differs in each report; other blank nodes stay the same.
    """
    labels = "|".join(
        {re.escape(t[2:]) for triple in query.template for t in triple if t.startswith("_:")}
    )
    elements = []
    for report in reports:
        tail = f"in{name}at{report.time}".replace("-", "m")
        blank_nodes = re.compile(rf"(?<!\S)(_:(?:{labels})s\d+)(?!\S)")
        graph = sorted(report.graph or ())
        triples = (
            tuple(blank_nodes.sub(rf"\g<1>{tail}", t) for t in graph) if labels else tuple(graph)
        )
        if triples:
            elements.append(Element(report.time, triples))
    return tuple(elements)


def construct(template: Sequence[TripleTemplate], bag: Bag) -> frozenset[str]:
    """Returns the graph of a CONSTRUCT: the template for each solution, without invalid triples
    (16.2).

    >>> sorted(construct([("?s", "<a:p>", '"x"')], Counter({frozenset({("s", "<a:s>")}): 2})))
    ['<a:s> <a:p> "x"']
    """
    graph = set()
    for n, solution in enumerate(sorted(bag.elements(), key=sorted)):
        bound = {f"?{name}": text for name, text in solution}
        for triple in template:
            s, p, o = (f"{t}s{n}" if t.startswith("_:") else bound.get(t, t) for t in triple)
            if s[0] in "<_" and p[0] == "<" and o[0] != "?":
                graph.add(f"{s} {p} {o}")
    return frozenset(graph)

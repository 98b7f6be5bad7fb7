"""From rows with event times to reports: each row at the reports at which it counts, and what
begins and ends at them.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.event_time import MAX, MIN, Window, WindowKind
from levada.operators.operator_registry import evaluate
from levada.operators.reporting.relation_to_stream import changes
from levada.operators.reporting.report import report
from levada.operators.windowing.element_times import EventTimes
from levada.operators.windowing.report_times import instants
from levada.plan.execution import steps as s
from levada.plan.execution.report_schedules import Schedule
from support.operator_nodes import Bench, calendar, state

VALUES = (":a", ":b")
rows = st.lists(
    st.tuples(st.integers(0, 20).map(lambda n: 500 * n), st.sampled_from(VALUES)),
    min_size=1,
    max_size=8,
)
cuts = st.sets(st.integers(1, 20).map(lambda n: 500 * n), max_size=4)
CLOSE = Window(WindowKind.CLOSE_OPEN, 4000, 2000)


def epochs(
    seen: list[tuple[int, str]], at: set[int]
) -> list[tuple[int, int, list[tuple[int, str]]]]:
    """(watermark before, after, the rows between)."""
    bounds = [MIN, *sorted(at), MAX]
    return [(a, b, [row for row in seen if a <= row[0] < b]) for a, b in pairwise(bounds)]


def at_reports(seen: list[tuple[int, str]]) -> dict[int, Counter]:
    """The content of the window, as a bag, at each close at which it holds something."""
    found: dict[int, Counter] = {}
    for ts, name in seen:
        close = CLOSE.enter(ts)
        while close < CLOSE.leave(ts):
            found.setdefault(close, Counter())[name] += 1
            close = CLOSE.next_close(close)
    return found


@given(rows, cuts)
def test_rows_are_at_the_closes_at_which_they_count(
    seen: list[tuple[int, str]], at: set[int]
) -> None:
    bench = Bench("SELECT ?s", "?s :p ?o")
    node, kept = bench.node(s.Report), state()
    found: dict[int, Counter] = {}
    for old, new, batch in epochs(seen, at):
        columns: dict[str, Any] = {"lo0": [ts for ts, _ in batch], "prev0": [MIN] * len(batch)}
        frame = bench.frame(node, [(name, None) for _, name in batch], **columns) if batch else None
        out = report(node, [frame], bench.env(old, new, kept=kept))
        if out is not None:
            for (name,), r in zip(bench.terms(out), out["r"].tolist(), strict=True):
                assert old < r <= new
                found.setdefault(r, Counter())[name] += 1
    assert found == at_reports(seen)


def differences(seen: list[tuple[int, str]], output: str) -> dict[int, Counter]:
    """What is inserted or deleted at each close, as bags."""
    bags = at_reports(seen)
    found = {}
    before: Counter = Counter()
    close = CLOSE.next_close(min(ts for ts, _ in seen))
    while close <= max(CLOSE.leave(ts) for ts, _ in seen):
        now = bags.get(close, Counter())
        bag = now - before if output == "ISTREAM" else before - now
        if bag:
            found[close] = bag
        before, close = now, CLOSE.next_close(close)
    return found


@pytest.mark.parametrize("output", ["ISTREAM", "DSTREAM"])
@given(seen=rows, at=cuts)
def test_changes_are_differences_of_bags(
    output: str, seen: list[tuple[int, str]], at: set[int]
) -> None:
    bench = Bench("SELECT ?s", "?s :p ?o", output=output)
    node, kept = bench.node(s.Changes), state()
    found: dict[int, Counter] = {}
    for old, new, batch in epochs(seen, at):
        columns: dict[str, Any] = {"lo0": [ts for ts, _ in batch], "prev0": [MIN] * len(batch)}
        frame = bench.frame(node, [(name, None) for _, name in batch], **columns) if batch else None
        out = changes(node, [frame], bench.env(old, new, kept=kept))
        if out is not None:
            for (name,), r in zip(bench.terms(out), out["r"].tolist(), strict=True):
                found.setdefault(r, Counter())[name] += 1
            assert set(out["w"].tolist()) <= {1 if output == "ISTREAM" else -1}
    assert found == differences(seen, output)


def test_an_earlier_occurrence_delays_a_row() -> None:
    """x of 1.0 leaves at 6; x of 3.0 counts only from then on, so the triple is in the set once at
    each close.
    """
    bench = Bench("SELECT ?s", "?s :p ?o")
    node = bench.node(s.Report)
    frame = bench.frame(node, [(":x", None), (":x", None)], lo0=[1000, 3000], prev0=[MIN, 1000])
    out = report(node, [frame], bench.env(MIN, MAX))
    assert out is not None
    assert sorted(out["r"].tolist()) == [2000, 4000, 6000]


def test_weights_of_equal_rows_are_netted() -> None:
    bench = Bench("SELECT ?s", "?s :p ?o", clause="[TRIPLES 2]")
    node = bench.node(s.Report)
    times = [1000, 1000, 2000]
    columns: dict[str, Any] = {
        "lo0": [1000, 1000, 2000],
        "hi0": [1000, 2000, 2000],
        "w": [1, -1, 1],
    }
    frame = bench.frame(node, [(":a", ":x"), (":a", ":x"), (":b", ":x")], **columns)
    out = report(node, [frame], bench.env(MIN, MAX, sorted(set(times))))
    assert out is not None
    assert sorted(zip(out["r"].tolist(), bench.terms(out), strict=True)) == [
        (1000, (":a",)),
        (2000, (":b",)),
    ]


def test_the_calendar_has_each_report_once_where_windows_close_together() -> None:
    """Reports of two windows on close: the union of both grids."""
    query = (Window(WindowKind.CLOSE_OPEN, 2000, 2000), Window(WindowKind.CLOSE_OPEN, 3000, 3000))
    found = instants(
        Schedule(query, (0, 0), MIN), {0: EventTimes.from_times([0, 6500])}, MIN, MAX, ended=True
    )
    assert found.times[found.nonempty].tolist() == [2000, 3000, 4000, 8000, 9000, 10000]


@pytest.mark.parametrize("kind", [s.Report, s.Changes])
def test_between_closes_nothing_that_waits_is_opened_or_written_again(kind: type) -> None:
    bench = Bench("SELECT ?s", "?s :p ?o", output="RSTREAM" if kind is s.Report else "DSTREAM")
    node, kept = bench.node(kind), state()
    for old in range(100, 1900, 100):
        before = {p.name for pieces in kept._pieces.values() for p in pieces}
        frame = bench.frame(node, [(":a", None)], lo0=[old], prev0=[MIN])
        assert not calendar(node, old, old + 100).any_due
        assert evaluate(node, [frame], bench.env(old, old + 100, kept=kept)) is None
        new = [p for pieces in kept._pieces.values() for p in pieces if p.name not in before]
        assert sum(p.rows for p in new) <= 16
    assert calendar(node, 1900, 2000).any_due

"""The windowed join and what makes its inputs sets, against brute force: any cut into epochs, any
order of the sides.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from levada.core.event_time import MIN, Window, WindowKind
from levada.operators.windowed.deduplicate import find_occurrences
from levada.operators.windowed.windowed_join import join
from levada.plan.execution import steps as s
from support.operator_nodes import Bench, state

VALUES = (":a", ":b", ":c")
times = st.integers(0, 12).map(lambda n: 1000 * n)
left_rows = st.lists(
    st.tuples(times, st.sampled_from(VALUES), st.sampled_from(VALUES)), max_size=10
)
WINDOW = Window(WindowKind.RANGE, 4000)


def triples_with_prev(rows: list[tuple[int, str, str]]) -> list[tuple[int, int, str, str]]:
    """(ts, prev, s, o): equal rows of one time once, each with the greatest earlier time of an
    equal one.
    """
    out = []
    for ts, a, b in sorted(set(rows)):
        out.append(
            (ts, max((t for t, x, y in rows if (x, y) == (a, b) and t < ts), default=MIN), a, b)
        )
    return out


def begins(hi: int, prev: int) -> int:
    """From when a row counts; an earlier occurrence that has left before does not matter, and may
    be forgotten.
    """
    return max(WINDOW.enter(hi), WINDOW.leave(prev))


@given(left_rows, left_rows, st.sets(times))
def test_pairs_are_those_of_brute_force(left: list, right: list, cuts: set[int]) -> None:
    bench = Bench("SELECT *", "?s :p ?o . ?o :q ?z", clause="[RANGE PT4S]")
    node, kept = bench.node(s.Join), state()
    found: Counter = Counter()
    for low, high in zip([-1, *sorted(cuts)], [*sorted(cuts), 10**6], strict=True):
        frames = []
        for side, rows in enumerate((left, right)):
            batch = [row for row in rows if low < row[0] <= high]
            pairs = [row[1:] for row in batch]
            frames.append(
                bench.frame(node, pairs, side, lo0=[row[0] for row in batch]) if batch else None
            )
        out = join(node, frames, bench.env(max(low, 0) + 1, high + 1, kept=kept))
        if out is not None:
            starts = [
                begins(hi, prev)
                for hi, prev in zip(out["hi0"].tolist(), out["prev0"].tolist(), strict=True)
            ]
            found.update(zip(bench.terms(out, 3), out["lo0"].tolist(), starts, strict=True))
    expected: Counter = Counter()
    for t, before, a, b in triples_with_prev(left):
        for u, earlier, c, d in triples_with_prev(right):
            lo, start = min(t, u), begins(max(t, u), max(before, earlier))
            if b == c and start < WINDOW.leave(lo):
                expected[((a, b, d), lo, start)] += 1
    assert found == expected


@given(left_rows, st.sets(times))
def test_occurrences_are_numbered_by_time(rows: list, cuts: set[int]) -> None:
    bench = Bench("SELECT *", "?s :p ?o", clause="[RANGE PT4S]")
    node, kept = bench.node(s.Occur), state()
    found = []
    for low, high in zip([-1, *sorted(cuts)], [*sorted(cuts), 10**6], strict=True):
        batch = [row for row in rows if low < row[0] <= high]
        if batch:
            frame = bench.frame(node, [row[1:] for row in batch], lo0=[row[0] for row in batch])
            out = find_occurrences(node, [frame], bench.env(kept=kept))
            assert out is not None
            found += list(
                zip(out["lo0"].tolist(), out["prev0"].tolist(), bench.terms(out, 2), strict=True)
            )
    expected = [(ts, prev, (a, b)) for ts, prev, a, b in triples_with_prev(rows)]
    assert sorted(found) == sorted(expected)


def test_members_do_not_meet() -> None:
    """Rows of two queries of one shape are in one frame; only rows of the same query join."""
    bench = Bench("SELECT *", "?s :p ?o . ?o :q ?z", more=["?s :x ?o . ?o :y ?z"])
    node = bench.node(s.Join)
    left = bench.frame(node, [(":a", ":b"), (":c", ":b")], 0, lo0=[0, 0], op=[0, 1])
    right = bench.frame(node, [(":b", ":d")], 1, lo0=[0], op=[1])
    out = join(node, [left, right], bench.env())
    assert out is not None
    assert (bench.terms(out, 3), out["op"].tolist()) == ([(":c", ":b", ":d")], [1])


def test_dead_rows_meet_nobody() -> None:
    bench = Bench("SELECT *", "?s :p ?o . ?o :q ?z", clause="[RANGE PT4S]")
    node, kept = bench.node(s.Join), state()
    join(node, [bench.frame(node, [(":a", ":b")], 0, lo0=[0]), None], bench.env(kept=kept))
    late = bench.frame(node, [(":b", ":d")], 1, lo0=[5000])
    assert join(node, [None, late], bench.env(5000, 5000, kept=kept)) is None
    assert not kept.pieces(f"{node.id}.0")

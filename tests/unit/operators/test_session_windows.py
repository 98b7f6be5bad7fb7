"""Session windows against the naive reference, in any cut into batches; what they keep."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from levada.core.event_time import MAX, MIN, Window, WindowKind
from levada.operators.state.state_parts import State
from levada.operators.windowed.session_window import session
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.logical.query_options import QueryOptions
from levada.testing.window_membership import content, stays
from support.operator_nodes import Bench, state, term

NAMES = (":a", ":b", ":c")
elements = st.lists(st.tuples(st.integers(0, 12), st.sampled_from(NAMES)), min_size=1, max_size=12)
Change = tuple[int, str, int]


def epoch(
    bench: Bench,
    node: PlanNode[s.Session],
    kept: State,
    rows: Sequence[tuple[int, str]],
    low: int,
    high: int,
) -> list[Change]:
    """What the window emits when the watermark goes from ``low`` to ``high``: (instant, name, +1 or
    -1).
    """
    batch = sorted((ts, name) for ts, name in rows if low <= ts < high)
    triples = [(name, ":p", ":o") for _, name in batch]
    frame = bench.frame(node, triples, lo0=[ts for ts, _ in batch]) if batch else None
    seen = sorted({ts for ts, _ in rows if ts < high})
    out = session(node, [frame], bench.env(low, high, seen, kept=kept))
    if out is None:
        return []
    names = [name for (name,) in bench.terms(out) if name is not None]
    if "w" not in out:
        return [
            (t + d, n, w)
            for t, n in zip(out["lo0"].tolist(), names, strict=True)
            for d, w in ((0, 1), (1, -1))
        ]
    return list(zip(out["hi0"].tolist(), names, out["w"].tolist(), strict=True))


@given(elements, st.integers(1, 5), st.sampled_from((None, "change")), st.sets(st.integers(0, 20)))
def test_changes_add_up_to_the_sessions(
    rows: list[tuple[int, str]], gap: int, report: str | None, cuts: set[int]
) -> None:
    options = QueryOptions(report="change") if report else QueryOptions()
    bench = Bench("SELECT ?s", "?s ?p ?o", clause=f"[SESSION PT0.00{gap}S]", options=options)
    node, kept = bench.node(s.Session), state()
    changes = [
        change
        for low, high in zip([MIN, *sorted(cuts)], [*sorted(cuts), MAX], strict=True)
        for change in epoch(bench, node, kept, rows, low, high)
    ]
    ordered = sorted({(ts, f"{term(name)} <http://e/p> <http://e/o>") for ts, name in rows})
    kind = WindowKind.SESSION if report else WindowKind.ENDED
    held = stays(Window(kind, range=gap), ordered)
    for tau in range(20):
        there = {item for item, _ in content(held, tau)}
        for name in NAMES:
            netted = sum(w for t, changed, w in changes if t <= tau and changed == name)
            assert netted == (f"{term(name)} <http://e/p> <http://e/o>" in there)
    assert not kept.pieces(f"{node.id}.open")


def test_each_triple_of_an_open_session_is_kept_once() -> None:
    bench = Bench("SELECT ?s", "?s ?p ?o", clause="[SESSION PT1S]")
    node, kept = bench.node(s.Session), state()
    rows = [(ts, NAMES[ts % 2]) for ts in range(40)]
    for ts in range(40):
        assert epoch(bench, node, kept, rows, ts, ts + 1) == []
    assert sum(p.rows for p in kept.pieces(f"{node.id}.open")) == 2
    assert {n for _, n, _ in epoch(bench, node, kept, rows, 40, 1039)} == {":a", ":b"}

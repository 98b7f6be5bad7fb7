"""Paths of any length and the values of EXISTS, over report rows of several members and reports."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from levada.core.frame import Frame
from levada.operators.reporting.path_closure import closure
from levada.operators.reporting.report_join import report_join
from levada.plan.execution import steps as s
from levada.plan.execution.joins import JoinKind
from levada.plan.execution.plan import PlanNode
from support.operator_nodes import Bench

names = st.sampled_from((":a", ":b", ":c", ":d"))
edges = st.lists(st.tuples(st.integers(0, 1), names, names), max_size=8)


def _pairs(bench: Bench, frame: Frame | None, slots: int) -> list[tuple[object, ...]]:
    if frame is None:
        return []
    return sorted(
        (r, *row) for r, row in zip(frame["r"].tolist(), bench.terms(frame, slots), strict=True)
    )


def _steps(bench: Bench, node: PlanNode, rows: list[tuple[int, str, str]]) -> Frame | None:
    return (
        bench.frame(node, [row[1:] for row in rows], r=[row[0] for row in rows]) if rows else None
    )


def _reached(rows: list[tuple[int, str, str]]) -> set[tuple[int, str, str]]:
    """All pairs by adding steps until nothing is new."""
    found: set[tuple[int, str, str]] = set()
    new = set(rows)
    while new:
        found |= new
        new = {(r, a, d) for r, a, b in found for q, c, d in rows if (r, b) == (q, c)} - found
    return found


@given(edges)
def test_each_report_has_its_own_paths(rows: list[tuple[int, str, str]]) -> None:
    bench = Bench("SELECT *", "?x :p+ ?y")
    node = bench.node(s.Closure)
    found = _pairs(bench, closure(node, [_steps(bench, node, rows)], bench.env()), 2)
    assert found == sorted(_reached(rows))


@given(edges, st.sampled_from((":a :p+ ?y", "?x :p+ :a")))
def test_a_given_end_is_where_the_search_begins(
    rows: list[tuple[int, str, str]], path: str
) -> None:
    bench = Bench("SELECT *", path)
    node = bench.node(s.Closure)
    found = _pairs(bench, closure(node, [_steps(bench, node, rows)], bench.env()), 1)
    ends = [(r, a, b) if path[0] == "?" else (r, b, a) for r, a, b in _reached(rows)]
    assert found == sorted((r, free) for r, free, given_ in ends if given_ == ":a")


def test_a_term_reaches_itself_without_a_step() -> None:
    bench = Bench("SELECT *", "?x :p? ?y")
    node = bench.node(s.Closure)
    steps = _steps(bench, node, [(7, ":a", ":b"), (7, ":b", ":c"), (7, ":b", ":b")])
    zero = bench.frame(node, [(name,) for name in (":a", ":b", ":c", ":a")], 1, r=[7, 7, 7, 8])
    found = _pairs(bench, closure(node, [steps, zero], bench.env()), 2)
    assert found == [
        (7, ":a", ":a"),
        (7, ":a", ":b"),
        (7, ":b", ":b"),
        (7, ":b", ":c"),
        (7, ":c", ":c"),
        (8, ":a", ":a"),
    ]
    assert closure(node, [None, None], bench.env()) is None


@given(edges, edges)
def test_a_mark_says_which_rows_have_a_partner(left: list, right: list) -> None:
    bench = Bench("SELECT ?s ?o ?b", "?s :p ?o BIND(EXISTS { ?s :q ?z } AS ?b)")
    node = bench.join(JoinKind.MARK)
    frames = [
        bench.frame(node, [row[1:] for row in rows], i, r=[row[0] for row in rows])
        if rows
        else None
        for i, rows in enumerate((left, right))
    ]
    out = report_join(node, frames, bench.env())
    if not left:
        assert out is None
        return
    assert out is not None
    there = {row[:2] for row in right}
    terms = bench.terms(out, 2)
    found = [
        (r, *row, mark)
        for r, row, mark in zip(out["r"].tolist(), terms, out["m2"].tolist(), strict=True)
    ]
    assert sorted(found) == sorted((r, a, b, int((r, a) in there)) for r, a, b in left)


@given(
    edges, st.lists(st.tuples(st.integers(0, 1), names), max_size=4), st.sampled_from(("?x", "?y"))
)
def test_seeds_are_where_the_search_begins(
    rows: list[tuple[int, str, str]], seeds: list[tuple[int, str]], bound: str
) -> None:
    """The rows with which paths are joined bind one end: only paths from there, or to there, are
    found.
    """
    bench = Bench("SELECT *", f"{bound} :q ?v . ?x :p+ ?y")
    node = bench.node(s.Closure)
    end = ["?x", "?y"].index(bound)
    assert node.step.seed == end
    few = (
        bench.frame(node, [(name,) for _, name in seeds], 1, r=[r for r, _ in seeds])
        if seeds
        else None
    )
    found = _pairs(bench, closure(node, [_steps(bench, node, rows), few], bench.env()), 2)
    assert found == sorted(path for path in _reached(rows) if (path[0], path[1 + end]) in seeds)

"""Operators on report rows and expressions over slots: joins, OPTIONAL, DISTINCT, ORDER BY,
filters, BIND, thresholds.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.core.frame import Frame
from levada.operators.reporting.order_and_distinct import distinct, order
from levada.operators.reporting.report_join import report_join
from levada.operators.rows.filter_extend import extend, filter_, is_threshold, thresholds
from levada.operators.rows.route_rows import fan_out
from levada.plan.execution import steps as s
from levada.plan.execution.joins import JoinKind
from levada.plan.execution.plan import FanOut
from levada.plan.optimizer.pipeline import disable_rules
from support.operator_nodes import Bench, term

values = st.sampled_from((":a", ":b", ":c"))
KINDS = {
    "MINUS": JoinKind.MINUS,
    "FILTER EXISTS": JoinKind.SEMI,
    "FILTER NOT EXISTS": JoinKind.ANTI,
}
pairs = st.lists(st.tuples(st.integers(0, 1), values, values), max_size=8)


def by_report(bench: Bench, frame: Frame | None, slots: int) -> list[tuple[object, ...]]:
    """(report, terms) of each row, sorted."""
    if frame is None:
        return []
    reports = frame["r"].tolist()
    return sorted(
        ((r, *row) for r, row in zip(reports, bench.terms(frame, slots), strict=True)), key=str
    )


@given(pairs, pairs)
def test_optional_keeps_rows_without_a_partner(left: list, right: list) -> None:
    bench = Bench("SELECT *", "?s :p ?o OPTIONAL { ?s :q ?z }")
    node = bench.join(JoinKind.LEFT)
    frames = [
        bench.frame(node, [row[1:] for row in rows], i, r=[row[0] for row in rows])
        if rows
        else None
        for i, rows in enumerate((left, right))
    ]
    expected = []
    for r, a, b in left:
        partners = [d for q, c, d in right if (q, c) == (r, a)]
        expected += [(r, a, b, d) for d in partners or [None]]
    assert by_report(bench, report_join(node, frames, bench.env()), 3) == sorted(expected, key=str)


def test_condition_of_optional_sees_both_sides() -> None:
    bench = Bench("SELECT *", "?s :p ?o OPTIONAL { ?s :q ?z FILTER(?z > ?o) }")
    node = bench.join(JoinKind.LEFT)
    left = bench.frame(node, [(":a", "1"), (":a", "5")], 0, r=[7, 7])
    right = bench.frame(node, [(":a", "3"), (":a", "2")], 1, r=[7, 7])
    assert by_report(bench, report_join(node, [left, right], bench.env()), 3) == [
        (7, ":a", "1", "2"),
        (7, ":a", "1", "3"),
        (7, ":a", "5", None),
    ]


def test_a_shared_variable_that_may_be_unbound_is_filled() -> None:
    body = "?s :p ?o OPTIONAL { ?s :q ?z }"
    group = (
        f"{{ {body} }} {{ SELECT ?s ?z WHERE {{ WINDOW :w {{ ?s :r ?x "
        f"OPTIONAL {{ ?s :t ?z }} }} }} }}"
    )
    with disable_rules("canonical_order"):
        bench = Bench("SELECT *", group)
    node = bench.join(JoinKind.INNER)
    left = bench.frame(
        node, [(":a", ":x", None), (":a", ":y", ":k"), (":b", ":x", ":k")], 0, r=[7, 7, 7]
    )
    right = bench.frame(node, [(":a", ":k"), (":a", ":l"), (":b", None)], 1, r=[7, 7, 7])
    assert by_report(bench, report_join(node, [left, right], bench.env()), 3) == [
        (7, ":a", ":x", ":k"),
        (7, ":a", ":x", ":l"),
        (7, ":a", ":y", ":k"),
        (7, ":b", ":x", ":k"),
    ]


@given(pairs, pairs, st.sampled_from(tuple(KINDS)))
def test_minus_and_exists_are_per_report(left: list, right: list, word: str) -> None:
    bench = Bench("SELECT *", f"?s :p ?o {word} {{ ?s :q ?z }}")
    node = bench.join(KINDS[word])
    frames = [
        bench.frame(node, [row[1:] for row in rows], i, r=[row[0] for row in rows])
        if rows
        else None
        for i, rows in enumerate((left, right))
    ]
    found = {row[:2] for row in right}
    expected = [row for row in left if (row[:2] in found) == (word == "FILTER EXISTS")]
    assert by_report(bench, report_join(node, frames, bench.env()), 2) == sorted(expected, key=str)


def test_minus_takes_only_where_something_bound_is_shared() -> None:
    bench = Bench(
        "SELECT *", "?s :p ?o OPTIONAL { ?s :q ?z } MINUS { ?a :q ?b OPTIONAL { ?a :r ?z } }"
    )
    node = bench.join(JoinKind.MINUS)
    left = bench.frame(
        node, [(":a", ":x", ":k"), (":b", ":x", None), (":c", ":x", ":l")], 0, r=[7, 7, 8]
    )
    right = bench.frame(node, [(":k",), (None,), (":l",)], 1, r=[7, 7, 7])
    assert by_report(bench, report_join(node, [left, right], bench.env()), 3) == [
        (7, ":b", ":x", None),
        (8, ":c", ":x", ":l"),
    ]


def test_a_condition_of_exists_sees_both_sides() -> None:
    bench = Bench("SELECT *", "?s :p ?o FILTER EXISTS { ?s :q ?z FILTER(?z > ?o) }")
    node = bench.join(JoinKind.SEMI)
    left = bench.frame(node, [(":a", "1"), (":a", "3"), (":b", "1")], 0, r=[7, 7, 7])
    right = bench.frame(node, [(":a", "3"), (":a", "2")], 1, r=[7, 7])
    assert by_report(bench, report_join(node, [left, right], bench.env()), 2) == [(7, ":a", "1")]


def test_distinct_is_per_report_and_member() -> None:
    bench = Bench("SELECT DISTINCT ?s", "?s :p ?o", more=["?s :q ?o"])
    node = bench.node(s.RDistinct)
    frame = bench.frame(node, [(":a",)] * 4 + [(":b",)], r=[1, 1, 2, 1, 1], op=[0, 0, 0, 1, 1])
    out = distinct(node, [frame], bench.env())
    assert out is not None
    rows = zip(out["op"].tolist(), out["r"].tolist(), bench.terms(out), strict=True)
    assert sorted(rows) == [(0, 1, (":a",)), (0, 2, (":a",)), (1, 1, (":a",)), (1, 1, (":b",))]


def test_order_offset_and_limit_are_per_report() -> None:
    bench = Bench("SELECT ?o", "?s :p ?o", "ORDER BY DESC(?o) LIMIT 2 OFFSET 1")
    node = bench.node(s.ROrder)
    rows = [(v, ":a") for v in ("3", "10", "7", "2.5", "1")]  # the sort key comes first
    out = order(node, [bench.frame(node, rows, r=[1, 1, 1, 1, 2])], bench.env())
    assert bench.terms(out) == [("7",), ("3",)]


@given(st.permutations(["1", ":a", '"x"', "2.5", '"x"@en']))
def test_a_limit_takes_the_same_rows_however_they_come(values: list[str]) -> None:
    bench = Bench("SELECT ?o", "?s :p ?o", "LIMIT 2")
    node = bench.node(s.ROrder)
    out = order(node, [bench.frame(node, [(v,) for v in values], r=[1] * 5)], bench.env())
    assert out is not None
    found = bench.pool.texts(out["x0"], out["y0"]).to_list()
    assert found == sorted(str(term(v)) for v in values)[:2]


def test_a_filter_and_bind_with_an_error() -> None:
    bench = Bench("SELECT ?s ?o ?x", "?s :p ?o FILTER(?o != 2) BIND(?o + 1 AS ?x)")
    node = bench.node(s.Extend)
    rows = bench.frame(node, [(":a", "1"), (":a", ":b"), (":a", "2")], lo0=[0] * 3)
    extended = extend(node, [rows], bench.env())
    assert [row[2] for row in bench.terms(extended, 3)] == ["2", None, "3"]
    filters = bench.node(s.Filter)
    kept = bench.frame(filters, [(":a", "1"), (":a", ":b"), (":a", "2")], lo0=[0] * 3)
    assert [row[1] for row in bench.terms(filter_(filters, [kept], bench.env()), 2)] == ["1", ":b"]


@given(
    st.lists(st.integers(-3, 12), min_size=1, max_size=6), st.sampled_from(("<", "<=", ">", ">="))
)
def test_thresholds_are_those_of_the_expanded_filter(numbers: list[int], operator: str) -> None:
    bounds = [0, 3, 3, 7, 10]
    first, *more = [f"?s :p{i} ?o FILTER(?o {operator} {bound})" for i, bound in enumerate(bounds)]
    bench = Bench("SELECT ?s ?o", first, more=more)
    node = bench.node(s.Filter)
    assert is_threshold(node.step.condition)
    rows = [(f":n{i}", str(n)) for i, n in enumerate(numbers)]
    frame = bench.frame(node, rows, lo0=[0] * len(rows))
    members = np.arange(len(bounds), dtype=np.int32)
    out = thresholds(node, frame, members, bench.pool)
    assert out is not None
    at = np.repeat(np.arange(frame.n), len(bounds))
    every = frame.take(at).with_(op=np.tile(members, frame.n))
    expanded = filter_(node, [every], bench.env())
    assert expanded is not None
    one, two = (
        sorted(zip(f["op"].tolist(), bench.terms(f, 2), strict=True)) for f in (out, expanded)
    )
    assert one == two


def test_rows_fan_out_to_all_members_that_read_them() -> None:
    """Producer 0 feeds members 1 and 2, producer 1 nobody, producer 2 member 0."""
    fan = FanOut(np.array([0, 2, 2, 3], np.int32), np.array([1, 2, 0], np.int32), False)
    rows, op = fan_out(np.array([2, 0, 1, 0], np.int32), fan)
    assert rows is not None
    assert (rows.tolist(), op.tolist()) == ([0, 1, 1, 3, 3], [0, 1, 2, 1, 2])

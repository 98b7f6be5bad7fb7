"""GROUP BY by panes and per report, against Python: the same values whatever the cut into
epochs.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.event_time import MAX, MIN, Window, WindowKind
from levada.core.frame import Frame
from levada.core.rdf_terms import XSD
from levada.operators.aggregation.panes import panes
from levada.operators.aggregation.report_group_by import rgroup
from levada.operators.rows.term_columns import column
from levada.plan.execution import steps as s
from support.operator_nodes import Bench, short, state

KEYS = (":a", ":b")
numbers = st.one_of(st.integers(-5, 5).map(str), st.sampled_from(("0.5", "-1.25", "2.5")))
rows = st.lists(
    st.tuples(st.integers(0, 16).map(lambda n: 500 * n), st.sampled_from(KEYS), numbers),
    min_size=1,
    max_size=10,
)
cuts = st.sets(st.integers(1, 16).map(lambda n: 500 * n), max_size=3)
CLOSE = Window(WindowKind.CLOSE_OPEN, 4000, 2000)
# aggregates stand in the order of their names, however they are written
HEAD = "SELECT ?s (SUM(?o) AS ?t) (AVG(?o) AS ?v) (MIN(?o) AS ?a) (MAX(?o) AS ?b) (COUNT(*) AS ?n)"


def expected(seen: list[tuple[int, str, str]]) -> dict[tuple[int, str], tuple[Fraction, ...]]:
    """(report, key) to average, count, greatest, least, sum."""
    groups = defaultdict(list)
    for ts, key, value in seen:
        close = CLOSE.enter(ts)
        while close < CLOSE.leave(ts):
            groups[close, key].append(Fraction(value))
            close = CLOSE.next_close(close)
    out = {}
    for of, values in groups.items():
        total = sum(values)
        out[of] = (total / len(values), Fraction(len(values)), max(values), min(values), total)
    return out  # type: ignore[return-value]


def close(a: Fraction, b: Fraction) -> bool:
    """Decimals have 18 fraction digits."""
    return abs(a - b) <= Fraction(1, 10**18)


@pytest.mark.long
@given(rows, cuts)
def test_panes_add_up_to_the_values_of_each_report(
    seen: list[tuple[int, str, str]], at: set[int]
) -> None:
    bench = Bench(HEAD, "?s :p ?o", "GROUP BY ?s")
    node, kept, found = bench.node(s.Panes), state(), {}
    bounds = [MIN, *sorted(at), MAX]
    for old, new in pairwise(bounds):
        batch = [row for row in seen if old <= row[0] < new]
        times: dict[str, Any] = {"lo0": [row[0] for row in batch], "prev0": [MIN] * len(batch)}
        frame = bench.frame(node, [row[1:] for row in batch], **times) if batch else None
        out = panes(node, [frame], bench.env(old, new, kept=kept, partition=1))
        for i, (key, *_) in enumerate(bench.terms(out)):
            assert out is not None
            found[int(out["r"][i]), key] = [text(bench, out, slot, i) for slot in range(1, 6)]
    wanted = expected(seen)
    assert found.keys() == wanted.keys()
    for of, values in found.items():
        assert all(close(Fraction(v), w) for v, w in zip(values, wanted[of], strict=True))


def text(bench: Bench, frame: Frame, slot: int, row: int) -> str:
    """A value, shown from its text where it has one, else from its value facets."""
    found = short(column(frame, slot, bench.pool).texts()[row])
    assert found is not None
    return found


def test_distinct_sees_each_value_of_a_group_once() -> None:
    bench = Bench(
        "SELECT ?s (COUNT(DISTINCT ?o) AS ?n) (SUM(DISTINCT ?o) AS ?t)", "?s :p ?o", "GROUP BY ?s"
    )
    node = bench.node(s.RGroup)
    frame = bench.frame(node, [(":a", "1"), (":a", "1"), (":a", "2"), (":b", "1")], r=[7, 7, 7, 7])
    out = rgroup(node, [frame], bench.env(MIN, MAX, partition=1))
    assert out is not None
    values = {
        key: (text(bench, out, 1, i), text(bench, out, 2, i))
        for i, (key,) in enumerate(bench.terms(out))
    }
    assert values == {":a": ("2", "3"), ":b": ("1", "1")}


def test_an_error_makes_a_sum_unbound_and_a_count_smaller() -> None:
    bench = Bench("SELECT ?s (SUM(?o) AS ?t) (COUNT(?o) AS ?n)", "?s :p ?o", "GROUP BY ?s")
    node = bench.node(s.Panes)
    frame = bench.frame(
        node, [(":a", "1"), (":a", '"x"'), (":b", "4")], lo0=[0, 0, 0], prev0=[MIN] * 3
    )
    out = panes(node, [frame], bench.env(MIN, 2000, partition=1))
    assert out is not None
    sums = {key: column(out, 2, bench.pool).texts()[i] for i, (key,) in enumerate(bench.terms(out))}
    assert (sums[":a"], short(sums[":b"])) == (None, "4")
    assert {key: text(bench, out, 1, i) for i, (key,) in enumerate(bench.terms(out))} == {
        ":a": "2",
        ":b": "1",
    }


def test_sums_of_floats_are_rounded_and_those_of_doubles_are_not() -> None:
    bench = Bench("SELECT ?s (SUM(?o) AS ?t)", "?s :p ?o", "GROUP BY ?s")
    node = bench.node(s.Panes)
    double, single = (f'"{{}}"^^<{XSD}{name}>'.format for name in ("double", "float"))
    values = [
        (":a", double("1.0E300")),
        (":b", single("0.1")),
        (":b", single("0.2")),
        (":c", single("3.0E38")),
        (":c", single("3.0E38")),
    ]
    frame = bench.frame(node, values, lo0=[0] * 5, prev0=[MIN] * 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = panes(node, [frame], bench.env(MIN, 2000, partition=1))
    assert out is not None
    sums = dict(
        zip(
            (key for (key,) in bench.terms(out)),
            column(out, 1, bench.pool).values()[1].tolist(),
            strict=True,
        )
    )
    assert sums == {":a": 1e300, ":b": float(np.float32(0.3)), ":c": np.inf}


def test_without_keys_there_is_a_row_wherever_the_window_holds_something() -> None:
    """Only the member's home makes it, from the times of all elements."""
    bench = Bench("SELECT (COUNT(*) AS ?n)", "?s :p ?o")
    node = bench.node(s.Panes)
    assert panes(node, [None], bench.env(MIN, MAX, [1000], partition=1)) is None
    out = panes(node, [None], bench.env(MIN, MAX, [1000]))
    assert out is not None
    assert (out["r"].tolist(), [text(bench, out, 0, i) for i in range(out.n)]) == (
        [2000, 4000],
        ["0", "0"],
    )


def test_group_concat_is_in_the_order_of_the_strings() -> None:
    bench = Bench(
        "SELECT ?s (GROUP_CONCAT(?o) AS ?c) (GROUP_CONCAT(DISTINCT ?o; SEPARATOR='\\n') AS ?d)",
        "?s :p ?o",
        "GROUP BY ?s",
    )
    node = bench.node(s.RGroup)
    rows = [
        (":a", '"b"'),
        (":a", '"a\\"@"@en'),
        (":a", '"b"'),
        (":b", '"x"'),
        (":b", "1"),
        (":b", '"y"'),
    ]
    frame = bench.frame(node, rows, r=[7] * 6)
    out = rgroup(node, [frame], bench.env(MIN, MAX, partition=1))
    assert out is not None
    found = [bench.pool.texts(out[f"x{i}"], out[f"y{i}"]).to_list() for i in range(3)]
    assert found[1] == ['"a\\"@ b b"', None]
    assert found[2] == ['"a\\"@\\nb"', None]

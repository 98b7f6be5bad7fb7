"""A join of many inputs in one step: the combinations of a join of two and a join above it, what is
kept for them, in which order inputs are probed, and the bound.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.core.event_time import MIN
from levada.core.frame import Frame
from levada.core.query_limits import QueryLimits
from levada.errors import ExcessError
from levada.operators.windowed import multiway_inputs as sides_of
from levada.operators.windowed import multiway_join as module
from levada.operators.windowed.multiway_join import multiway, multiway_in_pieces
from levada.plan.execution import steps as s
from levada.plan.execution.joins import JoinForm
from levada.plan.execution.plan import PlanNode
from support.operator_nodes import Bench, state

STAR = "?s :p ?a . ?s :q ?b . ?s :r ?c"
RANGE = 4000
times = st.integers(0, 12).map(lambda n: 1000 * n)
keys, values = st.sampled_from((":a", ":b")), st.sampled_from((":x", ":y"))
inputs = st.lists(st.tuples(times, keys, values), max_size=8)


def star() -> tuple[Bench, PlanNode[s.MultiwayJoin]]:
    bench = Bench("SELECT *", STAR, clause="[RANGE PT4S]", joins=JoinForm.MULTIWAY)
    return bench, bench.node(s.MultiwayJoin)


def rows(bench: Bench, node: PlanNode, side: int, given: list[tuple[int, str, str]]) -> Frame:
    found = sorted(given)
    return bench.frame(node, [row[1:] for row in found], side, lo0=[row[0] for row in found])


def expected(given: list[list[tuple[int, str, str]]]) -> Counter[tuple[str, ...]]:
    """By every instant at which something comes: the distinct triples of three kinds that are in
    the window, each of a subject; a combination once for each time from which it counts anew.
    """
    found: Counter[tuple[str, ...]] = Counter()
    first, *others = (
        [(ts, max((t for t, *r in each if r == [k, v] and t < ts), default=MIN), k, v)
         for ts, k, v in sorted(set(each))]
        for each in given
    )  # fmt: skip
    for a in first:
        for b in others[0]:
            for c in others[1]:
                some = (a, b, c)
                begin = max(max(ts, prev + RANGE if prev > MIN else MIN) for ts, prev, *_ in some)
                if len({k for *_, k, _ in some}) == 1 and begin < min(t for t, *_ in some) + RANGE:
                    found[a[2], a[3], b[3], c[3]] += 1
    return found


@settings(max_examples=25, deadline=None)
@given(st.lists(inputs, min_size=3, max_size=3), st.sets(times), st.sampled_from((2, 1 << 18)))
def test_combinations_are_those_of_brute_force(
    given: list[list[tuple[int, str, str]]], cuts: set[int], part: int
) -> None:
    bench, node = star()
    kept, found = state(), Counter[tuple[str, ...]]()
    few = patch.object(module, "FEW_PROBES", 1 if part == 2 else 256)
    with few, patch.object(module, "PART", part):
        for low, high in zip([-1, *sorted(cuts)], [*sorted(cuts), 10**6], strict=True):
            frames = [
                rows(bench, node, i, [row for row in each if low < row[0] <= high])
                for i, each in enumerate(given)
            ]
            env = bench.env(low + 1 if low >= 0 else MIN, high + 1, kept=kept)
            for out in multiway_in_pieces(node, frames, env):
                found.update(tuple(map(str, row)) for row in bench.terms(out, 4))
    assert found == expected(given)


def test_what_is_joined_on_the_way_is_not_kept() -> None:
    bench, node = star()
    kept = state()
    many = [(1000, ":a", f":v{i}") for i in range(20)]
    frames = [rows(bench, node, 0, many), rows(bench, node, 1, many), rows(bench, node, 2, [])]
    assert multiway(node, frames, bench.env(MIN, 2000, kept=kept)) is None
    assert [sum(p.rows for p in kept.pieces(key)) for key in sorted(kept.keys(""))] == [20, 20]


def test_who_matches_least_is_probed_first() -> None:
    bench, node = star()
    new: list[Frame | None] = [
        rows(bench, node, i, [(1000, k, f":v{n}") for k in (":a", ":b") for n in range(values_)])
        for i, values_ in enumerate((1, 30, 2))
    ]
    horizons = bench.env().horizons(node)
    sides = sides_of.inputs_of(node, bench.env(), new, horizons)
    look = sides_of.matches(sides, 0)
    assert look.tolist() == [[1, 30, 2]] * 2
    assert sides_of.order_of(sides, 0, look) == (2, 1)
    _, _, none = sides_of.inputs_of(node, bench.env(), [None, None, None], horizons)
    assert sides_of.order_of([*sides[:2], none], 0, look) == ()


def test_what_few_rows_match_in_a_part_of_a_run_is_not_scaled() -> None:
    """The part has all that they match there; of whole runs the largest one stands for all."""
    bench, node = star()
    new: list[Frame | None] = [
        rows(bench, node, i, [(1000, ":a", f":v{n}") for n in range(values_)])
        for i, values_ in enumerate((1, 30, 1))
    ]
    horizons = bench.env().horizons(node)
    one, many, last = sides_of.inputs_of(node, bench.env(), new, horizons)
    few = rows(bench, node, 1, [(1000, ":b", f":v{n}") for n in range(90)])
    _, others, _ = sides_of.inputs_of(node, bench.env(), [None, few, None], horizons)
    part = replace(many.new, is_part=True)
    for held, found in (([part, many.new], 60), ([part, others.new], 30), ([part, part], 60)):
        side = replace(many, held=held)
        assert sides_of.matches([one, side, last], 0).tolist() == [[1, found, 1]]


def test_more_combinations_than_there_may_be_name_the_member() -> None:
    bench, node = star()
    many = [(1000, ":a", f":v{i}") for i in range(20)]
    frames = [rows(bench, node, i, many) for i in range(3)]
    env = replace(bench.env(MIN, 2000), limits=QueryLimits(rows=1000))
    with pytest.raises(ExcessError, match=r"MultiwayJoin.*more than 1,000 rows"):
        multiway(node, frames, env)

"""Which form a join of many inputs has: what the figures say of sets of inputs, when a choice is
made and when it is made again, and what is kept of the one form and the other.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest

from levada.core.array_types import Doubles
from levada.core.frame import Frame
from levada.core.query_limits import QueryLimits
from levada.operators.state.state_handover import HandedOverGroups, Part, take_over
from levada.operators.state.state_parts import FOLLOWS, Head, State
from levada.operators.windowed import adaptive_join as module
from levada.operators.windowed.adaptive_join import FIRST, Figures, adaptive_in_pieces, choose
from levada.plan.execution import steps as s
from levada.plan.execution.joins import CHANGED, PAIRWISE, JoinForm
from levada.plan.execution.plan import PlanNode
from support.operator_nodes import Bench, state

STAR = "?s :p ?a . ?s :q ?b . ?s :r ?c"


def looked(*rows: list[float]) -> Doubles:
    return np.array(rows, np.float64)


class Streams(NamedTuple):
    """New rows of each input in an epoch, and how many rows of each input one of them matches."""

    new: list[int]
    fans: list[list[float]]


def of(stream: Streams, epochs: int) -> Figures:
    """Figures of epochs in which each new row matches as many rows of each input."""
    figures = Figures.empty(len(stream.new))
    for _ in range(epochs):
        figures = figures.with_epoch([looked(each) for each in stream.fans], stream.new)
    return figures


# one large stream, each row of which finds one of each of four that hardly change
FAST = Streams([1, 1, 1, 1, 1000], [[1.0] * 5] * 5)
# A and B have twenty rows of a key, and C has next to none
WIDE = Streams([500, 500, 10], [[1, 20, 0.01], [20, 1, 0.01], [20, 20, 1]])


def test_rows_of_sets_are_products_of_what_one_row_matches() -> None:
    look = looked([1, 2, 0], [1, 0, 4])  # no row matches both others
    figures = Figures.empty(3).with_epoch([look, looked(), looked()], [10, 0, 0])
    assert figures.rows.tolist() == [0, 10, 0, 10, 0, 20, 0, 0]


def test_what_is_met_by_each_row_is_kept_and_what_is_wide_is_not() -> None:
    assert choose(of(FAST, FIRST - 1)) == ()
    order = choose(of(FAST, FIRST))
    assert sorted(order[:4]) == [0, 1, 2, 3]
    assert order[4] == 4
    assert choose(of(WIDE, FIRST)) == ()


def test_a_choice_is_made_again_for_twice_as_much() -> None:
    fast, wide = of(FAST, FIRST + 1), of(WIDE, FIRST + 1)
    assert choose(replace(fast, one=fast.best_order()[0] * 1.9)) == ()
    assert choose(replace(fast, one=fast.best_order()[0] * 2.1)) == fast.best_order()[1]
    kept = replace(wide, order=(0, 1, 2))
    assert wide.two_way_cost((0, 1, 2)) > 2 * wide.one
    assert choose(kept) == ()
    assert choose(replace(kept, one=wide.best_order()[0] * 3)) == wide.best_order()[1] != (0, 1, 2)


def test_the_order_is_the_least_of_all() -> None:
    rng = np.random.default_rng(5)
    for _ in range(10):
        figures = replace(Figures.empty(4), rows=rng.integers(0, 1000, 16).astype(np.float64))
        least = min(figures.two_way_cost(order) for order in permutations(range(4)))
        assert figures.best_order()[0] == pytest.approx(least)
        assert figures.two_way_cost(figures.best_order()[1]) == pytest.approx(least)


def star() -> tuple[Bench, PlanNode[s.AdaptiveJoin]]:
    bench = Bench("SELECT *", STAR, clause="[RANGE PT4S]", joins=JoinForm.AUTO)
    return bench, bench.node(s.AdaptiveJoin)


def epoch(
    bench: Bench, node: PlanNode[s.AdaptiveJoin], kept: State, ts: int
) -> tuple[int, list[int]]:
    """An epoch of two rows of one key in each input: results, and what is told."""
    some = [(":a", f":v{ts}"), (":a", f":w{ts}")]
    frames: list[Frame | None] = [bench.frame(node, some, i, lo0=[ts, ts]) for i in range(3)]
    env = bench.env(ts, ts + 1, kept=kept)
    found = sum(rows.n for rows in adaptive_in_pieces(node, frames, env))
    return found, env.forms[str(node.id)]


def kept_of(kept: State) -> list[str]:
    """What is kept beside the inputs and the figures."""
    return [key.partition(FOLLOWS)[2] for key in kept.keys("") if key[-1] not in (FOLLOWS,)
            and FOLLOWS in key]  # fmt: skip


def test_each_change_of_form_loses_nothing() -> None:
    bench, node = star()
    kept, forms = state(), [(), (2, 0, 1), (2, 0, 1), (0, 1, 2), ()]
    for n, form in enumerate(forms):
        with patch.object(module, "choose", lambda figures, form=form: form):
            found, told = epoch(bench, node, kept, 1000 + n)
        assert found == (2 * n + 2) ** 3 - (2 * n) ** 3
        assert told[PAIRWISE] == bool(form)
        assert told[CHANGED] == (n > 0 and form != forms[n - 1])
        assert kept_of(kept) == ["-".join(map(str, form[:2]))] * bool(form)


def test_a_form_that_would_keep_too_much_is_one_step() -> None:
    bench, node = star()
    kept, least = state(), QueryLimits(rows=250)
    with patch.object(module, "choose", lambda figures: ()):
        for ts in range(1000, 1008):
            epoch(bench, node, kept, ts)
    few = patch.object(Figures, "largest", lambda figures, order: 0.0)
    with patch.object(module, "choose", lambda figures: (0, 1, 2)), few:
        # all pairs of before are 256
        frames = [None, None, bench.frame(node, [(":b", ":c")], 2, lo0=[1009])]
        env = replace(bench.env(1008, 1010, kept=kept), limits=least)
        assert sum(rows.n for rows in adaptive_in_pieces(node, frames, env)) == 0
    assert env.forms[str(node.id)][PAIRWISE] == 0
    assert kept_of(kept) == []
    assert module._recall(kept, node).epochs == -module.LATER


def test_what_follows_from_other_state_does_not_move() -> None:
    bench, node = star()
    kept = state()
    with patch.object(module, "choose", lambda figures: (0, 1, 2)):
        epoch(bench, node, kept, 1000)
        epoch(bench, node, kept, 1001)
    assert kept_of(kept) == ["0-1"]
    pieces = {key: kept.pieces(key) for key in kept.keys("")}
    moved = take_over(None, [Part(Head(pieces), "file", HandedOverGroups(None))])
    assert sorted(moved.pieces) == [f"{node.id}.{i}" for i in range(3)]

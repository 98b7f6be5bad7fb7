"""MIN and MAX by changes against the best of all values that stand, however many come and leave
between.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.expressions import AggregateFunction
from levada.core.frame import Frame
from levada.core.rdf_terms import Kind
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.aggregation.incremental_group_by import Runs
from levada.operators.aggregation.incremental_min_max import best_values
from levada.operators.state.state_parts import State
from levada.plan.execution import steps as s

GROUPS = 3


def state() -> State:
    def no_file(name: str) -> Any:
        raise AssertionError(f"{name} is not opened: all pieces are new")

    return State(None, "", no_file)


def epoch(kept: State, changes: list[tuple[int, int, int, int]], least: bool) -> list[float]:
    """The best values before the first run of each group and after each run, of changes (group,
    report, value, weight).
    """
    changes = sorted(changes, key=lambda c: c[:2])
    n = len(changes)
    g, r, v, w = (np.array([c[i] for c in changes], np.int64) for i in range(4))
    new = np.concatenate([[True], (g[1:] != g[:-1]) | (r[1:] != r[:-1])])
    groups, first = np.unique(g, return_index=True)
    codes = np.searchsorted(groups, g)
    run = np.cumsum(new) - 1
    starts = np.append(first, n)
    runs = Runs(
        np.arange(n), w.astype(np.int8), run, codes[new], r[new], starts,
        groups.astype(np.uint64) // 2, groups.astype(np.uint64), groups.astype(np.uint16), first
    )  # fmt: skip
    kinds = np.full(n, Kind.INTEGER, np.uint8)
    rows = Frame({"op": np.zeros(n, np.int32), "k0": kinds, "m0": v}, n)
    function = AggregateFunction.MIN if least else AggregateFunction.MAX
    found = best_values(
        "1.best0",
        kept,
        rows,
        runs,
        spec=s.Aggregate(function, 0, False),
        prefix="a0.",
        pool=TermLookup(1),
    )
    return [
        m if k else None  # type: ignore[misc]
        for m, k in zip(found["a0.m"].tolist(), found["a0.k"].tolist(), strict=True)
    ]


class Brute:
    """What stands, looked through each time."""

    def __init__(self, least: bool) -> None:
        self.least = least
        self.stand: Counter[tuple[int, int]] = Counter()

    def best(self, g: int) -> int | None:
        values = [v for (own, v), n in self.stand.items() if own == g and n > 0]
        return (min if self.least else max)(values) if values else None

    def epoch(self, changes: list[tuple[int, int, int, int]]) -> list[int | None]:
        out = []
        for g in sorted({c[0] for c in changes}):
            out.append(self.best(g))
            for r in sorted({c[1] for c in changes if c[0] == g}):
                for own, report, v, w in changes:
                    if (own, report) == (g, r):
                        self.stand[own, v] += w
                out.append(self.best(g))
        return out


@given(
    st.booleans(),
    st.lists(
        st.lists(st.tuples(*[st.integers(0, n) for n in (2, 3, 12, 3)]), min_size=1), max_size=12
    ),
)
def test_the_best_is_the_best_of_all_that_stand(
    least: bool, epochs: list[list[tuple[int, int, int, int]]]
) -> None:
    """What leaves is among what stands; the last of four numbers says whether it does."""
    kept, brute = state(), Brute(least)
    for drawn in epochs:
        stand, changes = Counter(brute.stand), []
        for g, r, v, leave in sorted(drawn, key=lambda c: c[1]):
            values = sorted(own for (of, own), n in stand.items() if of == g and n > 0)
            v, w = (values[v % len(values)], -1) if leave and values else (v, 1)
            stand[g, v] += w
            changes.append((g, r, v, w))
        assert epoch(kept, changes, least) == brute.epoch(changes)


@pytest.mark.long
@pytest.mark.parametrize("least", [True, False])
@pytest.mark.parametrize("down", [True, False])
def test_what_is_read_follows_the_changes(least: bool, down: bool) -> None:
    """A window of rising or falling values of which each epoch takes the oldest: as cheap at fifty
    epochs as at five.
    """
    sign, most = -1 if down else 1, {}
    for window in (5, 50):
        kept, brute, touched = state(), Brute(least), []
        for i in range(4 * window):
            changes = [(g, i, sign * (20 * i + j), 1) for g in range(GROUPS) for j in range(20)]
            if i >= window:
                changes += [
                    (g, i, sign * (20 * (i - window) + j), -1)
                    for g in range(GROUPS)
                    for j in range(20)
                ]
            before = kept.touched
            assert epoch(kept, changes, least) == brute.epoch(changes)
            touched.append(kept.touched - before)
        most[window] = sum(touched[2 * window :]) / (2 * window)
    assert most[50] < 3 * most[5], most

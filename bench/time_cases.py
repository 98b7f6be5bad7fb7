"""The kernels of windows and time, their arguments and twins: a part of ``bench.kernel_cases``."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.case import Case, Rows
from levada.core.event_time import MIN, Window, WindowKind
from levada.kernels.keyed import numpy_twins as twins
from levada.kernels.time import (
    report_expansion,
    running_aggregates,
    sliding_panes,
    window_intervals,
)


def _params() -> window_intervals.Params:
    """A window on close and one per element."""
    close = Window(WindowKind.CLOSE_OPEN, range=60_000, step=10_000)
    return window_intervals.Params.from_windows((close, Window(WindowKind.RANGE, range=60_001)))


def enter(n: int) -> Case:
    p, which, ts = _params(), Rows(n).which, Rows(n).ts
    return Case(
        lambda: window_intervals.enter(*p, which, ts), lambda: twins.enter_twin(p, which, ts), n
    )


def leave(n: int) -> Case:
    p, which, ts = _params(), Rows(n).which, Rows(n).ts
    return Case(
        lambda: window_intervals.leave(*p, which, ts), lambda: twins.leave_twin(p, which, ts), n
    )


def intervals(n: int) -> Case:
    p, which, ts = _params(), Rows(n).which, Rows(n).ts
    start, prev = np.full(2, MIN, np.int64), np.maximum(ts - 5, 0)
    return Case(
        lambda: window_intervals.interval(*p, start, which, ts, ts, prev),
        lambda: twins.interval_twin(p, start, which, ts, ts, prev),
        n,
    )


def expand_closes(n: int) -> Case:
    s, which, p = Rows(n).ts, np.zeros(n, np.int32), _params()
    e, closes = s + 60_000, (p.range[:1], p.step[:1], p.t0[:1], p.t0_given[:1])
    return Case(
        lambda: report_expansion.expand_closes(s, e, -1, n, closes, which),
        lambda: twins.expand_closes_twin(s, e, -1, n, closes, which),
        n,
    )


def expand_instants(n: int) -> Case:
    s = Rows(n).ts
    e, at = s + 3000, np.arange(0, n, 1000, dtype=np.int64)
    return Case(
        lambda: report_expansion.expand_instants(s, e, at),
        lambda: twins.expand_instants_twin(s, e, at),
        n,
    )


def slide_panes(n: int) -> Case:
    """A thousand groups, each with a pane at each step; windows of six steps."""
    group, step = (np.arange(n) % 1000).astype(np.int32), 10_000
    s, op = np.arange(n) // 1000 * step, np.zeros(n, np.int32)
    e, low, high = s + 6 * step, np.array([-1]), np.array([n // 1000 * step])
    closes = np.array([6 * step]), np.array([step]), np.array([0]), np.array([False])

    def twin() -> Any:
        row, at = report_expansion.expand_closes(s, e, -1, int(high[0]), closes, op)
        order = np.lexsort((row, at, group[row]))
        row, at = row[order], at[order]
        new = np.append(True, (np.diff(group[row]) != 0) | (np.diff(at) != 0))
        return row, np.cumsum(new) - 1, row[new], at[new]

    return Case(lambda: sliding_panes.slide(group, 1000, op, s, e, low, high, closes), twin, n)


@dataclass(frozen=True, slots=True)
class Changes:
    """``n`` events of groups of a hundred each, in runs of two."""

    n: int

    @property
    def starts(self) -> Any:
        """Where each group's events begin."""
        return np.append(np.arange(0, self.n, 100), self.n)

    @property
    def run(self) -> Any:
        """The run of each event."""
        return np.arange(self.n) // 2

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return int(self.run[-1]) + 1


def running_sums(n: int) -> Case:
    c, values, none = Changes(n), Rows(n).values, np.empty(0, np.int64)
    base = np.zeros(len(c.starts), np.int64)
    weights = Rows(n).weights
    args = (c.starts, c.run, values.view(np.int64), weights, base, none, none, c.runs, False)

    def twin() -> Any:
        ends = (min(2 * r + 2, n) for r in range(c.runs))
        return np.zeros(len(base) - 1), np.array(
            [math.fsum(values[(e - 1) // 100 * 100 : e]) for e in ends]
        )

    return Case(lambda: running_aggregates.running_sums(*args)[:2], twin, n)


def running_best(n: int) -> Case:
    """Ten values a group, of which each in turn comes and goes."""
    c, groups = Changes(n), len(Changes(n).starts) - 1
    place = np.arange(n) // 100 * 10 + np.random.default_rng(8).integers(0, 10, n)
    weights = np.where(np.arange(n) % 3 == 0, -1, 1).astype(np.int8)
    value_starts, counts = np.arange(groups + 1) * 10, np.zeros(groups * 10, np.int64)

    def twin() -> Any:
        now, after = counts.tolist(), []
        for i, (at, w) in enumerate(zip(place.tolist(), weights.tolist(), strict=True)):
            now[at] += w
            if i % 2 or i == n - 1:
                low = at // 10 * 10
                after.append(max((v for v in range(low, low + 10) if now[v] > 0), default=-1))
        return np.full(groups, -1), np.array(after)

    return Case(
        lambda: running_aggregates.running_best(
            c.starts, c.run, place, weights, value_starts, counts, c.runs
        ),
        twin,
        n,
    )


def running_counts(n: int) -> Case:
    codes, change = (
        (np.arange(n) // 10).astype(np.int32),
        np.random.default_rng(9).integers(-2, 3, n),
    )
    before = np.ones(n // 10 + 1, np.int64)

    def twin() -> Any:
        now, was, then = before.tolist(), [], []
        for code, by in zip(codes.tolist(), change.tolist(), strict=True):
            was.append(now[code])
            now[code] = max(now[code] + by, 0)
            then.append(now[code])
        return np.array(was), np.array(then)

    return Case(lambda: running_aggregates.running_counts(codes, change, before, True), twin, n)


# (case, whether its twin is a loop in Python)
TIME_CASES: tuple[tuple[Callable[[int], Case], bool], ...] = (
    (enter, True),
    (leave, True),
    (intervals, True),
    (expand_closes, False),
    (expand_instants, False),
    (slide_panes, False),
    (running_sums, True),
    (running_best, True),
    (running_counts, True),
)

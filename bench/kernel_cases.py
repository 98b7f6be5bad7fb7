"""The kernels with their arguments and their twins: what ``kernels`` times. Those that read bytes are in ``bench.text_cases``.

A case is made for a number of rows; both functions take no argument and are compared by what they return. Where a twin is a loop in
Python, it is timed on fewer rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.case import Case
from bench.text_cases import TEXT_CASES
from levada.kernels import (
    elements,
    expand,
    groups,
    interval,
    keyed,
    keyed_route,
    probe,
    probe_latest,
    reach,
    running,
    slide,
    star,
    sums,
    sums_dd,
    terms,
)  # fmt: skip
from levada.kernels import keyed_twins as twins
from levada.model.time import MIN, Window, WindowKind


@dataclass(frozen=True, slots=True)
class Rows:
    """Keys (ten rows each, so that something meets), times, values, codes of a thousand groups."""

    n: int

    def keys(self, seed: int = 1) -> tuple[Any, Any]:
        """Both halves of a key."""
        of = np.random.default_rng(seed).integers(0, max(self.n // 10, 1), self.n)
        x = np.random.default_rng(0).integers(0, 2**64, (2, max(self.n // 10, 1)), dtype=np.uint64)
        return x[0][of].copy(), x[1][of].copy()

    @property
    def ts(self) -> Any:
        """Times, one a millisecond."""
        return np.arange(self.n, dtype=np.int64)

    @property
    def codes(self) -> Any:
        """A group of each row."""
        return np.random.default_rng(2).integers(0, 1000, self.n).astype(np.int32)

    @property
    def weights(self) -> Any:
        """All 1."""
        return np.ones(self.n, np.int8)

    @property
    def values(self) -> Any:
        """Doubles."""
        return np.random.default_rng(3).random(self.n) * 1000

    @property
    def params(self) -> interval.Params:
        """A window on close and one per element."""
        windows = (Window(WindowKind.CLOSE_OPEN, range=60_000, step=10_000), Window(WindowKind.RANGE, range=60_001))
        return interval.Params.of(windows)

    @property
    def which(self) -> Any:
        """The window of each row."""
        return (np.arange(self.n) % 2).astype(np.int32)


def bucket_order(n: int) -> Case:
    k, bits = Rows(n).keys()[0], keyed.bits_for(n)
    return Case(lambda: keyed.bucket_order(k, bits), lambda: twins.bucket_order_twin(k, bits), n)


def scatter_order(n: int) -> Case:
    target = Rows(n).codes % 8
    return Case(lambda: keyed_route.scatter_order(target, 8), lambda: twins.scatter_order_twin(target, 8), n)


def group(n: int) -> Case:
    k, h = Rows(n).keys()
    return Case(lambda: groups.group(k, h), lambda: twins.group_twin(k, h), n)


def _run(n: int) -> Any:
    k, h = Rows(n).keys(5)
    return probe.arrange(k, h, Rows(n).ts, Rows(n).ts + n // 5)[1]


def join_pairs(n: int) -> Case:
    (k, h), s, run = Rows(n).keys(), Rows(n).ts, _run(n)
    e = s + n // 5
    return Case(lambda: probe.join_pairs(k, h, s, e, run), lambda: twins.join_pairs_twin(k, h, s, e, run), n)


def latest(n: int) -> Case:
    (k, h), ts, run = Rows(n).keys(), Rows(n).ts, _run(n)
    return Case(lambda: probe_latest.latest(k, h, ts, run), lambda: twins.latest_twin(k, h, ts, run), n)


def previous_within(n: int) -> Case:
    (k, h), ts = Rows(n).keys(), Rows(n).ts
    return Case(lambda: probe_latest.previous_within(k, h, ts), lambda: twins.previous_within_twin(k, h, ts), n)


def enter(n: int) -> Case:
    p, which, ts = Rows(n).params, Rows(n).which, Rows(n).ts
    return Case(lambda: interval.enter(*p, which, ts), lambda: twins.enter_twin(p, which, ts), n)


def leave(n: int) -> Case:
    p, which, ts = Rows(n).params, Rows(n).which, Rows(n).ts
    return Case(lambda: interval.leave(*p, which, ts), lambda: twins.leave_twin(p, which, ts), n)


def intervals(n: int) -> Case:
    p, which, ts = Rows(n).params, Rows(n).which, Rows(n).ts
    start, prev = np.full(2, MIN, np.int64), np.maximum(ts - 5, 0)
    return Case(
        lambda: interval.interval(*p, start, which, ts, ts, prev),
        lambda: twins.interval_twin(p, start, which, ts, ts, prev), n,
    )  # fmt: skip


def expand_closes(n: int) -> Case:
    s, which, p = Rows(n).ts, np.zeros(n, np.int32), Rows(n).params
    e, closes = s + 60_000, (p.range[:1], p.step[:1], p.t0[:1], p.given[:1])
    return Case(
        lambda: expand.expand_closes(s, e, -1, n, closes, which),
        lambda: twins.expand_closes_twin(s, e, -1, n, closes, which), n,
    )  # fmt: skip


def expand_instants(n: int) -> Case:
    s = Rows(n).ts
    e, at = s + 3000, np.arange(0, n, 1000, dtype=np.int64)
    return Case(lambda: expand.expand_instants(s, e, at), lambda: twins.expand_instants_twin(s, e, at), n)


def net(n: int) -> Case:
    c, w = Rows(n).codes, Rows(n).weights
    return Case(lambda: sums.net(c, w, 1000), lambda: twins.net_twin(c, w, 1000), n)


def sum_int(n: int) -> Case:
    c, w, v = Rows(n).codes, Rows(n).weights, Rows(n).values.astype(np.int64)
    return Case(lambda: sums.round_int(*sums.sum_int(c, v, w, 1000))[0], lambda: twins.sum_int_twin(c, v, w, 1000), n)


def sum_dd(n: int) -> Case:
    c, w, v = Rows(n).codes, Rows(n).weights, Rows(n).values
    return Case(
        lambda: sums_dd.round_dd(sums_dd.sum_dd(c, v, w, 1000)), lambda: twins.sum_dd_twin(c, v, w, 1000), n
    )  # fmt: skip


def winners(n: int) -> Case:
    c, v, (x, y) = Rows(n).codes, Rows(n).values, Rows(n).keys()
    return Case(
        lambda: sums.winners(c, v, x, y, 1000, False), lambda: twins.winners_twin(c, v, x, y, 1000, False), n
    )  # fmt: skip


def merge_int(n: int) -> Case:
    c, high, low = Rows(n).codes, Rows(n).values.astype(np.int64), Rows(n).ts

    def twin() -> Any:
        total = [0] * 1000
        for code, h, low_ in zip(c.tolist(), high.tolist(), low.tolist(), strict=True):
            total[code] += (h << 32) + low_
        return [t >> 32 for t in total], [t & 0xFFFFFFFF for t in total]

    return Case(lambda: sums.merge_int(c, high, low, 1000), twin, n)


def merge_dd(n: int) -> Case:
    c, w, v = Rows(n).codes, Rows(n).weights, Rows(n).values
    partial = sums_dd.sum_dd(np.arange(n, dtype=np.int32), v, w, n)
    return Case(
        lambda: sums_dd.round_dd(sums_dd.merge_dd(c, partial, 1000)), lambda: twins.merge_dd_twin(c, partial, 1000), n
    )  # fmt: skip


_avalanche = getattr(keyed.avalanche, "py_func", keyed.avalanche)  # it takes columns, too


def mix(n: int) -> Case:
    (x, y), op = Rows(n).keys(), Rows(n).codes

    def twin() -> Any:
        m = _avalanche((op.astype(np.uint64) + np.uint64(1)) * keyed._ODD_A)
        return x ^ m, y + m

    return Case(lambda: keyed.mix(x, y, op), twin, n)


def combine(n: int) -> Case:
    (k, h), (x, y) = Rows(n).keys(), Rows(n).keys(5)

    def twin() -> Any:
        a, b = k * keyed._ODD_A + x, h * keyed._ODD_D + y
        a = _avalanche(a + b * keyed._ODD_C)
        return a, _avalanche(b + a * keyed._ODD_B)

    return Case(lambda: keyed.combine(k, h, x, y), twin, n)


def beside(n: int) -> Case:
    (k, h), ts = Rows(n).keys(), Rows(n).ts

    def twin() -> Any:
        return k + ts.view(np.uint64) * keyed._ODD_A, h + ts.view(np.uint64) * keyed._ODD_D

    return Case(lambda: keyed.beside(k, h, ts, ts), twin, n)


def group_of(n: int) -> Case:
    h, half = Rows(n).keys()[1], np.uint64(32)
    return Case(lambda: keyed_route.group_of(h, 64), lambda: ((h >> half) * np.uint64(64)) >> half, n)


def partition_of(n: int) -> Case:
    h, half, table = Rows(n).keys()[1], np.uint64(32), (np.arange(64) % 7).astype(np.int32)
    return Case(
        lambda: keyed_route.partition_of(h, table), lambda: table[((h >> half) * np.uint64(64)) >> half], n
    )  # fmt: skip


def number_alike(n: int) -> Case:
    x = np.repeat(np.arange(n // 3 + 1, dtype=np.uint64), 3)[:n]
    return Case(lambda: elements.number_alike(x, x), lambda: elements.numbers_by_columns(x, x), n)


def one_time(n: int) -> Case:
    ts, edges = Rows(n).ts // 3, np.append(np.arange(0, n, 3), n)
    return Case(lambda: elements.one_time(ts, edges), lambda: elements.times_by_columns(ts, edges), n)


def find_rows(n: int) -> Case:
    x, y = np.random.default_rng(6).permutation(n).astype(np.uint64) * np.uint64(7919), Rows(n).ts.view(np.uint64)
    wanted = np.random.default_rng(7).permutation(n)
    of_x, of_y = x[wanted], y[wanted]

    def twin() -> Any:
        order = np.argsort(x)
        return order[np.searchsorted(x[order], of_x)]

    return Case(lambda: terms.find_rows(terms.index_of(x, y), x, y, of_x, of_y), twin, n)


def meet(n: int) -> Case:
    subject = (np.arange(n) // 2).astype(np.int32)
    starts, wanted = np.array([0, n], np.int64), np.arange(0, n // 2, dtype=np.int32)
    pattern = np.zeros(len(wanted), np.int64)
    pairs, places = np.empty(n, np.int64), np.empty(n, np.int64)

    def kernel() -> Any:
        _, count = star.meet(pattern, wanted, subject, starts, 0, pairs, places)
        return pairs[:count], places[:count]

    return Case(kernel, lambda: star.meet_by_search(pattern, wanted, subject, starts), len(wanted))


def slide_panes(n: int) -> Case:
    """A thousand groups, each with a pane at each step; windows of six steps."""
    group, step = (np.arange(n) % 1000).astype(np.int32), 10_000
    s, op = np.arange(n) // 1000 * step, np.zeros(n, np.int32)
    e, low, high = s + 6 * step, np.array([-1]), np.array([n // 1000 * step])
    closes = np.array([6 * step]), np.array([step]), np.array([0]), np.array([False])

    def twin() -> Any:
        row, at = expand.expand_closes(s, e, -1, int(high[0]), closes, op)
        order = np.lexsort((row, at, group[row]))
        row, at = row[order], at[order]
        new = np.append(True, (np.diff(group[row]) != 0) | (np.diff(at) != 0))
        return row, np.cumsum(new) - 1, row[new], at[new]

    return Case(lambda: slide.slide(group, 1000, op, s, e, low, high, closes), twin, n)


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
    args = (c.starts, c.run, values.view(np.int64), Rows(n).weights, base, none, none, c.runs)

    def twin() -> Any:
        ends = (min(2 * r + 2, n) for r in range(c.runs))
        return np.zeros(len(base) - 1), np.array([math.fsum(values[(e - 1) // 100 * 100 : e]) for e in ends])

    return Case(lambda: running.running_sums(*args)[:2], twin, n)


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
        lambda: running.running_best(c.starts, c.run, place, weights, value_starts, counts, c.runs), twin, n
    )  # fmt: skip


def running_counts(n: int) -> Case:
    codes, change = (np.arange(n) // 10).astype(np.int32), np.random.default_rng(9).integers(-2, 3, n)
    before = np.ones(n // 10 + 1, np.int64)

    def twin() -> Any:
        now, was, then = before.tolist(), [], []
        for code, by in zip(codes.tolist(), change.tolist(), strict=True):
            was.append(now[code])
            now[code] = max(now[code] + by, 0)
            then.append(now[code])
        return np.array(was), np.array(then)

    return Case(lambda: running.running_counts(codes, change, before, True), twin, n)


def reach_all(n: int) -> Case:
    """Chains of ten nodes, from each node on."""
    at = np.arange(n // 10 * 10, dtype=np.int32)
    edges = reach.edges_of(at[at % 10 < 9], at[at % 10 < 9] + np.int32(1), len(at))
    zero = np.zeros(len(at), bool)
    return Case(
        lambda: reach.reach(*edges, at, zero, many=True), lambda: reach.reach_by_rounds(*edges, at, zero, many=True), len(at)
    )  # fmt: skip


# (case, whether its twin is a loop in Python)
CASES: tuple[tuple[Callable[[int], Case], bool], ...] = (
    *TEXT_CASES, (bucket_order, False), (scatter_order, False), (group, False), (mix, False), (combine, False),
    (beside, False), (group_of, False), (partition_of, False), (number_alike, False), (one_time, False),
    (find_rows, False), (join_pairs, False), (latest, False), (previous_within, False), (enter, True), (leave, True),
    (intervals, True), (expand_closes, False), (expand_instants, False), (slide_panes, False), (meet, True), (net, False),
    (sum_int, True), (merge_int, True), (sum_dd, True), (merge_dd, True), (winners, False), (running_sums, True),
    (running_best, True), (running_counts, True), (reach_all, False),
)  # fmt: skip

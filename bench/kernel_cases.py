"""The kernels with their arguments and their twins: what ``kernels`` times. Those that read bytes
are in ``bench.text_cases``, those of windows in ``bench.time_cases``.

A case is made for a number of rows; both functions take no argument and are compared by what they
return. Where a twin is a loop in Python, it is timed on fewer rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.case import Case, Rows
from bench.text_cases import TEXT_CASES
from bench.time_cases import TIME_CASES
from levada.kernels.keyed import (
    bucket_layout,
    double_double_sums,
    group_sums,
    hash_probe,
    path_reachability,
    previous_occurrence,
    star_join,
)
from levada.kernels.keyed import (
    hash_groups as groups,
)
from levada.kernels.keyed import key_partitioner as keyed_route
from levada.kernels.keyed import numpy_twins as twins
from levada.kernels.text import element_runs, term_texts


def bucket_order(n: int) -> Case:
    k, bits = Rows(n).keys()[0], bucket_layout.bits_for(n)
    return Case(
        lambda: bucket_layout.bucket_order(k, bits), lambda: twins.bucket_order_twin(k, bits), n
    )


def scatter_order(n: int) -> Case:
    target = Rows(n).codes % 8
    return Case(
        lambda: keyed_route.scatter_order(target, 8), lambda: twins.scatter_order_twin(target, 8), n
    )


def group(n: int) -> Case:
    k, h = Rows(n).keys()
    return Case(lambda: groups.group(k, h), lambda: twins.group_twin(k, h), n)


def _run(n: int) -> Any:
    k, h = Rows(n).keys(5)
    return hash_probe.arrange(k, h, Rows(n).ts, Rows(n).ts + n // 5)[1]


def join_pairs(n: int) -> Case:
    (k, h), s, run = Rows(n).keys(), Rows(n).ts, _run(n)
    e = s + n // 5
    return Case(
        lambda: hash_probe.join_pairs(k, h, s, e, run),
        lambda: twins.join_pairs_twin(k, h, s, e, run),
        n,
    )


def latest(n: int) -> Case:
    (k, h), ts, run = Rows(n).keys(), Rows(n).ts, _run(n)
    return Case(
        lambda: previous_occurrence.latest_before(k, h, ts, run),
        lambda: twins.latest_twin(k, h, ts, run),
        n,
    )


def previous_within(n: int) -> Case:
    (k, h), ts = Rows(n).keys(), Rows(n).ts
    return Case(
        lambda: previous_occurrence.previous_within(k, h, ts),
        lambda: twins.previous_within_twin(k, h, ts),
        n,
    )


def net(n: int) -> Case:
    c, w = Rows(n).codes, Rows(n).weights
    return Case(lambda: group_sums.sum_weights(c, w, 1000), lambda: twins.net_twin(c, w, 1000), n)


def sum_int(n: int) -> Case:
    c, w, v = Rows(n).codes, Rows(n).weights, Rows(n).values.astype(np.int64)
    return Case(
        lambda: group_sums.round_int(*group_sums.sum_int(c, v, w, 1000))[0],
        lambda: twins.sum_int_twin(c, v, w, 1000),
        n,
    )


def sum_dd(n: int) -> Case:
    c, w, v = Rows(n).codes, Rows(n).weights, Rows(n).values
    return Case(
        lambda: double_double_sums.round_dd(double_double_sums.sum_dd(c, v, w, 1000)),
        lambda: twins.sum_dd_twin(c, v, w, 1000),
        n,
    )


def winners(n: int) -> Case:
    c, v, (x, y) = Rows(n).codes, Rows(n).values, Rows(n).keys()
    return Case(
        lambda: group_sums.winners(c, v, x, y, 1000, False),
        lambda: twins.winners_twin(c, v, x, y, 1000, False),
        n,
    )


def merge_int(n: int) -> Case:
    c, high, low = Rows(n).codes, Rows(n).values.astype(np.int64), Rows(n).ts

    def twin() -> Any:
        total = [0] * 1000
        for code, h, low_ in zip(c.tolist(), high.tolist(), low.tolist(), strict=True):
            total[code] += (h << 32) + low_
        return [t >> 32 for t in total], [t & 0xFFFFFFFF for t in total]

    return Case(lambda: group_sums.merge_int(c, high, low, 1000), twin, n)


def merge_dd(n: int) -> Case:
    c, w, v = Rows(n).codes, Rows(n).weights, Rows(n).values
    partial = double_double_sums.sum_dd(np.arange(n, dtype=np.int32), v, w, n)
    return Case(
        lambda: double_double_sums.round_dd(double_double_sums.merge_dd(c, partial, 1000)),
        lambda: twins.merge_dd_twin(c, partial, 1000),
        n,
    )


_avalanche = getattr(
    bucket_layout.avalanche, "py_func", bucket_layout.avalanche
)  # it takes columns, too


def mix(n: int) -> Case:
    (x, y), op = Rows(n).keys(), Rows(n).codes

    def twin() -> Any:
        m = _avalanche((op.astype(np.uint64) + np.uint64(1)) * bucket_layout._ODD_A)
        return x ^ m, y + m

    return Case(lambda: bucket_layout.mix(x, y, op), twin, n)


def combine(n: int) -> Case:
    (k, h), (x, y) = Rows(n).keys(), Rows(n).keys(5)

    def twin() -> Any:
        a, b = k * bucket_layout._ODD_A + x, h * bucket_layout._ODD_D + y
        a = _avalanche(a + b * bucket_layout._ODD_C)
        return a, _avalanche(b + a * bucket_layout._ODD_B)

    return Case(lambda: bucket_layout.combine(k, h, x, y), twin, n)


def beside(n: int) -> Case:
    (k, h), ts = Rows(n).keys(), Rows(n).ts

    def twin() -> Any:
        return k + ts.view(np.uint64) * bucket_layout._ODD_A, h + ts.view(
            np.uint64
        ) * bucket_layout._ODD_D

    return Case(lambda: bucket_layout.combine_instants(k, h, ts, ts), twin, n)


def group_of(n: int) -> Case:
    h, half = Rows(n).keys()[1], np.uint64(32)
    return Case(
        lambda: keyed_route.group_of(h, 64), lambda: ((h >> half) * np.uint64(64)) >> half, n
    )


def count_groups(n: int) -> Case:
    groups = (Rows(n).keys()[1] >> np.uint64(48)).astype(np.uint16)
    counts = np.zeros(1 << 16, np.int64)

    def counted() -> Any:
        counts[:] = 0
        keyed_route.count_groups(groups, counts, 0)
        return counts

    def twin() -> Any:
        return np.bincount(groups, minlength=1 << 16)

    return Case(counted, twin, n)


def count_pairs(n: int) -> Case:
    """As many pairs as a tenth of the rows."""
    of = np.random.default_rng(8).integers(0, max(n // 10, 1), n)
    source, target = (
        (of * 7919 % 65_521).astype(np.uint16),
        (of * 104_729 % 65_519).astype(np.uint16),
    )
    return Case(
        lambda: keyed_route.count_pairs(source, target, 0),
        lambda: twins.count_pairs_twin(source, target, 0),
        n,
    )


def partition_of(n: int) -> Case:
    h, half, table = Rows(n).keys()[1], np.uint64(32), (np.arange(1 << 16) % 7).astype(np.int16)
    return Case(
        lambda: keyed_route.partition_of(h, table),
        lambda: table[((h >> half) * np.uint64(1 << 16)) >> half].astype(np.int32),
        n,
    )


def number_alike(n: int) -> Case:
    x = np.repeat(np.arange(n // 3 + 1, dtype=np.uint64), 3)[:n]
    return Case(
        lambda: element_runs.number_alike(x, x), lambda: element_runs.numbers_by_columns(x, x), n
    )


def one_time(n: int) -> Case:
    ts, edges = Rows(n).ts // 3, np.append(np.arange(0, n, 3), n)
    return Case(
        lambda: element_runs.one_time(ts, edges),
        lambda: element_runs.times_by_columns(ts, edges),
        n,
    )


def find_rows(n: int) -> Case:
    x, y = (
        np.random.default_rng(6).permutation(n).astype(np.uint64) * np.uint64(7919),
        Rows(n).ts.view(np.uint64),
    )
    wanted = np.random.default_rng(7).permutation(n)
    of_x, of_y = x[wanted], y[wanted]

    def twin() -> Any:
        order = np.argsort(x)
        return order[np.searchsorted(x[order], of_x)]

    return Case(lambda: term_texts.find_rows(term_texts.index_of(x, y), x, y, of_x, of_y), twin, n)


def meet(n: int) -> Case:
    subject = (np.arange(n) // 2).astype(np.int32)
    starts, wanted = np.array([0, n], np.int64), np.arange(0, n // 2, dtype=np.int32)
    pattern = np.zeros(len(wanted), np.int64)
    pairs, places = np.empty(n, np.int64), np.empty(n, np.int64)

    def kernel() -> Any:
        _, count = star_join.meet(pattern, wanted, subject, starts, 0, pairs, places)
        return pairs[:count], places[:count]

    return Case(
        kernel, lambda: star_join.meet_by_search(pattern, wanted, subject, starts), len(wanted)
    )


def reach_all(n: int) -> Case:
    """Chains of ten nodes, from each node on."""
    at = np.arange(n // 10 * 10, dtype=np.int32)
    edges = path_reachability.edges_of(at[at % 10 < 9], at[at % 10 < 9] + np.int32(1), len(at))
    zero = np.zeros(len(at), bool)
    return Case(
        lambda: path_reachability.reach(*edges, at, zero, many=True),
        lambda: path_reachability.reach_by_rounds(*edges, at, zero, many=True),
        len(at),
    )


# (case, whether its twin is a loop in Python)
CASES: tuple[tuple[Callable[[int], Case], bool], ...] = (
    *TEXT_CASES,
    (bucket_order, False),
    (scatter_order, False),
    (group, False),
    (mix, False),
    (combine, False),
    (beside, False),
    (group_of, False),
    (count_groups, False),
    (count_pairs, False),
    (partition_of, False),
    (number_alike, False),
    (one_time, False),
    (find_rows, False),
    (join_pairs, False),
    (latest, False),
    (previous_within, False),
    (meet, True),
    (net, False),
    (sum_int, True),
    (merge_int, True),
    (sum_dd, True),
    (merge_dd, True),
    (winners, False),
    (reach_all, False),
    *TIME_CASES,
)

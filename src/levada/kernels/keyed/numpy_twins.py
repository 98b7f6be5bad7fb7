"""NumPy twins of the keyed kernels: the same results by other means, as oracles of tests and
baselines of benchmarks.

They sort where the kernels hash or count, expand pairs before they filter them, and sum exactly
where the kernels carry pairs. None is on the data path. A twin has its kernel's name and arguments,
with ``_twin`` added.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Bools, Doubles, Ints, Longs, Words
from levada.core.event_time import MAX, MIN, Times, Window, WindowKind
from levada.core.row_ranges import ranges
from levada.kernels.keyed.double_double_sums import Sums
from levada.kernels.keyed.group_sums import Weights
from levada.kernels.keyed.hash_probe import Buckets
from levada.kernels.time.window_intervals import Params


def bucket_order_twin(k: Words, bits: int) -> tuple[Ints, Ints]:
    """A stable sort of the bucket numbers."""
    bucket = (k >> np.uint64(64 - bits)).astype(np.int64)
    starts = np.searchsorted(np.sort(bucket), np.arange((1 << bits) + 1))
    return np.argsort(bucket, kind="stable").astype(np.int32), starts.astype(np.int32)


def scatter_order_twin(target: Ints, parts: int) -> tuple[Ints, Longs]:
    """A stable sort of the targets."""
    offsets = np.searchsorted(np.sort(target), np.arange(parts + 1))
    return np.argsort(target, kind="stable").astype(np.int32), offsets.astype(np.int64)


def count_pairs_twin(
    source: npt.NDArray[np.uint16], target: npt.NDArray[np.uint16], shift: int
) -> tuple[npt.NDArray[np.uint32], Longs]:
    """The distinct pairs by sorting, in the order of their first rows."""
    pairs = (source >> shift).astype(np.uint32) << np.uint32(16) | target >> shift
    there, first, rows = np.unique(pairs, return_index=True, return_counts=True)
    order = np.argsort(first)
    return there[order], rows[order].astype(np.int64)


def group_twin(k: Words, h: Words) -> tuple[Ints, Longs]:
    """The distinct keys by sorting, renumbered by their first rows."""
    _, first, codes = np.unique(np.rec.fromarrays([k, h]), return_index=True, return_inverse=True)
    by_first = np.argsort(first)
    rank = np.empty(len(first), np.int32)
    rank[by_first] = np.arange(len(first), dtype=np.int32)
    return rank[codes.reshape(-1)], first[by_first].astype(np.int64)


def find_twin(k: Words, h: Words, key_k: Words, key_h: Words) -> Ints:
    """``groups.find`` by comparing each key with all rows."""
    same = (key_k[:, None] == k) & (key_h[:, None] == h)
    rows = same.argmax(axis=1) if k.size else np.zeros(key_k.size, np.int64)
    return np.where(same.any(axis=1), rows, -1).astype(np.int32)


def _joint_codes(k: Words, h: Words, run: Buckets) -> tuple[Ints, Ints]:
    codes, _ = group_twin(np.concatenate([k, run.k]), np.concatenate([h, run.h]))
    return codes[: len(k)], codes[len(k) :]


def _ranges(low: Longs, high: Longs) -> tuple[Longs, Longs]:
    """For each row i all places of low[i]:high[i], as (i, place)."""
    many = high - low
    return np.repeat(np.arange(len(low)), many), ranges(low, many)


def join_pairs_twin(k: Words, h: Words, s: Times, e: Times, run: Buckets) -> tuple[Ints, Ints]:
    """All pairs of equal key by a sort of the run, then the filter by time."""
    probe, stored = _joint_codes(k, h, run)
    order = np.argsort(stored, kind="stable")
    in_order = stored[order]
    i, place = _ranges(
        np.searchsorted(in_order, probe), np.searchsorted(in_order, probe, side="right")
    )
    j = order[place]
    meets = np.maximum(s[i], run.s[j]) < np.minimum(e[i], run.ends[j])
    return i[meets].astype(np.int32), j[meets].astype(np.int32)


def _latest_of(probe: Ints, ts: Times, stored: Ints, stored_ts: Times) -> Times:
    """The greatest stored time below ts under its code: one search over (code, time's rank)."""
    times, rank = np.unique(np.concatenate([ts, stored_ts]), return_inverse=True)
    place = np.concatenate([probe, stored]).astype(np.int64) * max(len(times), 1) + rank.reshape(-1)
    wanted, held = place[: len(ts)], np.sort(place[len(ts) :])
    before = np.searchsorted(held, wanted) - 1
    hit = held[np.maximum(before, 0)] if len(held) else np.full(len(ts), -1)
    is_equal = (before >= 0) & (hit // max(len(times), 1) == probe)
    return np.where(is_equal, times[hit % max(len(times), 1)] if len(times) else MIN, MIN)


def latest_twin(k: Words, h: Words, ts: Times, run: Buckets) -> Times:
    """A search in the run sorted by (key, time)."""
    probe, stored = _joint_codes(k, h, run)
    return _latest_of(probe, ts, stored, run.s)


def previous_within_twin(k: Words, h: Words, ts: Times) -> tuple[Times, npt.NDArray[np.bool_]]:
    """A search of the batch in itself; duplicates are all but the first of each (key, time)."""
    codes, _ = group_twin(k, h)
    _, first = group_twin(codes.astype(np.uint64), ts.view(np.uint64))
    duplicate = np.ones(len(k), np.bool_)
    duplicate[first] = False
    return _latest_of(codes, ts, codes, ts), duplicate


def _by_window(
    params: Params, row_param: Ints, ts: Times, function: Callable[[Window, int], int]
) -> npt.NDArray[np.int64]:
    """The scalar function of ``core.event_time`` row by row, held to [MIN, MAX]."""
    windows = [
        Window(
            WindowKind(int(kind)),
            range=int(width),
            step=int(step),
            t0=int(t0),
            t0_given=bool(t0_given),
            to=int(to),
        )
        for kind, width, step, t0, t0_given, to in zip(*params, strict=True)
    ]
    values = [function(windows[p], int(t)) for p, t in zip(row_param, ts, strict=True)]
    return np.array([min(max(v, MIN), MAX) for v in values], np.int64)


def enter_twin(params: Params, row_param: Ints, ts: Times) -> npt.NDArray[np.int64]:
    """``Window.enter`` itself."""
    return _by_window(params, row_param, ts, Window.enter)


def leave_twin(params: Params, row_param: Ints, ts: Times) -> npt.NDArray[np.int64]:
    """``Window.leave`` itself."""
    return _by_window(params, row_param, ts, Window.leave)


def interval_twin(
    params: Params, start: Times, row_param: Ints, lo: Times, hi: Times, prev: Times
) -> tuple[Times, Times]:
    """The definition by ``enter_twin`` and ``leave_twin``."""
    early = lo < start[row_param]
    none = prev < start[row_param]
    s = np.maximum(
        enter_twin(params, row_param, hi), leave_twin(params, row_param, np.where(none, MIN, prev))
    )
    return np.where(early, MAX, s), np.where(early, MAX, leave_twin(params, row_param, lo))


def expand_closes_twin(
    s: Times,
    e: Times,
    low: int,
    high: int,
    closes: tuple[Times, Times, Times, Bools],
    row_param: Ints,
) -> tuple[Longs, Times]:
    """Arithmetic on numbers of closes: k from ceiling and floor (finite, times below 2**61)."""
    width, step, t0, t0_given = (column[row_param] for column in closes)
    origin = t0 + width
    least = -((origin - np.maximum(s, low + 1)) // step)
    least = np.where(t0_given, np.maximum(least, 0), least)
    greatest = (np.minimum(e - 1, high) - origin) // step
    row, number = _ranges(least, np.maximum(greatest + 1, least))
    return row, origin[row] + number * step[row]


def expand_instants_twin(s: Times, e: Times, instants: Times) -> tuple[Longs, Times]:
    """Two searches and a repeat."""
    low = np.searchsorted(instants, s)
    row, place = _ranges(low, np.maximum(np.searchsorted(instants, e), low))
    return row, instants[place]


def net_twin(codes: Ints, weights: Weights, g: int) -> Longs:
    """Unbuffered addition in place."""
    out = np.zeros(g + 1, np.int64)
    np.add.at(out, codes, weights)  # code -1 falls on the last place
    return out[:-1]


def sum_int_twin(codes: Ints, values: Longs, weights: Weights, g: int) -> list[int]:
    """Python's own integers."""
    out = [0] * (g + 1)
    for c, v, w in zip(codes.tolist(), values.tolist(), weights.tolist(), strict=True):
        out[c] += v * w
    return out[:-1]


def sum_dd_twin(codes: Ints, values: Doubles, weights: Weights, g: int) -> Doubles:
    """Per group the correctly rounded sum of exact products (``math.fsum`` over repeated values),
    as ``round_dd``.
    """
    out = np.zeros(g)
    for c in range(g):
        mine = codes == c
        counts = {v: int(weights[mine & (values == v)].sum()) for v in (np.inf, -np.inf)}
        finite = mine & np.isfinite(values)
        nan = int(weights[mine & np.isnan(values)].sum()) > 0 or min(counts.values()) > 0
        terms = np.repeat(
            values[finite] * np.sign(weights[finite]), np.abs(weights[finite].astype(np.int64))
        )
        infinite = np.inf if counts[np.inf] > 0 else -np.inf if counts[-np.inf] > 0 else None
        out[c] = np.nan if nan else math.fsum(terms.tolist()) if infinite is None else infinite
    return out


def merge_dd_twin(codes: Ints, partial: Sums, g: int) -> Doubles:
    """The rounded sum of both halves of all partial sums (without NaN and infinities)."""
    return np.array(
        [math.fsum([*partial.hi[codes == c], *partial.lo[codes == c]]) for c in range(g)]
    )


def winners_twin(
    codes: Ints, rank: npt.NDArray[Any], tie_x: Words, tie_y: Words, g: int, greatest: bool
) -> Longs:
    """A stable sort by (code, rank, identity)."""
    sortable = np.unique(rank, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((tie_x, tie_y, -sortable if greatest else sortable, codes))
    order = order[codes[order] >= 0]
    held, first = np.unique(codes[order], return_index=True)
    out = np.full(g, -1, np.int64)
    out[held] = order[first]
    return out

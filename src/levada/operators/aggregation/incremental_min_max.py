"""Incremental MIN, MAX and SAMPLE: the count of each value of a group, and the best value.

``kernels.time.running_aggregates.running_best`` follows the changes of a group's values. It needs
the previous values only from the best down to one that remains throughout: no value below that one
is ever the best. So the state is ordered by value (``state/ordered_counts``), and for each changed
group it reads as many of the best values as are needed to find one that remains. Where the best
values leave, as many values are read as leave, and they are removed from the state with those that
left. Where the best values stay, one or two are read.

Cost: the changes, whatever the size of the groups. Values move between state parts as in
``state/ordered_counts``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.array_types import Bools, Longs, Words
from levada.core.expressions import AggregateFunction
from levada.core.frame import Column, Frame, concat
from levada.core.frozen import frozen
from levada.kernels.keyed.bucket_layout import combine
from levada.kernels.keyed.hash_groups import group
from levada.kernels.keyed.radix_sort import in_order
from levada.kernels.terms.term_lookup import TermLookup
from levada.kernels.time.running_aggregates import running_best
from levada.operators.aggregation.ordered_changes import Runs
from levada.operators.expressions import compare_rank
from levada.operators.rows.route_rows import bind, value
from levada.operators.rows.term_columns import column
from levada.operators.state import ordered_counts
from levada.operators.state.state_parts import State
from levada.plan.execution import steps as s

_FACETS = ("x", "y", "k", "d", "m", "c")
_FIRST = 2  # values of a group that are read at first


@frozen
class _Values:
    """The known distinct values of the groups that change, ordered by group and from the worst to
    the best.

    ``base``: the previous count of each value, as far as it is known. ``starts``: the first value
    of each group. ``place``: the value of each row of ``stored`` and of each new row. From the
    place ``sure`` of its group on, all values are known; of the groups that are ``whole`` the state
    has no more values.
    """

    rows: Frame
    base: Longs
    starts: Longs
    stored: ordered_counts.First | None
    stored_place: Longs
    place: Longs
    certain: Longs
    whole: Bools

    @property
    def is_known(self) -> Bools:
        """The values of which all is known."""
        return np.arange(self.rows.n) >= self.certain[self.rows[col.GROUP]]

    def groups_with_remaining(self, w: npt.NDArray[np.int8]) -> Bools:
        """Returns the groups that certainly have a value at every report, because not all values
        can leave.
        """
        groups = len(self.starts) - 1
        leaving = np.zeros(self.rows.n, np.bool_)
        leaving[self.place[w < 0]] = True
        staying = np.bincount(
            self.rows[col.GROUP][self.is_known & (self.base > 0) & ~leaving], minlength=groups
        )
        return (staying > 0) | self.whole


def best_values(
    key: str, state: State, rows: Frame, runs: Runs, *, spec: s.Aggregate, prefix: str, pool:
    TermLookup
) -> dict[str, Column]:  # fmt: skip
    """Returns the columns of the best value of each group at every point; zeros for an empty
    group.
    """
    there = np.flatnonzero(runs.rows >= 0)
    there = there[bind(rows, spec.slot)[runs.rows[there]]] if rows.n else there[:0]
    of = np.repeat(np.arange(runs.groups), np.diff(runs.starts))[there]
    w = runs.w[there]
    new = (
        _slot(rows, spec.slot)
        .take(runs.rows[there])
        .with_(**{col.GROUP: of, col.COUNT: np.zeros(len(there), np.int64)})
    )
    leaving = np.bincount(of[w < 0], minlength=runs.groups)
    limits = np.full(runs.groups, _FIRST, np.int64)
    while True:
        values = _values(
            ordered_counts.first(state, key, runs.k, runs.h, limits),
            new,
            runs.groups,
            spec.function,
            pool,
        )
        enough = values.groups_with_remaining(w)
        if enough.all():
            break
        limits = np.where(enough, limits, np.maximum(2 * limits, leaving + 1))
    at = np.full(len(runs.rows), -1, np.int64)
    at[there] = values.place
    before, after = running_best(
        runs.starts, runs.run, at, runs.w, values.starts, values.base, len(runs.of)
    )
    _remember(key, state, values, w, runs=runs, best=spec.function, pool=pool)
    best = runs.put_values(before, after)
    return {
        prefix + n: _take(values.rows[f"{n}0"], best) for n in _FACETS if f"{n}0" in values.rows
    }


def _slot(rows: Frame, i: int) -> Frame:
    """Renames the columns of slot ``i`` to slot 0."""
    return Frame(
        {f"{name}0": rows[f"{name}{i}"] for name in _FACETS if f"{name}{i}" in rows}, rows.n
    )


def _values(
    stored: ordered_counts.First | None,
    new: Frame,
    groups: int,
    best: AggregateFunction,
    pool: TermLookup,
) -> _Values:
    """Combines the values read from the state with the new values."""
    n = 0 if stored is None else stored.rows.n
    every = (
        new
        if stored is None
        else concat([stored.rows.with_(**{col.GROUP: stored.of}).select(new.columns), new])
    )
    codes, first = group(*_identity(every, every[col.GROUP]))
    distinct = every.take(first)
    order = _rank(distinct, best, pool)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    base = np.zeros(len(order), np.int64)
    np.add.at(base, codes, every[col.COUNT])
    places = place[codes]
    rows = distinct.take(order)
    starts = np.searchsorted(rows[col.GROUP], np.arange(groups + 1))
    certain, whole = starts[:-1].copy(), np.ones(groups, np.bool_)
    if stored is not None:  # of what is below the last that was read of a piece, the piece has more
        cut = stored.of[stored.cut]
        np.maximum.at(certain, cut, places[stored.cut])
        whole[cut] = False
    return _Values(rows, base[order], starts, stored, places[:n], places[n:], certain, whole)


def _identity(values: Frame, of: Longs) -> tuple[Words, Words]:
    """A key of group and value."""
    x, y = _value_words(values)
    return combine(x, y, np.ascontiguousarray(of).view(np.uint64), np.zeros(values.n, np.uint64))


def _value_words(values: Frame) -> tuple[Words, Words]:
    if col.x(0) in values:
        return values[col.x(0)], values[col.y(0)]
    m, d = (np.ascontiguousarray(value(values, n, 0)).view(np.uint64) for n in "md")
    return m, d


def _rank(values: Frame, best: AggregateFunction, pool: TermLookup) -> Longs:
    """The values by group, each from the worst to the best; of equal ones (of SAMPLE all are) the
    greatest identity first.
    """
    if not values.n:
        return np.empty(0, np.int64)
    rank = np.zeros(values.n, np.int64)
    if best is not AggregateFunction.SAMPLE:
        rank = np.unique(compare_rank(column(values, 0, pool)), return_inverse=True)[1]
    by = values[col.GROUP] * (int(rank.max()) + 1) + (
        rank.max() - rank if best is AggregateFunction.MIN else rank
    )
    order = in_order(by)
    if (by[order[1:]] != by[order[:-1]]).all():
        return order
    x, y = _value_words(values)
    return in_order(~x, ~y, by)


def _remember(
    key: str,
    state: State,
    values: _Values,
    w: npt.NDArray[np.int8],
    *,
    runs: Runs,
    best: AggregateFunction,
    pool: TermLookup,
) -> None:
    """Adds the change of each value's count to the state. Where some of the best values are gone,
    takes the best values out of the state and writes the remaining ones anew.
    """
    change = np.zeros(values.rows.n, np.int64)
    np.add.at(change, values.place, w.astype(np.int64))
    known, of = values.is_known, values.rows[col.GROUP]
    stored = values.stored
    if stored is not None:
        read = np.zeros(values.rows.n, np.bool_)
        read[values.stored_place] = True
        is_empty = np.zeros(runs.groups, np.bool_)
        is_empty[of[known & read & (values.base + change <= 0)]] = True
        anew = known & is_empty[of]
        change = np.where(anew, values.base + change, change)
        first = np.flatnonzero(anew[values.stored_place])
        ordered_counts.take_first(
            state, key, stored, first, Frame(runs.columns(np.arange(runs.groups)))
        )
    plain = {n: c for n, c in values.rows.columns.items() if n != col.GROUP}
    rows = Frame({**plain, **runs.columns(of), col.COUNT: change}, values.rows.n)
    rows = rows.take(np.flatnonzero(change)[::-1])
    words = [n for n in (col.x(0), col.y(0)) if n in rows] or [
        n for n in (col.mantissa(0), col.double(0)) if n in rows
    ]

    def order(some: Frame) -> Longs:
        """Groups together, the best of each first."""
        codes = group(some[col.KEY], some[col.CHECK])[0].astype(np.int64)
        return _rank(some.with_(**{col.GROUP: codes}), best, pool)[::-1]

    def texts(some: Frame) -> Mapping[str, Frame]:
        """Returns the texts to keep with the values: values may stay in order for longer than their
        rows stay in a window.
        """
        return pool.pick(some[col.x(0)], some[col.y(0)]).frames("") if col.x(0) in some else {}

    ordered_counts.insert(state, key, rows, tuple(words), order, texts=texts)


def _take(values: Column, best: Longs) -> Column:
    if not len(values):
        return np.zeros(len(best), values.dtype)
    return np.where(best >= 0, values[np.maximum(best, 0)], np.zeros(1, values.dtype)).astype(
        values.dtype
    )

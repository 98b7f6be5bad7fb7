"""Runs: the state of a keyed input, probed by the new rows of the other side
(docs/architecture.md#state; ``run`` defines a run).

Rows that end by rows of weight -1, and not by time, are kept in another way (``retractable_side``).

One *open* run takes each epoch's rows (written anew as a part of level 0) until it contains 8
epochs, spans a quarter of the window, or has many rows for each new one; then it is sealed. Four
sealed runs of a level merge into one of the next, within a quarter of the window. So at most about
a dozen runs are probed, and a row is rewritten a bounded number of times. Whole runs are dropped
when dead.

Where memory is bounded a run that would be larger than two theta is *cut*: it has a part for each
leaf of its directory (``key_ranges``), and is merged with others range by range. A row probes the
part of each run that has its key. So the memory of a merge follows from theta, and not from the
window. A hot leaf is cut by time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby

import msgspec
import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools
from levada.core.event_time import MIN
from levada.core.frame import Frame, concat
from levada.core.frozen import frozen
from levada.core.size_thresholds import register
from levada.kernels.keyed.bucket_layout import bits_for, bucket_order
from levada.kernels.keyed.hash_probe import Buckets
from levada.operators.state.key_ranges import Range, common_range, leaves
from levada.operators.state.restricted_lookup import LookupKeys, restrict_run
from levada.operators.state.retractions import drop_cancelled
from levada.operators.state.run import (
    Run,
    build_run,
    living_rows,
    open_,
    put_run,
    range_of,
    row_bytes,
    rows_of,
    some_of,
    with_run_columns,
)
from levada.operators.state.state_parts import State, StatePart, due_together

__all__ = [
    "Horizons", "Run", "add_lasting", "append_to_one_run", "build_run", "insert",
    "live_runs", "living_rows", "open_", "put_run", "rows_of", "runs_before", "single_run",
    "with_run_columns",
]  # fmt: skip
OPEN_EPOCHS = register(f"{__name__}.OPEN_EPOCHS", 8)
MERGE = register(f"{__name__}.MERGE", 4, least=2)
MOST_RUNS = register(f"{__name__}.MOST_RUNS", 12, least=2)
MERGE_ROWS_PER_NEW_ROW = register(f"{__name__}.MERGE_ROWS_PER_NEW_ROW", 16)
"""Rows that may be put together, for one that is new, while runs are not twice too many; and that
the open run may have for one that comes.
"""
LITTLE = register(f"{__name__}.LITTLE", 4096)
"""Rows of an open run that are written anew for any that come."""


@frozen
class Horizons:
    """The least instant that a new row can have: in this epoch (rows dead at ``now`` have no
    partners), and after it.
    """

    now: int
    next: int


def live_runs(state: State, key: str, horizon: int, wanted: LookupKeys | None = None) -> list[Run]:
    """Returns the runs of an input that are not dead at ``horizon``. Runs written by other
    partitions are restricted to the ``wanted`` keys (None: all).
    """
    runs = (restrict_run(state, p, wanted) for p in state.drop_dead(key, horizon))
    return [run for run in runs if run is not None]


def runs_before(
    state: State, key: str, horizon: int, wanted: LookupKeys | None = None
) -> list[Run]:
    """The same as they were when this epoch began, whatever has been added since."""
    pieces = (p for p in state.before(key) if p.dead > horizon)
    runs = (restrict_run(state, p, wanted) for p in pieces)
    return [run for run in runs if run is not None]


def insert(
    state: State,
    key: str,
    run: Run,
    quarter: int,
    *,
    horizon: int,
    ends: Sequence[str] = (),
    alive: Bools | None = None,
) -> None:
    """Adds an epoch's rows to the open run, sealing and merging runs as needed; rows that are dead
    by then are left out.

    ``ends``: columns in which a row differs from the row of weight -1 that takes it back.
    ``alive``: the members that have not been removed.
    """
    run = _living_run(run, horizon)
    pieces = list(state.drop_dead(key, horizon))
    last = [p for p in pieces[-1:] if p.level == 0]
    sealed = pieces[: len(pieces) - len(last)]
    pieces = [*_merge_runs(state, sealed, run.rows.n, horizon, ends, alive=alive), *last]
    tail = last[0] if last else None
    if tail is not None and _stays_open(state, tail, run.rows, quarter):
        longer = _append(state, tail, run, horizon) if alive is None or alive.all() else None
        if longer is not None:
            pieces[-1:] = put_run(state, longer, 0, tail.epochs + 1)
            state.replace(key, pieces)
            return
        both = concat(
            [living_rows(rows, horizon, alive) for rows in (rows_of(state, tail), run.rows)]
        )
        rows = _without_retracted(both, horizon, ends)
        pieces[-1:] = put_run(state, build_run(rows), 0, tail.epochs + 1) if rows.n else []
    else:
        if tail is not None:
            pieces[-1] = _seal(tail, run.rows.n)
        pieces = _merge(state, pieces, quarter, horizon, ends, alive=alive)
        pieces += put_run(state, run) if run.rows.n else []
    state.replace(key, pieces)


def add_lasting(state: State, key: str, run: Run, alive: Bools) -> None:
    """Adds rows that never leave as one more run, and merges runs where the oldest has no more rows
    than all younger ones: older runs are mostly unchanged. All runs become one where removed
    members have more than half of the rows.
    """
    pieces = [*state.pieces(key), *put_run(state, run)]
    first = due_together(pieces)
    if not alive.all():
        gone = sum(np.count_nonzero(~alive[state.frame(p)["op"]]) for p in pieces)
        first = 0 if 2 * gone > sum(p.rows for p in pieces) else first
    if first < len(pieces):
        pieces[first:] = _merge_to_next_level(state, pieces[first:], MIN, (), alive=alive)
    state.replace(key, pieces)


def append_to_one_run(state: State, key: str, run: Run, alive: Bools) -> None:
    """Adds rows that never leave, and writes all of the input as one run, without the rows of
    removed members.
    """
    rows = [rows_of(state, p) for p in state.pieces(key)]
    both = concat([*(r.where(alive[r["op"]]) for r in rows), run.rows])
    state.replace(key, put_run(state, build_run(both)) if both.n else [])


def single_run(state: State, key: str) -> Run | None:
    """Rows that never leave, as the one run that they are unless groups have moved since."""
    pieces = state.pieces(key)
    if len(pieces) > 1 or (pieces and pieces[0].kept):
        rows = concat([rows_of(state, p) for p in pieces])
        pieces = put_run(state, build_run(rows)) if rows.n else []
        state.replace(key, pieces)
    return open_(state, pieces[0]) if pieces else None


def _append(state: State, piece: StatePart, run: Run, horizon: int) -> Run | None:
    """Returns the open run with an epoch's rows behind its own, or None unless all of them are
    alive, are later, and count equally long.

    Both are in bucket order already, so only the merged order moves from front to back, and no
    previous row is read.
    """
    old, new = open_(state, piece), run.buckets
    if old.groups is not None:
        return None
    alike = not len(old.buckets.e) and not len(new.e) and piece.longest == new.longest
    if not alike or "w" in run.rows or not run.rows.n or piece.low + piece.longest <= horizon:
        return None
    if int(new.s.min()) < piece.high:
        return None
    k = np.concatenate([old.buckets.k, new.k])
    bits = bits_for(len(k))
    order, directory = bucket_order(k, bits)
    at = order.astype(np.intp)
    h, s = (
        np.concatenate([old.buckets.h, new.h]).take(at),
        np.concatenate([old.buckets.s, new.s]).take(at),
    )
    rows = concat([old.rows, run.rows.select(old.rows.columns)])
    places = np.concatenate([old.order, run.order + np.int32(old.rows.n)]).take(at)
    whole = (
        None
        if old.whole is None or run.whole is None
        else np.concatenate([old.whole, run.whole]).take(at)
    )
    return Run(rows, Buckets(k.take(at), h, s, new.e, directory, bits, new.longest), places, whole)


def _living_run(run: Run, horizon: int) -> Run:
    """The run without its dead rows, if they are more than a few (an epoch that is longer than the
    window).
    """
    alive = run.rows[col.END] > horizon
    return (
        run
        if np.count_nonzero(alive) > 0.75 * run.rows.n
        else build_run(run.rows.take(alive.nonzero()[0]))
    )


def _stays_open(state: State, tail: StatePart, rows: Frame, quarter: int) -> bool:
    if tail.epochs >= OPEN_EPOCHS or tail.rows > max(LITTLE, MERGE_ROWS_PER_NEW_ROW * rows.n):
        return False
    if state.theta and (tail.rows + rows.n) * row_bytes(rows) > state.theta:
        return False
    high = max(tail.high, int(rows[col.BEGIN].max(initial=tail.high)))
    return high - tail.low <= quarter


def _seal(piece: StatePart, new: int) -> StatePart:
    """Seals the open run, at the level of runs of its size: so a large run is not merged with three
    small ones.
    """
    level, usual = 1, max(OPEN_EPOCHS * new, LITTLE)
    while piece.rows > MERGE * usual:
        level, usual = level + 1, MERGE * usual
    return msgspec.structs.replace(piece, level=level)


def _without_retracted(rows: Frame, horizon: int, ends: Sequence[str]) -> Frame:
    """Drops rows that have been taken back by then: a new row of the other side meets both rows, or
    neither.
    """
    return drop_cancelled(rows, rows[col.BEGIN] <= horizon, ends)


def _merge(
    state: State,
    pieces: list[StatePart],
    quarter: int,
    horizon: int,
    ends: Sequence[str],
    *,
    alive: Bools | None,
) -> list[StatePart]:
    """Merges the last four runs of one level as long as that is due; never beyond a quarter of the
    window.
    """
    some = _by_run(pieces)
    most = MOST_RUNS if not any(p.kept for p in pieces) else len(some)
    while len(some) >= MERGE:
        last = list(chain.from_iterable(some[-MERGE:]))
        span = max(p.high for p in last) - min(p.low for p in last)
        same = len({p.level for p in last}) == 1
        if not ((same and span <= quarter) or len(some) > most):
            break
        some[-MERGE:] = (
            [one] if (one := _merge_to_next_level(state, last, horizon, ends, alive=alive)) else []
        )
    return list(chain.from_iterable(some))


def _merge_runs(
    state: State, pieces: list[StatePart], new: int, horizon: int, ends: Sequence[str],
    *, alive: Bools | None,
) -> list[StatePart]:  # fmt: skip
    """Merges runs where key groups have arrived, because there are then as many runs as their
    owners had.

    The four smallest neighbours become one, once an epoch, so that no epoch pays for all. If there
    are more than twice as many runs as allowed, all excess runs are merged. Up to twice as many
    wait in three cases: the four are large compared with the ``new`` rows; the groups came in this
    epoch; other inputs have merged enough in this epoch. One more run costs a look by each new row,
    and a merge reads all of a run, including the rows of others.
    """
    some = _by_run(pieces)
    if len(some) < MOST_RUNS or not any(p.kept for p in pieces):
        return pieces
    many = max(MERGE, len(some) - 2 * MOST_RUNS)
    sizes = [sum(p.rows for p in run) for run in some]
    together = np.convolve(sizes, np.ones(many, np.int64), "valid")
    at = int(np.argmin(together))
    have_come, enough = not state.file, MERGE_ROWS_PER_NEW_ROW * max(new, LITTLE)
    large = together[at] > MERGE_ROWS_PER_NEW_ROW * new or state.settled + together[at] > enough
    if len(some) <= 2 * MOST_RUNS and (have_come or large):
        return pieces
    state.settled += int(together[at])
    due = list(chain.from_iterable(some[at : at + many]))
    some[at : at + many] = [_merge_to_next_level(state, due, horizon, ends, alive=alive)]
    return list(chain.from_iterable(some))


def _by_run(pieces: Iterable[StatePart]) -> list[list[StatePart]]:
    """Groups the parts by run: the parts of a cut run are next to each other."""
    numbered = enumerate(pieces)
    runs = groupby(numbered, key=lambda each: (each[1].run, 0 if each[1].run else each[0]))
    return [[piece for _, piece in run] for _, run in runs]


def _merge_to_next_level(
    state: State, pieces: Sequence[StatePart], horizon: int, ends: Sequence[str],
    *, alive: Bools | None,
) -> list[StatePart]:  # fmt: skip
    """Merges runs into one of the next level, without dead rows or rows of other groups: range by
    range where they are larger than two theta.
    """
    opened = [open_(state, p) for p in pieces]
    theta = max(state.theta // row_bytes(opened[0].rows), 1)
    root = common_range(run.range for run in opened)
    level, parts = max(p.level for p in pieces) + 1, list[StatePart]()
    directory = leaves(lambda some: sum(run.count(some) for run in opened), theta, root)
    for leaf, hot in directory if state.theta else [(root, False)]:
        # a row of weight -1 and the row that it takes back stay together
        apart = theta if hot and "w" not in opened[0].rows else 0
        for part in _rows_in(state, pieces, leaf, apart):
            rows = _without_retracted(living_rows(part, horizon, alive), horizon, ends)
            if rows.n:
                leaf_rows = rows.with_(**{col.KEY: leaf.rest(rows[col.KEY])})
                parts += put_run(state, build_run(leaf_rows), level, 0, leaf)
    within, is_one = state.within(pieces), len(parts) == 1 and not state.theta
    return [
        msgspec.structs.replace(p, within=within, run=0 if is_one else int(parts[0].name))
        for p in parts
    ]


def _rows_in(
    state: State, pieces: Sequence[StatePart], leaf: Range, apart: int
) -> Iterator[Frame]:  # fmt: skip
    """The rows of a leaf, in the order of their runs: together, or so many at a time."""
    frames = list[Frame]()
    for piece in pieces:
        if apart:
            yield from some_of(state, piece, leaf, apart)
        elif range_of(piece).within(leaf):
            frames.append(rows_of(state, piece))
        else:
            frames += some_of(state, piece, leaf)
    if frames:
        yield concat(frames)

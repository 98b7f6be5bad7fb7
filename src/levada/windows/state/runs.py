"""Runs: the state of a keyed input, in bucket order, probed by the new rows of the other side
(docs/architecture.md#state).

What is probed lies in bucket order: the key ``#k #h``, the instants ``#s #e`` (``intervals.outer``;
no ``#e`` where all rows count equally long), for raw inputs the hash of the whole row ``#f``, the
directory, and the row ``#o`` that each place stands for. The rows themselves stay in the order in
which they came, which is mostly that of time: they are never permuted, and what a probe finds lies
close together.

Rows that rows of weight -1 take back, and time does not, are kept otherwise (``settled``).

One *open* run takes each epoch's rows (written anew as a piece of level 0) until it holds 8 epochs
or spans a quarter of the window; then it is sealed. Four sealed runs of a level merge into one of
the next, within a quarter of the window. So at most about a dozen runs are probed, and a row is
rewritten a bounded number of times. Whole runs are dropped when dead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from levada.kernels.keyed.keyed import bits_for, bucket_order
from levada.kernels.keyed.probe import Buckets, arrange
from levada.model import columns as col
from levada.model.arrays import Bools
from levada.model.frame import Column, Frame, concat
from levada.model.time import MAX, Times
from levada.windows.state.cancel import uncancelled
from levada.windows.state.pieces import Piece, State, span_of

Rows = npt.NDArray[np.intp]
OPEN_EPOCHS = 8
MERGE = 4
MOST_RUNS = 12


@dataclass(frozen=True, slots=True)
class Horizons:
    """The least instant that a new row can have: in this epoch (rows dead at ``now`` meet nobody),
    and after it.
    """

    now: int
    next: int


@dataclass(frozen=True, slots=True)
class Run:
    """A run as probes see it: its rows, its buckets, and the row at each place of these.

    The rows of a new run still have their # columns, by which they probe others. ``whole`` is #f in
    bucket order. ``groups``: of which rows must be to count (None: all do).
    """

    rows: Frame
    buckets: Buckets
    order: npt.NDArray[np.int32]
    whole: npt.NDArray[np.uint64] | None
    groups: Bools | None = None

    def occurrences(self) -> Buckets:
        """The buckets with the whole row's hash in place of the key's low half: for ``prev``."""
        assert self.whole is not None, "the runs of raw inputs know their whole rows"
        return self.buckets._replace(h=self.whole)

    def at(self, places: npt.NDArray[np.int32]) -> npt.NDArray[np.intp]:
        """The rows at these places of the buckets."""
        return self.order[places].astype(np.intp)

    def counting(self, others: Rows, rows: Rows) -> tuple[Rows, Rows]:
        """Of pairs of other rows with rows of this run those whose second row counts."""
        if self.groups is None:
            return others, rows
        keep = self.groups[self.rows[col.PLACE][rows]]
        return others[keep], rows[keep]


def arranged(rows: Frame) -> Run:
    """Rows with their # columns as a run."""
    order, buckets = arrange(rows[col.KEY], rows[col.CHECK], rows[col.BEGIN], rows[col.END])
    whole = rows[col.WHOLE].take(order) if col.WHOLE in rows else None
    return Run(rows, buckets, order.astype(np.int32), whole)


def open_(state: State, piece: Piece) -> Run:
    """A run of state."""
    rows, keys = state.frame(piece), state.frame(piece, ".key")
    directory = state.frame(piece, ".dir")["d"]
    ends = keys.columns.get(col.END, keys[col.BEGIN][:0])
    buckets = Buckets(
        keys[col.KEY], keys[col.CHECK], keys[col.BEGIN], ends, directory, piece.bits, piece.longest
    )
    whole = keys.columns.get(col.WHOLE)
    return Run(rows, buckets, keys[col.ORDER], whole, state.groups(piece))


def rows_of(state: State, piece: Piece) -> Frame:
    """The rows of a run of state with their # columns."""
    keys = state.frame(piece, ".key")
    columns = {}
    for name, column in keys.columns.items():
        if name != col.ORDER:
            columns[name] = np.empty_like(column)
            columns[name][keys[col.ORDER]] = column
    columns.setdefault(col.END, columns[col.BEGIN] + piece.longest)
    state.touched += piece.rows
    return state.own(piece, state.frame(piece).with_(**columns))


def live(state: State, key: str, horizon: int) -> list[Run]:
    """The runs of an input that are not dead at ``horizon``."""
    return [open_(state, p) for p in state.drop_dead(key, horizon)]


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
    """Adds an epoch's rows to the open run, sealing and merging what is due; rows that are dead by
    then are left out.

    ``ends``: columns in which a row differs from the row of weight -1 that takes it back.
    ``alive``: the members that are not gone.
    """
    run = _living(run, horizon)
    pieces = list(state.drop_dead(key, horizon))
    pieces = [*_settle(state, pieces[:-1], horizon, ends, alive=alive), *pieces[-1:]]
    tail = pieces[-1] if pieces else None
    if tail is not None and _stays_open(tail, run.rows, quarter):
        longer = _append(state, tail, run, horizon) if alive is None or alive.all() else None
        if longer is not None:
            pieces[-1:] = _put(state, longer, 0, tail.epochs + 1)
            state.replace(key, pieces)
            return
        both = concat([living(rows, horizon, alive) for rows in (rows_of(state, tail), run.rows)])
        rows = _left(both, horizon, ends)
        pieces[-1:] = _put(state, arranged(rows), 0, tail.epochs + 1) if rows.n else []
    else:
        if tail is not None and tail.level == 0:
            pieces[-1] = _seal(tail)
        pieces = _merge(state, pieces, quarter, horizon, ends, alive=alive)
        pieces += _put(state, run, 0, 1) if run.rows.n else []
    state.replace(key, pieces)


def together(state: State, key: str, run: Run, alive: Bools) -> None:
    """Adds rows that never leave: all of the input as one run, written anew, without those of
    members that are gone.
    """
    rows = [rows_of(state, p) for p in state.pieces(key)]
    both = concat([*(r.where(alive[r["op"]]) for r in rows), run.rows])
    state.replace(key, _put(state, arranged(both), 0, 1) if both.n else [])


def as_one(state: State, key: str) -> Run | None:
    """Rows that never leave, as the one run that they are unless groups have moved since."""
    pieces = state.pieces(key)
    if len(pieces) > 1 or (pieces and pieces[0].kept):
        rows = concat([rows_of(state, p) for p in pieces])
        pieces = _put(state, arranged(rows), 0, 1) if rows.n else []
        state.replace(key, pieces)
    return open_(state, pieces[0]) if pieces else None


def _append(state: State, piece: Piece, run: Run, horizon: int) -> Run | None:
    """The open run with an epoch's rows behind its own; None unless all of them live, are later,
    and count equally long.

    Both are in bucket order already, so what is arranged anew moves from front to back, and no row
    of before is looked at.
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


def _living(run: Run, horizon: int) -> Run:
    """The run without its dead rows, if they are more than a few (an epoch that is longer than the
    window).
    """
    alive = run.rows[col.END] > horizon
    return (
        run
        if np.count_nonzero(alive) > 0.75 * run.rows.n
        else arranged(run.rows.take(np.flatnonzero(alive)))
    )


def _stays_open(tail: Piece, rows: Frame, quarter: int) -> bool:
    if tail.level != 0 or tail.epochs >= OPEN_EPOCHS:
        return False
    high = max(tail.high, int(rows[col.BEGIN].max(initial=tail.high)))
    return high - tail.low <= quarter


def _seal(piece: Piece) -> Piece:
    return msgspec.structs.replace(piece, level=1)


def living(rows: Frame, horizon: int, members: Bools | None) -> Frame:
    """The rows that are not dead by then, of members that are there."""
    if not rows.n:
        return rows
    later = rows[col.END] > horizon
    return rows.where(later if members is None else later & members[rows["op"]])


def _left(rows: Frame, horizon: int, ends: Sequence[str]) -> Frame:
    """What has not been taken back by then: whoever comes meets both rows, or neither."""
    return uncancelled(rows, rows[col.BEGIN] <= horizon, ends)


def put(state: State, run: Run) -> list[Piece]:
    """A run as a piece of state, by itself."""
    return _put(state, run, 0, 1)


def _put(state: State, run: Run, level: int, epochs: int) -> list[Piece]:
    b = run.buckets
    keys: dict[str, Column] = {col.KEY: b.k, col.CHECK: b.h, col.BEGIN: b.s, col.ORDER: run.order}
    if len(b.e):
        keys[col.END] = b.e
    if run.whole is not None:
        keys[col.WHOLE] = run.whole
    rows = run.rows.visible()
    frames = {"": rows, ".key": Frame(keys), ".dir": Frame({"d": b.directory})}
    span = span_of(b.s, b.ends)
    return [
        state.put(
            frames,
            rows.n,
            span,
            level=level,
            epochs=epochs,
            bits=b.bits,
            longest=min(b.longest, MAX),
        )
    ]


def _merge(
    state: State,
    pieces: list[Piece],
    quarter: int,
    horizon: int,
    ends: Sequence[str],
    *,
    alive: Bools | None,
) -> list[Piece]:
    """Merges the last four runs of one level as long as that is due; never beyond a quarter of the
    window.
    """
    most = MOST_RUNS if not any(p.kept for p in pieces) else len(pieces)
    while len(pieces) >= MERGE:
        last = pieces[-MERGE:]
        span = max(p.high for p in last) - min(p.low for p in last)
        same = len({p.level for p in last}) == 1
        if not ((same and span <= quarter) or len(pieces) > most):
            break
        pieces = [*pieces[:-MERGE], *_one(state, last, horizon, ends, alive=alive)]
    return pieces


def _settle(
    state: State, pieces: list[Piece], horizon: int, ends: Sequence[str], *, alive: Bools | None
) -> list[Piece]:
    """Where groups have come, runs are as many as their owners had: the four smallest neighbours
    become one, once an epoch, so that no epoch pays for all; of more than twice as many as there
    may be, all that are too many.
    """
    if len(pieces) < MOST_RUNS or not any(p.kept for p in pieces):
        return pieces
    many = max(MERGE, len(pieces) - 2 * MOST_RUNS)
    sizes = np.convolve([p.rows for p in pieces], np.ones(many, np.int64), "valid")
    at = int(np.argmin(sizes))
    some = _one(state, pieces[at : at + many], horizon, ends, alive=alive)
    return [*pieces[:at], *some, *pieces[at + many :]]


def _one(
    state: State, pieces: Sequence[Piece], horizon: int, ends: Sequence[str],
    *, alive: Bools | None,
) -> list[Piece]:  # fmt: skip
    """Runs as one of the next level, without what is dead or of other groups."""
    rows = concat([living(rows_of(state, p), horizon, alive) for p in pieces])
    rows = _left(rows, horizon, ends)
    level = max(p.level for p in pieces) + 1
    return _put(state, arranged(rows), level, 0) if rows.n else []


def keyed(
    frame: Frame, key: tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]], s: Times, e: Times,
    whole: npt.NDArray[np.uint64] | None,
) -> Frame:  # fmt: skip
    """A frame with the # columns of a run."""
    columns = {col.KEY: key[0], col.CHECK: key[1], col.BEGIN: s, col.END: e}
    if whole is not None:
        columns[col.WHOLE] = whole
    return frame.with_(**columns)

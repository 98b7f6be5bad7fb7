"""Runs: the state of a keyed input, probed by the new rows of the other side
(docs/architecture.md#state; ``run`` defines a run).

Rows that end by rows of weight -1, and not by time, are kept in another way
(``join_state_with_retractions``).

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
from dataclasses import field, replace
from itertools import chain, groupby

import msgspec
import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.array_types import Bools, Ints, Longs, Words
from levada.core.event_time import MAX, MIN, Times
from levada.core.frame import Column, Frame, concat
from levada.core.frozen import frozen
from levada.core.row_ranges import ranges
from levada.core.size_thresholds import register
from levada.kernels.keyed.bucket_layout import bits_for, bucket_order
from levada.kernels.keyed.hash_probe import Buckets, arrange, join_pairs
from levada.operators.state.checksummed_frames import CheckedFrames
from levada.operators.state.key_ranges import ALL_KEYS, Range, common_range, leaves
from levada.operators.state.retractions import drop_cancelled
from levada.operators.state.state_parts import State, StatePart, due_together, span_of

# A run: the rows of a keyed input as a state part, in bucket order, for probing
# (docs/architecture.md#state).
#
# The probed columns are in bucket order: the key ``#k #h``, the instants ``#s #e``
# (``window_intervals.outer``; no ``#e`` where all rows count equally long), for raw inputs the hash
# of the whole row ``#f``, the directory, and the row ``#o`` of each place. The rows themselves stay
# in the order of arrival, which is mostly that of time: they are never permuted, and the matches of
# a probe are close together.
#
# A cut run has the rows of a range of keys. Its ``#k`` is without the bits of the range, so that
# its buckets distinguish its keys.


Rows = npt.NDArray[np.intp]
KEY_BYTES = 44


@frozen
class Run:
    """A run as probes see it: its rows, its buckets, and the row at each place of these.

    The rows of a new run still have their # columns, by which they probe others. ``whole`` is #f in
    bucket order. ``groups``: the groups whose rows count (None: all). ``range``: the range of all
    keys. ``stored``: the buckets, whose keys are without its bits. ``is_part``: the run contains
    only the rows that new rows can meet.
    """

    rows: Frame
    stored: Buckets
    order: npt.NDArray[np.int32]
    whole: Words | None
    groups: Bools | None = None
    range: Range = ALL_KEYS
    is_part: bool = False

    @property
    def buckets(self) -> Buckets:
        """The buckets of a run that is not cut."""
        assert not self.range.depth, "a run that is cut is probed by what its range leaves of keys"
        return self.stored

    def occurrences(self) -> Buckets:
        """The stored buckets with the whole row's hash in place of the key's low half: for
        ``prev``.
        """
        assert self.whole is not None, "the runs of raw inputs know their whole rows"
        return self.stored._replace(h=self.whole)

    def rows_at(self, places: npt.NDArray[np.int32]) -> Rows:
        """The rows at these places of the buckets."""
        return self.order.take(places).astype(np.intp)

    def keep_counting_pairs(self, others: Rows, rows: Rows) -> tuple[Rows, Rows]:
        """Keeps pairs of other rows with rows of this run whose second row counts."""
        if self.groups is None:
            return others, rows
        keep = self.groups[self.rows[col.PLACE][rows]]
        return others[keep], rows[keep]

    def places(self, some: Range) -> slice | Longs:
        """The places of the buckets that have the keys of a range."""
        if self.range.within(some):
            return slice(0, self.rows.n)
        if not some.within(self.range):
            return slice(0, 0)
        starts, bits, deeper = (
            self.stored.directory,
            self.stored.bits,
            some.depth - self.range.depth,
        )
        prefix = some.prefix & ((1 << deeper) - 1)
        if deeper <= bits:
            low, high = (int(starts[p << (bits - deeper)]) for p in (prefix, prefix + 1))
            return slice(low, high)
        bucket = prefix >> (deeper - bits)
        low, high = (int(starts[p]) for p in (bucket, bucket + 1))
        return low + Range(deeper, prefix).contains(self.stored.k[low:high]).nonzero()[0]

    def count(self, some: Range) -> int:
        """How many rows have keys of a range."""
        places = self.places(some)
        return places.stop - places.start if isinstance(places, slice) else len(places)

    def find_pairs(
        self, k: Words, h: Words, s: Times, e: Times, most: int = MAX
    ) -> tuple[Longs, Ints]:
        """Returns all pairs of a probe row and a place of this run, whatever its range. If there
        are more than ``most``, returns the pairs of the first probe rows.
        """
        if not self.range.depth:
            probes, places = join_pairs(k, h, s, e, self.stored, most)
            return probes.astype(np.int64), places
        at = self.range.contains(k).nonzero()[0]
        probes, places = join_pairs(self.range.rest(k[at]), h[at], s[at], e[at], self.stored, most)
        return at[probes], places

    def as_probes(
        self, some: Range, by_bucket: bool
    ) -> tuple[Words, Words, Times, Times, Ints | None]:
        """Returns the probe columns for a run of a range, and the new rows with keys of that range
        (None: all); all of them in bucket order, or in order of arrival.
        """
        if not (some.depth or by_bucket):
            rows = self.rows.columns
            return rows[col.KEY], rows[col.CHECK], rows[col.BEGIN], rows[col.END], None
        b, at = self.buckets, self.places(some)
        return some.rest(b.k[at]), b.h[at], b.s[at], b.ends[at], self.order[at]


def build_run(rows: Frame) -> Run:
    """Rows with their # columns as a run."""
    order, buckets = arrange(rows[col.KEY], rows[col.CHECK], rows[col.BEGIN], rows[col.END])
    whole = rows[col.WHOLE].take(order) if col.WHOLE in rows else None
    return Run(rows, buckets, order.astype(np.int32), whole)


def open_(state: State, piece: StatePart) -> Run:
    """A run of state, assembled once for each open file."""
    frames = state.frames(piece)
    if piece.kept or not isinstance(frames, CheckedFrames):
        return _assemble(state, piece)
    # a sealed run is another piece with the same rows
    key = Run, piece.name, piece.bits, piece.longest, piece.depth, piece.prefix
    run: Run | None = frames.facts.get(key)
    if run is None:
        run = frames.facts[key] = _assemble(state, piece)
    return run


def _assemble(state: State, piece: StatePart) -> Run:
    rows, keys = state.frame(piece), state.frame(piece, ".key").columns
    directory = state.frame(piece, ".dir")["d"]
    ends = keys.get(col.END, keys[col.BEGIN][:0])
    buckets = Buckets(
        keys[col.KEY], keys[col.CHECK], keys[col.BEGIN], ends, directory, piece.bits, piece.longest
    )
    whole = keys.get(col.WHOLE)
    return Run(rows, buckets, keys[col.ORDER], whole, state.groups(piece), range_of(piece))


def range_of(piece: StatePart) -> Range:
    """The range of which all keys of a run are."""
    return Range(piece.depth, piece.prefix)


def rows_of(state: State, piece: StatePart) -> Frame:
    """The rows of a run of state with their # columns."""
    keys = state.frame(piece, ".key")
    columns = {}
    for name, column in keys.columns.items():
        if name != col.ORDER:
            columns[name] = np.empty_like(column)
            columns[name][keys[col.ORDER]] = column
    state.touched += piece.rows
    return _with_keys(state, piece, state.frame(piece), columns)


def some_of(state: State, piece: StatePart, some: Range, most: int = 2**31) -> Iterator[Frame]:
    """Yields the rows of a run whose keys are in a range, in their order, at most ``most`` at a
    time.
    """
    run, keys = open_(state, piece), state.frame(piece, ".key")
    places = run.places(some)
    at = run.order[places]
    in_order = np.argsort(at, kind="stable")
    for first in range(0, len(at), most):
        part = in_order[first : first + most]
        columns = {n: c[places][part] for n, c in keys.columns.items() if n != col.ORDER}
        state.touched += len(part)
        yield _with_keys(state, piece, run.rows.take(at[part]), columns)


def _with_keys(state: State, piece: StatePart, rows: Frame, columns: dict[str, Column]) -> Frame:
    columns[col.KEY] = range_of(piece).keys(columns[col.KEY])
    columns.setdefault(col.END, columns[col.BEGIN] + piece.longest)
    return state.rows_of_partition(piece, rows.with_(**columns))


def living_rows(rows: Frame, horizon: int, members: Bools | None) -> Frame:
    """The rows that are not dead by then, of members that are there."""
    if not rows.n:
        return rows
    later = rows[col.END] > horizon
    return rows.where(later if members is None else later & members[rows["op"]])


def put_run(
    state: State, run: Run, level: int = 0, epochs: int = 1, key_range: Range = ALL_KEYS
) -> list[StatePart]:
    """A run as a piece of state, by itself; ``key_range``: the range of its keys, which are without
    its bits by now.
    """
    b = run.stored
    keys: dict[str, Column] = {col.KEY: b.k, col.CHECK: b.h, col.BEGIN: b.s, col.ORDER: run.order}
    if len(b.e):
        keys[col.END] = b.e
    if run.whole is not None:
        keys[col.WHOLE] = run.whole
    rows = run.rows.visible()
    frames = {"": rows, ".key": Frame(keys), ".dir": Frame({"d": b.directory})}
    facts = {"bits": b.bits, "longest": min(b.longest, MAX)} | key_range._asdict()
    span = span_of(b.s, b.ends)
    return [state.put(frames, rows.n, span, level=level, epochs=epochs, **facts)]


def row_bytes(rows: Frame) -> int:
    """Returns about the bytes of a row in a run: with its # columns, a place and a share of the
    directory.
    """
    return sum(column.itemsize for column in rows.visible().columns.values()) + KEY_BYTES


def with_run_columns(
    frame: Frame, key: tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]], s: Times, e: Times,
    whole: npt.NDArray[np.uint64] | None,
) -> Frame:  # fmt: skip
    """A frame with the # columns of a run."""
    columns = {col.KEY: key[0], col.CHECK: key[1], col.BEGIN: s, col.END: e}
    if whole is not None:
        columns[col.WHOLE] = whole
    return frame.with_(**columns)


# Restricted look-ups in runs that other partitions have written: reads only the rows that the new
# rows of an epoch can meet, and no more of the files.
#
# A partition that takes over key groups lists the runs of their old owners (``state_handover``);
# most rows of these runs belong to others. An opened run would be checked, and so read, in whole,
# and each new row would probe it. So a *restricted* run is only searched for the wanted keys of its
# groups, and the matches become a run by themselves: the directory and the keys are read where
# these keys are, rows where they match, each by the blocks by which a file is checked
# (``core.checksum_messages``).
#
# This is correct since rows of one key are of one group: all rows in a stage were partitioned by
# the same slots, which are among the keys of each join there. So a row that is not looked up here
# has no partner here.
#
# Cost: by the new rows of these groups, and by their matches. Where the new rows are many for a
# run, or half of its rows are of these groups, the run is opened in whole: so a partition that has
# given groups away continues with the data it has read, and a partition that takes all groups of
# another one reads data that it would read soon anyway.


MAX_WHOLE_RUN_ROWS = register(f"{__name__}.MAX_WHOLE_RUN_ROWS", 4096)
"""Rows up to which a run is opened in whole."""
MAX_ROWS_PER_KEY = register(f"{__name__}.MAX_ROWS_PER_KEY", 16)
"""It is, too, where it has less than so many rows for a key that is looked up."""
MOSTLY, SAMPLE = 0.5, 1024
"""And where this part of its rows, by so many in its middle, is of the groups."""


@frozen
class LookupKeys:
    """The new rows of all inputs of an operator, with the first halves of their keys."""

    came: Sequence[tuple[Words, Frame]]
    _known: dict[int, Words] = field(default_factory=dict)

    def distinct_keys(self, group_set: int, groups: Bools) -> Words:
        """Returns the distinct keys, in order, that are in these groups, a set of a list."""
        if group_set not in self._known:
            key_hashes = [k[groups[rows[col.PLACE]]] for k, rows in self.came]
            self._known[group_set] = np.unique(
                np.concatenate([np.empty(0, np.uint64), *key_hashes])
            )
        return self._known[group_set]


def restrict_run(state: State, piece: StatePart, lookup_keys: LookupKeys | None) -> Run | None:
    """Returns a run restricted to the rows that new rows can meet, or None without such rows.
    ``lookup_keys`` None: no restriction.
    """
    groups = state.groups(piece)
    if groups is None or lookup_keys is None:
        return open_(state, piece)
    keys = _lookup_keys(piece, groups, lookup_keys)
    if not len(keys):
        return None
    few = piece.rows <= MAX_WHOLE_RUN_ROWS or piece.rows < MAX_ROWS_PER_KEY * len(keys)
    if few or _share(state, piece, groups) >= MOSTLY:
        return open_(state, piece)
    rows = _rows(state, piece, keys)
    return replace(build_run(rows), is_part=True) if rows.n else None


def _lookup_keys(piece: StatePart, groups: Bools, lookup_keys: LookupKeys) -> Words:
    """The keys that are looked up in a run, without the bits of its range, in order."""
    range_ = range_of(piece)
    keys = lookup_keys.distinct_keys(piece.kept, groups)
    return range_.rest(keys[range_.contains(keys)]) if range_.depth else keys


def _share(state: State, piece: StatePart, groups: Bools) -> float:
    """Returns the share of a run's rows that is of these groups, estimated from its middle."""
    first = max((piece.rows - SAMPLE) // 2, 0)
    at = np.arange(first, min(first + SAMPLE, piece.rows))
    return np.count_nonzero(groups[state.lazy_frame(piece).take(col.PLACE, at)]) / len(at)


def _rows(state: State, piece: StatePart, lookup: Words) -> Frame:
    """Returns the rows of a run that have one of these keys, in their order, with their #
    columns.
    """
    keys, rows = state.lazy_frame(piece, ".key"), state.lazy_frame(piece)
    places = _places(state, piece, lookup)
    k = keys.take(col.KEY, places)
    places = places[np.isin(k, lookup)]
    at = keys.take(col.ORDER, places).astype(np.int64)
    order = np.argsort(at, kind="stable")
    at, places = at[order], places[order]
    columns: dict[str, Column] = {name: rows.take(name, at) for name in rows.names}
    columns |= {name: keys.take(name, places) for name in keys.names if name != col.ORDER}
    columns[col.KEY] = range_of(piece).keys(columns[col.KEY])
    columns.setdefault(col.END, columns[col.BEGIN] + piece.longest)
    state.touched += len(at)
    return state.rows_of_partition(piece, Frame(columns, len(at)))


def _places(state: State, piece: StatePart, keys: Words) -> Longs:
    """The places of the buckets in which these keys would be; they are distinct and in order."""
    directory = state.lazy_frame(piece, ".dir")
    bucket = (keys >> np.uint64(64 - piece.bits)).astype(np.int64)
    bucket = bucket[np.append(True, bucket[1:] != bucket[:-1])]
    low, high = (directory.take("d", at).astype(np.int64) for at in (bucket, bucket + 1))
    return ranges(low, high - low)


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


def live_runs(
    state: State, key: str, horizon: int, lookup_keys: LookupKeys | None = None
) -> list[Run]:
    """Returns the runs of an input that are not dead at ``horizon``. Runs written by other
    partitions are restricted to ``lookup_keys`` (None: all).
    """
    runs = (restrict_run(state, p, lookup_keys) for p in state.drop_dead(key, horizon))
    return [run for run in runs if run is not None]


def runs_before(
    state: State, key: str, horizon: int, lookup_keys: LookupKeys | None = None
) -> list[Run]:
    """The same as they were when this epoch began, whatever has been added since."""
    pieces = (p for p in state.before(key) if p.dead > horizon)
    runs = (restrict_run(state, p, lookup_keys) for p in pieces)
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
        dead_rows = sum(np.count_nonzero(~alive[state.frame(p)["op"]]) for p in pieces)
        first = 0 if 2 * dead_rows > sum(p.rows for p in pieces) else first
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

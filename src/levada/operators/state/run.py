"""A run: the rows of a keyed input as a state part, in bucket order, for probing
(docs/architecture.md#state).

The probed columns are in bucket order: the key ``#k #h``, the instants ``#s #e``
(``window_intervals.outer``; no ``#e`` where all rows count equally long), for raw inputs the hash
of the whole row ``#f``, the directory, and the row ``#o`` of each place. The rows themselves stay
in the order of arrival, which is mostly that of time: they are never permuted, and the matches of a
probe are close together.

A cut run has the rows of a range of keys. Its ``#k`` is without the bits of the range, so that its
buckets distinguish its keys.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.array_types import Bools, Ints, Longs, Words
from levada.core.event_time import MAX, Times
from levada.core.frame import Column, Frame
from levada.core.frozen import frozen
from levada.kernels.keyed.hash_probe import Buckets, arrange, join_pairs
from levada.operators.state.checksummed_frames import CheckedFrames
from levada.operators.state.key_ranges import ALL_KEYS, Range
from levada.operators.state.state_parts import State, StatePart, span_of

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
    state: State, run: Run, level: int = 0, epochs: int = 1, of: Range = ALL_KEYS
) -> list[StatePart]:
    """A run as a piece of state, by itself; ``of``: the range of its keys, which are without its
    bits by now.
    """
    b = run.stored
    keys: dict[str, Column] = {col.KEY: b.k, col.CHECK: b.h, col.BEGIN: b.s, col.ORDER: run.order}
    if len(b.e):
        keys[col.END] = b.e
    if run.whole is not None:
        keys[col.WHOLE] = run.whole
    rows = run.rows.visible()
    frames = {"": rows, ".key": Frame(keys), ".dir": Frame({"d": b.directory})}
    facts = {"bits": b.bits, "longest": min(b.longest, MAX)} | of._asdict()
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

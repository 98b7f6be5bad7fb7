"""The event times of all elements of a stream, whatever patterns they match
(docs/semantics.md#reports).

Some report times do not follow from the rows that match: every instant at which an element enters
or leaves, the end of a session, each m-th triple. So ingest sends every partition the distinct
times of such streams. Where a window counts (a count window with a step) it also sends the
identities of equal triples of one time, so that each triple counts once whichever tasks read it.

A frame of times has ``ts``; a counted one also ``n`` (occurrences) and the identity ``k, h`` of a
triple, which is 0 for tuples and for times below the watermark: those are sums. A dropped row gives
its ``n`` to the row behind it, so sums from the front stay numbers in the stream's order.

Cost: by an epoch's distinct times (counted: triples) and by the retained times: for windows that
report on close a few times a step, for those that report on change all times in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Words
from levada.core.event_time import MAX, MIN, Times, Window, WindowKind, distinct, in_sorted
from levada.core.frame import Frame, concat
from levada.kernels.keyed.bucket_layout import combine
from levada.kernels.keyed.radix_sort import in_order
from levada.kernels.time.window_intervals import Params, enter, leave
from levada.plan.execution.report_schedules import Schedule

_EMPTY = np.empty(0, np.int64)


class EventTimes(NamedTuple):
    """The distinct event times of a stream, ascending, and up to each the number of occurrences (0
    where none are counted).
    """

    ts: Times
    total: Times

    @classmethod
    def from_times(cls, ts: Iterable[int]) -> EventTimes:
        """These times (distinct, ascending), of one occurrence each.

        >>> EventTimes.from_times([5, 9]).total.tolist()
        [1, 2]
        """
        times = np.array(list(ts), np.int64)
        return cls(times, np.arange(1, len(times) + 1))


ElementTimes = Mapping[int, EventTimes]
NOTHING = EventTimes(_EMPTY, _EMPTY)


def counts(window: Window) -> bool:
    """Whether a window's reports follow from how many occurrences there were at each time."""
    return window.kind is WindowKind.COUNT and window.step > 1


def counted_streams(schedules: Iterable[Schedule]) -> frozenset[int]:
    """Returns the streams whose occurrences are counted for these schedules."""
    return frozenset(
        i for d in schedules for w, i in zip(d.windows, d.streams, strict=True) if counts(w)
    )


def times(ts: Times) -> Frame:
    """The times of a task's elements, each once."""
    return Frame({"ts": distinct(ts)})


def occurrences(ts: Times, terms: Sequence[tuple[Words, Words]] = ()) -> Frame:
    """The counted times of a task's triples, each by the identities of its ``terms``, or of its
    tuples (no terms).
    """
    if not terms:
        each, n = np.unique(ts, return_counts=True)
        none = np.zeros(len(each), np.uint64)
        return Frame({"ts": each, "n": n.astype(np.int64), "k": none, "h": none})
    k, h = terms[0]
    for x, y in terms[1:]:
        k, h = combine(k, h, x, y)
    return _each_once(Frame({"ts": ts, "n": np.ones(len(ts), np.int64), "k": k, "h": h}))


def concat_times(frames: Sequence[Frame]) -> Frame:
    """Several frames of times as one."""
    if all("n" in f for f in frames):
        return _each_once(concat(list(frames)))
    return times(np.concatenate([_EMPTY, *(f["ts"] for f in frames)]))


def _each_once(rows: Frame) -> Frame:
    """Equal triples of one time once; the numbers of tuples and sums of one time added."""
    order = in_order(rows["h"], rows["k"], rows["ts"])
    rows = rows.take(order)
    same = (np.diff(rows["ts"]) == 0) & (np.diff(rows["k"]) == 0) & (np.diff(rows["h"]) == 0)
    first = np.flatnonzero(np.concatenate([np.ones(min(rows.n, 1), bool), ~same]))
    if not len(first):
        return rows
    whole = rows["k"][first] | rows["h"][first] != 0
    n = np.where(whole, rows["n"][first], np.add.reduceat(rows["n"], first))
    return rows.take(first).with_(n=n)


def fresh_of(previous: Sequence[Frame], arrived: Sequence[Frame], *, with_counts: bool) -> Frame:
    """Returns the arrived times that are not kept yet, in order. Times below the watermark do not
    arrive again.
    """
    rows = align_frames([_empty_times(with_counts), *arrived], with_counts=with_counts)
    if not rows.n or not previous:
        return rows
    if not with_counts:
        known = distinct(np.concatenate([f["ts"] for f in previous]))
        return rows.where(~in_sorted(known, rows["ts"]))
    least = int(rows["ts"][0])
    known_rows = concat(
        [f.where(f["ts"] >= least) for f in _same_columns(previous, with_counts=True)]
    )
    both = concat([known_rows, rows])
    new = np.arange(both.n) >= known_rows.n
    order = in_order(new, both["h"], both["k"], both["ts"])
    same = np.zeros(both.n, bool)
    same[1:] = True
    for column in ("ts", "k", "h"):
        same[1:] &= np.diff(both[column][order]) == 0
    known_already = np.zeros(both.n, bool)
    known_already[order] = same
    known_already &= (both["k"] | both["h"]) != 0
    return rows.where(~known_already[known_rows.n :])


def times_below(frames: Sequence[Frame], w: int, *, with_counts: bool) -> EventTimes:
    """Returns the times below the watermark ``w``; no triple is in two of the frames.

    Previous rows without counts are of elements that count for no window that counts now.
    """
    if not with_counts:
        ts = distinct(np.concatenate([_EMPTY, *(f["ts"] for f in frames)]))
        ts = ts[ts < w]
        return EventTimes(ts, np.zeros(len(ts), np.int64))
    rows = concat([_empty_times(True), *_same_columns(frames, with_counts=True)])
    rows = rows.where(rows["ts"] < w)
    ts, at = np.unique(rows["ts"], return_inverse=True)
    n = np.zeros(len(ts), np.int64)
    np.add.at(n, at, rows["n"])
    return EventTimes(ts, np.cumsum(n))


def as_sums(rows: Frame, w: int) -> Frame:
    """Reduces times below the watermark to sums: one row for each time."""
    if "n" not in rows:
        return rows
    waits = (rows["ts"] >= w).astype(np.uint64)
    return _each_once(rows.with_(k=rows["k"] * waits, h=rows["h"] * waits))


def pass_on_counts(dropped: Frame, remaining: Times) -> Frame:
    """Returns rows that give the counts of dropped times to the next remaining times; nothing where
    times are not counted.
    """
    if "n" not in dropped or not dropped.n:
        return dropped.slice(0, 0)
    dropped = dropped.where(dropped["n"] > 0)
    return _without_counts(remaining[np.searchsorted(remaining, dropped["ts"])]).with_(
        n=dropped["n"]
    )


def align_frames(frames: Sequence[Frame], *, with_counts: bool) -> Frame:
    """Frames of times as one, in order, counted or not."""
    return concat_times(_same_columns(frames, with_counts=with_counts))


def _same_columns(frames: Iterable[Frame], *, with_counts: bool) -> list[Frame]:
    if with_counts:
        return [f if "n" in f else _without_counts(f["ts"]) for f in frames]
    return [f.select(["ts"]) for f in frames]


def _empty_times(with_counts: bool) -> Frame:
    return _without_counts() if with_counts else Frame({"ts": _EMPTY})


def _without_counts(ts: Times = _EMPTY) -> Frame:
    none = np.zeros(len(ts), np.uint64)
    return Frame({"ts": ts, "n": np.zeros(len(ts), np.int64), "k": none, "h": none}, len(ts))


def span(w: Window, element_times: EventTimes, start: int) -> tuple[Times, Times]:
    """Returns the instants [s, e) at which elements with these times are in a window; elements that
    never are, are left out.

    For a count window with a step, the spans begin at each change of its content.
    """
    begin = max(start, w.start)
    if counts(w):
        changed = steps(w, element_times, begin)
        return changed, np.full(len(changed), MAX, np.int64)
    ts = element_times.ts[element_times.ts >= begin]
    if w.kind.by_session:
        ends = session_ends(ts, w.range)
        return (ts, ends) if w.kind is WindowKind.SESSION else (ends, ends + 1)
    params, row = Params.from_windows([w]), np.zeros(len(ts), np.int32)
    s, e = enter(*params, row, ts), leave(*params, row, ts)
    return s[s < e], e[s < e]


def steps(w: Window, element_times: EventTimes, begin: int) -> Times:
    """Returns the times at which a count window with a step changes: those of its m-th, 2m-th, ..
    occurrence from ``begin`` on.
    """
    before = int(np.searchsorted(element_times.ts, begin))
    base = int(element_times.total[before - 1]) if before else 0
    done = (element_times.total[before:] - base) // w.step
    changed: Times = element_times.ts[before:][np.diff(done, prepend=0) > 0]
    return changed


def session_ends(ts: Times, gap: int) -> Times:
    """Returns for each of these times (ascending) the end of its session: its last time, as far as
    times are known, and the gap.
    """
    last = np.concatenate([np.diff(ts) >= gap, np.ones(min(len(ts), 1), bool)])
    ends = np.minimum(ts[last], MAX - gap) + gap
    of_each: Times = ends[np.cumsum(last) - last]
    return of_each


def retain(
    element_times: EventTimes, windows: Sequence[Window], start: int, horizon: int, show_empty: bool
) -> npt.NDArray[np.bool_]:
    """Flags the times that still matter after ``horizon``: those of elements that leave later
    (where these report on close one for all that come and go at the same closes), and of endless
    windows the first.

    For sessions and counting windows: the times after the horizon. For counting windows also the
    last change before it, which a periodic report after it may be the first to show. For sessions
    also the last two before it, since other windows keep only some of the times before: a session
    that follows from their distance then ends before the horizon. For all windows the last time, up
    to which reports may go, and with empty reports the first, from which they run.
    """
    ts = element_times.ts
    keep = np.zeros(len(ts), bool)
    keep[-1:] = True
    if show_empty:
        for w in windows:
            keep[np.flatnonzero(ts >= max(start, w.start))[:1]] = True
    for w in windows:
        counting = ts >= max(start, w.start)
        if counts(w) or w.kind.by_session:
            keep |= counting & (ts >= horizon)
            # a session that has ended leaves an instant later, also where the next one has begun
            if w.kind.by_session:
                keep |= (
                    counting & (np.diff(ts, append=MAX) >= w.range) & (ts > horizon - w.range - 2)
                )
                keep[np.flatnonzero(ts < horizon)[-2:]] = True
            else:
                changed = steps(w, element_times, max(start, w.start))
                keep |= in_sorted(changed[changed < horizon][-1:], ts)
            keep[np.flatnonzero(~counting)[-1:]] = True
            continue
        params, row = Params.from_windows([w]), np.zeros(len(ts), np.int32)
        entry, exit_ = enter(*params, row, ts), leave(*params, row, ts)
        last = np.maximum(entry, exit_)
        endless = last >= MAX
        matters = counting & ~endless & (last >= horizon)
        # the last of those that come and go together stands for them: a few a step, however many
        # elements there are
        if w.kind.on_close:
            matters &= (np.diff(entry, append=MIN) != 0) | (np.diff(exit_, append=MIN) != 0)
        keep |= matters
        first = np.flatnonzero(counting & endless)
        keep[first[:1]] = True
        keep |= counting & endless & (ts >= horizon)
    return keep

"""From event times to the instants at which rows count, with each row's own parameters
(docs/semantics.md#windows).

``exact``: [s, e) with s = max over windows of max(enter(hi), leave(prev)), e = min over windows of
leave(lo); a row that has an end of its own (``u``) counts no longer than that.
``outer``: [max hi, min leave(lo)), a superset in the order of event times, by which joins narrow
before they look exactly. Rows without windows (static data) count always.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from levada.core import column_names as col
from levada.core.event_time import MAX, MIN, Times, Window, WindowKind
from levada.core.frame import Frame
from levada.kernels.time.window_intervals import interval, leave
from levada.plan.execution.row_layout import Layout
from levada.plan.execution.window_table import WindowTable

_NONE = np.empty(0, np.int64)
_LASTING = [int(k) for k in WindowKind if Window(k).leave(0) >= MAX]  # rows that never end by time
_CHANGES = (int(WindowKind.ALL), int(WindowKind.STATIC))


def outer(frame: Frame, layout: Layout, table: WindowTable) -> tuple[Times, Times]:
    """Returns a superset of each row's instants, whose start is its greatest event time."""
    s = e = _NONE
    for j, span in enumerate(layout.windows):
        latest, end = (
            frame[col.greatest(j) if span.hi else col.least(j)],
            leave(*table.params(j), frame["op"], frame[col.least(j)]),
        )
        s, e = (np.maximum(s, latest), np.minimum(e, end)) if j else (latest, end)
    if not layout.windows:
        s, e = np.full(frame.n, MIN, np.int64), np.full(frame.n, MAX, np.int64)
    return s, _limit_ends(frame, e)


def _limit_ends(frame: Frame, e: Times) -> Times:
    """The ends of rows, of which some are known to end before their windows have them do."""
    return np.minimum(e, frame[col.UNTIL]) if col.UNTIL in frame else e


def by_weight(table: WindowTable) -> tuple[str, ...]:
    """Returns the ``hi`` of windows whose rows end by rows of weight -1: the instant of the row's
    beginning or retraction.

    The changes of a relation (a window ALL) and of static graphs have their instant in ``lo``, too:
    they never leave by time.
    """
    kinds = [int(WindowKind.COUNT), int(WindowKind.SESSION), *_CHANGES]
    by_hi = [col.greatest(j) for j in range(len(table.kind)) if np.isin(table.kind[j], kinds).all()]
    by_lo = [col.least(j) for j in range(len(table.kind)) if np.isin(table.kind[j], _CHANGES).all()]
    return (*by_hi, *by_lo)


def latest_end(frame: Frame, layout: Layout, table: WindowTable) -> int:
    """An instant from which on no row counts: the greatest that latest times allow."""
    op, alike = frame["op"], bool((frame["op"] == frame["op"][0]).all())
    e = _NONE
    for j in range(len(layout.windows)):
        latest = frame[col.least(j)]
        latest = latest.max(keepdims=True) if alike else latest
        left = leave(*table.params(j), op[:1] if alike else op, latest)
        e = np.minimum(e, left) if j else left
    return int(e.max(initial=MIN)) if layout.windows else MAX


def exact_interval(
    frame: Frame, layout: Layout, table: WindowTable, rows: Sequence[int] | None = None
) -> tuple[Times, Times]:
    """The instants [s, e) at which each row counts; ``rows`` maps the layout's windows to its."""
    s = e = _NONE
    for j, span in enumerate(layout.windows):
        t = j if rows is None else rows[j]
        lo = frame[col.least(j)]
        hi = frame[col.greatest(j)] if span.hi else lo
        prev = frame[col.earlier(j)] if span.prev else _NONE
        one_s, one_e = interval(*table.params(t), table.start[t], frame["op"], lo, hi, prev)
        s, e = (np.maximum(s, one_s), np.minimum(e, one_e)) if j else (one_s, one_e)
    if not layout.windows:
        s, e = np.full(frame.n, MIN, np.int64), np.full(frame.n, MAX, np.int64)
    return s, _limit_ends(frame, e)


def watermark(table: WindowTable, streams: Times) -> Times:
    """W of each member: the least over the streams of its windows (MAX without windows)."""
    members = table.stream.shape[1]
    if table.has_one_stream and members:
        stream_numbers = table.streams_of_first if len(streams) else ()
        same = np.empty(members, np.int64)
        same.fill(min([int(streams[i]) for i in stream_numbers], default=MAX))
        return same
    w = np.full(members, MAX, np.int64)
    for of in table.stream if len(streams) else ():
        np.minimum(w, np.where(of >= 0, streams[np.maximum(of, 0)], MAX), out=w)
    return w


def max_run_span(table: WindowTable) -> int:
    """A quarter of the longest window: the most that a run of state may span."""
    if not table.kind.size:
        return MAX
    lasting = np.isin(table.kind, _LASTING)
    from_kind = np.where(lasting, MAX, table.range)
    static = table.kind == WindowKind.STATIC
    if not static.all():  # beside a window's rows static ones are few, or come rarely
        from_kind = np.where(static, 0, from_kind)
    longest = int(from_kind.max())
    return MAX if longest >= MAX else max(longest // 4, 1)

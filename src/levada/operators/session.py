"""Session windows: elements less than a gap apart are one session, which ends a gap after its last element (design, section 1).

Which session a row belongs to, and whether that has ended, follows from the times of all elements of the stream
(``windows/presence``), so every partition knows it of its own rows. On content change a row comes in at its time (+1) and is
taken back when its session ends (-1, ``hi`` is the end). On close it comes in at the end, which it then carries in place of its
time. Over triples a session is a set: the first coming of a triple is the one that counts. The state is the rows of the
sessions that have not ended.

Cost: an epoch with new rows looks through the open sessions, to tell what is in them already.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from levada.kernels.groups import group
from levada.kernels.keyed import combine
from levada.model.frame import Frame, concat
from levada.model.time import Times
from levada.operators.rows import key_of
from levada.plan import shapes as s
from levada.plan.topology import PlanNode
from levada.windows.pieces import State
from levada.windows.presence import NOTHING, Seen, session_ends
from levada.windows.reports import Progress

MOST_PIECES = 12
_FOREVER = (2**62, 0, 0)  # rows of open sessions live until they are taken out


def session(
    node: PlanNode, state: State, frame: Frame | None, presence: Mapping[int, Seen], progress: Progress
) -> Frame | None:  # fmt: skip
    """New rows, and rows whose session has ended by now -> what comes into and goes out of the windows."""
    step = node.step
    assert isinstance(step, s.Session), "a session window"
    key = f"{node.id}.open"
    pieces = state.pieces(key)
    if frame is None and not pieces:
        return None
    kept = [_alive(node, state.whole(p).with_(**{"#new": np.zeros(p.rows, bool)})) for p in pieces]
    fresh = [] if frame is None else [_alive(node, frame.with_(**{"#new": np.ones(frame.n, bool)}))]
    rows = concat([*kept, *fresh])
    if not rows.n:
        return None
    ends = _ends(node, rows, presence, progress.old)
    if not step.bag:
        rows, ends = _as_set(node, rows, ends)
    over = ends <= progress.new[node.windows.stream[0]][rows["op"]]
    _remember(state, key, rows, over)
    out = _closing(rows, ends, over) if step.ended else _changing(rows, ends, over)
    return out if out.n else None


def _alive(node: PlanNode, rows: Frame) -> Frame:
    """Rows of queries that are there: for others no times are kept."""
    return rows.where(node.alive[rows["op"]])


def _ends(node: PlanNode, rows: Frame, presence: Mapping[int, Seen], old: Times) -> Times:
    """The end of each row's session, as far as the stream's times are known.

    A row of before belongs to the session that was open at the ``old`` watermark, and so does the last time below it. That one is
    known for certain; of earlier ones others of the stream's windows keep some and not all, so nothing follows from their distance.
    """
    ends = np.empty(rows.n, np.int64)
    same = node.schedules.families.alike({stream: seen.ts for stream, seen in presence.items()})
    of = same[node.schedules.of_member[rows["op"]]]
    for number in np.unique(of).tolist():
        at = np.flatnonzero(of == number)
        schedule = node.schedules.distinct[number]
        window = schedule.windows[0]
        ts = presence.get(schedule.streams[0], NOTHING).ts
        ts = ts[ts >= max(schedule.start, window.start)]
        last = np.searchsorted(ts, old[schedule.streams[0]]) - 1
        known = np.maximum(np.searchsorted(ts, rows["lo0"][at]), last)
        ends[at] = session_ends(ts, window.range)[known]
    return ends


def _as_set(node: PlanNode, rows: Frame, ends: Times) -> tuple[Frame, Times]:
    """The first coming of each triple in each session."""
    key = key_of(rows, range(len(node.input_layouts[0].slots)))
    _, first = group(*combine(*key, ends.view(np.uint64), np.zeros(rows.n, np.uint64)))
    return (rows, ends) if len(first) == rows.n else (rows.take(first), ends[first])


def _remember(state: State, key: str, rows: Frame, over: npt.NDArray[np.bool_]) -> None:
    """What is in open sessions: the new rows as a piece of their own, or all as one when some have ended or the pieces are many."""
    pieces = state.pieces(key)
    appending = len(pieces) < MOST_PIECES and not (over & ~rows["#new"]).any()
    left = _plain(rows.where(~over & rows["#new"] if appending else ~over))
    added = [state.put({"": left}, left.n, _FOREVER)] if left.n else []
    state.replace(key, [*(pieces if appending else []), *added])


def _changing(rows: Frame, ends: Times, over: npt.NDArray[np.bool_]) -> Frame:
    """+1 for each new row at its time, -1 for each whose session has ended, at its end."""
    new = rows["#new"]
    plus, minus = _plain(rows.where(new)), _plain(rows.where(over))
    return concat(
        [
            plus.with_(hi0=plus["lo0"], w=np.ones(plus.n, np.int8)),
            minus.with_(hi0=ends[over], w=np.full(minus.n, -1, np.int8)),
        ]
    )


def _closing(rows: Frame, ends: Times, over: npt.NDArray[np.bool_]) -> Frame:
    """The rows of sessions that have ended, with the end as their time."""
    return _plain(rows.where(over)).with_(lo0=ends[over])


def _plain(rows: Frame) -> Frame:
    return Frame({n: c for n, c in rows.columns.items() if not n.startswith("#")}, rows.n)

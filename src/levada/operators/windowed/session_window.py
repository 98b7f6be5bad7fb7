"""Session windows: elements less than a gap apart are one session, which ends a gap after its last
element (docs/semantics.md#windows).

The session of a row, and whether it has ended, follow from the times of all elements of the stream
(``windowing/element_times``), so every partition computes them for its own rows. On content change
a row enters at its time (+1) and is taken back when its session ends (-1, ``hi`` is the end). On
close it enters at the end, which then replaces its time. Over triples a session is a set: only the
first occurrence of a triple counts.

The state is the rows of the sessions that have not ended: at a watermark each member has one at
most, so all its kept rows end at one instant, which is known without a look at the rows. Rows of
triples are in order of their keys (``state/counters``).

Cost: the new rows, which are looked up if they are triples; when sessions end, the rows of all open
sessions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.event_time import MAX, MIN, Times
from levada.core.frame import Frame, concat
from levada.kernels.keyed.bucket_layout import combine
from levada.kernels.keyed.hash_groups import group
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.rows.route_rows import empty, key_of
from levada.operators.state import counters
from levada.operators.state.state_parts import State, due_together
from levada.operators.windowing.element_times import NOTHING, ElementTimes, session_ends
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode

_FOREVER = (MAX, 0, 0)  # rows of open sessions live until they are taken out


def session(node: PlanNode[s.Session], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """Turns new rows, and rows whose session has ended by now, into the rows that enter and leave
    the windows.
    """
    step, state, (frame,) = node.step, env.state, inputs
    element_times, progress = env.element_times, env.progress
    key = f"{node.id}.open"
    if frame is None and not state.pieces(key):
        return None
    was, now = (w[node.windows.stream[0]] for w in (progress.old, progress.new))
    open_until = _open_until(node, element_times, progress.old)
    # for others no times are kept
    rows = empty(node.input_layouts[0]) if frame is None else frame.where(node.alive[frame["op"]])
    ends = _session_ends(node, rows, element_times)
    if not step.bag:
        rows, ends = _as_set(node, state, key, rows, ends, open_until=open_until)
    ended_rows = _take_ended(node, state, key, (open_until > was) & (open_until <= now), step.bag)
    has_ended = ends <= now[rows["op"]]
    _keep(node, state, key, rows.where(~has_ended), step.bag)
    old = open_until[ended_rows["op"]]
    last, until = (
        concat([ended_rows, _plain(rows.where(has_ended))]),
        np.concatenate([old, ends[has_ended]]),
    )
    out = last.with_(lo0=until) if step.ended else _change_rows(rows, last, until)
    return out if out.n else None


def _times(node: PlanNode, number: int, element_times: ElementTimes) -> Times:
    """The times of all elements that count for a schedule."""
    schedule = node.schedules.distinct[number]
    ts = element_times.get(schedule.streams[0], NOTHING).ts
    return ts[ts >= max(schedule.start, schedule.windows[0].start)]


def _first_alike(node: PlanNode, element_times: ElementTimes) -> npt.NDArray[np.int64]:
    """For each schedule the first that says the same."""
    return node.schedules.families.first_equal(
        {stream: times.ts for stream, times in element_times.items()}
    )


def _open_until(node: PlanNode, element_times: ElementTimes, old: Times) -> Times:
    """Returns the end of each member's last session at the ``old`` watermark, as far as times are
    known; MIN without a session.

    The last time below the watermark is known for certain; of earlier times other windows of the
    stream keep only some.
    """
    of_schedule = np.full(len(node.schedules.distinct), MIN, np.int64)
    same = _first_alike(node, element_times)
    for number in np.unique(same).tolist():
        schedule = node.schedules.distinct[number]
        ts = _times(node, number, element_times)
        last = int(np.searchsorted(ts, old[schedule.streams[0]])) - 1
        if last >= 0:
            of_schedule[number] = session_ends(ts[last:], schedule.windows[0].range)[0]
    until: Times = of_schedule[same[node.schedules.of_member]]
    return until


def _session_ends(node: PlanNode, rows: Frame, element_times: ElementTimes) -> Times:
    """The end of each new row's session, as far as the stream's times are known."""
    ends = np.empty(rows.n, np.int64)
    of = _first_alike(node, element_times)[node.schedules.of_member[rows["op"]]]
    for number in np.unique(of).tolist():
        at = np.flatnonzero(of == number)
        ts = _times(node, number, element_times)
        ends[at] = session_ends(ts, node.schedules.distinct[number].windows[0].range)[
            np.searchsorted(ts, rows[col.least(0)][at])
        ]
    return ends


def _as_set(
    node: PlanNode, state: State, key: str, rows: Frame, ends: Times, *, open_until: Times
) -> tuple[Frame, Times]:  # fmt: skip
    """Returns the first occurrence of each triple in each session among new rows, with its key,
    without triples that the open session already has.
    """
    k, h = key_of(rows, range(len(node.input_layouts[0].slots)))
    first = np.sort(group(*combine(k, h, ends.view(np.uint64), np.zeros(rows.n, np.uint64)))[1])
    rows = rows.with_(**{col.KEY: k, col.CHECK: h}).take(first)
    ends = ends[first]
    on = np.flatnonzero(ends == open_until[rows["op"]])
    known = counters.find(state, key, rows[col.KEY][on], rows[col.CHECK][on])
    if known is None:
        return rows, ends
    left = np.delete(np.arange(rows.n), on[known[0]])
    return rows.take(left), ends[left]


def _take_ended(
    node: PlanNode, state: State, key: str, ending: npt.NDArray[np.bool_], bag: bool
) -> Frame:
    """Removes and returns the rows of the members whose session ends; without any, nothing is
    read.
    """
    pieces = state.pieces(key)
    nothing = empty(node.input_layouts[0])
    if not pieces or not ending.any():
        return nothing
    rows = concat([state.whole(p) for p in pieces])
    is_ending = ending[rows["op"]]
    state.replace(key, [])
    _keep(node, state, key, rows.where(~is_ending & node.alive[rows["op"]]), bag)
    return _plain(rows.where(is_ending))


def _keep(node: PlanNode, state: State, key: str, rows: Frame, bag: bool) -> None:
    """Adds rows of open sessions to the kept ones."""
    if not rows.n:
        return
    if not bag:
        counters.insert(state, key, rows, lambda same: same)
        return
    pieces = [*state.pieces(key), state.put({"": rows}, rows.n, _FOREVER)]
    if (start := due_together(pieces)) < len(pieces):
        both = concat([state.whole(p) for p in pieces[start:]])
        pieces[start:] = [state.put({"": both}, both.n, _FOREVER)]
    state.replace(key, pieces)


def _change_rows(rows: Frame, last: Frame, until: Times) -> Frame:
    """Returns +1 for each new row at its time, -1 for each row whose session has ended, at its
    end.
    """
    plus = _plain(rows)
    return concat(
        [
            plus.with_(hi0=plus["lo0"], w=np.ones(plus.n, np.int8)),
            last.with_(hi0=until, w=np.full(last.n, -1, np.int8)),
        ]
    )


def _plain(rows: Frame) -> Frame:
    return rows.visible()

"""Pending rows: what is read but not yet below its stream's watermark (design, section 1,
"Progress").

An epoch's operators see exactly the elements with W(N-1) <= ts < W(N). Rows ahead of that wait as
pieces cut by time, so that a stream that runs far ahead is not rewritten every epoch: only the
pieces that the watermark reaches are opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from levada.model.frame import Frame, concat
from levada.model.time import MAX, MIN, Times
from levada.plan.sealed import steps as s
from levada.plan.sealed.plan import PlanNode
from levada.windows.state.pieces import Piece

if TYPE_CHECKING:
    from levada.runtime.task.stage import StageRun

PIECE_ROWS = 65_536


def release(run: StageRun) -> None:
    """Replaces the new rows of every input that comes from the intake by those that are up now; the
    rest waits.
    """
    fresh = {f"{node}.{at}" for node, at in run.inputs}
    waiting = {key.removeprefix("pending.") for key in run.state.keys("pending.")}
    for name in sorted(fresh | waiting):
        node_id, at = (int(part) for part in name.split("."))
        node = run.plan.nodes.get(node_id)
        if node is None:
            run.state.replace(f"pending.{name}", [])
            continue
        producer = run.plan.nodes[node.inputs[at]]
        if not producer.layout.windows or producer.stage > 0:
            continue  # static rows, also where they are united with others, and rows that have waited already
        frames = run.inputs.pop((node_id, at), [])
        up = _release_input(run, node, at, frames, f"pending.{name}")
        if up is not None and up.n:
            run.inputs[(node_id, at)] = [up]


def _release_input(
    run: StageRun, node: PlanNode, at: int, frames: list[Frame], key: str
) -> Frame | None:
    streams = _stream_of(node, at)
    w = np.where(streams >= 0, run.progress.new[np.maximum(streams, 0)], MAX)
    start = _start_of(node, at)
    up: list[Frame] = []
    kept: list[Piece] = []
    rest: list[Frame] = []
    greatest = int(w.max(initial=MIN))
    for piece in run.state.pieces(key):
        if piece.low >= greatest or not _any_up(rows := run.state.frame(piece), w):
            kept.append(piece)
        else:
            run.state.touched += piece.rows
            _split(rows, w, start, up, rest)
    for frame in frames:
        _split(frame, w, start, up, rest)
    left = [f for f in rest if f.n]
    if left:
        waiting = concat(left)
        of = streams[waiting["op"]]
        for stream in np.unique(of):  # each has its own watermark
            kept += _pieces(run, waiting.where(of == stream))
    run.state.replace(key, kept)
    found = [f for f in up if f.n]
    return _in_order(concat(found)) if found else None


def _any_up(rows: Frame, w: Times) -> bool:
    """Whether rows of a piece are up: the node's other streams may be farther than its own."""
    return bool((rows["lo0"] < w[rows["op"]]).any())


def _split(frame: Frame, w: Times, start: Times, up: list[Frame], rest: list[Frame]) -> None:
    """Rows that are up, and rows that wait; rows before their query's start count nowhere."""
    op, ts = frame["op"], frame["lo0"]
    if not frame.n:
        return
    if int(ts.max()) < int(w.min()) and int(ts.min()) >= int(start.max()):
        up.append(frame)
        return
    if (w == w[0]).all() and int(ts[0]) >= int(start.max()) and (ts[1:] >= ts[:-1]).all():
        cut = int(np.searchsorted(ts, w[0]))
        up.append(frame.slice(0, cut))
        rest.append(frame.slice(cut, frame.n))
        return
    counts = ts >= start[op]
    now = ts < w[op]
    up.append(frame.where(now & counts))
    rest.append(frame.where(~now & counts))


def _in_order(frame: Frame) -> Frame:
    ts = frame["lo0"]
    return frame if (ts[1:] >= ts[:-1]).all() else frame.take(np.argsort(ts, kind="stable"))


def _pieces(run: StageRun, rows: Frame) -> list[Piece]:
    """Waiting rows as pieces of bounded size in order of time."""
    rows = _in_order(rows)
    out = []
    for first in range(0, rows.n, PIECE_ROWS):
        part = rows.slice(first, first + PIECE_ROWS)
        out.append(
            run.state.put({"": part}, part.n, (MAX, int(part["lo0"][0]), int(part["lo0"][-1])))
        )
    return out


def _stream_of(node: PlanNode, at: int) -> npt.NDArray[np.int32]:
    stream: npt.NDArray[np.int32] = node.windows.stream[_window_of(node, at)]
    return stream


def _start_of(node: PlanNode, at: int) -> Times:
    start: Times = node.windows.start[_window_of(node, at)]
    return start


def _window_of(node: PlanNode, at: int) -> int:
    """The place, in the node's window table, of the one window of this input."""
    step = node.step
    match step:
        case s.Join():
            return [pair[at] for pair in step.windows].index(0)
        case s.Report() | s.Panes() | s.Changes() | s.Deltas():
            assert step.rows is not None, "rows with event times"
            return step.rows[0]
        case _:
            return 0

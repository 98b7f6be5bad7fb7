"""Pending rows: what is read but not yet below its stream's watermark (docs/semantics.md#progress).

An epoch's operators see exactly the elements with W(N-1) <= ts < W(N). Rows ahead of that wait as
pieces cut by time, so that a stream that runs far ahead is not rewritten every epoch: only the
pieces that the watermark reaches are opened.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from levada.model import columns as col
from levada.model.frame import Frame, concat
from levada.model.time import MAX, MIN, Times
from levada.plan.sealed.plan import Plan, PlanNode
from levada.windows.state.pieces import Piece, State

PIECE_ROWS = 65_536
Waiting = dict[tuple[int, int], list[Frame]]  # new rows by node and input


class Input(NamedTuple):
    """An input of a node, and under which key its rows wait."""

    node: PlanNode
    at: int
    key: str


def release(plan: Plan, inputs: Waiting, state: State, watermarks: Times) -> None:
    """Replaces the new rows of every input that comes from the intake by those that are up now; the
    rest waits.
    """
    fresh = {f"{node}.{at}" for node, at in inputs}
    waiting = {key.removeprefix("pending.") for key in state.keys("pending.")}
    for name in sorted(fresh | waiting):
        node_id, at = (int(part) for part in name.split("."))
        node = plan.nodes.get(node_id)
        if node is None:
            state.replace(f"pending.{name}", [])
            continue
        producer = plan.nodes[node.inputs[at]]
        if not producer.layout.windows or producer.stage > 0:
            # static rows, also where they are united with others, and rows that have waited already
            continue
        frames = inputs.pop((node_id, at), [])
        up = _release_input(Input(node, at, f"pending.{name}"), frames, state, watermarks)
        if up is not None and up.n:
            inputs[(node_id, at)] = [up]


def _release_input(to: Input, frames: list[Frame], state: State, watermarks: Times) -> Frame | None:
    streams, start = _stream_and_start(to.node, to.at)
    w = np.where(streams >= 0, watermarks[np.maximum(streams, 0)], MAX)
    up: list[Frame] = []
    kept: list[Piece] = []
    rest: list[Frame] = []
    greatest = int(w.max(initial=MIN))
    for piece in state.pieces(to.key):
        if piece.low >= greatest or not _any_up(rows := state.frame(piece), w):
            kept.append(piece)
        else:
            state.touched += piece.rows
            _split(rows, w, start, up, rest)
    for frame in frames:
        _split(frame, w, start, up, rest)
    left = [f for f in rest if f.n]
    if left:
        waiting = concat(left)
        of = streams[waiting["op"]]
        for stream in np.unique(of):  # each has its own watermark
            kept += _pieces(state, waiting.where(of == stream))
    state.replace(to.key, kept)
    found = [f for f in up if f.n]
    return _in_order(concat(found)) if found else None


def _any_up(rows: Frame, w: Times) -> bool:
    """Whether rows of a piece are up: the node's other streams may be farther than its own."""
    return bool((rows[col.least(0)] < w[rows["op"]]).any())


def _split(frame: Frame, w: Times, start: Times, up: list[Frame], rest: list[Frame]) -> None:
    """Rows that are up, and rows that wait; rows before their query's start count nowhere."""
    op, ts = frame["op"], frame[col.least(0)]
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
    ts = frame[col.least(0)]
    return frame if (ts[1:] >= ts[:-1]).all() else frame.take(np.argsort(ts, kind="stable"))


def _pieces(state: State, rows: Frame) -> list[Piece]:
    """Waiting rows as pieces of bounded size in order of time."""
    rows = _in_order(rows)
    out = []
    for first in range(0, rows.n, PIECE_ROWS):
        part = rows.slice(first, first + PIECE_ROWS)
        out.append(state.put({"": part}, part.n, (MAX, int(part["lo0"][0]), int(part["lo0"][-1]))))
    return out


def _stream_and_start(node: PlanNode, at: int) -> tuple[npt.NDArray[np.int32], Times]:
    """Of each member the stream of the one window of this input, and since when rows count."""
    places = node.step.row_windows(at, 1)
    assert places is not None, f"rows with event times wait for a {type(node.step).__name__}"
    return node.windows.stream[places[0]], node.windows.start[places[0]]

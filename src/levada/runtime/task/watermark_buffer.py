"""Buffers pending rows: rows that are read but not yet below their stream's watermark
(docs/semantics.md#progress).

The operators of an epoch receive exactly the elements with W(N-1) <= ts < W(N). Later rows wait in
order of time (``operators/state/ordered_buffer``), separately for each stream.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.event_time import MAX, Times
from levada.core.frame import Frame, concat
from levada.core.member_columns import values_of_members
from levada.operators.state.ordered_buffer import OrderedBuffer, order_by
from levada.operators.state.state_parts import ALIKE, State
from levada.plan.execution.joins import is_alike
from levada.plan.execution.plan import Plan, PlanNode

TIME = col.least(0)
Waiting = dict[tuple[int, int], list[Frame]]  # new rows by node and input


class Input(NamedTuple):
    """An input of a node, and the streams with waiting rows for it."""

    node: PlanNode
    at: int
    streams: list[int]

    def key(self, stream: int) -> str:
        """Returns the state key of a stream's waiting rows."""
        alike = ALIKE if is_alike(self.node.step, self.at) else ""
        return f"pending.{self.node.id}.{self.at}.{stream}{alike}"


def release(plan: Plan, inputs: Waiting, state: State, watermarks: Times) -> None:
    """Replaces the new rows of every input from the intake by those that are released now; the rest
    waits.
    """
    waiting = _waiting(state)
    for node_id, at in sorted({*inputs, *waiting}):
        node, streams = plan.nodes.get(node_id), waiting.get((node_id, at), [])
        if node is None:
            for key in state.keys(f"pending.{node_id}.{at}."):
                state.replace(key, [])
            continue
        producer = plan.nodes[node.inputs[at]]
        if not producer.layout.windows or producer.stage > 0:
            # static rows, also united with others, and rows that have waited already
            continue
        frames = inputs.pop((node_id, at), [])
        up = _release_input(Input(node, at, streams), frames, state, watermarks)
        if up is not None and up.n:
            inputs[(node_id, at)] = [up]


def _waiting(state: State) -> dict[tuple[int, int], list[int]]:
    """Returns the streams with waiting rows, by node and input."""
    streams: dict[tuple[int, int], list[int]] = {}
    for key in sorted(state.keys("pending.")):
        node, at, stream = map(int, key.rstrip(ALIKE).split(".")[1:])
        streams.setdefault((node, at), []).append(stream)
    return streams


def _release_input(to: Input, frames: list[Frame], state: State, watermarks: Times) -> Frame | None:
    streams, start = _stream_and_start(to.node, to.at)
    alike = to.node.windows.has_one_stream
    of = streams[:1] if alike else streams
    w = np.where(of >= 0, watermarks[np.maximum(of, 0)], MAX)
    w = w if len(of) == len(streams) else np.full(len(streams), w[0])
    up: list[Frame] = []
    rest: list[Frame] = []
    for stream in to.streams:
        up += OrderedBuffer(state, to.key(stream), TIME).take_below(int(watermarks[stream]))
    for frame in frames:
        _split(frame, w, start, up, rest)
    left = [f for f in rest if f.n]
    if left:
        new = concat(left)
        of = of if alike else streams[new["op"]]
        for stream in of.tolist() if alike else np.unique(of).tolist():
            # each has its own watermark
            OrderedBuffer(state, to.key(stream), TIME).add(new.where(of == stream))
    released = [f for f in up if f.n]
    return order_by(concat(released), TIME) if released else None


def _split(frame: Frame, w: Times, start: Times, up: list[Frame], rest: list[Frame]) -> None:
    """Divides rows into released and waiting ones; drops rows before their query's start."""
    op, ts = frame["op"], frame[TIME]
    if not frame.n:
        return
    if int(ts.max()) < int(w.min()) and int(ts.min()) >= int(start.max()):
        up.append(frame)
        return
    if (w == w[0]).all() and int(ts[0]) >= int(start.max()) and (ts[1:] >= ts[:-1]).all():
        cut = int(ts.searchsorted(w[0]))
        up.append(frame.slice(0, cut))
        rest.append(frame.slice(cut, frame.n))
        return
    counts = ts >= values_of_members(start, op)
    now = ts < values_of_members(w, op)
    up.append(frame.where(now & counts))
    rest.append(frame.where(~now & counts))


def _stream_and_start(node: PlanNode, at: int) -> tuple[npt.NDArray[np.int32], Times]:
    """Returns, for each member, the stream of the one window of this input, and the start of its
    rows.
    """
    places = node.step.row_windows(at, 1)
    assert places is not None, f"rows with event times wait for a {type(node.step).__name__}"
    return node.windows.stream[places[0]], node.windows.start[places[0]]

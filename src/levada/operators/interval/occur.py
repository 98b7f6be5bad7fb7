"""Occurrences: what makes the content of a window a set (design, section 2, ``prev``).

Equal triples of one time are one occurrence: later copies are dropped. Each occurrence gets
``prev``, the greatest earlier time of an equal row, from the runs and from its own batch: it counts
only from where that one has left. So the occurrences of a triple count one after the other and
never together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from levada.kernels.keyed.probe_latest import latest, previous_within
from levada.model.frame import Frame
from levada.operators.rows.edges import Key, key_of
from levada.plan.sealed.plan import PlanNode
from levada.windows.intervals import outer, quarter
from levada.windows.state import runs
from levada.windows.state.pieces import State

Kept = npt.NDArray[np.int64] | None


def picked(key: Key, kept: Kept) -> Key:
    """The keys of these rows."""
    return key if kept is None else (key[0][kept], key[1][kept])


def as_set(frame: Frame, key: Key, whole: Key, old: list[runs.Run]) -> tuple[Frame, Kept]:
    """The occurrences among new raw rows of one window (index 0), with ``prev0``; and which rows
    they are (None: all).

    ``key`` is the key by which the runs are in bucket order, ``whole`` the key of the whole row.
    """
    ts = frame["lo0"]
    prev, duplicate = previous_within(key[0], whole[1], ts)
    for run in old:
        np.maximum(prev, latest(key[0], whole[1], ts, run.occurrences()), out=prev)
    found = frame.with_(prev0=prev)
    if not duplicate.any():
        return found, None
    kept = np.flatnonzero(~duplicate)
    return found.take(kept), kept


def occur(node: PlanNode, state: State, frame: Frame, horizons: runs.Horizons) -> Frame:
    """New raw rows -> occurrences; they are remembered as long as they can be somebody's
    ``prev``.
    """
    layout = node.input_layouts[0]
    key = key_of(frame, range(len(layout.slots)))
    side = f"{node.id}.0"
    rows, kept = as_set(frame, key, key, runs.live(state, side, horizons.now))
    s, e = outer(rows, layout, node.windows)
    stored = Frame({"op": rows["op"]}, rows.n)
    key = picked(key, kept)
    new = runs.keyed(stored, key, s, e, key[1])
    runs.insert(
        state, side, runs.arranged(new), quarter(node.windows), horizons.next, alive=node.alive
    )
    return rows

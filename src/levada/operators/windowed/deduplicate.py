"""Occurrences: the content of a window as a set (docs/architecture/glossary.md).

Equal triples of one time are one occurrence: later copies are dropped. Each occurrence gets
``prev``, the greatest earlier time of an equal row, from the runs and from its own batch: it counts
only from where that one has left. So the occurrences of a triple count one after the other and
never together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.frame import Frame
from levada.kernels.keyed.previous_occurrence import latest_before, previous_within
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.rows import shared_input_filter
from levada.operators.rows.route_rows import Key, key_of
from levada.operators.state import join_state
from levada.operators.windowing.window_intervals import max_run_span, outer
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.steps import Occur

Kept = npt.NDArray[np.int64] | None


def pick(key: Key, rows: Kept) -> Key:
    """Returns the keys of these rows."""
    return key if rows is None else (key[0][rows], key[1][rows])


def as_set(frame: Frame, key: Key, whole: Key, old: list[join_state.Run]) -> tuple[Frame, Kept]:
    """The occurrences among new raw rows of one window (index 0), with ``prev0``; and which rows
    they are (None: all).

    ``key`` is the key by which the runs are in bucket order, ``whole`` the key of the whole row.
    """
    ts = frame[col.least(0)]
    prev, duplicate = previous_within(key[0], whole[1], ts)
    for run in old:
        if not run.range.depth:
            np.maximum(prev, latest_before(key[0], whole[1], ts, run.occurrences()), out=prev)
            continue
        at = np.flatnonzero(run.range.contains(key[0]))
        mine = latest_before(run.range.rest(key[0][at]), whole[1][at], ts[at], run.occurrences())
        prev[at] = np.maximum(prev[at], mine)
    occurrences = frame.with_(prev0=prev)
    if not duplicate.any():
        return occurrences, None
    firsts = np.flatnonzero(~duplicate)
    return occurrences.take(firsts), firsts


def _quarter(node: PlanNode[Occur]) -> int:
    return max_run_span(node.windows)


def find_occurrences(node: PlanNode[Occur], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """Turns new raw rows into occurrences, and keeps them as long as they can be the ``prev`` of a
    later row.
    """
    layout, (frame,) = node.input_layouts[0], inputs
    if frame is None:
        return None
    state, horizons = env.state, env.horizons(node)
    key = key_of(frame, range(len(layout.slots)))
    side = f"{node.id}.0"
    rows, new_places = as_set(frame, key, key, join_state.live_runs(state, side, horizons.now))
    s, e = outer(rows, layout, node.windows)
    if node.step.relaxed and env.shares is not None:
        e = shared_input_filter.expiry_times(node, 0, rows, e, shares=env.shares, pool=env.pool)
    stored = rows.select(("op", col.PLACE))
    key = pick(key, new_places)
    new = join_state.with_run_columns(stored, key, s, e, key[1])
    join_state.insert(
        state,
        side,
        join_state.build_run(new),
        node.compute_once(_quarter),
        horizon=horizons.next,
        alive=node.alive,
    )
    return rows

"""The state of a join's side whose rows end by rows of weight -1 and never by time: views, count
windows, sessions.

A +1 and the -1 that takes it back are put together before anybody meets them: the newest pieces
with an epoch's new rows, as versions (``windows/versions``), which is what new rows of the other
side meet, so that each meets what stands at its instants, once. (What is old there has met the +1
before, and meets the -1 as it came.) Two pieces become one as soon as the younger has half as many
rows, as in ``windows/state/tallies``: a small relation is always one run, a row of a large one is
rewritten some times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools
from levada.core.event_time import MAX
from levada.core.frame import Frame, concat
from levada.core.frozen import frozen
from levada.operators.state import lsm_runs
from levada.operators.state.retractions import whole_key
from levada.operators.state.state_parts import State, StatePart
from levada.operators.windowing.row_versions import find_retractions


@frozen
class RetractableSide:
    """A side with an epoch's rows: the ``pieces`` that stay as they are, and the others as runs:
    ``lasting``, of what is not known to end, and ``ended``.
    """

    pieces: list[StatePart]
    lasting: lsm_runs.Run
    ended: lsm_runs.Run

    def runs_to_probe(self, state: State) -> list[lsm_runs.Run]:
        """What new rows of the other side meet."""
        new_runs = [run for run in (self.lasting, self.ended) if run.rows.n]
        return [*(lsm_runs.open_(state, piece) for piece in self.pieces), *new_runs]


def update_side(
    state: State,
    key: str,
    new: Frame,
    horizon: int,
    *,
    ends: Sequence[str],
    alive: Bools,
) -> RetractableSide:
    """A side with new rows (with # columns), of which there are some. ``ends``: columns in which a
    row differs from the row of weight -1 that takes it back; ``alive``: the members that are not
    gone.
    """
    pieces, parts, n = list(state.drop_dead(key, horizon)), [new], new.n
    while pieces and pieces[-1].rows <= 2 * n:
        parts.append(lsm_runs.living_rows(lsm_runs.rows_of(state, pieces.pop()), horizon, alive))
        n += parts[-1].n
    rows = _end_retracted(concat(parts[::-1]), ends)
    lasting = rows[col.END] >= MAX
    return RetractableSide(
        pieces, lsm_runs.build_run(rows.where(lasting)), lsm_runs.build_run(rows.where(~lasting))
    )


def _end_retracted(rows: Frame, ends: Sequence[str]) -> Frame:
    """Rows with those that are taken back as rows that end. What has an end is not looked at."""
    open_ = np.flatnonzero(rows[col.END] >= MAX)
    open_rows = rows.take(open_)
    key = whole_key(open_rows, {*ends, col.BEGIN, "w"})
    begin, end = find_retractions(key, open_rows[col.BEGIN], open_rows["w"])
    if not len(begin):
        return rows
    until, last = rows[col.UNTIL].copy(), rows[col.END].copy()
    until[open_[begin]] = last[open_[begin]] = open_rows[col.BEGIN][end]
    stay = np.ones(rows.n, np.bool_)
    stay[open_[end]] = False
    return rows.with_(**{col.UNTIL: until, col.END: last}).where(stay)


def keep(state: State, key: str, side: RetractableSide, horizon: int) -> None:
    """Remembers what some later row can still meet."""
    later = side.ended.rows.where(side.ended.rows[col.END] > horizon)
    run = side.lasting
    if later.n:
        run = lsm_runs.build_run(concat([side.lasting.rows, later]))
    state.replace(key, [*side.pieces, *(lsm_runs.put_run(state, run) if run.rows.n else [])])

"""The state of a join's side whose rows end by rows of weight -1 and never by time: views, count
windows, sessions.

A +1 and the -1 that takes it back are merged before any row meets them: the newest parts with an
epoch's new rows, as versions (``windowing/row_versions``). New rows of the other side meet these
versions, so each meets the rows that exist at its instants, once. (An old row of the other side has
met the +1 before, and meets the -1 as it came.) Two parts become one as soon as the younger has
half as many rows, as in ``state/counters``: a small relation is always one run, a row of a large
one is rewritten some times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools
from levada.core.event_time import MAX
from levada.core.frame import Frame, concat
from levada.core.frozen import frozen
from levada.operators.state import join_state
from levada.operators.state.retractions import whole_key
from levada.operators.state.state_parts import State, StatePart
from levada.operators.windowing.row_versions import find_retractions


@frozen
class RetractableSide:
    """A side with an epoch's rows: the unchanged ``pieces``, and the others as runs: ``lasting``,
    the rows without a known end, and ``ended``.
    """

    pieces: list[StatePart]
    lasting: join_state.Run
    ended: join_state.Run

    def runs_to_probe(self, state: State) -> list[join_state.Run]:
        """Returns the runs that new rows of the other side probe."""
        new_runs = [run for run in (self.lasting, self.ended) if run.rows.n]
        return [*(join_state.open_(state, piece) for piece in self.pieces), *new_runs]


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
        parts.append(
            join_state.living_rows(join_state.rows_of(state, pieces.pop()), horizon, alive)
        )
        n += parts[-1].n
    rows = _end_retracted(concat(parts[::-1]), ends)
    lasting = rows[col.END] >= MAX
    return RetractableSide(
        pieces,
        join_state.build_run(rows.where(lasting)),
        join_state.build_run(rows.where(~lasting)),
    )


def _end_retracted(rows: Frame, ends: Sequence[str]) -> Frame:
    """Merges rows with their retractions to rows that end. Rows that already have an end are not
    looked at.
    """
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
    """Keeps the rows that some later row can still meet."""
    later = side.ended.rows.where(side.ended.rows[col.END] > horizon)
    run = side.lasting
    if later.n:
        run = join_state.build_run(concat([side.lasting.rows, later]))
    state.replace(key, [*side.pieces, *(join_state.put_run(state, run) if run.rows.n else [])])

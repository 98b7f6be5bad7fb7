"""Rows that wait for their reports: the state of Report, Panes and Changes
(docs/architecture.md#a-triples-way).

Columns ``#s #e`` say where a row counts. An epoch's rows are appended as one piece; pieces are
opened only when a report is due; rows that have left before ``high``, or have been taken back, are
dropped when pieces are put together, as often as ``due_together`` says. Nothing is rewritten per
epoch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from levada.core import column_names as col
from levada.core.event_time import MIN, Times
from levada.core.frame import Frame, concat
from levada.core.member_columns import values_of_members
from levada.kernels.terms.term_dictionary import Terms
from levada.operators.state import term_retention
from levada.operators.state.retractions import drop_cancelled
from levada.operators.state.state_parts import State, StatePart, due_together

OWN = ".live"
"""The ending of keys of parts whose rows may have their own texts."""


def remember(state: State, key: str, rows: Frame, terms: Terms | None = None) -> None:
    """Appends rows (with #s, #e) that still have something to say, and the texts that live no
    longer than they do.
    """
    if rows.n:
        span = (int(rows[col.END].max()), int(rows[col.BEGIN].min()), int(rows[col.BEGIN].max()))
        texts = {} if terms is None or not len(terms) else terms.frames("")
        state.replace(key, [*state.pieces(key), state.put({"": rows, **texts}, rows.n, span)])


def own_terms(state: State) -> Iterator[Terms]:
    """Returns the texts that were remembered with rows at the begin of the epoch; rows that end
    still need them.
    """
    for piece in state.first_pieces(OWN):
        yield from _part_terms(state, piece)


def _part_terms(state: State, piece: StatePart) -> Iterator[Terms]:
    frames = state.frames(piece)
    if f"{piece.name}.id" in frames:
        yield Terms.from_frames(frames, piece.name)


def new_terms(state: State) -> Iterator[Terms]:
    """The texts that are remembered with rows since the epoch began."""
    for key in state.keys(""):
        for piece in state.pieces(key) if key.endswith(OWN) else ():
            if state.is_new(piece) and f"{piece.name}.id" in (frames := state.frames(piece)):
                yield Terms.from_frames(frames, piece.name)


def recall(state: State, key: str) -> list[Frame]:
    """All rows that are remembered."""
    return [state.whole(p) for p in state.pieces(key)]


def forget(state: State, key: str, low: Times) -> None:
    """Drops rows that have left for good: rows with #e <= ``low[op]``, the last finished report, or
    a later one.
    """
    least = int(low.min(initial=2**62))
    pieces = [p for p in state.pieces(key) if p.dead > least]
    if (start := due_together(pieces)) < len(pieces):
        pieces = _merge_parts(state, pieces, start, low)
    state.replace(key, pieces)


def _merge_parts(state: State, pieces: list[StatePart], start: int, low: Times) -> list[StatePart]:
    """Puts the pieces from ``start`` on into one without the dead rows."""
    frames = [state.whole(p) for p in pieces[start:]]
    rows = concat(
        [f.where(f[col.END] > values_of_members(low, f["op"])) if f.n else f for f in frames]
    )
    rows = drop_cancelled(rows, rows[col.BEGIN] <= low[rows["op"]])
    if not rows.n:
        return pieces[:start]
    span = (int(rows[col.END].max()), int(rows[col.BEGIN].min()), int(rows[col.BEGIN].max()))
    terms = [part_terms for p in pieces[start:] for part_terms in _part_terms(state, p)]
    texts = _still_needed(rows, Terms.merge(terms)).frames("") if terms else {}
    return [*pieces[:start], state.put({"": rows, **texts}, rows.n, span)]


def _still_needed(rows: Frame, terms: Terms) -> Terms:
    """The terms that some row has."""
    pairs = list(term_retention.identities(rows))
    x, y = (np.concatenate(halves) for halves in zip(*pairs, strict=True))
    return terms.pick(x, y)


def rows_by_interval(rows: Frame, s: Times, e: Times) -> Frame:
    """Rows that count at some instant, with #s and #e in place of event times."""
    counts = s < e
    columns = {n: c for n, c in rows.columns.items() if not col.is_time(n)}
    frame = Frame({**columns, col.BEGIN: s, col.END: e}, rows.n)
    return frame.where(counts) if rows.n else frame


def rows_after(rows: Frame, high: Times) -> Frame:
    """The rows that count at some report after ``high`` (per member)."""
    last = values_of_members(np.maximum(high, MIN) + 1, rows["op"])
    return rows.where(rows[col.END] > last) if rows.n else rows

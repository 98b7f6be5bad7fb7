"""The texts of remembered rows: term tables that are kept as long as a row that came with them can matter.

Each epoch's terms join the open table until it holds 8 epochs; four sealed tables merge into one. A table is dropped when all
rows that it came with are dead (``dead``, the greatest end of their windows), so a term of a row in state is always found.
"""

from __future__ import annotations

from collections.abc import Iterator

from levada.model.terms import Terms
from levada.windows.pieces import Piece, State

KEY = "terms"
OPEN_EPOCHS = 8
MERGE = 4


def tables(state: State) -> Iterator[Terms]:
    """All tables with which the epoch began, oldest first."""
    for piece in state.first_pieces(KEY):
        yield table(state, piece)


def table(state: State, piece: Piece) -> Terms:
    """One table."""
    frames = state.frames(piece)
    return Terms.from_frames(frames, piece.name)


def insert(state: State, terms: Terms, dead: int, horizon: int) -> None:
    """Adds an epoch's terms, which rows that live until ``dead`` came with."""
    pieces = list(state.drop_dead(KEY, horizon))
    if not len(terms):
        return
    if pieces and pieces[-1].level == 0 and pieces[-1].epochs < OPEN_EPOCHS:
        tail = pieces.pop()
        merged = Terms.merge([table(state, tail), terms])
        pieces.append(_put(state, merged, max(tail.dead, dead), 0, tail.epochs + 1))
    else:
        if pieces and pieces[-1].level == 0:
            pieces[-1] = _sealed(pieces[-1])
        pieces = _merged(state, pieces)
        pieces.append(_put(state, terms, dead, 0, 1))
    state.replace(KEY, pieces)


def _sealed(p: Piece) -> Piece:
    return Piece(p.file, p.name, p.rows, p.dead, p.low, p.high, 1, p.epochs)


def _merged(state: State, pieces: list[Piece]) -> list[Piece]:
    while len(pieces) >= MERGE and len({p.level for p in pieces[-MERGE:]}) == 1:
        last = pieces[-MERGE:]
        merged = Terms.merge([table(state, p) for p in last])
        pieces = [*pieces[:-MERGE], _put(state, merged, max(p.dead for p in last), last[0].level + 1, 0)]
    return pieces


def _put(state: State, terms: Terms, dead: int, level: int, epochs: int) -> Piece:
    frames = {suffix.removeprefix("t"): frame for suffix, frame in terms.frames("t").items()}
    return state.put(frames, len(terms), (dead, 0, 0), level=level, epochs=epochs)

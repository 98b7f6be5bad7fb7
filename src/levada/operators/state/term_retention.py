"""Retention of the texts of remembered rows: a term table is kept as long as a row that came with
it can matter.

Each epoch's terms join the open table until it contains 8 epochs; four sealed tables merge into
one. A table is dropped when all rows that it came with are dead (``dead``, the greatest end of
their windows), so a term of a row in state is always found.

Rows that end by a row of weight -1 (count windows, sessions, relations) have no such end, and
neither have the tables that came with one. These tables are collected when they have doubled since
the last time, but not before they have a quarter as many terms as the state has rows, which must
all be read for it: terms that no row in state has are dropped. So a term costs a bounded number of
looks.

Where memory is bounded, a large table is not merged; there are then more tables to look into.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import numpy as np

from levada.core.array_types import Words
from levada.core.event_time import MAX
from levada.core.frame import Frame
from levada.core.size_thresholds import register
from levada.kernels.terms.term_dictionary import Terms
from levada.operators.state.state_parts import TERMS, State, StatePart

KEY = TERMS
OPEN_EPOCHS = register(f"{__name__}.OPEN_EPOCHS", 8)
MERGE = register(f"{__name__}.MERGE", 4, least=2)
# more are there only where those of several partitions have come together
MOST_TABLES = register(f"{__name__}.MOST_TABLES", 32, least=2)
ID_BYTES = 24  # of a term, beside its text
MIN_CHECKED_TERMS = register(
    f"{__name__}.MIN_CHECKED_TERMS", 4096
)  # terms that are not worth the look
_RETAINED_LEVEL = 1 << 20  # the level of a table of what was left: it merges with no other
_IDENTITY = re.compile(r"(a[0-9]+\.)?x([0-9]*)")


def tables(state: State) -> Iterator[Terms]:
    """All tables with which the epoch began, oldest first."""
    for piece in state.first_pieces(KEY):
        yield table(state, piece)


def table(state: State, piece: StatePart) -> Terms:
    """One table."""
    frames = state.frames(piece)
    return Terms.from_frames(frames, piece.name)


def insert(state: State, terms: Terms, dead: int, horizon: int) -> None:
    """Adds an epoch's terms, whose rows are alive until ``dead``."""
    pieces = list(state.drop_dead(KEY, horizon))
    if not len(terms):
        return
    state.replace(KEY, _collect(state, _add_terms(state, pieces, terms, dead)))


def _add_terms(state: State, pieces: list[StatePart], terms: Terms, dead: int) -> list[StatePart]:
    if pieces and _stays_open(state, pieces[-1]):
        tail = pieces.pop()
        merged = Terms.merge([table(state, tail), terms])
        pieces.append(_put(state, merged, max(tail.dead, dead), 0, tail.epochs + 1))
    else:
        if pieces and pieces[-1].level == 0:
            pieces[-1] = _seal(pieces[-1])
        pieces = _merge(state, pieces)
        pieces.append(_put(state, terms, dead, 0, 1))
    return pieces


def _collect(state: State, pieces: list[StatePart]) -> list[StatePart]:
    """Returns the tables. If a collection is due, those without an end become one table of the
    terms that rows in state still have.
    """
    endless = [p for p in pieces if p.dead >= MAX]
    left = sum(p.rows for p in endless if p.level == _RETAINED_LEVEL)
    new = sum(p.rows for p in endless) - left
    if new <= max(left, MIN_CHECKED_TERMS):
        return pieces
    rows = sum(p.rows for key in state.keys("") if key != KEY for p in state.pieces(key))
    if 4 * new < rows:
        return pieces
    retained = _remember(state, Terms.merge([table(state, p) for p in endless]))
    return [
        *([_put(state, retained, MAX, _RETAINED_LEVEL, 0)] if len(retained) else []),
        *(p for p in pieces if p.dead < MAX),
    ]


def _remember(state: State, terms: Terms) -> Terms:
    """The terms that some row in state has."""
    needed = np.zeros(len(terms) + 1, np.bool_)  # the last place takes what is not among them
    for x, y in _identities(state):
        needed[terms.find(x, y)] = True
    return terms.pick(terms.x[needed[:-1]], terms.y[needed[:-1]])


def _identities(state: State) -> Iterator[tuple[Words, Words]]:
    """The identities of all rows in state, a column at a time."""
    for key in state.keys(""):
        for piece in state.pieces(key) if key != KEY else ():
            yield from identities(state.frame(piece))


def identities(rows: Frame) -> Iterator[tuple[Words, Words]]:
    """The identities in some rows, a column at a time."""
    for name in rows.columns:
        if name == "file":  # of a closed element
            yield rows[name], rows[name]
        elif match := _IDENTITY.fullmatch(name):
            yield rows[name], rows[f"{match[1] or ''}y{match[2]}"]


def _stays_open(state: State, tail: StatePart) -> bool:
    return tail.level == 0 and tail.epochs < OPEN_EPOCHS and not _is_large(state, tail)


def _is_large(state: State, piece: StatePart) -> bool:
    """Whether a table has as many bytes as a piece may where memory is bounded."""
    if not state.theta:
        return False
    ids, text = (state.frame(piece, suffix) for suffix in (".id", ".text"))
    return ids.n * ID_BYTES + text.n > state.theta


def _seal(p: StatePart) -> StatePart:
    return msgspec.structs.replace(p, level=1)


def _merge(state: State, pieces: list[StatePart]) -> list[StatePart]:
    while len(pieces) >= MERGE and (
        len({p.level for p in pieces[-MERGE:]}) == 1 or len(pieces) > MOST_TABLES
    ):
        last = pieces[-MERGE:]
        if any(_is_large(state, p) for p in last):
            break
        merged = Terms.merge([table(state, p) for p in last])
        pieces = [
            *pieces[:-MERGE],
            _put(state, merged, max(p.dead for p in last), max(p.level for p in last) + 1, 0),
        ]
    return pieces


def _put(state: State, terms: Terms, dead: int, level: int, epochs: int) -> StatePart:
    frames = {suffix.removeprefix("t"): frame for suffix, frame in terms.frames("t").items()}
    return state.put(frames, len(terms), (dead, 0, 0), level=level, epochs=epochs)

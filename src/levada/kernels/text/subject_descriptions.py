"""The lines that describe one subject: those of its node, and of the blank nodes that belong to it
(docs/semantics.md#elements-by-subject).

A walk over lines, from the beginning of an element on. It keeps *parts*: the element, and behind it
lines of blank nodes whose owner is not known yet. The next line has these effects:

* a line continues the last part if its subject is the last line's, or a blank node that a line
  of a part names, or if its object is a blank node that a part describes and no line refers to, so
  that the inner node was written first. Parts behind the part of that node merge with it;
* another blank node begins a part; if there are more than ``PARTS``, the first becomes an
  element;
* an IRI that refers to a node of a part takes that part and those behind it: as more of the
  element, if it is the element's, else as the beginning of the next one. Parts before it are an
  element each;
* another IRI begins an element, and each part becomes an element.

So an element has one IRI at most, and is independent of the lines before it: wherever a text is cut
between elements, they are the same. Generations record the part in which a label was last seen, so
nothing is cleared between elements. Twin: in ``tests/unit/connectors/sources/test_lines.py``. Cost:
half a microsecond a line, since numba counts the references to the walk's arrays at each call; a
text without lines of blank nodes is cut by ``subject_runs`` and never walked.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from levada.core.array_types import Longs, Words
from levada.kernels.text.byte_ops import View, W, as_int, byte, routine

LAST, KEY, KEY_END, IRI, IRI_END, USED, SIZE, MERGED, RELEASED, BEGUN, _STATE = range(11)
"""The change by a line: parts behind ``MERGED`` (-1: none) became one with it; then the first
``RELEASED`` became elements; ``BEGUN``: a part begins with it.
"""
PARTS = 16

_MIN_TABLE = 1024


class Walk(NamedTuple):
    """The state: numbers; the first generation of each part, and where it begins; labels by their
    hashes, with the generations in which each was last named, described (as a subject) and referred
    to (as an object).
    """

    state: Longs
    first: Longs
    at: Longs
    label: Words
    named: Longs
    described: Longs
    referred: Longs


@routine
def new_walk() -> Walk:
    """A walk that has seen nothing."""
    none, parts = np.zeros(_MIN_TABLE, np.int64), np.zeros(PARTS + 2, np.int64)
    labels = np.zeros(_MIN_TABLE, np.uint64)
    state = np.zeros(_STATE, np.int64)
    state[LAST] = parts[0] = 1
    return Walk(state, parts, parts.copy(), labels, none, none.copy(), none.copy())


@routine
def grow(walk: Walk) -> Walk:
    """Returns the walk with room for more labels; the labels of the element and the branch are
    kept.
    """
    first = walk.first[0]
    kept = int((walk.named >= first).sum())
    size = len(walk.label)
    while size < 4 * kept:
        size *= 2
    new = Walk(
        walk.state,
        walk.first,
        walk.at,
        np.zeros(size, np.uint64),
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
        np.zeros(size, np.int64),
    )
    walk.state[USED] = kept
    for i in range(len(walk.label)):
        if walk.named[i] >= first:
            at = _slot(new.label, walk.label[i])
            new.label[at] = walk.label[i]
            new.named[at] = walk.named[i]
            new.described[at] = walk.described[i]
            new.referred[at] = walk.referred[i]
    return new


@routine
def _slot(label: Words, wanted: np.uint64) -> int:
    """Where a label is, or is to be."""
    mask = len(label) - 1
    at = as_int(wanted >> W(1)) & mask
    while label[at] != W(0) and label[at] != wanted:
        at = (at + 1) & mask
    return at


@routine
def _place(walk: Walk, view: View, at: int, end: int) -> int:
    """The place of the label of a blank node that is written at ``at``; -1 if none is there."""
    if at >= end or byte(view, at) != 95:
        return -1
    while byte(view, end - 1) == 46:  # the line's end
        end -= 1
    hashed = W(14695981039346656037) ^ W(view[0])  # no writer of labels knows the address
    for i in range(at, end):
        hashed = (hashed ^ W(byte(view, i))) * W(1099511628211)
    hashed = (hashed ^ (hashed >> W(29))) * W(0xBF58476D1CE4E5B9)
    hashed = (hashed ^ (hashed >> W(32))) | W(1)
    place = _slot(walk.label, hashed)
    if walk.label[place] == W(0):
        walk.label[place] = hashed
        walk.state[USED] += 1
    return place


@routine
def _has_equal_bytes(view: View, a: int, a_end: int, b: int, b_end: int) -> bool:
    if a_end - a != b_end - b:
        return False
    for i in range(a_end - a):  # noqa: SIM110 (numba compiles no generators)
        if byte(view, a + i) != byte(view, b + i):
            return False
    return True


@routine
def step(walk: Walk, view: View, line: int, key: int, key_end: int, o: int, o_end: int) -> None:
    """Goes on by the line at ``line``, with its subject at ``key`` and the blank node that is its
    object at ``o`` (or nothing there).
    """
    state = walk.state
    state[MERGED], state[RELEASED], state[BEGUN] = -1, 0, 0
    object_ = _place(walk, view, o, o_end)
    subject = _place(walk, view, key, key_end)
    if not _has_equal_bytes(view, state[KEY], state[KEY_END], key, key_end):
        if subject >= 0:
            _blank(walk, line, subject, object_)
        else:
            _iri(walk, view, line, key, key_end, object_)
    state[KEY], state[KEY_END] = key, key_end
    if subject >= 0:
        walk.named[subject] = walk.described[subject] = state[LAST]
    if object_ >= 0:
        walk.named[object_] = state[LAST]
        if object_ != subject:
            walk.referred[object_] = state[LAST]


@routine
def _part(walk: Walk, generation: int) -> int:
    """Returns the part of a generation, or -1."""
    part = int(walk.state[SIZE]) - 1
    while part >= 0 and walk.first[part] > generation:
        part -= 1
    return part


@routine
def _merge(walk: Walk, part: int) -> None:
    """Makes the parts behind one with it."""
    if part < walk.state[SIZE] - 1:
        walk.state[MERGED] = part
        walk.state[SIZE] = part + 1


@routine
def _release(walk: Walk, parts: int) -> None:
    """Makes elements of the first parts."""
    state = walk.state
    state[RELEASED] = parts
    state[SIZE] -= parts
    if parts:
        state[IRI_END] = 0


@routine
def _begin(walk: Walk, line: int) -> None:
    """Begins a part with this line; ``walk.at`` still contains the released ones."""
    state = walk.state
    place = state[RELEASED] + state[SIZE]
    state[LAST] += 1
    walk.first[place], walk.at[place] = state[LAST], line
    state[SIZE] += 1
    state[BEGUN] = 1


@routine
def shift(walk: Walk) -> None:
    """Forgets the parts that were released."""
    parts = walk.state[RELEASED]
    if parts:
        for i in range(walk.state[SIZE]):
            walk.first[i], walk.at[i] = walk.first[i + parts], walk.at[i + parts]


@routine
def _blank(walk: Walk, line: int, subject: int, object_: int) -> None:
    """Goes on by a line about another blank node."""
    first = walk.first[0]
    part = _part(walk, walk.named[subject])
    if part < 0 and object_ >= 0 and walk.referred[object_] < first:
        part = _part(walk, walk.described[object_])
    if part >= 0:
        _merge(walk, part)
        return
    if walk.state[SIZE] == PARTS:
        _release(walk, 1)
    _begin(walk, line)


@routine
def _iri(walk: Walk, view: View, line: int, key: int, key_end: int, object_: int) -> None:
    """Goes on by a line about another IRI than the line before."""
    state = walk.state
    part = _part(walk, walk.described[object_]) if object_ >= 0 else -1
    has_iri = state[IRI_END] > 0
    if has_iri and _has_equal_bytes(view, state[IRI], state[IRI_END], key, key_end):
        if part > 0 or state[SIZE] == 1:
            _merge(walk, 0)
            return
    elif part > 0 or (part == 0 and not has_iri):
        _merge(walk, part)
        _release(walk, part)
        state[IRI], state[IRI_END] = key, key_end
        return
    _release(walk, state[SIZE])
    _begin(walk, line)
    state[IRI], state[IRI_END] = key, key_end

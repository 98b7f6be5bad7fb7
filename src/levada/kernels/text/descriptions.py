"""Which lines describe one subject: those of its node, and of the blank nodes that belong to it
(docs/semantics.md#elements-by-subject).

A walk over lines, from the beginning of an element on. What it knows is the element, and perhaps a
*branch* behind it: lines of blank nodes of which the element says nothing yet. By the next lines

* a line goes on with the element (or the branch) if its subject is the last line's, or a blank node
  that a line there names; or if its object is a blank node that a line there describes, none of
  these lines refers to, and that belongs to no IRI yet: then the inner node was written first;
* another blank node begins a branch; what was a branch before is an element of its own;
* an IRI that refers to a node of the branch takes the branch: it is the element's end, or, if the
  IRI is another one, the beginning of the next;
* another IRI begins an element.

So an element has one IRI at most, and the lines before it do not matter to it: wherever a text is
cut between elements, they are the same. Generations tell in which element a label was seen last, so
nothing is cleared between elements. Twin: in
``tests/unit/sources/test_lines.py``. Cost: a few ns a line, and a hash for each blank node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from levada.kernels.text.bytes_ import View, W, as_int, byte, routine
from levada.model.arrays import Longs, Words

FIRST, BRANCH, LAST, KEY, KEY_END, IRI, IRI_END, BRANCH_AT, BEGAN_AT, USED, _STATE = range(11)
NOTHING, BRANCH_BEGINS, LINE_BEGINS = 0, 1, 2
"""What a line shows: nothing, that the branch begins an element, that the line does; or both."""

_LEAST = 1024


class Walk(NamedTuple):
    """The state: numbers; labels by their hashes, with the generations in which each was last
    named, described (as a subject) and referred to (as an object).
    """

    state: Longs
    label: Words
    named: Longs
    described: Longs
    referred: Longs


@routine
def new_walk() -> Walk:
    """A walk that has seen nothing."""
    none = np.zeros(_LEAST, np.int64)
    state = np.zeros(_STATE, np.int64)
    state[FIRST] = state[LAST] = 1
    return Walk(state, np.zeros(_LEAST, np.uint64), none, none.copy(), none.copy())


@routine
def grown(walk: Walk) -> Walk:
    """The walk with room for more labels: those of the element and the branch are kept."""
    first = walk.state[FIRST]
    kept = int((walk.named >= first).sum())
    size = len(walk.label)
    while size < 4 * kept:
        size *= 2
    new = Walk(
        walk.state,
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
    hashed = W(14695981039346656037)
    for i in range(at, end):
        hashed = (hashed ^ W(byte(view, i))) * W(1099511628211)
    hashed = (hashed ^ (hashed >> W(29))) * W(0xBF58476D1CE4E5B9)
    hashed = (hashed ^ (hashed >> W(32))) | W(1)
    found = _slot(walk.label, hashed)
    if walk.label[found] == W(0):
        walk.label[found] = hashed
        walk.state[USED] += 1
    return found


@routine
def _alike(view: View, a: int, a_end: int, b: int, b_end: int) -> bool:
    if a_end - a != b_end - b:
        return False
    for i in range(a_end - a):  # noqa: SIM110 (numba compiles no generators)
        if byte(view, a + i) != byte(view, b + i):
            return False
    return True


@routine
def step(walk: Walk, view: View, line: int, key: int, key_end: int, o: int, o_end: int) -> int:
    """What the line at ``line`` shows, with its subject at ``key`` and the blank node that is its
    object at ``o`` (or nothing there). ``state[BEGAN_AT]`` is where the branch before it began.
    """
    state = walk.state
    state[BEGAN_AT] = state[BRANCH_AT]
    object_ = _place(walk, view, o, o_end)
    subject = _place(walk, view, key, key_end)
    shows = NOTHING
    if not _alike(view, state[KEY], state[KEY_END], key, key_end):
        if subject >= 0:
            shows = _blank(walk, line, subject, object_)
        else:
            shows = _iri(walk, view, key, key_end, object_)
    state[KEY], state[KEY_END] = key, key_end
    if subject >= 0:
        walk.named[subject] = walk.described[subject] = state[LAST]
    if object_ >= 0:
        walk.named[object_] = state[LAST]
        if object_ != subject:
            walk.referred[object_] = state[LAST]
    return shows


@routine
def _blank(walk: Walk, line: int, subject: int, object_: int) -> int:
    """What a line about another blank node shows."""
    state = walk.state
    first, branch = state[FIRST], state[BRANCH]
    joined = -1
    if walk.named[subject] >= first:
        joined = walk.named[subject]
    elif object_ >= 0 and walk.described[object_] >= first and walk.referred[object_] < first:
        joined = walk.described[object_]
    if joined >= 0:
        if joined < branch:
            state[BRANCH] = 0
        return NOTHING
    if state[KEY_END] == 0:
        return LINE_BEGINS
    shows = NOTHING
    if branch:
        shows = BRANCH_BEGINS
        state[FIRST], state[IRI_END] = branch, 0
    state[LAST] += 1
    state[BRANCH], state[BRANCH_AT] = state[LAST], line
    return shows


@routine
def _iri(walk: Walk, view: View, key: int, key_end: int, object_: int) -> int:
    """What a line about another IRI than the line before shows."""
    state = walk.state
    branch = state[BRANCH]
    described = walk.described[object_] if object_ >= 0 else 0
    refers = branch > 0 and described >= branch
    state[BRANCH] = 0
    if state[IRI_END] and _alike(view, state[IRI], state[IRI_END], key, key_end):
        if not branch or refers:
            return NOTHING
    elif refers:
        state[FIRST], state[IRI], state[IRI_END] = branch, key, key_end
        return BRANCH_BEGINS
    elif state[IRI_END] == 0 and described >= state[FIRST]:
        state[IRI], state[IRI_END] = key, key_end
        return NOTHING
    state[LAST] += 1
    state[FIRST], state[IRI], state[IRI_END] = state[LAST], key, key_end
    return LINE_BEGINS | (BRANCH_BEGINS if branch else 0)

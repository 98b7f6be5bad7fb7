"""Who wants a row is found some at a time, too: together that is who is found at once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.core.frame import Frame
from levada.operators.rows.predicate_index import Entries, Index, PredicateIndexReader, ProbeBatch
from levada.operators.rows.range_keys import NO_TEXTS, Bounds, RangeKey
from levada.plan.execution.joins import Order

ends = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted)


@given(
    st.lists(st.tuples(st.integers(0, 2), ends, st.booleans()), min_size=1, max_size=30),
    st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 10)), max_size=20),
    st.lists(st.integers(1, 12), max_size=3, unique=True).map(sorted),
)
def test_turns_are_all_that_is_found(
    wanted: list[tuple[int, list[int], bool]], rows: list[tuple[int, int]], cuts: list[int]
) -> None:
    op = np.array([one for one, _, _ in wanted], np.int32)
    low, high = (np.array([of[i] for _, of, _ in wanted], np.float64) for i in (0, 1))
    never, n = np.zeros(len(wanted), np.bool_), len(wanted)
    bounds = Bounds(low, high, never, never, np.array([told for *_, told in wanted]))
    entries = Entries(op, (), bounds, np.arange(n))
    index = Index.build(entries, by_number=True)
    frame = Frame({"op": np.array([one for one, _ in rows], np.int32)}, len(rows))
    leaves = index.leaves(frame, (), np.array([at for _, at in rows], np.float64))
    row, of = index.find_entries(leaves)
    for i, (member, at) in enumerate(rows):
        own = {j for j, (m, (a, b), told) in enumerate(wanted) if m == member}
        sure = {j for j in own if not wanted[j][2] or wanted[j][1][0] <= at <= wanted[j][1][1]}
        assert sorted(of[row == i].tolist()) == sorted(sure)
    turns = [
        index.find_entries(leaves, ProbeBatch(*pair)) for pair in pairwise((0, *cuts, 1 << 62))
    ]
    for number, (low_, high_) in enumerate(pairwise((0, *cuts, 1 << 62))):
        counts = np.bincount(row, minlength=len(rows))
        got = np.bincount(turns[number][0], minlength=len(rows))
        assert (got == np.clip(counts, low_, high_) - low_).all()
    pairs = [(a, b) for some in turns for a, b in zip(*(x.tolist() for x in some), strict=True)]
    assert sorted(pairs) == sorted(zip(row.tolist(), of.tolist(), strict=True))
    finder = PredicateIndexReader((), RangeKey(0, Order.VALUE), index, index, NO_TEXTS)
    none = np.full(len(rows), -1)
    found = finder.owners((leaves, none), ProbeBatch(0, 2))
    assert all(np.bincount(found[0], minlength=1) <= 2)

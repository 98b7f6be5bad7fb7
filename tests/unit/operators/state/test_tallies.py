"""Tallies: what has been added up per key is found again, in few pieces, and vanishes at zero."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.core.frame import Frame
from levada.operators.state import counters
from levada.operators.state.state_parts import State

MERGE = partial(counters.add, by=("#i",), sums=("#n",))


def state() -> State:
    def no_file(name: str) -> Any:
        raise AssertionError(f"{name} is not opened: all pieces are new")

    return State(None, "", no_file)


def rows(changes: Counter[tuple[int, int]]) -> Frame:
    """Changes by (key, part): keys that share their first half with another."""
    keys = list(changes)
    k = np.array([key // 2 for key, _ in keys], np.uint64)
    h = np.array([key for key, _ in keys], np.uint64)
    part, n = (
        np.array(x, np.int64) for x in ([i for _, i in keys], [changes[key] for key in keys])
    )
    return Frame({"#k": k, "#h": h, "#i": part, "#n": n}, len(keys))


CHANGES = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 2), st.sampled_from((-1, 1, 2))), max_size=8
)


@given(st.lists(CHANGES, max_size=12))
def test_each_key_stands_at_the_sum_of_its_changes(
    epochs: list[list[tuple[int, int, int]]],
) -> None:
    kept, expected = state(), Counter[tuple[int, int]]()
    for epoch in epochs:
        changes = Counter[tuple[int, int]]()
        for key, part, n in epoch:
            changes[key, part] += n
        counters.insert(kept, "t", rows(changes), MERGE)
        expected.update(changes)
    wanted = np.arange(10)
    found = counters.find(kept, "t", (wanted // 2).astype(np.uint64), wanted.astype(np.uint64))
    got = Counter[tuple[int, int]]()
    if found is not None:
        for place, part, n in zip(
            found[0].tolist(), found[1]["#i"].tolist(), found[1]["#n"].tolist(), strict=True
        ):
            got[place, part] += n
    assert {k: n for k, n in got.items() if n} == {k: n for k, n in expected.items() if n}


def test_pieces_stay_few_and_zeros_vanish() -> None:
    kept = state()
    for i in range(200):
        counters.insert(kept, "t", rows(Counter({(i, 0): 1})), MERGE)
    assert len(kept.pieces("t")) <= 8 and sum(p.rows for p in kept.pieces("t")) == 200
    counters.insert(kept, "t", rows(Counter({(i, 0): -1 for i in range(200)})), MERGE)
    assert kept.pieces("t") == []

"""Runs that are cut at theta: nothing is lost, met twice or not met, and no piece is larger than
two theta, whatever comes, expires or is hot (Parallel windowed joins, W23, W55).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.core.frame import Frame
from levada.kernels.keyed.bucket_layout import avalanche
from levada.operators.state import join_state
from levada.operators.state.checksummed_frames import unpack_checked
from levada.operators.state.join_state import range_of, row_bytes
from levada.operators.state.key_ranges import Range
from levada.operators.state.state_parts import Bounded, State

FILES: dict[str, bytes] = {}


def written(data: list[memoryview]) -> str:
    FILES[name := f"state/{len(FILES)}"] = b"".join(data)
    return name


def opened(name: str) -> tuple[Mapping[str, Frame], Any]:
    return unpack_checked(np.frombuffer(FILES[name], np.uint8), name)


def bounded(theta: int) -> State:
    return State(None, "", opened, Bounded(theta, written))


def epoch(keys: list[int], first: int, at: int, lasts: int) -> join_state.Run:
    """Rows of these keys, numbered from ``first``, that count from ``at`` for ``lasts``."""
    k = np.array([avalanche(np.uint64(key + 1)) for key in keys], np.uint64)
    s = np.full(len(keys), at, np.int64)
    rows = Frame({"id": np.arange(first, first + len(keys)), "key": np.array(keys, np.int64)})
    return join_state.build_run(
        join_state.with_run_columns(rows, (k, k ^ np.uint64(5)), s, s + lasts, k)
    )


def met(state: State, probe: join_state.Run, horizon: int) -> list[tuple[int, int]]:
    """Which rows a run meets, both by row and by bucket."""
    found = []
    for run in join_state.live_runs(state, "x", horizon):
        b = probe.buckets
        at, places = run.find_pairs(b.k, b.h, b.s, b.ends)
        ids = probe.rows["id"][probe.rows_at(at.astype(np.int32))]
        found += zip(ids.tolist(), run.rows["id"][run.rows_at(places)].tolist(), strict=True)
    return sorted(found)


sizes = st.lists(
    st.tuples(st.integers(0, 30), st.lists(st.integers(0, 40), max_size=30)), max_size=40
)


@given(sizes, st.integers(60, 2000), st.integers(1, 40), st.booleans())
def test_what_is_alive_is_met_once(
    epochs: list[tuple[int, list[int]]], lasts: int, theta: int, hot: bool
) -> None:
    state, now, number = bounded(theta * 60), 0, 0
    alive: list[tuple[int, int, int]] = []  # key, number, end
    for gap, drawn in epochs:
        now += gap
        keys = [0 if hot and key % 4 else key for key in drawn]
        alive += [(key, number + i, now + lasts) for i, key in enumerate(keys)]
        if keys:
            new = epoch(keys, number, now, lasts)
            join_state.insert(state, "x", new, max(lasts // 4, 1), horizon=now)
            number += len(keys)
        probe = epoch([0, 1, 7, 40], 0, now, 1)
        want = [(i, n) for i, key in enumerate((0, 1, 7, 40)) for k, n, end in alive
                if k == key and end > now]  # fmt: skip
        assert met(state, probe, now) == sorted(want)


def test_a_run_of_all_keys_is_probed_by_the_columns_as_they_are() -> None:
    run = epoch([3, 1, 2, 3], 0, 5, 10)
    b = epoch([3, 4, 1], 10, 6, 2).buckets
    with patch.object(Range, "contains", side_effect=AssertionError("all keys are in it")):
        at, places = run.find_pairs(b.k, b.h, b.s, b.ends)
    assert at.dtype == np.int64
    met = list(zip(b.k[at].tolist(), run.buckets.k[places].tolist(), strict=True))
    assert len(met) == 3 and all(one == other for one, other in met)


def test_pieces_are_no_larger_than_two_theta() -> None:
    """What is merged; an epoch's rows are as many as they are."""
    theta, state = 4000, bounded(4000)
    rng = np.random.default_rng(5)
    for at in range(40):
        rows = epoch(rng.integers(0, 500, 100).tolist(), at * 100, at, 10**6)
        join_state.insert(state, "x", rows, 10**6 // 4, horizon=at)
    pieces = [p for p in state.pieces("x") if p.level > 1]
    each = row_bytes(state.frame(pieces[0]))
    assert max(p.depth for p in pieces) >= 3
    assert max(p.rows for p in pieces) * each <= 2 * theta
    assert sum(p.rows for p in state.pieces("x")) == 4000
    assert state.unsaved_bytes < 8 * theta
    assert not set(state.unlisted_files()) & set(state.files())


def test_buddies_come_together_again_and_a_key_alone_is_cut_by_time() -> None:
    state = bounded(30_000)
    for at in range(33):  # one key
        join_state.insert(state, "x", epoch([3] * 100, at * 100, at, 10**6), 10**6, horizon=at)
    (merged,) = {p.run for p in state.pieces("x") if p.level == 2}
    own = [p for p in state.pieces("x") if p.run == merged]
    assert len(own) > 2
    assert len({range_of(p) for p in own}) == 1  # all of one range
    bare = State(None, "", opened)  # the bound is gone: what was cut is merged as it comes
    bare._pieces = {"x": [p for p in state.pieces("x") if p.file]}
    one = join_state._merge_to_next_level(bare, bare.pieces("x"), -1, (), alive=None)
    assert sum(p.rows for p in one) == sum(p.rows for p in bare.pieces("x"))
    assert len(one) == 1

"""Runs: nothing alive is lost or kept twice, few runs are probed, and a row is rewritten a bounded
number of times.
"""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.core.frame import Frame
from levada.kernels.keyed.hash_probe import join_pairs
from levada.operators.state import join_state
from levada.operators.state.state_parts import State


def no_file(name: str) -> object:
    raise AssertionError(f"{name} is not opened: all pieces are new")


def fresh() -> State:
    return State(None, "", no_file)  # type: ignore[arg-type]


def epoch(ids: list[int], at: int, lasts: int) -> join_state.Run:
    """Rows with these identities that count from ``at`` for ``lasts``."""
    k = np.array(ids, np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    s = np.full(len(ids), at, np.int64)
    rows = Frame({"id": np.array(ids, np.int64)})
    return join_state.build_run(
        join_state.with_run_columns(rows, (k, k ^ np.uint64(5)), s, s + lasts, k)
    )


def held(state: State, horizon: int) -> list[int]:
    return sorted(
        int(i) for run in join_state.live_runs(state, "x", horizon) for i in run.rows["id"]
    )


@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 20)), max_size=40), st.integers(50, 2000)
)
def test_all_that_is_alive_is_there_once(epochs: list[tuple[int, int]], lasts: int) -> None:
    state, now, number = fresh(), 0, 0
    alive: dict[int, int] = {}
    for gap, size in epochs:
        now += gap
        ids = list(range(number, number + size))
        number += size
        alive.update(dict.fromkeys(ids, now + lasts))
        if size:
            join_state.insert(state, "x", epoch(ids, now, lasts), max(lasts // 4, 1), horizon=now)
        there = held(state, now)
        assert len(there) == len(set(there))
        assert {i for i, end in alive.items() if end > now} <= set(there)
        assert len(state.pieces("x")) <= join_state.MOST_RUNS + join_state.MERGE


def test_dead_runs_go_whole() -> None:
    state = fresh()
    for at in range(0, 1000, 100):
        join_state.insert(state, "x", epoch([at], at, 300), 75, horizon=at)
    assert held(state, 900) == [700, 800, 900]
    assert held(state, 1200) == []


def test_the_open_run_takes_eight_epochs_and_is_sealed() -> None:
    state = fresh()
    for at in range(9):
        join_state.insert(state, "x", epoch([at], at, 10_000), 2500, horizon=at)
    assert [(p.rows, p.level) for p in state.pieces("x")] == [(8, 1), (1, 0)]


def test_four_runs_of_a_level_merge() -> None:
    state = fresh()
    for at in range(33):
        join_state.insert(state, "x", epoch([at], at, 10_000), 2500, horizon=at)
    assert [(p.rows, p.level) for p in state.pieces("x")] == [(32, 2), (1, 0)]


def test_a_large_open_run_is_not_written_anew_for_little() -> None:
    """As where a backlog has been read, and then little comes."""
    state, many = fresh(), join_state.LITTLE + 1
    join_state.insert(state, "x", epoch(list(range(many)), 0, 10_000), 2500, horizon=0)
    few = list(range(many, many + many // join_state.MERGE_ROWS_PER_NEW_ROW - 1))
    join_state.insert(state, "x", epoch(few, 1, 10_000), 2500, horizon=1)
    assert [(p.rows, p.level) for p in state.pieces("x")] == [(many, 1), (len(few), 0)]
    join_state.insert(state, "x", epoch([many + len(few)], 2, 10_000), 2500, horizon=2)
    assert [(p.rows, p.level) for p in state.pieces("x")] == [(many, 1), (len(few) + 1, 0)]
    assert held(state, 2) == list(range(many + len(few) + 1))


def test_an_open_run_is_sealed_at_the_level_of_its_size() -> None:
    """So it is not put together with three that are small."""
    state = fresh()
    with patch.object(join_state, "LITTLE", 8):
        for i, size in enumerate([1000, *[1] * 33]):
            ids = list(range(2000 * i, 2000 * i + size))
            join_state.insert(state, "x", epoch(ids, i, 10_000), 2500, horizon=i)
    assert [(p.rows, p.level) for p in state.pieces("x")] == [(1000, 4), (32, 2), (1, 0)]


def test_no_run_spans_more_than_a_quarter() -> None:
    state = fresh()
    for at in range(0, 1200, 100):
        join_state.insert(state, "x", epoch([at], at, 4000), 250, horizon=at)
    assert max(p.high - p.low for p in state.pieces("x")) <= 250


def test_a_row_is_rewritten_a_bounded_number_of_times() -> None:
    state, epochs = fresh(), 512
    for at in range(epochs):
        join_state.insert(state, "x", epoch([at], at, 10**6), 10**6 // 4, horizon=at)
    written = sum(f.n for name, f in state._new.items() if not name.endswith((".dir", ".key")))
    assert written <= epochs * 8  # 4.5 in the open run on average, then once a level


def test_a_run_is_probed_by_its_key_and_instants() -> None:
    state = fresh()
    join_state.insert(state, "x", epoch([1, 2, 3, 2], 100, 50), 1000, horizon=100)
    (run,) = join_state.live_runs(state, "x", 100)
    probe = epoch([2], 120, 50)
    i, j = join_pairs(
        probe.buckets.k, probe.buckets.h, probe.buckets.s, probe.buckets.e, run.buckets
    )
    assert (i.tolist(), run.rows["id"][run.rows_at(j)].tolist()) == ([0, 0], [2, 2])
    late = epoch([2], 150, 50)
    assert not len(
        join_pairs(late.buckets.k, late.buckets.h, late.buckets.s, late.buckets.e, run.buckets)[0]
    )


def test_rows_that_were_taken_back_do_not_pile_up() -> None:
    """A row of weight -1 has another time in its ``hi``, and takes its row along when runs are put
    together.
    """
    state = fresh()
    for at in range(1, 400):
        k = np.array([at, at - 1], np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        s = np.full(2, at, np.int64)
        columns = {
            "id": np.array([at, at - 1]),
            "lo0": np.array([at, at - 1]),
            "hi0": s,
            "w": np.array([1, -1], np.int8),
        }
        rows = Frame({"op": np.zeros(2, np.int32), **columns})
        run = join_state.build_run(
            join_state.with_run_columns(rows, (k, k ^ np.uint64(5)), s, np.full(2, 2**62), None)
        )
        join_state.insert(state, "x", run, 2**60, horizon=at, ends=("hi0",))
    left = [run.rows for run in join_state.live_runs(state, "x", 400)]
    net: dict[int, int] = {}
    for f in left:
        for i, w in zip(f["id"].tolist(), f["w"].tolist(), strict=True):
            net[i] = net.get(i, 0) + w
    assert {i for i, n in net.items() if n} == {0, 399}  # nobody said 0, so its -1 stands alone
    assert sum(f.n for f in left) < 60


def test_rows_of_members_that_are_gone_go_when_runs_are_put_together() -> None:
    state = fresh()
    for at in range(12):
        run = epoch([at, 100 + at], at, 10**6)
        both = join_state.build_run(run.rows.with_(op=(run.rows["id"] >= 100).astype(np.int32)))
        join_state.insert(state, "x", both, 10**6, horizon=at, alive=np.array([True, at < 4]))
    assert held(state, 12) == list(range(12))


@given(
    st.lists(
        st.tuples(st.integers(-1, 3), st.lists(st.integers(0, 6), min_size=1, max_size=8)),
        min_size=2,
        max_size=12,
    )
)
def test_what_is_appended_is_found_by_key_and_instants(epochs: list[tuple[int, list[int]]]) -> None:
    """Keys come again, some epochs come late: whichever way the open run grows, a probe finds the
    rows that count with it.
    """
    state, now, lasts, rows = fresh(), 100, 40, []
    for gap, keys in epochs:
        now += gap
        join_state.insert(state, "x", epoch(keys, now, lasts), 10**6, horizon=0)
        rows += [(key, now) for key in keys]
    for key in range(7):
        for at in (90, now - 20, now, now + 39):
            probe = epoch([key], at, 1).rows
            found = []
            for run in join_state.live_runs(state, "x", 0):
                _, places = join_pairs(
                    probe["#k"], probe["#h"], probe["#s"], probe["#e"], run.buckets
                )
                assert run.rows["id"][run.rows_at(places)].tolist() == [key] * len(places)
                found += run.buckets.s[places].tolist()
            assert sorted(found) == sorted(
                t for other, t in rows if other == key and t <= at < t + lasts
            )


def test_later_rows_go_behind_those_of_the_open_run() -> None:
    state, behind = fresh(), epoch([3, 1], 110, 40)
    join_state.insert(state, "x", epoch([1, 2, 1], 100, 40), 10**6, horizon=0)
    (piece,) = state.pieces("x")
    longer = join_state._append(state, piece, behind, 0)
    assert longer is not None and longer.rows["id"].tolist() == [1, 2, 1, 3, 1]
    assert longer.rows["id"][longer.order].tolist() == [
        int(k * pow(0x9E3779B97F4A7C15, -1, 2**64) % 2**64) for k in longer.buckets.k.tolist()
    ]
    assert join_state._append(state, piece, epoch([3], 99, 40), 0) is None, "it is earlier"
    assert join_state._append(state, piece, epoch([3], 110, 41), 0) is None, "it counts longer"
    assert join_state._append(state, piece, behind, 145) is None, "some rows are dead"

"""What new rows meet of runs that others have written: the same as of the runs as they are, from a
few of their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core import column_names as col
from levada.core.frame import Frame
from levada.kernels.keyed.bucket_layout import avalanche
from levada.operators.state import checksummed_frames, join_state
from levada.operators.state.checksummed_frames import CheckedFrames, unpack_checked
from levada.operators.state.join_state import LookupKeys, Run, open_, restrict_run
from levada.operators.state.key_group_sets import decode, encode
from levada.operators.state.state_parts import Bounded, Head, State

GROUPS = 64
FILES: dict[str, bytes] = {}


def opened(name: str) -> tuple[CheckedFrames, object]:
    return unpack_checked(np.frombuffer(FILES[name], np.uint8), name)


def written(data: list[memoryview]) -> str:
    FILES[name := f"state/{len(FILES)}"] = b"".join(data)
    return name


def rows_of(keys: list[int], at: int, *, even: bool) -> Run:
    """Rows of these keys, whose group follows from the key; ``even``: they count equally long."""
    k = np.array([avalanche(np.uint64(key + 1)) for key in keys], np.uint64)
    s = at + np.arange(len(keys), dtype=np.int64)
    e = s + (50 if even else 1 + np.arange(len(keys)) % 50)
    group = (np.array(keys) * 7 % GROUPS).astype(np.uint16)
    rows = Frame({"op": np.zeros(len(keys), np.int32), col.PLACE: group, "id": s * 3})
    return join_state.build_run(
        join_state.with_run_columns(rows, (k, k ^ np.uint64(5)), s, e, k + np.uint64(1))
    )


def taken(theta: int, epochs: list[Run], groups: set[int], *, apart: bool = False) -> State:
    """State that others have written, of which these groups have come here; ``apart``: a run an
    epoch.
    """
    state = State(None, "", opened, Bounded(theta, written) if theta else None)
    for run in () if apart else epochs:
        join_state.insert(state, "x", run, 40, horizon=-1)
    if apart:
        state.replace("apart", [p for run in epochs for p in join_state.put_run(state, run, 1)])
    name = written(state.finish())
    mask = np.isin(np.arange(GROUPS), list(groups))
    here = [
        msgspec.structs.replace(p, file=p.file or name, kept=1)
        for key in ("x", "apart")
        for p in state.pieces(key)
    ]
    return State(Head({"x": here}, 1, [encode(mask)]), "", opened)


def test_run_is_assembled_once_while_its_file_is_open() -> None:
    state = State(None, "", opened)
    join_state.insert(state, "x", rows_of([1, 2, 3], 0, even=True), 40, horizon=-1)
    name = written(state.finish())
    files = {name: opened(name)}
    head = msgspec.convert(files[name][1], Head)
    epochs = [State(head, name, files.__getitem__) for _ in range(2)]
    (piece,) = epochs[0].pieces("x")
    run = open_(epochs[0], piece)
    assert open_(epochs[1], piece) is run and run.groups is None
    restricted = msgspec.structs.replace(piece, kept=1)
    moved = Head({"x": [restricted]}, 1, [encode(np.ones(GROUPS, bool))])
    assert open_(State(moved, "", files.__getitem__), restricted).groups is not None


def pairs(run: Run | None, probe: Run, groups: np.ndarray) -> Iterator[tuple[int, int, int, int]]:
    """What new rows of these groups meet of a run: its rows, by all that is known of them."""
    if run is not None:
        b = probe.buckets
        own = np.flatnonzero(groups[probe.rows[col.PLACE][probe.order]])
        at, places = run.find_pairs(b.k[own], b.h[own], b.s[own], b.ends[own])
        new, rows = run.keep_counting_pairs(own[at].astype(np.intp), run.rows_at(places))
        assert run.whole is not None
        whole = {int(r): int(w) for r, w in zip(run.order, run.whole, strict=True)}
        ids, of = run.rows["id"], run.rows[col.PLACE]
        yield from ((int(n), int(ids[r]), int(of[r]), whole[int(r)])
                    for n, r in zip(new, rows, strict=True))  # fmt: skip


@pytest.mark.parametrize("small", [False, True])
@given(
    st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=40), min_size=1, max_size=12),
    st.lists(st.integers(0, 70), min_size=1, max_size=20),
    st.sets(st.integers(0, GROUPS - 1)),
    st.sampled_from((0, 300, 3000)),
    st.booleans(),
)
def test_as_of_the_run_as_it_is(
    small: bool, epochs: list[list[int]], asked: list[int], groups: set[int], theta: int, even: bool
) -> None:
    now = 40 * len(epochs)
    with (
        patch.object(join_state, "MAX_WHOLE_RUN_ROWS", 0),
        patch.object(join_state, "MAX_ROWS_PER_KEY", 0),
        patch.object(join_state, "MOSTLY", 2.0),
        patch.object(checksummed_frames, "MIN_BLOCKWISE_BYTES", 64 if small else 1 << 17),
        patch.object(checksummed_frames, "BLOCK", 6 if small else 13),
    ):  # fmt: skip
        came = [rows_of(keys, 40 * i, even=even) for i, keys in enumerate(epochs)]
        state = taken(theta, came, groups)
        probe = rows_of(asked, now - 20, even=even)
        mask = np.isin(np.arange(GROUPS), list(groups))
        new = LookupKeys([(probe.rows[col.KEY], probe.rows)])
        for piece in state.pieces("x"):
            want = sorted(pairs(open_(state, piece), probe, mask))
            assert sorted(pairs(restrict_run(state, piece, new), probe, mask)) == want


def test_a_run_of_which_nothing_is_asked_for_is_not_looked_at() -> None:
    state = taken(0, [rows_of(list(range(60)), 0, even=True)], {7, 14})
    probe = rows_of([3, 4, 5], 10, even=True)
    new = LookupKeys([(probe.rows[col.KEY], probe.rows)])
    (piece,) = state.pieces("x")
    with patch.object(State, "frames", side_effect=AssertionError("it is opened")):
        assert restrict_run(state, piece, new) is None
    assert restrict_run(state, piece, None) is not None


def test_where_nothing_has_come_nothing_is_looked_up() -> None:
    assert len(LookupKeys([]).distinct_keys(1, np.ones(4, np.bool_))) == 0


def test_of_a_large_run_a_few_blocks_are_read() -> None:
    state = taken(0, [rows_of(list(range(100_000)), 0, even=True)], {0, 7})
    probe = rows_of([64, 128, 65], 10, even=True)
    (piece,) = state.pieces("x")
    seen = list[int]()
    check = checksummed_frames._Blocks._check

    def counted(blocks: checksummed_frames._Blocks, at: np.ndarray) -> None:
        check(blocks, at)
        seen.append(len(np.unique(at >> checksummed_frames.BLOCK)))

    with patch.object(checksummed_frames._Blocks, "_check", counted):
        run = restrict_run(state, piece, LookupKeys([(probe.rows[col.KEY], probe.rows)]))
    assert run is not None
    assert sorted(run.rows["id"].tolist()) == [3 * 64, 3 * 65, 3 * 128]
    assert sum(seen) << checksummed_frames.BLOCK < 0.2 * len(FILES[piece.file])


def test_a_run_that_is_mostly_here_is_opened_in_whole() -> None:
    """Of half of the groups half is read anyway, and soon."""
    groups = set(range(0, GROUPS, 2))
    state = taken(0, [rows_of(list(range(10_000)), 0, even=True)], groups)
    probe = rows_of([2, 4], 10, even=True)
    (piece,) = state.pieces("x")
    new = LookupKeys([(probe.rows[col.KEY], probe.rows)])
    run = restrict_run(state, piece, new)
    assert run is not None and run.rows.n == 10_000
    assert len(list(pairs(run, probe, np.isin(np.arange(GROUPS), list(groups))))) == 2


def test_what_is_put_together_is_known_to_be_of_whom_its_parts_are() -> None:
    """Of two owners who came together: so it comes apart without a look when their groups do."""
    state = taken(0, [rows_of(list(range(20)), 100 * i, even=True) for i in range(8)],
                  {0, 7}, apart=True)  # fmt: skip
    head = Head(dict(state._pieces), 1, [*state._sets, encode(np.arange(GROUPS) == 14)])
    for places, known in (((1, 1, 1, 1), {0, 7}), ((1, 2, 1, 2), {0, 7, 14}), ((1, 0, 1, 1), None)):
        state = State(head, "", opened)
        pieces = [msgspec.structs.replace(p, kept=0, within=at, level=1)
                  for p, at in zip(state.pieces("x"), places, strict=False)]  # fmt: skip
        state.replace("x", pieces)
        join_state.insert(state, "x", rows_of([5], 900, even=True), 10_000, horizon=-1)
        one, new = state.pieces("x")
        assert (one.rows, one.kept, new.kept, new.within) == (80, 0, 0, 0)
        found = None if not one.within else decode(state._sets[one.within - 1])
        assert (None if found is None else {*np.flatnonzero(found)}) == known


def test_large_runs_of_others_wait() -> None:
    """Runs that are large beside what is new are not put together until there are twice too many:
    who does so reads all of them. Small ones wait for the epoch behind that in which they came.
    """
    theirs = [rows_of(list(range(200)), 1000 * i, even=True) for i in range(20)]
    state = taken(0, theirs, set(range(GROUPS)), apart=True)
    many = len(state.pieces("x"))
    assert join_state.MOST_RUNS < many <= 2 * join_state.MOST_RUNS
    join_state.insert(state, "x", rows_of([1, 2], 30_000, even=True), 40, horizon=-1)
    assert len(state.pieces("x")) == many + 1
    join_state.insert(state, "x", rows_of(list(range(60)), 60_000, even=True), 40, horizon=-1)
    assert len(state.pieces("x")) == many + 2, "they have just come"
    state.file = written(state.finish())
    join_state.insert(state, "x", rows_of(list(range(60)), 90_000, even=True), 40, horizon=-1)
    assert len(state.pieces("x")) <= many, "now they are small beside it"


def test_inputs_put_together_one_after_the_other() -> None:
    """What has come to several inputs is no more in one epoch than an input may put together."""
    theirs = [rows_of(list(range(100)), 1000 * i, even=True) for i in range(13)]
    state = taken(0, theirs, set(range(GROUPS)), apart=True)
    state.replace("y", state.pieces("x"))
    state.file, new = "it was here before", rows_of(list(range(30)), 50_000, even=True)
    with patch.object(join_state, "LITTLE", 0):
        for key in "xy":
            join_state.insert(state, key, new, 40, horizon=-1)
    assert [len(state.pieces(key)) for key in "xy"] == [11, 14]
    state = State(Head(state._pieces, 100, state._sets), written(state.finish()), opened)
    join_state.insert(state, "y", rows_of(list(range(30)), 90_000, even=True), 40, horizon=-1)
    assert len(state.pieces("y")) == 12, "it is its turn"

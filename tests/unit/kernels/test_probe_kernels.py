"""Joins of a batch with a run, and earlier occurrences, against their twins."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.core.event_time import MAX, MIN
from levada.kernels.keyed import hash_probe, previous_occurrence
from levada.kernels.keyed import numpy_twins as twins

Row = tuple[int, int, int, int]
TIME = st.integers(-20, 20) | st.sampled_from([MIN, MAX])
KEY = st.sampled_from([0, 1, 1 << 63, (1 << 63) + 1])  # equal and different top bits
ROWS = st.lists(st.tuples(KEY, st.integers(0, 1), TIME, TIME), max_size=80)
CROWDED = st.lists(
    st.tuples(st.just(7), st.integers(0, 1), st.integers(0, 300), st.integers(0, 300)),
    min_size=20,
    max_size=120,
)


def columns(rows: Sequence[Row]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    k, h, s, e = ([row[c] for row in rows] for c in range(4))
    return (
        np.array(k, np.uint64),
        np.array(h, np.uint64),
        np.array(s, np.int64),
        np.array(e, np.int64),
    )


def pairs(found: tuple[np.ndarray, np.ndarray]) -> list[tuple[int, int]]:
    return sorted(zip(found[0].tolist(), found[1].tolist(), strict=True))


def by_definition(batch: Sequence[Row], run: Sequence[Row]) -> list[tuple[int, int]]:
    return [
        (i, j)
        for i, (pk, ph, ps, pe) in enumerate(batch)
        for j, (rk, rh, rs, re) in enumerate(run)
        if (pk, ph) == (rk, rh) and max(ps, rs) < min(pe, re)
    ]


@settings(deadline=None)
@given(batch=ROWS | CROWDED, stored=ROWS | CROWDED)
def test_join_pairs_is_the_definition_and_equals_its_twin(
    batch: list[Row], stored: list[Row]
) -> None:
    order, run = hash_probe.arrange(*columns(stored))
    i, j = hash_probe.join_pairs(*columns(batch), run)
    assert i.dtype == j.dtype == np.int32
    assert sorted(zip(i.tolist(), order[j].tolist(), strict=True)) == by_definition(batch, stored)
    assert pairs((i, j)) == pairs(twins.join_pairs_twin(*columns(batch), run))
    assert (np.diff(i) >= 0).all()


@settings(deadline=None)
@given(batch=ROWS | CROWDED, stored=CROWDED, length=st.integers(1, 9))
def test_intervals_of_one_length_need_no_ends(
    batch: list[Row], stored: list[Row], length: int
) -> None:
    alike = [(k, h, max(s, -(10**9)), max(s, -(10**9)) + length) for k, h, s, _ in stored]
    order, run = hash_probe.arrange(*columns(alike))
    assert len(run.e) == 0 and run.ends.tolist() == [alike[i][3] for i in order]
    i, j = hash_probe.join_pairs(*columns(batch), run)
    assert sorted(zip(i.tolist(), order[j].tolist(), strict=True)) == by_definition(batch, alike)
    assert pairs((i, j)) == pairs(twins.join_pairs_twin(*columns(batch), run))


@settings(deadline=None)
@given(stored=ROWS | CROWDED)
def test_arrange_gives_buckets_in_order_of_start_and_a_bound_on_lengths(stored: list[Row]) -> None:
    order, run = hash_probe.arrange(*columns(stored))
    assert sorted(order.tolist()) == list(range(len(stored)))
    assert columns([stored[i] for i in order])[0].tolist() == run.k.tolist()
    for b in range(1 << run.bits):
        rows = slice(run.directory[b], run.directory[b + 1])
        assert run.s[rows].tolist() == sorted(run.s[rows].tolist())
        assert {int(k) >> (64 - run.bits) for k in run.k[rows]} <= {b}
    lengths = [e - s for _, _, s, e in stored if s < e]
    assert run.longest >= min(max(lengths, default=0), MAX)


def test_equal_times_and_ties_at_the_bounds() -> None:
    _, run = hash_probe.arrange(*columns([(1, 1, 10, 20)]))
    batch = [
        (1, 1, 20, 30),
        (1, 1, 19, 30),
        (1, 1, 0, 10),
        (1, 1, 0, 11),
        (1, 1, 15, 15),
        (1, 2, 12, 13),
    ]
    assert pairs(hash_probe.join_pairs(*columns(batch), run)) == [(1, 0), (3, 0)]


def test_output_grows_for_a_crowded_key_and_resumes() -> None:
    many = 3000
    stored = [(5, 5, t, t + many) for t in range(many)]
    order, run = hash_probe.arrange(*columns(stored))
    i, j = hash_probe.join_pairs(*columns([(5, 5, t, t + 1) for t in range(0, many, 100)]), run)
    expected = [(q, j) for q, t in enumerate(range(0, many, 100)) for j in range(t + 1)]
    assert sorted(zip(i.tolist(), order[j].tolist(), strict=True)) == expected


def test_pairs_come_some_at_a_time() -> None:
    """However dense they are, not many more are held at once than were asked for."""
    many = 3000
    _, run = hash_probe.arrange(*columns([(5, 5, 0, 9)] * many))
    k, h, s, e = columns([(5, 5, 0, 9)] * many)
    found, at = [], 0
    while at < many:
        i, j, done = hash_probe.pairs_of_some(k[at:], h[at:], s[at:], e[at:], run, 10_000)
        assert len(i) == done * many <= 4 * 10_000
        assert done > 0 and i[-1] == done - 1
        found.append(len(j))
        at += done
    assert sum(found) == many * many and len(found) > 100


def test_the_kernel_stops_before_a_probe_row_that_might_not_fit() -> None:
    _, run = hash_probe.arrange(*columns([(1, 1, 0, 9)] * 3))
    batch = columns([(1, 1, 0, 9)] * 3)
    i, j = np.empty(7, np.int32), np.empty(7, np.int32)
    k, h, s, e, directory, bits, longest = run
    probed = partial(hash_probe.probe, *batch, k, h, s, e, directory, bits, longest)
    assert probed(0, i, j) == (2, 6)
    assert probed(2, i, j) == (3, 3)
    assert i[:3].tolist() == [2, 2, 2] and j[:3].tolist() == [0, 1, 2]
    assert probed(0, i[:2], j[:2]) == (0, 0)


@pytest.mark.parametrize(
    ("batch", "stored"), [([], [(1, 1, 0, 9)]), ([(1, 1, 0, 9)], []), ([], [])]
)
def test_empty_sides_join_to_nothing(batch: list[Row], stored: list[Row]) -> None:
    _, run = hash_probe.arrange(*columns(stored))
    assert pairs(hash_probe.join_pairs(*columns(batch), run)) == []


def test_many_rows_equal_the_twin() -> None:
    r = np.random.default_rng(3)
    keys = r.integers(0, 2**64, 700, dtype=np.uint64)

    def side(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        k = keys[np.minimum(r.integers(0, 1000, n), 699)]  # one key with a third of the rows
        s = np.sort(r.integers(0, 100_000, n))
        return k, k ^ np.uint64(3), s, s + r.integers(0, 3000, n)

    _, run = hash_probe.arrange(*side(4000))
    batch = side(3000)
    assert pairs(hash_probe.join_pairs(*batch, run)) == pairs(twins.join_pairs_twin(*batch, run))


@settings(deadline=None)
@given(batch=ROWS | CROWDED, stored=ROWS | CROWDED)
def test_latest_is_the_definition_and_equals_its_twin(batch: list[Row], stored: list[Row]) -> None:
    k, h, ts, _ = columns(batch)
    _, run = hash_probe.arrange(*columns(stored))
    found = previous_occurrence.latest_before(k, h, ts, run)
    expected = [
        max([t for a, b, t, _ in stored if (a, b) == (pk, ph) and t < at], default=MIN)
        for pk, ph, at, _ in batch
    ]
    assert found.tolist() == expected
    assert twins.latest_twin(k, h, ts, run).tolist() == expected


@settings(deadline=None)
@given(batch=ROWS | CROWDED, in_time=st.booleans())
def test_previous_within_is_the_definition_and_equals_its_twin(
    batch: list[Row], in_time: bool
) -> None:
    batch = sorted(batch, key=lambda row: row[2]) if in_time else batch
    k, h, ts, _ = columns(batch)
    previous, duplicate = previous_occurrence.previous_within(k, h, ts)
    for i, (a, b, at, _) in enumerate(batch):
        times = [t for c, d, t, _ in batch if (c, d) == (a, b)]
        assert previous[i] == max([t for t in times if t < at], default=MIN)
        assert duplicate[i] == any(row[:3] == (a, b, at) for row in batch[:i])
    previous_twin, duplicate_twin = twins.previous_within_twin(k, h, ts)
    assert previous.tolist() == previous_twin.tolist()
    assert duplicate.tolist() == duplicate_twin.tolist()

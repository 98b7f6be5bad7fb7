"""How many partitions there are follows the load, and does not swing."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.plan.execution.key_group_table import deal_round_robin
from levada.plan.execution.key_group_table import table_of_partitions as table_of
from levada.runtime.rebalancing.partition_scaling import spread
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions
from support.rebalancing_world import World

GROUPS = 1024


def world(parts: int, busy: float, **more: object) -> World:
    """Partitions that are busy so many seconds of each second together, under even groups."""
    rows = np.full(GROUPS, 20.0)
    weight = np.full(GROUPS, busy / GROUPS)
    return World(weight, rows, deal_round_robin(GROUPS, parts), most=8, least=1.0, **more)  # type: ignore[arg-type]


def degrees(of: World, times: int) -> list[int]:
    found = []
    for _ in range(times):
        of.reorganize()
        found.append(of.table.partitions)
    return found


def test_a_tenth_of_the_load_has_fewer_partitions_and_does_not_swing() -> None:
    now = world(8, 3.5)
    assert degrees(now, 5) == [8, 8, 7, 7, 7], "3.5 s of work go into half of 7 seconds"
    now.weight /= 10
    found = degrees(now, 30)
    assert found[2:] == [1] * 28


def test_rising_load_has_more_within_two_reorganizations() -> None:
    now = world(1, 0.35)
    assert set(degrees(now, 5)) == {1}
    now.weight *= 10
    assert degrees(now, 2)[-1] == 8
    # as many as do the work in half of the time, and no fewer
    assert set(degrees(now, 30)[5:]) == {7}


def test_a_load_at_the_edge_does_not_swing() -> None:
    for busy in (1.99, 2.0, 2.01):
        found = degrees(world(8, busy, noise=0.2), 34)
        assert sum(a != b for a, b in pairwise(found[3:])) <= 1, found


def test_there_are_no_fewer_than_the_least_and_no_more_than_the_most() -> None:
    assert degrees(world(8, 0.01, options=BalanceOptions(least_partitions=3)), 5)[-1] == 3
    over = world(8, 100.0)
    assert set(degrees(over, 5)) == {8}
    assert over.found[-1].report.is_overloaded
    assert not world(8, 1.0).found


def test_a_fixed_number_stays() -> None:
    idle, busy = world(4, 0.01), world(4, 100.0)
    idle.most = busy.most = 0
    assert set(degrees(idle, 6)) == set(degrees(busy, 6)) == {4}


def test_under_a_backlog_all_partitions_are_used_where_stages_are_what_takes_time() -> None:
    now = world(1, 0.4)
    now.least = 0.0
    assert degrees(now, 4) == [2, 4, 8, 8]
    waits = world(1, 0.4, driver=1.0)  # what is not divided takes longer
    waits.least = 0.0
    assert set(degrees(waits, 4)) == {1}


@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(0, 9),
    st.sampled_from((1.0, 0.0)),
)
def test_spreading_keeps_what_can_stay(before: int, after: int, seed: int, even: float) -> None:
    rng = np.random.default_rng(seed)
    weights = even + rng.exponential(1.0, 4096)
    table = deal_round_robin(4096, before)
    out = spread(table, weights, after)
    assert out.min() >= 0 and out.max() < after
    stays = out == table.partition
    assert not (~stays & (out < before) & (table.partition < after)).any(), (
        "groups go only to new partitions, or from those that leave"
    )
    own = np.bincount(out, weights, minlength=after)
    assert own.max() <= 1.3 * own.mean()
    assert table_of(out, after).partition.tolist() == out.tolist()


def test_a_heavy_group_goes_to_the_idlest_of_those_that_stay() -> None:
    weights = np.ones(8)
    weights[[0, 3, 7]] = [9.0, 4.0, 5.0]  # 0: 10 s, 1: 2 s, 2: 2 s, 3: 9 s
    out = spread(deal_round_robin(8, 4), weights, 3)
    assert out.tolist() == [0, 1, 2, 2, 0, 1, 2, 1]
    assert np.bincount(out, weights).tolist() == pytest.approx([10.0, 7.0, 6.0])

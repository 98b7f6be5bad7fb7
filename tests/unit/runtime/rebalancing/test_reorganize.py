"""Reorganizations in worlds of known loads: suppliers are relieved, nothing swings, a heavy key is
not passed around, and each decision tells what it is for and what came of it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from levada.checkpoint.manifest import MOST_DECIDED, RebalanceReport, with_history
from levada.core.array_types import Doubles
from levada.core.key_groups import group_of
from levada.plan.execution.key_group_table import GroupTable, deal_round_robin, table_of_partitions
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions, Choice
from support.rebalancing_world import World

GROUPS = 1 << 16
FEW = 4096


@cache
def b_model(bias: float = 0.8, bits: int = 14) -> Doubles:
    """The rows of each group in an epoch of 100,000, by keys of a b-model: each half of the keys
    has ``bias`` of what their whole has, or the rest, and so on.
    """
    keys = np.ones(1)
    for _ in range(bits):
        keys = np.concatenate([keys * bias, keys * (1 - bias)])
    rows = np.zeros(GROUPS)
    np.add.at(rows, [group_of(key) for key in range(len(keys))], 1e5 * keys)
    return rows


def lopsided(groups: int, parts: int, share: float = 0.5) -> GroupTable:
    """A table that has this share of the groups in the first partition."""
    rng = np.random.default_rng(3)
    out = rng.integers(1, parts, groups)
    return table_of_partitions(np.where(rng.random(groups) < share, 0, out).astype(np.int32), parts)


def even(table: GroupTable, **more: Any) -> World:
    return World(np.full(FEW, 1e-3), np.full(FEW, 20.0), table, **more)


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.1, 0.2])
def test_even_load_does_not_swing(noise: float) -> None:
    for seed in range(5):
        world = even(deal_round_robin(FEW, 4), noise=noise, seed=seed)
        world.reorganize(30)
        assert sum(world.moves) <= (4 if noise > 0.1 else 0)
        assert world.ratio <= 1.1


@pytest.mark.parametrize("choice", list(Choice))
@pytest.mark.parametrize("parts", [2, 4, 8])
def test_suppliers_are_relieved_and_then_it_is_quiet(parts: int, choice: str) -> None:
    options = BalanceOptions(choice=choice)
    world = even(lopsided(FEW, parts), options=options)
    before = world.ratio
    world.reorganize(6)
    assert before > 0.4 * parts and world.ratio <= 1.25
    world.reorganize(30)
    assert world.ratio <= 1.15
    assert sum(world.moves[10:]) <= 2
    assert max(world.moves) <= parts // 2


@pytest.mark.parametrize(
    "table", [deal_round_robin(GROUPS, 4), lopsided(GROUPS, 4)], ids=["dealt", "half"]
)
@pytest.mark.parametrize("steep", [0.0, 1e-4])
def test_keys_of_a_b_model(table: GroupTable, steep: float) -> None:
    """Also where a group costs by the square of its rows, which the choice does not know of."""
    rows = b_model()
    weight = 1e-6 * rows + steep * 1e-6 * rows**2
    world = World(weight, rows, table)
    world.reorganize(5)
    assert world.ratio <= 1.25


def test_a_slow_machine_is_relieved() -> None:
    """A busy process beside one executor to which tasks are bound: groups leave it."""
    options = BalanceOptions(measure="time")
    world = even(deal_round_robin(FEW, 4), speed=np.array([0.5, 1.0, 1.0, 1.0]), options=options)
    world.reorganize(3)
    assert world.ratio <= 1.25
    groups = np.bincount(world.table.partition)
    assert groups[0] < 0.75 * groups[1:].mean()
    world.speed = None  # and come back
    world.reorganize(5)
    assert world.ratio <= 1.25


@pytest.mark.parametrize("choice", list(Choice))
def test_a_key_that_is_a_group_by_itself_is_not_passed_around(choice: str) -> None:
    weight = np.full(FEW, 1e-3)
    weight[8] = 0.8 * FEW * 1e-3
    world = World(weight, weight * 2e4, deal_round_robin(FEW, 4), BalanceOptions(choice=choice))
    for _ in range(30):
        world.reorganize()
        assert world.table.partition[8] == 0
    share = weight[8] / world.true()[0]
    assert share > 0.95, "the others have left it"
    assert sum(world.moves[10:]) <= 2
    told = world.found[-1].report
    assert told.imbalance_reason.startswith(
        "Partition 0 would give groups, and no set of them makes it even"
    )
    assert told.imbalance_reason.endswith("% of its work, and a group stays whole.")


def with_heavy_key(parts: int, share: float, partners: float, **more: Any) -> World:
    """A group that has this share of all time; each row of it that a join is given has partners."""
    weight = np.full(FEW, 1e-3)
    weight[8] = share / (1 - share) * FEW * 1e-3
    rows = weight * 2e4
    return World(weight, rows, deal_round_robin(FEW, parts), joined=rows / (1 + partners), **more)


def decided(world: World) -> list[tuple[str, int]]:
    every = [d for f in world.found for d in f.report.decisions]
    return [(d.action, d.supplier) for d in every if d.action in ("divide", "unite")]


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.2])
@pytest.mark.parametrize(
    ("parts", "share", "sharing"), [(2, 0.6, 2), (4, 0.3, 2), (4, 0.8, 4), (8, 0.3, 3)]
)
def test_a_heavy_key_is_divided_once(parts: int, share: float, sharing: int, noise: float) -> None:
    world = with_heavy_key(parts, share, 49.0, noise=noise)
    before = world.ratio
    world.reorganize(30)
    assert decided(world) == [("divide", 0)]
    assert before > 1.15 and world.ratio <= 1.25
    (heavy,) = world.table.division.heavy
    assert heavy.group == 8 and heavy.parts[0] == 0
    assert len(heavy.parts) == sharing


def test_where_pairs_are_few_it_is_divided_among_few() -> None:
    """Each that shares the key gets all of its rows: so the others have what these leave."""
    world = with_heavy_key(4, 0.4, 4.0, noise=0.0)
    undivided = float(world.weight[8])
    world.reorganize(6)
    assert decided(world) == [("divide", 0)]
    (heavy,) = world.table.division.heavy
    assert len(heavy.parts) == 2
    assert world.ratio <= 1.25 and world.true().max() <= 0.9 * undivided


def test_a_key_that_finds_more_and_more_is_divided_among_more() -> None:
    world = with_heavy_key(4, 0.4, 4.0, noise=0.0)
    world.reorganize(6)
    assert world.joined is not None
    world.rows[8], world.weight[8] = 20 * world.rows[8], 20 * world.weight[8]
    world.reorganize(12)
    assert decided(world) == [("divide", 0), ("divide", 0)]
    (heavy,) = world.table.division.heavy
    assert len(heavy.parts) == 4 and world.ratio <= 1.1


def test_heavy_keys_of_one_partition_are_divided_those_of_several_are_not() -> None:
    """Where each has one that is as much as the mean, no other way does better."""
    for groups, divided in (((8, 12), 2), ((8, 9, 10, 11), 0)):
        weight = np.full(FEW, 1e-3)
        weight[list(groups)] = 0.8 / len(groups) * 5 * FEW * 1e-3
        rows = weight * 2e4
        world = World(weight, rows, deal_round_robin(FEW, 4), joined=rows / 50, noise=0.0)
        world.reorganize(10)
        assert len(world.table.division.heavy) == divided
        assert world.ratio <= 1.25


def test_a_key_that_cools_down_is_whole_again() -> None:
    world = with_heavy_key(4, 0.5, 29.0)
    world.reorganize(8)
    assert world.table.division.heavy
    weight, rows = world.weight[8], world.rows[8]
    world.weight[8], world.rows[8] = weight / 100, rows / 100
    world.joined = world.rows / 30
    world.reorganize(12)
    assert decided(world) == [("divide", 0), ("unite", 0)]
    assert not world.table.division.heavy and world.ratio <= 1.25


@pytest.mark.parametrize(("share", "partners"), [(0.5, 0.0), (0.5, 1.0), (0.1, 29.0)])
def test_what_gains_nothing_is_not_divided(share: float, partners: float) -> None:
    """Rows that meet nobody, or a key that is little of the work."""
    world = with_heavy_key(4, share, partners)
    world.reorganize(20)
    assert decided(world) == []


def test_it_is_a_function_of_its_arguments() -> None:
    first, second = (even(lopsided(FEW, 4), options=BalanceOptions(choice="random")) for _ in "ab")
    for world in (first, second):
        world.reorganize(4)
    assert first.found[-1].report == second.found[-1].report
    assert (first.table.partition == second.table.partition).all()


def test_a_decision_tells_why_and_what_came_of_it() -> None:
    world = even(lopsided(FEW, 4), noise=0.01)
    world.reorganize(2)
    told = with_history(world.found[0].report, world.found[1].report)
    first = told.decisions[0]
    assert (first.action, first.supplier, first.epoch, first.partitions) == ("move", 0, 11, 4)
    assert first.groups == pytest.approx(FEW / 6, rel=0.25), "the heaviest as they were counted"
    assert first.ratio_before == pytest.approx(2.0, rel=0.1)
    assert first.measured_ratio == pytest.approx(first.expected_ratio, rel=0.1)
    assert first.measured_ratio == told.ratio
    assert first.reason == (
        f"partition 0 is a supplier, 0.98 full, and {first.consumer} a consumer, 0.00 full; "
        "34% of its work goes"
    )
    assert [p.kind for p in world.found[0].report.loads] == ["supplier", *["consumer"] * 3]


def test_what_is_told_is_bounded() -> None:
    told: RebalanceReport | None = None
    for _ in range(20):
        world = even(lopsided(FEW, 40, 0.7), noise=0.0)
        world.options = BalanceOptions(reorganize_every=1, consumer_threshold=0.4)
        world.reorganize(3)
        for found in world.found:
            told = with_history(told, found.report)
    assert told is not None
    assert len(told.decisions) == MOST_DECIDED and len(told.loads) == 16


def test_nobody_takes() -> None:
    world = even(lopsided(FEW, 4), options=BalanceOptions(consumer_threshold=0.0))
    world.reorganize(2)
    assert not any(world.moves)
    assert world.found[-1].report.imbalance_reason == (
        "Partition 0 would give groups, and none is idle enough to take any."
    )
    assert world.found[-1].report.is_overloaded

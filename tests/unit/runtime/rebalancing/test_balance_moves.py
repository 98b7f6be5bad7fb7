"""A supplier gives once, to one consumer, what brings both nearer."""

from __future__ import annotations

import numpy as np
import pytest

from levada.core.array_types import Doubles
from levada.plan.execution.key_group_table import GroupTable, table_of_partitions
from levada.runtime.rebalancing.partition_load import Kind, Measured
from levada.runtime.rebalancing.rebalance_round import GAIN, Move, moves, seconds_after, weights_of
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions

GIVES, NEUTRAL, TAKES = Kind.SUPPLIER, Kind.NEUTRAL, Kind.CONSUMER
OPTIONS = BalanceOptions()


def measured(seconds: list[float], groups: Doubles, epoch: int = 7) -> Measured:
    each = np.array(seconds)
    idle = np.zeros(len(each))
    return Measured(epoch, each, each, each, each, idle, groups, 1.0, 1.0, hurried=True)


def table_of(parts: int, groups: int = 40) -> GroupTable:
    return table_of_partitions((np.arange(groups) % parts).astype(np.int32), parts)


def found(seconds: list[float], kinds: list[Kind], groups: Doubles | None = None) -> list[Move]:
    table = table_of(len(seconds))
    now = measured(seconds, np.ones(table.groups) if groups is None else groups)
    return moves(now, kinds, weights_of(now, table), table, OPTIONS)


def test_a_group_weighs_its_part_of_its_partitions_time() -> None:
    groups = np.array([1.0, 0.0, 3.0, 0.0])
    weights = weights_of(measured([8.0, 5.0], groups), table_of(2, 4))
    assert weights.tolist() == [2.0, 0.0, 6.0, 0.0], "5 s of no rows are nobody's"


def test_the_busiest_gives_to_the_idlest_half_of_the_difference() -> None:
    kinds = [TAKES, GIVES, GIVES, TAKES, TAKES]
    first, second = found([1.0, 4.0, 6.0, 0.0, 2.0], kinds)
    assert [(m.supplier, m.consumer) for m in (first, second)] == [(2, 3), (1, 0)]
    assert [m.seconds for m in (first, second)] == pytest.approx([3.0, 1.5])
    assert (first.groups % 5 == 2).all()
    after = seconds_after(np.array([1.0, 4.0, 6.0, 0.0, 2.0]), [first, second])
    assert after.tolist() == pytest.approx([2.5, 2.5, 3.0, 3.0, 2.0])


def test_there_are_as_many_moves_as_pairs() -> None:
    assert len(found([3.0, 3.0, 3.0, 0.0], [GIVES, GIVES, GIVES, TAKES])) == 1
    assert found([3.0, 0.0, 0.0, 0.0], [GIVES, NEUTRAL, NEUTRAL, NEUTRAL]) == []
    assert found([3.0, 0.0, 0.0, 0.0], [NEUTRAL, TAKES, TAKES, TAKES]) == []


def test_what_gains_little_stays() -> None:
    kinds = [GIVES, TAKES]
    assert found([1 + GAIN / 2, 1 - GAIN / 2], kinds) == []
    assert len(found([1 + 4 * GAIN, 1 - 4 * GAIN], kinds)) == 1
    assert found([1.0, 2.0], kinds) == [], "the supplier is not the busier"


def test_a_heavy_key_stays_and_the_others_leave_it() -> None:
    groups = np.zeros(40)
    groups[[0, 2, 4, 1]] = [90.0, 5.0, 5.0, 10.0]
    (move,) = found([10.0, 1.0], [GIVES, TAKES], groups)
    assert move.groups.tolist() == [2, 4]
    groups[[2, 4]] = 0.0
    assert found([9.0, 1.0], [GIVES, TAKES], groups) == []

"""Rows of a producer's members as rows of a consumer's."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from levada.operators.rows.route_rows import fan_out
from levada.plan.execution.plan import FanOut

CONSUMERS = ([[4]], [[]], [[1, 0]], [[2], [5]], [[], [3], [1, 2]], [[0, 1], [0, 2]])


def by_definition(op: list[int], consumers: list[list[int]]) -> list[tuple[int, int]]:
    return [(row, reader) for row, member in enumerate(op) for reader in consumers[member]]


@pytest.mark.parametrize("consumers", CONSUMERS)
def test_fan_out_of_rows_gives_each_row_to_the_consumers_of_its_member(
    consumers: list[list[int]],
) -> None:
    offsets = np.cumsum([0, *map(len, consumers)]).astype(np.int32)
    members = np.array([reader for readers in consumers for reader in readers], np.int32)
    fan = FanOut(offsets, members, False)
    draw = np.random.default_rng(7)
    alike = [np.full(3, member, np.int32) for member in range(len(consumers))]
    drawn = [draw.integers(0, len(consumers), 5).astype(np.int32) for _ in range(20)]
    for op in (*alike, *drawn, np.zeros(0, np.int32)):
        assert pairs(op, fan) == by_definition(op.tolist(), consumers)


def pairs(op: npt.NDArray[np.int32], fan: FanOut) -> list[tuple[int, int]]:
    rows, readers = fan_out(op, fan)
    assert readers.dtype == np.int32
    numbers = range(len(op)) if rows is None else rows.tolist()
    return list(zip(numbers, readers.tolist(), strict=True))

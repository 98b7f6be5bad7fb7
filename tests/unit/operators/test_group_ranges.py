"""Rows of groups range by range: each row once, in the order of parts, a group in one range, no
more bytes than a range may have; parts that are cut already, or restricted to groups.
"""

from __future__ import annotations

import numpy as np
import pytest

from levada.core import column_names as col
from levada.core.frame import Frame, concat
from levada.operators.aggregation.partitioned_aggregation import Part, in_ranges
from levada.operators.rows.route_rows import key_of
from levada.operators.state.key_ranges import ALL_KEYS, Range

SLOTS = range(1)


def rows(n: int, groups: int, seed: int) -> Frame:
    """Rows of groups, numbered."""
    names = np.random.default_rng(0).integers(0, 2**64, groups, np.uint64)
    x = names[np.random.default_rng(seed).integers(0, groups, n)]
    place = (x % np.uint64(7)).astype(np.uint16)
    number = np.arange(n) + 10_000 * seed
    return Frame({"op": np.zeros(n, np.int32), "x0": x, "y0": x, col.PLACE: place, "n": number})


def of_range(frame: Frame, some: Range) -> Part:
    """The rows of a range, as a piece that was cut."""
    return Part(frame.where(some.contains(key_of(frame, SLOTS)[0])), some)


@pytest.mark.parametrize("theta", [0, 500, 3000, 10**6])
def test_each_row_is_in_one_range_and_a_group_too(theta: int) -> None:
    first, second = rows(3000, 400, 1), rows(500, 400, 2)
    parts = [of_range(first, half) for half in ALL_KEYS.halves]
    parts += [of_range(second, Range(9, p)) for p in range(512)]
    parts.append(Part(rows(200, 400, 3)))
    found = list(in_ranges([part for part in parts if part.rows.n], SLOTS, theta))
    assert len(found) == 1 if theta in (0, 10**6) else len(found) > 8
    every = [concat(some) for _, some in found]
    numbers = np.concatenate([frame["n"] for frame in every])
    assert sorted(numbers) == sorted(np.concatenate([p.rows["n"] for p in parts]))
    for (some, _), frame in zip(found, every, strict=True):
        assert some.contains(key_of(frame, SLOTS)[0]).all()
        own = frame["n"][frame["x0"] == frame["x0"][0]]
        assert (np.diff(own) > 0).all(), "a group's rows come in the order of their parts"


def test_rows_of_other_groups_are_left_out() -> None:
    frame, groups = rows(1000, 300, 1), np.arange(65_536) % 7 == 3
    want = frame.where(groups[frame[col.PLACE]])["n"]
    for part in (Part(frame, ALL_KEYS, groups), of_range(frame, Range(1, 1))):
        part.groups = groups
        found = [frame for _, some in in_ranges([part], SLOTS, 2000) for frame in some]
        assert set(concat(found)["n"]) <= set(want)
    whole = [f for _, some in in_ranges([Part(frame, ALL_KEYS, groups)], SLOTS, 2000) for f in some]
    assert sorted(concat(whole)["n"]) == sorted(want)

"""YABench's three queries over 50 stations: every result that the generator's formula gives, and no
other; and the formula itself.
"""

from typing import Any

import numpy as np
import pytest
from bench.yabench import APART, BODIES, HOT, WINDOW, Stations, at_once, beats, right


def test_precision_and_recall_are_one() -> None:
    told = at_once(50)
    assert set(told) == set(BODIES)
    for side in told.values():
        assert side["got"] == side["expected"] > 10
        assert side["precision"] == side["recall"] == 1.0


def test_the_files_hold_each_observation_once() -> None:
    stations = Stations(7, 10_000, 2)
    spans = list(beats(stations))
    found = [np.column_stack(stations.observed(low, high)) for low, high in spans]
    whole = np.column_stack(stations.observed(stations.start, spans[-1][1]))
    assert sorted(map(tuple, np.concatenate(found).tolist())) == sorted(map(tuple, whole.tolist()))
    assert len(whole) == 7 * (2 * WINDOW // 1000 + 1)


@pytest.mark.parametrize("name", BODIES)
def test_the_right_results_row_by_row(name: str) -> None:
    stations = Stations(20, 5_000, 2)
    rows = list(zip(*(column.tolist() for column in stations.observed(5_000, 15_000)), strict=True))
    found: list[tuple[Any, ...]] = []
    for close in stations.closes():
        inside = [(k, v) for k, v, ts in rows if close - WINDOW <= ts < close]
        if name == "filter":
            found += [(close, k, v) for k, v in inside if v >= HOT]
        elif name == "average":
            each = {k: [v for j, v in inside if j == k] for k, _ in inside}
            found += [(close, k, sum(some) / len(some)) for k, some in each.items()]
        else:
            found += [
                (close, k, v, w) for k, v in inside for j, w in inside if j == k and w - v >= APART
            ]
    assert np.allclose(sorted(right(stations, name).rows()), sorted(found))

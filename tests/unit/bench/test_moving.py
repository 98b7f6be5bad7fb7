"""What ``moving`` counts: groups that are elsewhere change no result, and are looked at."""

from __future__ import annotations

import math

import pytest
from bench import moving

from levada.engine import control_requests


def test_groups_move_while_it_runs_and_results_are_right() -> None:
    """The run itself counts its results."""
    found = moving.moved(0.001)
    assert found["state_mb"] > 0
    assert len(found["moved"]) == len(moving.MOVES) and set(found["degrees"]) == {"26", "30"}
    assert len(found["read_by_groups"]) == len(found["read_in_four_epochs"]) == len(moving.MOVES)


@pytest.mark.parametrize("apart", [1, 100])
@pytest.mark.parametrize("partitions", [40, 160])
def test_the_driver_calls_the_file_system_as_often_for_any_number_of_partitions(
    apart: int, partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each partition and stage needs 30 files; of each one is new and one is needed no more, or of
    one in a hundred. Some epochs write an inventory.
    """
    monkeypatch.setattr(moving, "MANY", partitions)
    monkeypatch.setattr(
        control_requests, "LOOK", math.inf
    )  # else an epoch that takes long looks twice
    found = moving._alone(apart, 12)
    assert 0 < found["calls"] <= 20 and found["most_calls"] <= 20

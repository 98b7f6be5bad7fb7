"""What ``moving`` counts: groups that are elsewhere change no result, and are looked at."""

from __future__ import annotations

from bench import moving


def test_groups_move_while_it_runs_and_results_are_right() -> None:
    """The run itself counts its results."""
    found = moving.moved(0.001)
    assert found["state_mb"] > 0
    assert len(found["moved"]) == len(moving.MOVES) and set(found["degrees"]) == {"26", "30"}
    assert all(looked >= 0 for looked in found["looked_mb"])

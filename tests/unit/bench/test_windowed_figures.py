"""Parallel windowed stream joins: what arrives is what the paper says, and what is predicted from
epochs follows from them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bench import windowed
from bench.papers import cqels_cloud, windowed_joins
from bench.papers.windowed_joins import Served, b_model, knee, poisson, slope

KNOWN = {"quoted", "re-derived", "predicted", "measured", "not measurable here"}


@pytest.mark.parametrize("figures", [windowed_joins.FIGURES, cqels_cloud.FIGURES])
def test_each_figure_says_what_became_of_it(figures: dict[str, tuple[str, str]]) -> None:
    assert all(set(told.split(", ")) <= KNOWN for told, _ in figures.values())


@pytest.mark.parametrize("bias", [0.5, 0.7, 0.8])
def test_keys_of_a_b_model_have_its_entropy(bias: float) -> None:
    """Each further bit of the key adds as much; bits of one part of the keys as of another."""
    keys = b_model(np.random.default_rng(7), 400_000, 8, bias)
    share = np.bincount(keys, minlength=256) / len(keys)
    entropy = -(share[share > 0] * np.log2(share[share > 0])).sum()
    assert entropy / 8 == pytest.approx(slope(bias), abs=0.005)


def test_arrivals_are_poisson() -> None:
    counts = np.bincount(poisson(3, 50, 200.0).ts // 1000, minlength=200)
    assert counts.mean() == pytest.approx(50, rel=0.05)
    assert counts.var() == pytest.approx(50, rel=0.4)


def test_delays_grow_beyond_what_is_served() -> None:
    """An epoch of 2 s that takes 3 s waits one second longer than that before it."""
    slow = Served(np.ones(4), np.full((4, 2), 2.0))
    assert slow.delay(2.0) == pytest.approx(1 + 3 + np.mean([0, 1, 2, 3]))
    assert slow.idle(2.0) == pytest.approx(1 / 3)


def test_a_knee_lies_where_service_is_an_epoch() -> None:
    rates = [1000, 2000, 4000]
    services = [0.1 + r / 1e4 + r * r / 1e8 for r in rates]
    found = knee(rates, services, 2.0)
    assert 0.1 + found / 1e4 + found**2 / 1e8 == pytest.approx(2.0)


def test_pairs_are_as_many_over_any_slaves(tmp_path: Path) -> None:
    """The run itself counts its results; all bytes of an epoch go to some slave."""
    given = windowed.load(tmp_path, 50, 1.0, 5.0)
    assert given.pairs > 0
    for slaves in (1, 3):
        seen = windowed.seen(windowed.ran(given, slaves), 1.0)
        assert seen["blobs"] >= slaves, "how many tasks read is chosen by what they take"
        assert seen["bytes"] == pytest.approx(slaves * seen["bytes_each"][1], rel=0.01)

"""Regions, and what is estimated of rates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from airport import MINUTE, Q1, Q2, statistics
from bench.papers.streamreuse.model.conditions import where
from bench.papers.streamreuse.model.descriptor import descriptor, part
from bench.papers.streamreuse.model.network import clustered, network
from bench.papers.streamreuse.model.statistics import Spread, Statistics, StreamStatistics
from bench.papers.streamreuse.model.value_intervals import between, values

from levada.errors import UsageError


def _islands(seed: int) -> np.ndarray:
    """Twelve nodes in four places far apart."""
    rng = np.random.default_rng(seed)
    places = np.repeat(np.array([[0, 0], [0, 9], [9, 0], [9, 9]]), 3, 0) + rng.random((12, 2))
    return np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1)) / 100


@pytest.mark.parametrize("seed", range(5))
def test_islands_are_found(seed: int) -> None:
    found = clustered(_islands(seed), 4, seed).region.reshape(4, 3)
    assert (found == found[:, :1]).all() and len(set(found[:, 0])) == 4


def test_each_region_is_asked_once_and_the_own_one_first() -> None:
    net = clustered(_islands(0), 4, 0)
    for node in range(12):
        masks = net.masks(node)
        assert masks[0] == net.rid(node) and sum(masks) == 0b1111


@pytest.mark.parametrize(
    ("delay", "region"),
    [(np.zeros((2, 3)), [0, 0]), (-np.ones((2, 2)), [0, 0]), (np.zeros((2, 2)), [0, 2]),
     (np.zeros((2, 2)), [0])],
)  # fmt: skip
def test_networks_that_cannot_be(delay: np.ndarray, region: list[int]) -> None:
    with pytest.raises(UsageError):
        network(delay, region)
    with pytest.raises(UsageError, match="can't form"):
        clustered(np.zeros((2, 2)), 3, 0)


def test_rates_against_rows_that_are_drawn() -> None:
    """A join's rate, of two streams with a condition, against pairs that are counted."""
    rng = np.random.default_rng(6)
    seconds, rate = 400, 5
    streams = {
        "A": StreamStatistics(rate, {"k": Spread(40), "v": Spread(10, low=0, high=10)}),
        "B": StreamStatistics(rate, {"k": Spread(40)}),
    }
    wanted = descriptor(
        {"A": 20_000, "B": 60_000}, [("A.k", "B.k")], where({"A.v": between(high=3)}), ["A.k"]
    )
    times = {s: np.sort(rng.random(rate * seconds)) * seconds for s in streams}
    keys = {s: rng.integers(0, 40, rate * seconds) for s in streams}
    v = rng.random(rate * seconds) * 10
    apart = times["A"][:, None] - times["B"][None]
    met = (keys["A"][:, None] == keys["B"][None]) & (v <= 3)[:, None]
    pairs = int((met & (apart < 60) & (apart > -20)).sum())
    assert Statistics(streams).rate(wanted) == pytest.approx(pairs / seconds, rel=0.1)


def test_what_was_measured_counts_and_fades() -> None:
    told = statistics()
    told.observe(Q2, rows=100, seconds=10)
    assert told.rate(Q2) == 10
    told.observe(Q2, rows=0, seconds=10)
    assert told.rate(Q2) == pytest.approx(90 / 19)
    other = replace(Q2, columns=frozenset({"FLIGHTS.NUM"}))
    assert told.rate(other) == statistics().rate(other)


def test_conditions_and_reports_make_less() -> None:
    told = statistics()
    leaf = part(Q1, {"FLIGHTS"})
    assert told.rate(leaf) == pytest.approx(10 / 9) and told.bytes(leaf) == 10 / 9 * (3 * 8 + 8)
    either = where({}, [frozenset({("p", ("FLIGHTS.NUM",)), ("q", ("FLIGHTS.NUM",))})])
    assert told.rate(replace(leaf, where=either)) == pytest.approx(10 * 5 / 9)
    grouped = descriptor({"FLIGHTS": MINUTE}, group=["FLIGHTS.CARRIER"],
                         aggregates=[("COUNT", "FLIGHTS.NUM")])  # fmt: skip
    assert told.rate(grouped) == 3000, "three groups on each change at most"
    assert Spread(10).share(between(1, 2)) == 1 / 3
    assert Spread(10, shares={1: 0.7}).share(values(1, 2)) == pytest.approx(0.8)

"""BriskStream's figures, as far as they follow from search and models."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bench.papers import briskstream as paper

from levada.placement.replication.rlas import Search

SEARCH = Search(steps=300, nodes=50)


def test_estimates_of_table_3_are_no_whole_numbers_of_lines() -> None:
    found = paper.lines_of_table_3()
    assert found["counter"][1] == pytest.approx((665.2 - 612.3) / 119.3, abs=0.005)
    assert not any(math.isclose(n, round(n), abs_tol=0.1) for n in found["splitter"].values())


@pytest.mark.parametrize(("app", "server"), [("WC", "A"), ("FD", "B")])
def test_all_that_is_sent_is_in_the_matrix(app: str, server: str) -> None:
    """In each tuple of a sink there are as many as operators before have sent for it."""
    plan, sent = paper.traffic(app, server, SEARCH)
    per_sink = {"WC": (1 + 1 + 10 + 10) / 10, "FD": 3}[app]
    assert sent.sum() == pytest.approx(plan.throughput / 1e6 * per_sink)
    assert (sent >= 0).all() and sent.shape == (8, 8)
    shares = paper.crossing(np.eye(8) + np.outer(np.eye(8)[0], np.eye(8)[7]))
    assert shares == {"sockets": round(1 / 9, 3), "trays": round(1 / 9, 3)}


def test_more_sockets_give_more_and_distance_costs() -> None:
    found = paper.scaling("SD", "B", SEARCH)
    rates = [found[n]["with"] for n in paper.SOCKETS]
    assert rates == sorted(rates) and rates[-1] > 2 * rates[0]
    assert all(f["without_of_ideal"] >= f["with_of_ideal"] for f in found.values())


def test_each_compression_has_a_plan() -> None:
    found = paper.compression("SD", "B", SEARCH)
    assert found.keys() == paper.TABLE_7.keys() and min(found.values()) > 0.5 * max(found.values())
    assert found[1] >= found[5] and found[3] >= found[5]  # finer is not worse

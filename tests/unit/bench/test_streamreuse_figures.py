"""STREAMREUSE's simulator on a small network: signs, and no figure."""

from __future__ import annotations

import pytest
from bench.papers import streamreuse as paper
from bench.papers.streamreuse.airline import AIRLINE
from bench.papers.streamreuse.model.planner import USUAL
from bench.papers.streamreuse.rfid import RFID
from bench.papers.streamreuse.simulate import MODES, Place, queries, simulate
from bench.papers.streamreuse.topology import transit_stub
from bench.papers.streamreuse.workload import Load, Workload
from bench.streamreuse import at_places, saved, search

LOAD = Load(queries=25, between=1.0, life=60.0)
PLACE = Place(stubs=3, each=5)


@pytest.mark.parametrize("workload", [AIRLINE, RFID], ids=lambda w: w.name)
def test_more_sharing_costs_less(workload: Workload) -> None:
    sides = {mode: simulate(workload, LOAD, PLACE, mode, locality=True) for mode in MODES}
    weight = USUAL.weight
    cost = {m: side["network"] + weight * side["processors"] for m, side in sides.items()}
    assert cost["relax"] < cost["exact"] <= 1.01 * cost["off"] and cost["relax"] < 0.9 * cost["off"]
    told = saved(sides)
    assert told["off"] == {
        "network_saved_pct": 0.0, "cpu_times_less": 1.0, "latency_more_pct": 0.0,
    }  # fmt: skip
    assert told["relax"]["cpu_times_less"] > 1.5
    assert all(side["queries_at_end"] == sides["off"]["queries_at_end"] for side in sides.values())
    assert sides["relax"]["operators_at_end"] < sides["off"]["operators_at_end"]


def test_a_run_is_a_function_of_its_seed() -> None:
    assert queries(AIRLINE, LOAD, PLACE) == queries(AIRLINE, LOAD, PLACE)
    network = transit_stub(3, 5, 1)
    assert (network.delay == transit_stub(3, 5, 1).delay).all() and (network.delay < 1).all()
    assert sorted(set(network.region.tolist())) == [0, 1, 2]


def test_where_results_are_wanted_at_few_places_more_is_saved() -> None:
    few = at_places(30, 2)
    place = Place(sinks=2)
    assert {query.sink for query in queries(AIRLINE, LOAD, place)} == set(place.wanted_at())
    assert few["saved"]["relax"]["network_saved_pct"] > 0
    assert few["off"]["queries_at_end"] == 30


def test_searches_are_told() -> None:
    found = search(100)
    assert found["nodes"]["operators"] == 100 and found["insert_ms"] > 0


def test_each_claim_says_what_became_of_it() -> None:
    words = {"quoted", "re-derived", "measured", "lost", "lost in part"}
    assert all(set(told[0].split(", ")) <= words for told in paper.FIGURES.values())

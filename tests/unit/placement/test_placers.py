"""Every placer gives each task a machine, the same for the same seed; share and RSD are those that
a second scorer finds in the JSON; refined is nearly optimal on what can be tried out whole.
"""

from __future__ import annotations

import ast
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import graphs, naive

import levada.placement
from levada.errors import UsageError
from levada.placement import json_file, metis, placement_file
from levada.placement.annealing import Heat, Rule, anneal
from levada.placement.cost import distant, machine_loads, rsd, score, share
from levada.placement.local_search_placer import evenest, refine_placement
from levada.placement.placers import PLACERS, applicable_placers
from levada.placement.problem import Problem, net
from levada.placement.send_graph import SendGraph, add

FEW = settings(max_examples=25, deadline=None)


def small(edges: dict[tuple[int, int], int], tasks: int) -> SendGraph:
    ends = np.array(sorted(edges), np.int32).reshape(-1, 2)
    rows = np.array([edges[a, b] for a, b in ends.tolist()], np.int64)
    return SendGraph(tuple(map(str, range(tasks))), ends[:, 0], ends[:, 1], rows)


def chains(many: int) -> SendGraph:
    """Chains of three tasks that send nothing to each other."""
    return small({(3 * i + j, 3 * i + j + 1): 100 for i in range(many) for j in (0, 1)}, 3 * many)


@FEW
@given(graphs(), st.integers(1, 5), st.integers(0, 3))
def test_all_placers_are_scored_alike_by_plain_python(
    graph: SendGraph, machines: int, seed: int
) -> None:
    problem = Problem(graph, machines, seed=seed)
    problem = replace(problem, bound=max(0.05, evenest(problem)))
    text = json_file.write(graph)
    for name, placer in applicable_placers(problem).items():
        place = placer(problem)
        assert place.shape == (len(graph.tasks),)
        assert place.min() >= 0 and place.max() < machines, name
        own = score(graph, place, machines)
        other = naive(text, placement_file.machines_by_task(graph, place), machines)
        assert (own.share, own.rsd) == pytest.approx(other, rel=1e-9, abs=1e-12), name
        if name == "refined":
            assert own.rsd <= problem.bound + 1e-9


@pytest.mark.parametrize("name", PLACERS)
def test_the_same_seed_gives_the_same_placement(name: str) -> None:
    problem = Problem(chains(20), 3, seed=7, bound=0.2)
    found = PLACERS[name](problem)
    assert (found == PLACERS[name](problem)).all()


def every(graph: SendGraph, machines: int) -> tuple[Any, Any]:
    """Share and RSD of all placements there are, by arithmetic of its own."""
    places = np.array(list(itertools.product(range(machines), repeat=len(graph.tasks))), np.int32)
    far = (places[:, graph.source] != places[:, graph.target]) @ graph.rows
    received = graph.loads("rows")
    loads = np.stack([(places == m) @ received for m in range(machines)], 1).astype(float)
    return far / graph.rows.sum(), loads.std(1, ddof=1) / loads.mean(1)


def test_refined_is_within_one_per_cent_of_the_optimum(random_seed: int) -> None:
    rng = np.random.default_rng(random_seed)
    tried = good = 0
    while tried < 40:
        n = int(rng.integers(3, 11))
        pairs = rng.integers(0, n, (int(rng.integers(2, 3 * n)), 2)).tolist()
        edges = {(a, b): int(np.exp(rng.normal(4, 1.5))) + 1 for a, b in pairs if a != b}
        if not edges:
            continue
        graph = small(edges, n)
        shares, deviations = every(graph, 3)
        bound = float(np.quantile(deviations, rng.choice([0.0, 0.01, 0.1, 0.5]))) * 1.001
        best = shares[deviations <= bound].min()
        place = refine_placement(Problem(graph, 3, bound=bound))
        assert score(graph, place, 3).rsd <= bound + 1e-9
        tried += 1
        good += share(graph, place) <= best * 1.01 + 1e-12
    assert good >= 0.95 * tried


def test_chains_stay_together() -> None:
    graph = chains(12)
    place = refine_placement(Problem(graph, 4, bound=0.01))
    assert score(graph, place, 4).share == 0.0
    assert rsd(machine_loads(graph, place, 4)) < 1e-12


def test_refined_is_never_behind_metis() -> None:
    rng = np.random.default_rng(3)
    edges = {(int(a), int(b)): int(w) + 1 for a, b, w in rng.integers(0, 60, (200, 3)) if a != b}
    graph = small(edges, 60)
    place = metis.cut(Problem(graph, 4))
    own = score(graph, place, 4)
    assert score(graph, refine_placement(Problem(graph, 4, bound=own.rsd)), 4).share <= own.share


@FEW
@given(graphs(most=12), st.integers(0, 4))
def test_no_more_tasks_move_than_may(graph: SendGraph, moves: int) -> None:
    n = len(graph.tasks)
    before = (np.arange(n) % 3).astype(np.int32)
    bound = max(score(graph, before, 3).rsd, Problem(graph, 3).floor())
    problem = Problem(graph, 3, bound=bound, before=before, moves=moves)
    place = refine_placement(problem)
    assert (place != before).sum() <= moves
    assert share(graph, place) <= share(graph, before)
    if moves == 0:
        assert (place == before).all()


def test_distances_decide_which_machines_are_far() -> None:
    """Two pairs of machines, near each other: what must cross goes to the near one."""
    graph = small(dict.fromkeys([(0, 1), (1, 2), (2, 3), (3, 0)], 10), 4)
    apart = np.array([[0, 1, 9, 9], [1, 0, 9, 9], [9, 9, 0, 1], [9, 9, 1, 0]], float)
    place = refine_placement(Problem(graph, 4, bound=0.0, distance=apart))
    assert sorted(place.tolist()) == [0, 1, 2, 3]
    assert distant(graph, place, apart) == pytest.approx((1 + 9 + 1 + 9) / 4)


def test_an_uneven_distance_is_that_of_the_direction() -> None:
    graph = small({(0, 1): 10, (1, 2): 1, (2, 1): 1, (0, 2): 9}, 3)
    apart = np.array([[0, 1, 5], [7, 0, 2], [3, 3, 0]], float)
    found = distant(graph, refine_placement(Problem(graph, 3, bound=3.0, distance=apart)), apart)
    places = itertools.product(range(3), repeat=3)
    assert found == min(distant(graph, np.array(p, np.int32), apart) for p in places)


@pytest.mark.parametrize("load", ["rows", "bytes", "cpu"])
def test_machines_are_even_in_what_is_asked_for(load: Any) -> None:
    graph = replace(
        chains(9),
        bytes=np.arange(1, 19, dtype=np.int64) * 50,
        cpu=np.linspace(1, 5, 27),
    )
    place = refine_placement(Problem(graph, 3, unit="bytes", load=load, bound=0.03))
    assert rsd(machine_loads(graph, place, 3, load)) <= 0.03 + 1e-9


def test_an_impossible_bound_tells_the_least_and_the_heavy_task() -> None:
    graph = small({(0, 1): 900, (0, 2): 50, (0, 3): 50}, 4)
    with pytest.raises(UsageError, match=r"the least is 147\.22%. The heaviest task is 1, with 90"):
        refine_placement(Problem(graph, 3, bound=0.05))
    assert score(graph, refine_placement(Problem(graph, 3, bound=1.4723)), 3).rsd <= 1.4723


def test_a_bound_that_no_search_meets_tells_the_least_that_was_found() -> None:
    with pytest.raises(UsageError, match=r"the least that was found is 10\.83%"):
        refine_placement(Problem(chains(8), 3, bound=0.03))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"machines": 0}, "There are 0 machines"),
        ({"bound": -0.1}, "cannot be kept below"),
        ({"moves": -1}, "cannot be moved"),
        ({"unit": "bytes"}, "nothing of bytes"),
        ({"load": "cpu"}, "nothing of cpu"),
        ({"distance": np.zeros((2, 3))}, "are 2 x 3 numbers, and there are 3 machines"),
        ({"distance": -np.ones((3, 3))}, "negative, infinite or no number"),
        ({"graph": small({(0, 1): 0}, 2)}, "no messages"),
    ],
)
def test_what_does_not_go_together_is_said(change: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        replace(Problem(chains(3), 3), **change)


def test_slices_add_up_and_new_tasks_have_their_usual_place() -> None:
    one, two = small({(0, 1): 5}, 2), small({(0, 1): 6, (1, 2): 1}, 3)
    both = add([one, two])
    assert both.tasks == ("0", "1", "2") and both.rows.tolist() == [11, 1]
    newer = SendGraph(
        ("1", "0", "77"), np.array([0], np.int32), np.array([2], np.int32), np.array([3])
    )
    place = placement_file.place_by_past(refine_placement, [one], Problem(newer, 12, bound=9.0))
    assert place[0] == place[1] and place[2] == 77 % 12


def test_the_search_is_the_same_as_plain_python() -> None:
    """The kernel's twin is its own text without numba, on the same draws."""
    problem = Problem(chains(5), 3, bound=0.3)
    start = np.array([i % 3 for i in range(15)], np.int32)
    rule = Rule(0.15, 3.0, np.where(start == 0, -1, start).astype(np.int32), 6)
    own = net(problem)
    compiled = anneal(own, start, rule, Heat(20, 0.05, 0.001), np.random.default_rng(5))
    plain: Any = getattr(anneal, "py_func", anneal)
    twin = plain(own, start, rule, Heat(20, 0.05, 0.001), np.random.default_rng(5))
    assert (compiled[0] == twin[0]).all() and compiled[1] == pytest.approx(twin[1])
    assert share(problem.graph, compiled[0]) == pytest.approx(
        share(problem.graph, start) + compiled[1]
    )


def test_the_room_knows_errors_values_and_the_model_alone() -> None:
    for file in Path(levada.placement.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            name = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if name.startswith("levada."):
                assert name.split(".")[1] in {"core", "errors", "placement"}, file

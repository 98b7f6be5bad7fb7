"""The three models: cases by hand, and what holds of all plans."""

import itertools
import math

import numpy as np
import pytest
from dataflows import machine, random_graph, random_machine, random_plan, random_problem
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from levada.errors import UsageError
from levada.placement.replication.baseline_plans import first_fit
from levada.placement.replication.dataflow import Graph, Operator, Stream
from levada.placement.replication.model_arrays import problem
from levada.placement.replication.rlas import Search, place
from levada.placement.replication.throughput_models import MODELS, demand, estimate

SEEDS = st.integers(0, 2**32)
TWO = machine(np.array([[0.0, 100.0], [100.0, 0.0]]), 8)


def chain(*cycles: float, size: float = 64, selectivity: float = 1.0) -> Graph:
    names = [f"o{i}" for i in range(len(cycles))]
    streams = [Stream(a, b, selectivity, size) for a, b in itertools.pairwise(names)]
    return Graph("chain", [Operator(n, c) for n, c in zip(names, cycles, strict=True)], streams)


def throughput(model: str, graph: Graph, *rows: list[int], rate: float = 1e18) -> float:
    return estimate(MODELS[model], problem(graph, TWO, rate), np.array(rows)).throughput


@pytest.mark.parametrize("model", ["paper", "sustainable"])
def test_a_tuple_from_elsewhere_costs_a_latency_for_each_line(model: str) -> None:
    assert throughput(model, chain(100, 400), [1, 0], [1, 0]) == pytest.approx(1e9 / 400)
    assert throughput(model, chain(100, 400), [1, 0], [0, 1]) == pytest.approx(1e9 / 500)
    for size, lines in ((64, 1), (65, 2), (128, 2), (200, 4)):
        graph = chain(100, 400, size=size)
        assert throughput(model, graph, [1, 0], [0, 1]) == pytest.approx(1e9 / (400 + 100 * lines))


@pytest.mark.parametrize("model", ["paper", "sustainable"])
def test_too_little_input_passes_as_it_is(model: str) -> None:
    graph = chain(100, 50, selectivity=3.0)
    assert throughput(model, graph, [1, 0], [1, 0], rate=1000) == pytest.approx(3000)


def test_what_the_paper_lets_wait_holds_up_all_where_queues_are_full() -> None:
    graph = chain(10, 400)
    # near and far consumer: 1/400 and 1/500 of a second's ns, or twice the slower
    assert throughput("paper", graph, [1, 0], [1, 1]) == pytest.approx(1e9 / 400 + 1e9 / 500)
    assert throughput("sustainable", graph, [1, 0], [1, 1]) == pytest.approx(2e9 / 500)


def test_an_epoch_is_its_overheads_and_each_stages_fullest_place() -> None:
    model = MODELS["epochs"]._replace(rows=1000, driver=7e6, stage=3e6, task=1e6)
    found = estimate(model, problem(chain(1000, 2000), TWO), np.array([[2, 0], [1, 1]]))
    stages = (3e6 + 1e6 + 500 * 1000) + (3e6 + 1e6 + 500 * 2100)
    assert found.throughput == pytest.approx(1000 * 1e9 / (7e6 + stages))


def test_more_replicas_than_cores_take_turns_in_an_epoch() -> None:
    one = machine(np.zeros((1, 1)), 1)
    model = MODELS["epochs"]._replace(rows=1e9)
    graph = chain(1000)
    single = estimate(model, problem(graph, one), np.array([[1]])).throughput
    double = estimate(model, problem(graph, one), np.array([[2]])).throughput
    assert double == pytest.approx(single, rel=0.05)


def test_demand_is_of_tuples_that_are_taken_in() -> None:
    m = machine(np.array([[0.0, 1.0], [1.0, 0.0]]), 8, bandwidth=1e9)
    given = problem(chain(1000, 100, size=64, selectivity=10), m, 1e6)
    counts = np.array([[1, 0, 0], [0, 5, 0]])
    found = estimate(MODELS["sustainable"], given, counts[:, :2])
    taken = np.pad(found.taken, ((0, 0), (0, 1)))
    assert demand(given.arrays, counts, taken) == pytest.approx(1e6 * 10 * 64 / 1e9)
    crowded = np.array([[9, 0, 0], [0, 1, 0]])
    assert demand(given.arrays, crowded, taken * 0) == pytest.approx(9 / 8)


@settings(max_examples=60)
@drawn(seed=SEEDS)
def test_what_is_taken_is_what_was_sent(seed: int) -> None:
    rng = np.random.default_rng(seed)
    given = random_problem(rng)
    counts = random_plan(rng, given, 9)
    low = problem(given.graph, given.machine, rate=1.0)
    for model in MODELS.values():
        found = estimate(model, low, counts)
        whole = (found.taken * counts).sum(axis=1)
        assert whole == pytest.approx(np.array(given.graph.flow)), seed  # nobody is over-supplied
    found = estimate(MODELS["sustainable"], given, counts)
    whole = (found.taken * counts).sum(axis=1)
    assert whole / whole[0] == pytest.approx(np.array(given.graph.flow)), seed
    assert found.busy.max() == pytest.approx(1.0), seed


@settings(max_examples=60)
@drawn(seed=SEEDS)
def test_distance_never_helps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, m = random_graph(rng, 4), random_machine(rng, 3, 5)
    counts = random_plan(rng, problem(graph, m), 9)
    for name in ("sustainable", "epochs"):
        none, real, far = (
            estimate(MODELS[name], problem(graph, m, distance=d), counts).throughput
            for d in ("none", "real", "farthest")
        )
        assert none * (1 + 1e-9) >= real >= far * (1 - 1e-9), seed


@pytest.mark.parametrize(
    ("operators", "streams", "says"),
    [
        ([], [], "has no operators"),
        ([Operator("a", 1), Operator("a", 2)], [], "has a twice"),
        ([Operator("a", 0)], [], "has cycles 0"),
        ([Operator("a", math.nan)], [], "has cycles nan"),
        ([Operator("a", 1, -1)], [], "has memory -1"),
        ([Operator("a", 1)], [Stream("a", "b")], "names an operator b"),
        ([Operator("a", 1)], [Stream("a", "a")], "in a circle through a"),
        ([Operator("a", 1), Operator("b", 1)], [Stream("a", "b", -1)], "has selectivity -1"),
        ([Operator("a", 1), Operator("b", 1)], [Stream("a", "b")] * 2, "two streams from a to b"),
    ],
)
def test_a_wrong_graph_is_told(operators: list[Operator], streams: list[Stream], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Graph("g", operators, streams)


def joined(*cycles: float) -> Graph:
    """Two spouts, one operator behind both."""
    ops = [Operator(name, own) for name, own in zip("abj", cycles, strict=True)]
    return Graph("joined", ops, [Stream("a", "j"), Stream("b", "j")])


@pytest.mark.parametrize(
    ("rates", "right"),
    [
        ({"a": 1e6, "b": 2e6}, (1e6, 2e6)),  # nobody is held up
        ({"a": 1e6, "b": 9e6}, (1e6, 4e6)),  # who has less than its turn passes, the other gets it
        ({"a": 1e18, "b": 1e18}, (2.5e6, 2.5e6)),  # in turn
    ],
)
def test_each_spout_gives_what_it_can(rates: dict[str, float], right: tuple[float, float]) -> None:
    given = problem(joined(100, 100, 200), TWO, rates)
    found = estimate(MODELS["sustainable"], given, np.array([[1, 0], [1, 0], [1, 0]]))
    assert found.taken[:2, 0] == pytest.approx(right)
    assert found.throughput == pytest.approx(sum(right))
    assert found.busy[2, 0] == pytest.approx(sum(right) * 200 / 1e9)


def test_a_spout_of_more_replicas_has_more_turns() -> None:
    given = problem(joined(100, 100, 200), TWO)
    found = estimate(MODELS["sustainable"], given, np.array([[3, 0], [1, 0], [1, 0]]))
    assert found.taken[:2, 0] == pytest.approx([5e6 / 4, 5e6 / 4])


def test_a_spout_that_nobody_holds_up_is_not_held_up_by_others() -> None:
    graph = Graph(
        "apart",
        [Operator(name, own) for name, own in zip("abcd", (100, 100, 1000, 200), strict=True)],
        [Stream("a", "c"), Stream("b", "d")],
    )
    given = problem(graph, TWO)
    found = estimate(MODELS["sustainable"], given, np.ones((4, 1), np.int64))
    assert found.throughput == pytest.approx(1e6 + 5e6)
    slow = problem(graph, TWO, {"a": 5e5, "b": 1e6})
    paper = estimate(MODELS["paper"], slow, np.ones((4, 1), np.int64))
    assert paper.throughput == pytest.approx(1.5e6)


@pytest.mark.parametrize(
    ("rates", "says"),
    [
        ({"a": 1.0, "c": 1.0}, "has no spout c"),
        ({"a": 1.0}, "come to the spout b"),
        ({"a": 1.0, "b": 0.0}, "come 0.0 tuples/s"),
        ({"a": math.nan, "b": 1.0}, "come nan tuples/s"),
    ],
)
def test_wrong_rates_are_told(rates: dict[str, float], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        problem(joined(1, 1, 1), TWO, rates)


@pytest.mark.long
def test_where_stages_take_turns_a_place_has_room_for_as_many_more() -> None:
    """Four tasks of each stage on two cores: two waves, in turn with the other stage's."""
    model = MODELS["epochs"]._replace(rows=1000, driver=0.0, stage=0.0, task=1e6)
    cores = machine(np.array([[0.0, 100.0], [100.0, 0.0]]), 1)
    bound, turns = (problem(chain(1000, 1000), cores, turns=n) for n in (1, 4))
    even, each = np.array([[2, 2], [2, 2]]), np.array([4, 4])
    with pytest.raises(UsageError, match="do not fit on the 2 cores"):
        first_fit(model, bound, each)
    plan = place(model, turns, each, Search(nodes=500))
    assert plan.within and plan.counts.tolist() == even.tolist()
    stage = 2 * (1e6 + 250 * 1000)
    assert plan.throughput == pytest.approx(1000 * 1e9 / (2 * stage + 2 * 250 * 50), rel=1e-6)
    assert first_fit(model, turns, each).tolist() == [[4, 0], [0, 4]]

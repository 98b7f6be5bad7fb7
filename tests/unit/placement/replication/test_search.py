"""RLAS against brute force, its bound, its rivals, and the search around it."""

import itertools

import numpy as np
import pytest
from dataflows import (
    machine,
    random_graph,
    random_machine,
    random_plan,
    random_problem,
    random_rates,
)
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from levada.core.array_types import Longs
from levada.core.machine_file import shipped_machine
from levada.errors import UsageError
from levada.placement.replication.baseline_plans import first_fit, metis, round_robin, scatter
from levada.placement.replication.branch_and_bound import branch, interchangeable
from levada.placement.replication.dataflow import Graph, Operator, Stream
from levada.placement.replication.example_applications import word_count
from levada.placement.replication.local_search import refine
from levada.placement.replication.model_arrays import Problem, problem
from levada.placement.replication.rlas import (
    Search,
    balance_cores,
    balances,
    bottleneck,
    evaluate_plan,
    oversupply,
    place,
    rlas,
    scale_up,
)
from levada.placement.replication.throughput_models import MODELS, evaluate

SEEDS = st.integers(0, 2**32)
SMALL = Search(nodes=500, steps=3000)


def small(rng: np.random.Generator) -> tuple[Problem, Longs]:
    """Five replicas at most, three places, sometimes with constraints that matter."""
    operators = int(rng.integers(1, 5))
    bandwidth = float(rng.choice([1e15, 1e15, 3e8, 1e8]))
    m = random_machine(rng, 3, int(rng.integers(2, 5)), bandwidth)
    if rng.random() < 0.3:
        m = machine(np.where(np.eye(3), 0.0, 250.0), 3, bandwidth)  # all places are alike
    graph = random_graph(rng, operators, min(int(rng.integers(1, 3)), operators))
    rate = float(rng.choice([1e18, 5e5]))
    given = problem(graph, m, rate)
    if len(graph.spouts) > 1 and rng.random() < 0.5:
        given = problem(graph, m, random_rates(rng, given))
    extra = rng.integers(0, operators, int(rng.integers(0, 6 - operators)))
    return given, 1 + np.bincount(extra, minlength=operators)


def all_plans(given: Problem, replication: Longs) -> list[Longs]:
    """Each once: replicas of an operator can be exchanged."""
    owners = np.repeat(np.arange(given.operators), replication)
    plans = dict[bytes, Longs]()
    for places in itertools.product(range(given.places), repeat=len(owners)):
        counts = np.zeros((given.operators, given.places), np.int64)
        np.add.at(counts, (owners, np.array(places)), 1)
        plans[counts.tobytes()] = counts
    return [*plans.values()]


@pytest.mark.long
@pytest.mark.parametrize("model", sorted(MODELS))
@settings(max_examples=5)
@drawn(seed=SEEDS)
def test_without_best_fit_and_compression_the_answer_is_the_best_of_all(
    model: str, seed: int
) -> None:
    given, replication = small(np.random.default_rng(seed))
    plans = [evaluate_plan(MODELS[model], given, c) for c in all_plans(given, replication)]
    right = max((p.throughput for p in plans if p.within), default=0.0)
    nothing = (np.zeros((given.operators, given.places), np.int64), 0.0)
    found = branch(MODELS[model], given, replication, nothing, ratio=1, best_fit=False, nodes=10**6)
    assert found.complete
    assert found.throughput == pytest.approx(right, rel=1e-9), seed
    if right:
        told = evaluate_plan(MODELS[model], given, found.counts)
        assert told.within and told.throughput == pytest.approx(right, rel=1e-9), seed
        assert found.counts.sum(axis=1).tolist() == replication.tolist()


@pytest.mark.long
@pytest.mark.parametrize("model", sorted(MODELS))
@settings(max_examples=60)
@drawn(seed=SEEDS)
def test_the_bound_is_never_below_a_completion(model: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    given, replication = small(rng)
    plans = all_plans(given, replication)
    for whole in rng.choice(len(plans), size=min(len(plans), 8), replace=False):
        counts = np.pad(plans[whole], ((0, 0), (0, 1)))
        work = np.zeros(counts.shape), np.zeros(counts.shape)
        value = evaluate(MODELS[model], given.arrays, counts, work, False)
        for o, p in rng.permutation(np.argwhere(counts)):  # taken away, one group after the other
            counts[o, -1] += counts[o, p]
            counts[o, p] = 0
            above = evaluate(MODELS[model], given.arrays, counts, work, True)
            assert above >= value * (1 - 1e-9), seed


def test_first_come_first_served_is_no_bound() -> None:
    """A slower producer can make a faster consumer: why the bound takes the nearest first."""
    graph = Graph(
        "g",
        [Operator("s", 1000), Operator("t", 10), Operator("near", 100), Operator("far", 10),
         Operator("b", 100)],
        [Stream("s", "near"), Stream("t", "far"), Stream("near", "b"), Stream("far", "b")],
    )  # fmt: skip
    far = np.full((3, 3), 5000.0) - 5000.0 * np.eye(3)
    given = problem(graph, machine(far, 5))
    at = dict(graph.place_of.items())
    partial = np.zeros((5, 4), np.int64)
    for name, p in (("s", 0), ("near", 0), ("far", 1), ("b", 0), ("t", 3)):
        partial[at[name], p] = 1
    whole = partial.copy()
    whole[at["t"]] = [0, 0, 1, 0]
    work = np.zeros(partial.shape), np.zeros(partial.shape)
    paper = MODELS["paper"]
    value = evaluate(paper, given.arrays, whole, work, False)
    assert evaluate(paper, given.arrays, partial, work, False) < value
    assert evaluate(paper, given.arrays, partial, work, True) >= value


def test_places_that_can_be_exchanged() -> None:
    alike = machine(np.where(np.eye(3), 0.0, 9.0), 2)
    graph = Graph("g", [Operator("a", 1)], [])
    assert interchangeable(problem(graph, alike)).all()
    other = machine(np.array([[0.0, 9, 9], [9, 0, 5], [9, 5, 0]]), 2)
    found = interchangeable(problem(graph, other))
    assert found[1, 2] and not found[0, 1]
    assert not np.triu(interchangeable(problem(graph, shipped_machine("server-a"))), 1).any()


@pytest.mark.parametrize("rule", [first_fit, round_robin])
@settings(max_examples=30)
@drawn(seed=SEEDS)
def test_rivals_place_each_replica_once_within_the_cores(rule, seed: int) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    given = random_problem(rng, bandwidth=float(rng.choice([1e15, 1e8, 1e6])))
    replication = random_plan(rng, given, 11).sum(axis=1)
    found = rule(MODELS["sustainable"], given, replication)
    for counts in (found, scatter(given, replication, seed), metis(given, replication, 1)):
        if counts is not None:
            assert counts.sum(axis=1).tolist() == replication.tolist(), seed
            assert (counts.sum(axis=0) <= given.machine.cores).all(), seed


def test_first_fit_fills_and_round_robin_spreads() -> None:
    given = problem(word_count(), shipped_machine("server-b"))
    ones = np.ones(5, np.int64)
    assert first_fit(MODELS["paper"], given, ones)[:, 0].tolist() == [1] * 5
    assert round_robin(MODELS["paper"], given, ones)[range(5), range(5)].tolist() == [1] * 5


@pytest.mark.long
@settings(max_examples=12)
@drawn(seed=SEEDS)
def test_a_search_is_never_worse_than_its_rivals_or_its_start(seed: int) -> None:
    rng = np.random.default_rng(seed)
    given = random_problem(rng)
    model = MODELS[str(rng.choice(sorted(MODELS)))]
    start = random_plan(rng, given, 10)
    plan = place(model, given, start.sum(axis=1), SMALL)
    for rule in (first_fit, round_robin):
        rival = evaluate_plan(model, given, rule(model, given, plan.replication))
        assert not rival.better(plan), seed
    refined = refine(model, given, start, seed=seed, steps=500)
    assert refined.sum(axis=1).tolist() == start.sum(axis=1).tolist()
    assert not evaluate_plan(model, given, start).better(evaluate_plan(model, given, refined)), seed


@pytest.mark.long
@settings(max_examples=25)
@drawn(seed=SEEDS, moves=st.integers(0, 4))
def test_a_move_budget_is_kept(seed: int, moves: int) -> None:
    rng = np.random.default_rng(seed)
    given = random_problem(rng)
    start = random_plan(rng, given, 10)
    found = refine(
        MODELS["sustainable"], given, start, seed=seed, steps=500, replicate=True, moves=moves
    )
    assert np.maximum(found - start, 0).sum() <= moves, seed


@pytest.mark.long
@pytest.mark.parametrize("step", ["by", "to"])
@pytest.mark.parametrize("model", sorted(MODELS))
def test_scaling_grows_until_nothing_is_over_supplied_or_no_core_is_left(model: str, step) -> None:  # type: ignore[no-untyped-def]
    given = problem(word_count(), shipped_machine("server-b"))
    plan = scale_up(MODELS[model], given, Search(step=step, nodes=200))
    assert plan.within and 5 < plan.replication.sum() <= 64
    ones = place(MODELS[model], given, np.ones(5, np.int64), SMALL)
    assert plan.throughput > 5 * ones.throughput or model == "epochs"
    slow = problem(word_count(), shipped_machine("server-b"), rate=1e5)
    fed = scale_up(MODELS[model], slow, Search(step=step, nodes=200))
    assert (
        fed.throughput == pytest.approx(1e6) and fed.replication.sum() < 64
    ) or model == "epochs"


def test_a_bottleneck_is_the_last_operator_that_gets_too_much() -> None:
    given = problem(word_count(), shipped_machine("server-b"))
    ones = evaluate_plan(
        MODELS["paper"], given, first_fit(MODELS["paper"], given, np.ones(5, np.int64))
    )
    ratios = oversupply(MODELS["paper"], given, ones)
    assert bottleneck(ratios) == 3  # the counter; the sink gets what the counter gives
    assert ratios[3] == pytest.approx(10 * 612.3 / 1612.8)
    assert bottleneck(np.ones(5)) is None


def test_where_no_plan_keeps_the_constraints_the_coarse_operator_is_split() -> None:
    graph = Graph("g", [Operator("a", 100, memory=100.0), Operator("b", 100)], [Stream("a", "b")])
    m = machine(np.array([[0.0, 1.0], [1.0, 0.0]]), 4, bandwidth=8e8)
    given = problem(graph, m)  # one a takes 1e9 bytes/s of memory, a place has 8e8
    stopped = scale_up(MODELS["paper"], given, Search(coarse=False))
    assert not stopped.within and stopped.replication.tolist() == [1, 1]
    assert scale_up(MODELS["paper"], given, Search()).replication.sum() == 8


def test_one_result_for_one_seed_and_time_that_is_up_ends_it() -> None:
    given = problem(word_count(), shipped_machine("server-b"))
    first, again = (rlas(MODELS["sustainable"], given, SMALL) for _ in range(2))
    assert (first.counts == again.counts).all()
    ticks = itertools.count()
    hurried = Search(nodes=200, steps=1000, seconds=2.0, clock=lambda: float(next(ticks)))
    plan = rlas(MODELS["sustainable"], given, hurried)
    assert plan.within and plan.throughput < first.throughput


def test_balanced_uses_every_core() -> None:
    given = problem(word_count(), shipped_machine("server-a"))
    for cost in balances(given):
        counts = balance_cores(given, cost)
        assert counts.sum() == 144 and counts.argmax() == 3


def test_too_few_cores_are_told() -> None:
    given = problem(word_count(), machine(np.zeros((1, 1)), 4))
    with pytest.raises(UsageError, match="4 cores for the 5 operators of WC"):
        rlas(MODELS["paper"], given)
    with pytest.raises(UsageError, match="5 replicas of WC do not fit on the 4 cores"):
        place(MODELS["paper"], given, np.ones(5, np.int64), SMALL)

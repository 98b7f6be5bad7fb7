"""The simulator against arithmetic, against its twin in simpy, and against the model that knows
of full queues.
"""

import numpy as np
import pytest
from bench.papers.throughput_simulator import simulate
from dataflows import (
    machine,
    pipeline,
    random_graph,
    random_machine,
    random_plan,
    random_problem,
    random_rates,
    replicas,
)
from simpy_twin import Twin

from levada.placement.replication.dataflow import Graph, Operator, Stream
from levada.placement.replication.model_arrays import problem
from levada.placement.replication.throughput_models import MODELS, estimate


@pytest.mark.long
def test_the_slowest_of_a_chain_bounds_it() -> None:
    chain = Graph("c", [Operator("a", 100), Operator("b", 400), Operator("c", 50)],
                  [Stream("a", "b", 2.0), Stream("b", "c")])  # fmt: skip
    given = problem(chain, machine(np.array([[0.0, 300.0], [300.0, 0.0]]), 4))
    beside = replicas(np.array([[1, 0], [1, 0], [1, 0]]))
    apart = replicas(np.array([[1, 0], [0, 1], [0, 1]]))
    assert simulate(pipeline(given), beside, jumbos=20_000, noise=0.0) == pytest.approx(
        1e9 / 400, rel=0.01
    )
    assert simulate(pipeline(given), apart, jumbos=20_000, noise=0.0) == pytest.approx(
        1e9 / 700, rel=0.01
    )


@pytest.mark.long
def test_in_turn_a_slow_consumer_holds_up_all_and_least_full_goes_round_it() -> None:
    fan = Graph("f", [Operator("a", 10), Operator("b", 100)], [Stream("a", "b")])
    given = problem(fan, machine(np.array([[0.0, 900.0], [900.0, 0.0]]), 4))
    plan = replicas(np.array([[1, 0], [1, 1]]))  # 10 and 1 million tuples/s
    turn = simulate(pipeline(given), plan, jumbos=50_000, noise=0.0)
    least = simulate(pipeline(given), plan, jumbos=50_000, noise=0.0, routing="least")
    assert turn == pytest.approx(2e6, rel=0.02)
    assert least == pytest.approx(11e6, rel=0.02)


def test_the_same_seed_gives_the_same(random_seed: int) -> None:
    rng = np.random.default_rng(random_seed)
    given = random_problem(rng)
    plan = replicas(random_plan(rng, given, 9))
    runs = {simulate(pipeline(given), plan, jumbos=20_000, seed=s) for s in (1, 1, 2)}
    assert len(runs) == 2


@pytest.mark.long
def test_ten_random_plans_in_simpy(random_seed: int) -> None:
    rng = np.random.default_rng(random_seed)
    for case in range(10):
        given = random_problem(rng)
        plan = replicas(random_plan(rng, given, 8))
        ours = simulate(pipeline(given), plan, jumbos=150_000, noise=0.3, seed=case)
        theirs = Twin(pipeline(given), plan, 0.3, case).run(6e8)
        assert ours == pytest.approx(theirs, rel=0.04), (random_seed, case)


@pytest.mark.long
def test_fifty_random_plans_and_the_model_of_full_queues(random_seed: int) -> None:
    rng = np.random.default_rng(random_seed)
    errors = []
    for case in range(50):
        given = random_problem(rng, operators=5, cores=8)
        counts = random_plan(rng, given, int(rng.integers(6, 20)))
        said = estimate(MODELS["sustainable"], given, counts).throughput
        seen = simulate(pipeline(given), replicas(counts), jumbos=200_000, seed=case)
        errors.append(abs(said / seen - 1))
    near = sum(error <= 0.1 for error in errors)
    assert near >= 45, (random_seed, sorted(errors)[-6:])


@pytest.mark.parametrize("spouts", [2, 3])
def test_random_plans_with_several_spouts_of_their_own_rates(spouts: int, random_seed: int) -> None:
    """Of each of them, some of which are always busy and some are not."""
    rng = np.random.default_rng((random_seed, spouts))
    for case in range(12):
        graph, m = random_graph(rng, 6, spouts), random_machine(rng, 3, 8)
        rates = random_rates(rng, problem(graph, m))
        given = problem(graph, m, rates)
        counts = random_plan(rng, given, int(rng.integers(8, 20)))
        said = estimate(MODELS["sustainable"], given, counts).throughput
        run = pipeline(given, counts, rates)
        seen = simulate(run, replicas(counts), jumbos=100_000, seed=case)
        assert said == pytest.approx(seen, rel=0.1), (random_seed, case)

"""RAND, UUID, STRUUID, BNODE and NOW derive from the seeds, the place and the report time only."""

import re
from typing import Any

import numpy as np
import polars as pl
from shorthand import IDENTIFY, call, column

from levada.core.expressions import Function as Fn
from levada.core.expressions import Var
from levada.core.rdf_terms import Kind
from levada.operators.expressions import Scope, evaluate

N = 1000
SEEDS = np.arange(N, dtype=np.uint64)
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def run(expression: Any, place: int = 0, columns: Any = None, seeds: Any = SEEDS) -> Any:
    return evaluate(
        expression, Scope(len(seeds), columns or {}, seeds=seeds, identify=IDENTIFY, place=place)
    )


def test_rand_is_spread_over_the_unit_interval() -> None:
    values = run(call(Fn.RAND)).values()[1]
    assert values.min() >= 0
    assert values.max() < 1
    assert abs(values.mean() - 0.5) < 0.05
    assert len(np.unique(values)) == N


def test_uuids_are_well_formed_and_distinct() -> None:
    names = run(call(Fn.STRUUID)).texts().to_list()
    iris = run(call(Fn.UUID)).texts().to_list()
    assert all(re.fullmatch(f'"{UUID}"', t) for t in names)
    assert all(re.fullmatch(f"<urn:uuid:{UUID}>", t) for t in iris)
    assert len(set(names)) == len(set(iris)) == N


def test_the_same_seed_and_place_give_the_same_value_in_any_batch() -> None:
    for function in (Fn.RAND, Fn.UUID, Fn.STRUUID, Fn.BNODE):
        whole = run(call(function)).texts()
        parts = [run(call(function), seeds=SEEDS[i : i + 100]).texts() for i in range(0, N, 100)]
        assert pl.concat(parts).to_list() == whole.to_list()
        assert run(call(function), place=1).texts().to_list() != whole.to_list()


def test_two_calls_in_one_expression_differ() -> None:
    difference = run(call(Fn.SUBTRACT, call(Fn.RAND), call(Fn.RAND))).values()[1]
    assert (difference != 0).all()


def test_bnode_of_a_string_is_one_node_in_a_solution() -> None:
    v = column('"a"', '"b"', '"a"', "1")
    seeds = np.array([5, 5, 6, 5], np.uint64)
    first = run(call(Fn.BNODE, Var("v")), columns={"v": v}, seeds=seeds).texts().to_list()
    again = run(call(Fn.BNODE, Var("v")), columns={"v": v}, seeds=seeds, place=3).texts().to_list()
    assert first == again, "also elsewhere in the query"
    assert len(set(first[:3])) == 3
    assert first[3] is None, "only for simple literals"
    assert all(t.startswith("_:") for t in first[:3])


def test_bnodes_are_blank_nodes_that_differ() -> None:
    nodes = run(call(Fn.BNODE))
    assert (nodes.kinds() == Kind.BLANK).all()
    assert nodes.texts().n_unique() == N


def test_now_may_differ_in_each_row() -> None:
    done = evaluate(call(Fn.NOW), Scope(2, {}, now=np.array([0, 1_500])))
    assert [t[1:25].split('"')[0] for t in done.texts().to_list()] == [
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:00:01.5Z",
    ]
    assert done.values()[2].tolist() == [0, 1_500]

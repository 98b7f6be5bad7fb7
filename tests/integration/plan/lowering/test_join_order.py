"""The order of joins is that of a walk over all pairs at every step; and what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.core.event_time import MIN
from levada.core.expressions import Call, Expression, Function, Var
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Iri
from levada.core.stream_facts import StreamFacts
from levada.engine.engine import Engine
from levada.errors import QueryError
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.logical.query_options import QueryOptions
from levada.plan.lowering import join_order
from levada.plan.optimizer.pipeline import optimize
from levada.plan.physical import build
from levada.plan.physical.operators import Op
from levada.plan.physical.partitioning import join_keys, place
from levada.plan.topology.topology import Topology
from support.call_counter import calls
from support.polling import PATIENCE

STREAM = "http://e/s"


def by_all_pairs(parts: Sequence[Op], conjuncts: Sequence[Expression]) -> Op:
    """The twin: the best of all pairs, in every step."""
    pending = list(conjuncts)
    left_over = [join_order._filter_rows(part, pending, parts) for part in parts]
    while len(left_over) > 1:
        pairs = [(i, j) for i in range(len(left_over)) for j in range(i + 1, len(left_over))]
        i, j = min(pairs, key=lambda ij: (cost(left_over[ij[0]], left_over[ij[1]]), ij))
        joined = build.join(left_over[i], left_over[j])
        rest = [c for n, c in enumerate(left_over) if n not in (i, j)]
        left_over = [join_order._filter_rows(joined, pending, [joined, *rest]), *rest]
    whole = left_over[0]
    for condition in pending:
        whole = build.filter_(whole, condition)
    return whole


def cost(left: Op, right: Op) -> tuple[bool, bool, int, int]:
    _, keys, placed = join_keys(left, right)
    stage, _ = place((left, right), placed)
    center = join_order.center_of(left)
    return (
        not keys,
        not (center is not None and center == join_order.center_of(right)),
        stage,
        -len(keys),
    )


VARIABLES = st.sampled_from("abcdef").map(Var)
PATTERNS = st.tuples(VARIABLES, VARIABLES, st.booleans())
CONDITIONS = st.lists(VARIABLES, min_size=1, max_size=2)


@settings(max_examples=200, deadline=None)
@given(st.lists(PATTERNS, min_size=1, max_size=8), st.lists(CONDITIONS, max_size=3))
def test_the_order_is_that_of_all_pairs(
    patterns: list[tuple[Var, Var, bool]], conditions: list[list[Var]]
) -> None:
    parts = []
    for subject, object_, raw in patterns:
        part = build.match(
            TriplePattern(subject, Iri("http://e/p"), object_), STREAM, (), 0, raw=raw
        )
        parts.append(build.hold(part) if raw else part)
    conjuncts = [Call(Function.AND, tuple(names)) for names in conditions]
    assert join_order.join_all(parts, conjuncts) == by_all_pairs(parts, conjuncts)


def text(patterns: str) -> str:
    return (
        f"SELECT * FROM NAMED WINDOW <w> ON <{STREAM}> [RANGE PT2S STEP PT1S] WHERE {{ "
        f"WINDOW <w> {{ {patterns} }} }}"
    )


def test_a_path_of_hundreds_of_steps_is_planned_in_a_moment() -> None:
    """400 took 34 s when all pairs were looked at in every step."""

    def plan(steps: int) -> int:
        one = text(" . ".join(f"?v{i} <http://e/p{i}> ?v{i + 1}" for i in range(steps)))
        query = optimize(translate(parse(one), QueryOptions(), text=one))
        found = Topology({STREAM: StreamFacts()})
        return calls(lambda: found.add("q", query, MIN)) + calls(found.seal)

    plan(10)  # loads what is loaded late
    assert plan(400) < 3 * plan(200)


def test_a_product_of_hundreds_of_patterns_is_ordered_in_a_moment() -> None:
    """All of its pairs were looked at, at every registration three times."""

    def order(patterns: int) -> int:
        names = [(Var(f"a{i}"), Var(f"b{i}")) for i in range(patterns)]
        parts = [
            build.match(TriplePattern(a, Iri("http://e/p"), b), STREAM, (), 0, raw=False)
            for a, b in names
        ]
        return calls(lambda: join_order._Order(parts)) + calls(join_order._Order(parts).next)

    assert order(400) < 3 * order(200)


@pytest.mark.long
def test_a_query_that_is_too_large_to_be_planned_is_refused_when_it_is_registered(
    tmp_path: Path,
) -> None:
    (tmp_path / "s.nt").write_text("")
    with Engine(spark=False) as engine:
        engine.stream(STREAM, tmp_path / "s.nt")
        engine.start()
        with pytest.raises(QueryError, match="The query is too large to be planned"):
            engine.register(text(" . ".join(f"?s <http://e/p{i}> ?v{i}" for i in range(700))))
        assert engine.queries() == []
        engine.register(text(" . ".join(f"?s <http://e/p{i}> ?v{i}" for i in range(60))))
        engine.stop()
        assert engine.await_end(PATIENCE), "it runs on with what it has"

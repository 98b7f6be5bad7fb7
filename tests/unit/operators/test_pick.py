"""Picking by a table is picking by comparing, whatever the constants."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest

from levada.core.event_time import MIN
from levada.core.frame import Column, Frame
from levada.core.stream_facts import StreamFacts
from levada.kernels.terms.term_ids import identify
from levada.kernels.terms.term_lookup import TermLookup
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.operators.operator_context import OperatorContext
from levada.operators.rows.compensation_filter import pick, route
from levada.operators.rows.route_rows import project_for_consumer
from levada.plan.execution import steps as s
from levada.plan.execution.plan import Plan, PlanNode
from levada.plan.optimizer.pipeline import optimize
from levada.plan.sharing.sharing_modes import Sharing
from levada.plan.topology.topology import Topology

STREAM = "http://e/s"
TEXT = """PREFIX : <http://e/> SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S]
WHERE {{ WINDOW :w {{ ?x :p {} . ?x :q {} . ?x :r ?z }} }}"""
TERMS = (":a", ":b", '"1"', '"01"', "1", "1.0", '"1"@en')


def plan_of(pairs: list[tuple[str, str]], gone: int) -> Plan:
    """Queries that differ in two constants; some of them have gone."""
    found = Topology({STREAM: StreamFacts()}, (), Sharing.RELAX)
    for i, pair in enumerate(pairs):
        text = TEXT.format(*pair)
        found.add(f"q{i}", optimize(translate(parse(text), text=text)), MIN)
    found.seal()
    for i in range(gone):
        found.remove(f"q{i}")
    return found.seal()


def node_of(plan: Plan) -> PlanNode[s.Pick]:
    (node,) = [n for number in plan.order if (n := plan.nodes[number].as_step(s.Pick)) is not None]
    return node


def rows_of(frame: Frame, names: list[str]) -> list[tuple[int, ...]]:
    """The rows in an order that follows from what they hold."""
    return sorted(zip(*(frame[name].tolist() for name in names), strict=True))


@pytest.mark.parametrize("gone", [0, 3])
def test_route_is_pick(random_seed: int, gone: int) -> None:
    draw = random.Random(random_seed)
    # a constant that stands in both patterns is a key, and not picked
    pairs = [(a, b) for a in TERMS for b in TERMS if a != b and draw.random() < 0.5]
    plan, pool = plan_of(pairs, gone), TermLookup(7)
    node = node_of(plan)
    (below,) = node.inputs
    (consumer,) = [c for c in plan.nodes[below].consumers if c.node == node.id]
    texts = [str(t) for m in node.members for t in m.constants] + ["<http://e/other>"]
    rows = 500
    layout = plan.nodes[below].layout
    columns: dict[str, Column] = {n: np.zeros(rows, np.int64) for n in layout.columns()}
    columns["op"] = np.zeros(rows, np.int32)
    columns.update({n: np.full(rows, MIN) for n in columns if n.startswith("prev")})
    for i in range(len(layout.slots)):
        x, y = identify(pl.Series([draw.choice(texts) for _ in range(rows)]), pool.seed)
        columns[f"x{i}"], columns[f"y{i}"] = x, y
    frame = Frame(columns, rows)
    env = OperatorContext.for_rows(pool)
    slow = pick(node, (project_for_consumer(frame, consumer, layout),), env)
    fast = route(node, consumer, frame, layout, pool, mixed=True)
    assert slow is not None and slow.n == fast.n > 0
    assert rows_of(slow, list(slow.columns)) == rows_of(fast, list(slow.columns))
    assert node.alive[fast["op"]].all()

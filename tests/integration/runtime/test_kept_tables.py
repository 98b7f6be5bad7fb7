"""What follows from a node alone is worked out once in a plan, however many nodes and epochs there
are.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from levada.core.array_types import Words
from levada.engine.engine import Engine
from levada.operators.reporting import path_closure
from levada.operators.rows import filter_extend
from levada.operators.rows.constants import identities
from levada.operators.windowed import count_window
from levada.plan.execution.plan import PlanNode
from levada.testing.stream_builders import write_lines
from support.generators import Clause
from support.query_dsl import S, element, query

LAST = {"w": (S, Clause("count", count=9))}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str, int]]:
    """How often each node's table was made: by what is made, the kind and number of the node."""
    found: Counter[tuple[str, str, int]] = Counter()

    def counted(node: PlanNode, seed: int) -> Words:
        found["identities", type(node.step).__name__, node.id] += 1
        return identities(node, seed)

    def parameters(node: PlanNode) -> object:
        found["parameters", type(node.step).__name__, node.id] += 1
        return plain(node)

    plain = filter_extend.parameters
    monkeypatch.setattr(count_window, "identities", counted)
    monkeypatch.setattr(path_closure, "identities", counted)
    monkeypatch.setattr(filter_extend, "parameters", parameters)
    return found


def test_nodes_keep_their_tables_over_epochs(
    tmp_path: Path, made: Counter[tuple[str, str, int]]
) -> None:
    """Selections, a path from a given term and a filter, read again in each of ten epochs."""
    queries = [
        query("SELECT ?s ?o", "WINDOW :w { ?s :p ?o }", name="a", windows=LAST),
        query(
            "SELECT ?s",
            "WINDOW :w { ?s :p 3 FILTER(STRLEN(STR(?s)) > 2) }",
            name="b",
            windows=LAST,
        ),
        query("SELECT ?o", "WINDOW :w { :a :p+ ?o }", name="c", windows=LAST),
    ]
    rows = [element(200 * i, f"s{i % 4} p {i % 5}") for i in range(100)]
    epochs = []
    with Engine(spark=False, checkpoint=tmp_path / "ck", epoch_rows=10, partitions=2) as engine:
        engine.stream(S, write_lines(tmp_path / "s.nt", rows))
        for one in queries:
            engine.register(one.text, name=one.name)
        engine._on_epoch(epochs.append)
        engine.start(once=True)
        engine.await_end()
    assert len(epochs) >= 10
    kinds = Counter((what, kind) for what, kind, _ in made)
    assert kinds["identities", "Select"] >= 2
    assert kinds["identities", "Closure"] == 1
    assert kinds["parameters", "Filter"] == 1
    assert set(made.values()) == {1}, "each once, although there are ten epochs"

"""Queries of a table share with other queries as texts do, and get what they get alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from levada import Engine
from levada.plan.execution.steps import Join

Reports = dict[str, list[tuple[int | None, list[str]]]]
STREAM = "http://e/s"
EACH = """PREFIX : <http://e/>
SELECT ?x FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT4S STEP PT2S]
WHERE { WINDOW :w { ?x :p <http://e/{{c}}> . ?x :q ?z } }"""
WIDER = EACH.replace("SELECT ?x", "SELECT ?x ?z").replace("{{c}}", "c2")
ROWS = [{"c": f"c{i}"} for i in range(12)]
OTHERS = EACH.replace("SELECT ?x", "SELECT ?x ?z").replace("{{c}}", "d{{c}}")


def write_stream(path: Path) -> None:
    lines = []
    for i in range(60):
        lines += [
            f"<http://e/x{i % 20}> <http://e/p> <http://e/{constant}> {i * 100} .\n"
            for constant in (f"c{i % 12}", f"dc{i % 7}")
        ]
        lines.append(f"<http://e/x{i % 20}> <http://e/q> <http://e/z{i % 3}> {i * 100} .\n")
    path.write_text("".join(lines))


def run(folder: Path, sharing: str, order: str) -> tuple[Reports, int, list[str]]:
    """Returns the reports of each query, the number of joins, and the journal."""
    folder.mkdir()
    write_stream(folder / "s.nt")
    with Engine(spark=False, checkpoint=folder / "c", sharing=sharing) as engine:
        engine.stream(STREAM, folder / "s.nt", unit="ms")
        queries = []
        for kind in order:
            if kind == "r":
                queries += engine.register_each(EACH, ROWS, name="{{c}}")
            elif kind == "o":
                queries += engine.register_each(OTHERS, ROWS, name="other-{{c}}")
            else:
                queries.append(engine.register(WIDER, name="wider"))
        engine.start(once=True)
        engine.await_end()
        assert engine._driver is not None
        topology = engine._driver._catalog._topology
        assert topology is not None and not any("\0" in name for name in topology.queries)
        joins = sum(
            len(node.members.index)
            for node in topology.graph.nodes.values()
            if isinstance(node.shape.step, Join)
        )
        results = {
            q.name: [(r.time, sorted(map(str, r.rows.rows()))) for r in q.results()]
            for q in queries
        }
        return results, joins, [what for _, what in topology.sharing.journal.kept.log]


@pytest.mark.parametrize("order", ["rt", "tr", "rto", "otr"])
def test_rows_and_texts_that_read_other_columns_have_one_join(order: str, tmp_path: Path) -> None:
    shared, joins, journal = run(tmp_path / "relax", "relax", order)
    alone, _, _ = run(tmp_path / "off", "off", order)
    assert shared == alone and any(shared.values())
    assert joins == 1
    assert not any("\0" in what for what in journal)


def test_rows_keep_a_side_with_texts_in_exact(tmp_path: Path) -> None:
    shared, _, _ = run(tmp_path / "exact", "exact", "rt")
    alone, _, _ = run(tmp_path / "off", "off", "rt")
    assert shared == alone

"""A condition that compares constants alone is as any other, in each mode of sharing."""

from __future__ import annotations

from pathlib import Path

import pytest

import levada
from levada.plan.sharing.sharing_modes import Sharing

TEXT = """PREFIX : <http://e/> SELECT ?a ?n FROM NAMED WINDOW :w ON :s [RANGE 2s STEP 2s]
WHERE {{ WINDOW :w {{ ?a :p ?b }} WINDOW :w {{ ?b :n ?n FILTER({condition}) }} }}"""
CONDITIONS = {
    "1 > 2": 0, "1 <= -1": 0, "1 < 2": 1, '"a" = "a"': 1, "?c > 1 && 1 <= 2": 0,
    'STRSTARTS("ab", "a")': 1, "2 IN (1, 3)": 0, "1 = 1 && ?n > 2": 1,
}  # fmt: skip


@pytest.mark.parametrize("sharing", ["off", "exact", Sharing.CONTAINMENT, "relax"])
def test_conditions_on_constants(tmp_path: Path, sharing: str) -> None:
    (tmp_path / "a.nt").write_text(
        "<http://e/a> <http://e/p> <http://e/b> 1000 .\n"
        '<http://e/b> <http://e/n> "3"^^<http://www.w3.org/2001/XMLSchema#integer> 1100 .\n'
    )
    with levada.Engine(spark=False, sharing=sharing) as engine:
        engine.stream("http://e/s", tmp_path / "a.nt")
        queries = [engine.register(TEXT.format(condition=each)) for each in CONDITIONS]
        engine.start(once=True)
        engine.await_end()
        found = [sum(len(report.rows) for report in query.results()) for query in queries]
    assert found == list(CONDITIONS.values())

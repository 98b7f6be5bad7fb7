"""Large static data on real Spark: gathered by a job of its own, and replaced."""

from pathlib import Path
from typing import Any

import pytest

from levada.engine.engine import Engine
from levada.runtime.driver import load_static

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
TEXT = "SELECT (COUNT(*) AS ?n) (SUM(?o) AS ?m) { ?s <http://e/p> ?o }"


def graph(n: int) -> list[str]:
    """So many triples, each of them twice."""
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return 2 * [f"<http://e/s{i}> <http://e/p> {number.format(i)}" for i in range(n)]


def test_gathered_and_replaced(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_static, "LARGE_FILE_BYTES", 1)
    monkeypatch.setattr(load_static, "PIECE", 20_000)
    with Engine(spark=spark, checkpoint=tmp_path / "c", partitions=2) as engine:
        engine.static(graph(1000), replaceable=True)
        query = engine.register(TEXT)
        engine.start()
        answers = query.results()
        found = [next(answers).rows.rows()[0]]
        engine.static(graph(1500))
        found.append(next(answers).rows.rows()[0])
        engine.stop()
    assert [tuple(int(value.split('"')[1]) for value in row) for row in found] == [
        (1000, 499_500),
        (1500, 1_124_250),
    ]

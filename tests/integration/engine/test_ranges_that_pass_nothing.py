"""Queries with many thresholds go on where no row passes them."""

from __future__ import annotations

from pathlib import Path

import pytest

import levada
from levada.plan.sharing.sharing_modes import Sharing

WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE 1s STEP 1s]"
BODIES = (
    "WINDOW :w {{ ?c :n ?n }} FILTER(?n < {a} && ?n >= {b})",
    "WINDOW :w {{ ?c :n ?n . ?c :p ?d }} FILTER(?n < {a}) FILTER(?n >= {b})",
)


@pytest.mark.long
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("sharing", ["off", "exact", Sharing.CONTAINMENT, "relax"])
@pytest.mark.parametrize("values", [(50,), (-500,), (50, 7)])
def test_a_grid_of_ranges(tmp_path: Path, body: str, sharing: str, values: tuple[int, ...]) -> None:
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    (tmp_path / "a.nt").write_text(
        "".join(
            f'<http://e/c> <http://e/n> "{value}"^^<{integer}> {1000 * i + 100} .\n'
            f"<http://e/c> <http://e/p> <http://e/d> {1000 * i + 150} .\n"
            for i, value in enumerate(values)
        )
    )
    grid = [(a, b) for a in range(10, 27) for b in range(0, -17, -1)]
    with levada.Engine(spark=False, sharing=sharing) as engine:
        engine.stream("http://e/s", tmp_path / "a.nt")
        texts = [
            f"PREFIX : <http://e/> SELECT ?c {WINDOW} WHERE {{ {body.format(a=a, b=b)} }}"
            for a, b in grid
        ]
        queries = engine.register_all(
            [levada.QueryRequest(text, f"q{i}") for i, text in enumerate(texts)]
        )
        engine.start(once=True)
        engine.await_end()
        found = [sum(len(report.rows) for report in query.results()) for query in queries]
    assert found == [sum(b <= value < a for value in values) for a, b in grid]

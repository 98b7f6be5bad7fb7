"""Large static files are read by many tasks: the same answers as by one, each triple once, and
nothing is left of it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.engine.engine import Engine
from levada.runtime.driver import load_static
from levada.testing.reference_model import Element
from levada.testing.stream_builders import write_lines
from support.query_dsl import S

PREFIX = "PREFIX : <http://e/>\n"
TEXTS = (
    f"{PREFIX}SELECT ?s ?v ?t FROM NAMED WINDOW :w ON <{S}> [RANGE PT2S STEP PT1S] {{ "
    f"WINDOW :w {{ ?s :p ?o }} ?s :v ?v ; :t ?t }}",
    f"{PREFIX}SELECT ?g (COUNT(*) AS ?n) {{ GRAPH ?g {{ ?s ?p ?o FILTER(?o != 3.50) }} }} "
    "GROUP BY ?g",
    f"{PREFIX}SELECT (COUNT(*) AS ?n) {{ ?s :t ?o }}",
)
FIRST = [
    f'<http://e/s{i % 90}> <http://e/v> "{i % 7}.50"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    for i in range(400)
]
SECOND = [f'<http://e/s{i % 60}> <http://e/t> "text {i % 11}"' for i in range(500)]
ELEMENTS = [Element(400 * i, (f"<http://e/s{i}> <http://e/p> <http://e/o>",)) for i in range(14)]


def answers(root: Path, later: list[str]) -> list[list[tuple]]:
    """What the queries say over two runs, of which the second one has other static data."""
    found: list[list[tuple]] = [[] for _ in TEXTS]
    for part, graph in enumerate((SECOND, later)):
        with Engine(
            spark=False, checkpoint=root / "ck", partitions=3, epoch_rows=4, seed=7
        ) as engine:
            engine.stream(S, write_lines(root / "s.nt", ELEMENTS[: 7 * (part + 1)]))
            engine.static(FIRST)
            engine.static(graph, replaceable=True)
            engine.static([*FIRST[:200], *FIRST[100:300]], "http://e/g")
            engine.static(graph[::-1], "http://e/h", replaceable=True)
            queries = [engine.register(text, name=f"q{i}") for i, text in enumerate(TEXTS)]
            engine.start(once=True, keep_open=not part)
            engine.await_end()
            for rows, query in zip(found, queries, strict=True):
                rows += sorted(query.to_polars(terms=True).rows(), key=str)
    return found


@pytest.mark.parametrize("piece", [1000, 1_000_000])
def test_many_tasks_find_what_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    later = [*SECOND[100:], '<http://e/s3> <http://e/t> "new"']
    roots = [tmp_path / name for name in ("one", "many")]
    for root in roots:
        root.mkdir()
    one = answers(roots[0], later)
    monkeypatch.setattr(load_static, "LARGE_FILE_BYTES", 1)
    monkeypatch.setattr(load_static, "PIECE", piece)
    many = answers(roots[1], later)
    assert one == many
    assert len(one[0]) > 20 and len(one[1]) == 4 and len(one[2]) == 2
    assert not [p for p in (roots[1] / "ck" / "state").iterdir() if "static" in p.name]

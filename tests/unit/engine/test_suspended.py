"""A query that would make too many rows is suspended, durably; the others go on, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from levada import Engine
from levada.engine.telling.status import read_status

PAIRS = """PREFIX : <http://e/> SELECT ?a ?b
FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT1S STEP PT1S]
WHERE { WINDOW :w { ?a :p ?x . ?b :p ?y } }"""
COUNT = """PREFIX : <http://e/> SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON <http://e/s>
[RANGE PT1S STEP PT1S] WHERE { WINDOW :w { ?a :p ?x } }"""


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    path = tmp_path / "s.nt"
    path.write_text("".join(f'<http://e/a{i}> <http://e/p> "{i}" {40 * i} .\n' for i in range(100)))
    return path


def run(folder: Path, queries: dict[str, str], **options: Any) -> dict[str, list[tuple[Any, int]]]:
    """The reports of each query with the number of their rows."""
    found: dict[str, list[tuple[Any, int]]] = {}
    given = {"epoch_rows": 30, "checkpoint": folder / "checkpoint", **options}
    with Engine(spark=False, **given) as engine:
        engine.stream("http://e/s", folder / "s.nt")
        handles = [engine.register(text, name=name) for name, text in queries.items()]
        engine.start(once=True, keep_open=True)
        engine.await_end()
        for handle in handles:
            found[handle.name] = [(r.time, len(r.rows)) for r in handle.results()]
    return found


def counted(stream: Path) -> Iterator[tuple[int, int]]:
    """What COUNT reports: the stream is complete up to 3,960."""
    return ((1000 * (i + 1), 1) for i in range(3))


def test_the_others_go_on_and_it_lasts(stream: Path, tmp_path: Path) -> None:
    both = {"pairs": PAIRS, "count": COUNT}
    with pytest.warns(UserWarning, match=r"The query pairs is suspended\. .*500 rows.*--max-rows"):
        found = run(tmp_path, both, max_rows=500)
    assert found["count"] == [*counted(stream)]
    assert sum(n for _, n in found["pairs"]) <= 500
    status = read_status(tmp_path / "checkpoint")
    assert list(status.suspended) == ["pairs"]
    assert [q.name for q in status.queries] == ["count"]
    with stream.open("a") as file:
        file.write(
            "".join(f'<http://e/b{i}> <http://e/p> "{i}" {4000 + i} .\n' for i in range(2000))
        )
    again = run(tmp_path, both, max_rows=500)
    assert again["count"] == [(4000, 1), (5000, 1)]
    assert again["pairs"] == []


def test_a_higher_bound_lets_it_go_on(stream: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="suspended"):
        run(tmp_path, {"pairs": PAIRS}, max_rows=500)
    with stream.open("a") as file:
        file.write(
            "".join(f'<http://e/b{i}> <http://e/p> "{i}" {5000 + 100 * i} .\n' for i in range(30))
        )
    found = run(tmp_path, {"pairs": PAIRS}, max_rows=5000)
    assert (6000, 100) in found["pairs"] or (7000, 100) in found["pairs"]
    assert not read_status(tmp_path / "checkpoint").suspended


def test_what_folds_is_bounded_in_memory_and_not_suspended(tmp_path: Path) -> None:
    lines = [f'<http://e/a{i}> <http://e/p> "{i}" 10 .\n' for i in range(1500)]
    (tmp_path / "s.nt").write_text("".join(lines) + '<http://e/b> <http://e/p> "" 1500 .\n')
    text = PAIRS.replace("?a ?b", "(COUNT(*) AS ?n)")
    with Engine(spark=False) as engine:
        engine.stream("http://e/s", tmp_path / "s.nt")
        query = engine.register(text)
        engine.start(once=True)
        first = next(query.results())
        assert str(1500 * 1500) in first.rows["n"][0]

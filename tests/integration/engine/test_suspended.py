"""A query that would make too many rows is suspended, durably; the others go on, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from levada import Engine
from levada.connectors.serialization.result_formats import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.engine.status.status import read_status
from levada.engine.suspended_queries import Suspended
from support.fault_injection import Fate, published, survived

PAIRS = """PREFIX : <http://e/> SELECT ?a ?b
FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT1S STEP PT1S]
WHERE { WINDOW :w { ?a :p ?x . ?b :p ?y } }"""
CHANGES = 12  # of the disk: from the suspension to the commit of the epoch without the query
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
    assert list(status.suspended_queries) == ["pairs"]
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
    assert not read_status(tmp_path / "checkpoint").suspended_queries


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


def attempt(folder: Path, root: Path, names: str, kills: Any = None, fate: Any = None) -> bool:
    """A run with some of two queries; whether it came to its end."""
    engine = Engine(
        spark=False, checkpoint=root / "ck", epoch_rows=30, partitions=2, max_rows=500, seed=7,
        sink=FileSink(root / "out", Format.NDJSON), keep_results=False,
    )  # fmt: skip
    engine.stream("http://e/s", folder / "s.nt")
    for name in names.split():
        engine.register({"pairs": PAIRS, "count": COUNT}[name], name=name)
    return bool(survived(engine, kills, fate))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The query pairs is suspended")
def test_killed_before_any_change_of_the_disk(
    stream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, while and after the suspension is written: the same query is suspended, and what the
    other one reports is what it reports alone.
    """
    fate, add, at = Fate(monkeypatch), Suspended.add, list[int]()

    def adds(self: Suspended, *arguments: Any) -> None:
        at.append(fate.calls)
        add(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Suspended, "add", adds)
        assert attempt(tmp_path, tmp_path / "whole", "pairs count", None, fate)
    whole = published(tmp_path / "whole")
    assert attempt(tmp_path, tmp_path / "alone", "count")
    alone = published(tmp_path / "alone")
    counts = {name: text for name, text in whole.items() if "/pairs/" not in name}
    assert reported(counts) == reported(alone) and len(reported(alone)) > 2
    suspended = []
    for k in range(at[0] - 1, at[0] + CHANGES):
        root = tmp_path / str(k)
        assert not attempt(tmp_path, root, "pairs count", k, fate), f"the kill before {k} came"
        suspended.append((root / "ck" / "suspended.json").exists())
        assert attempt(tmp_path, root, "pairs count"), f"after a kill before call {k}"
        assert list(read_status(root / "ck").suspended_queries) == ["pairs"], k
        assert published(root) == whole, f"after a kill before call {k}"
    assert suspended == sorted(suspended) and not suspended[0] and sum(suspended) > CHANGES // 2


def reported(files: dict[str, str]) -> list[str]:
    """All lines of results."""
    return sorted(line for text in files.values() for line in text.splitlines())


SHARED = """PREFIX : <http://e/> SELECT ?x ?z FROM NAMED WINDOW :w ON <http://e/s>
[RANGE PT1S STEP PT1S] WHERE {{ WINDOW :w {{ ?x :k :{} . ?x :q ?z {} }} }}"""


@pytest.mark.long
@pytest.mark.parametrize("more", ["", ". ?z :r ?x", "FILTER(?z > 1)"])
@pytest.mark.parametrize("sharing", ["off", "relax"])
def test_of_those_who_share_a_join_only_the_one_with_too_many_rows(
    tmp_path: Path, sharing: str, more: str
) -> None:
    lines = [f"<http://e/{c}> <http://e/k> <http://e/{c}> 0 ." for c in "abc"]
    number = "http://www.w3.org/2001/XMLSchema#integer"
    for c, many in (("a", 3), ("b", 600), ("c", 5)):
        for i in range(2, many + 2):
            z = f'"{i}"^^<{number}>' if "FILTER" in more else f"<http://e/z{i}>"
            lines.append(f"<http://e/{c}> <http://e/q> {z} 0 .")
            lines += [f"{z} <http://e/r> <http://e/{c}> 0 ."] if ":r" in more else []
    (tmp_path / "s.nt").write_text(
        "\n".join([*lines, "<http://e/e> <http://e/e> <http://e/e> 3000 .", ""])
    )
    queries = {c: SHARED.format(c, more) for c in "abc"}
    with pytest.warns(UserWarning, match="The query b is suspended"):
        found = run(tmp_path, queries, max_rows=500, epoch_rows=10_000, sharing=sharing)
    assert [found[c][:1] for c in "abc"] == [[(1000, 3)], [], [(1000, 5)]]
    assert list(read_status(tmp_path / "checkpoint").suspended_queries) == ["b"]

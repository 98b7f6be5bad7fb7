"""Death before every change of the disk while static graphs are replaced: the replay sees the same
content at the same instant.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from levada.checkpoint.checkpoint_folder import newest_manifest
from levada.checkpoint.file_inventory import names_of
from levada.checkpoint.manifest import read_manifest
from levada.connectors.serialization.serialize import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.engine.engine import Engine
from levada.testing.compare import read_ndjson, same_queries
from levada.testing.reference import evaluate
from levada.testing.stream_builders import write_lines
from support.fault_injection import Fate, published, survived
from support.query_dsl import S, T, element, query, step

LEFT = [element(250 * i, f"a{i % 3} p {i % 4}") for i in range(12)]
RIGHT = [element(400 * i, f"a{i % 2} q {i}") for i in range(8)]
STREAMS = {S: LEFT, T: RIGHT}
STRIDE = 1 if os.environ.get("LEVADA_CASES") else 11
READ = {S: 6, T: 3}  # before the replacement
WINDOWS = {"w": (S, step(2000, 1000)), "v": (T, step(2000, 500))}
QUERIES = [
    query(
        "SELECT ?a ?n ?k",
        "WINDOW :w { ?a :p ?n } WINDOW :v { ?a :q ?m } ?a :kind ?k",
        name="join",
        windows=WINDOWS,
    ),
    query(
        "SELECT ?k (COUNT(*) AS ?n)",
        "WINDOW :w { ?a :p ?x } ?a :kind ?k",
        tail=" GROUP BY ?k",
        name="count",
        windows={"w": WINDOWS["w"]},
    ),
    query(
        "SELECT ?a",
        "WINDOW :w { ?a :p ?n } FILTER NOT EXISTS { ?a :kind :new }",
        name="none",
        windows={"w": WINDOWS["w"]},
        output="ISTREAM",
    ),
    query(
        "SELECT ?a ?r",
        "WINDOW :w { ?a :p ?n } GRAPH :fixed { ?a :rank ?r }",
        name="kept",
        windows={"w": WINDOWS["w"]},
    ),
    query(
        "SELECT ?a ?r ?k",
        "WINDOW :v { ?a :q ?m } ?a :kind ?k GRAPH :fixed { ?a :rank ?r }",
        name="both",
        windows={"v": WINDOWS["v"]},
    ),
]
ONCE = "PREFIX : <http://e/>\nSELECT ?a ?k { ?a :kind ?k }"
LATE = "PREFIX : <http://e/>\nSELECT ?a ?r { ?a :rank ?r }"
RANKS = [
    "<http://e/a1> <http://e/rank> <http://e/first>",
    "<http://e/a2> <http://e/rank> <http://e/none>",
]
FIXED = "http://e/fixed"
OLD = tuple(f"<http://e/a{i}> <http://e/kind> <http://e/old>" for i in range(3))
NEW = (OLD[0], *(f"<http://e/a{i}> <http://e/kind> <http://e/new>" for i in range(1, 3)))


def attempt(root: Path, part: int, fate: Fate | None = None, kills: int | None = None) -> bool:
    """The run before the replacement (0) or the one with it (1); whether it came to its end."""
    out = FileSink(root / "out", Format.NDJSON)
    engine = Engine(
        spark=False, checkpoint=root / "ck", epoch_rows=5, partitions=2, sink=out,
        letters=root / "out", seed=7, keep_results=False
    )  # fmt: skip
    for i, (name, elements) in enumerate(STREAMS.items()):
        engine.stream(
            name, write_lines(root / f"{i}.nt", elements if part else elements[: READ[name]])
        )
    engine.static(NEW if part else OLD, replaceable=True)
    for q in QUERIES:
        engine.register(q.text, name=q.name)
    engine.register(ONCE, name="once")
    engine.static(RANKS)
    engine.static(RANKS, FIXED)  # kept once for two joins
    if part:
        engine.register(LATE, name="after")  # over the imprint that the first run has made
    return survived(engine, kills, fate, keep_open=not part)


@pytest.fixture
def fate(monkeypatch: pytest.MonkeyPatch) -> Fate:
    return Fate(monkeypatch)


def test_without_a_kill_it_is_what_the_reference_says(tmp_path: Path) -> None:
    assert attempt(tmp_path, 0) and attempt(tmp_path, 1)
    got = read_ndjson(line for text in published(tmp_path).values() for line in text.splitlines())
    latest = max(e.ts for name, n in READ.items() for e in STREAMS[name][:n])
    expected = {
        q.name: evaluate(
            q.reference, STREAMS, {None: OLD, FIXED: RANKS}, [(latest, {None: NEW, FIXED: RANKS})]
        )
        for q in QUERIES
    }
    assert len(got.pop("once")) == 2
    assert [len(r.solutions) for r in got.pop("after")] == [2]
    for reports in got.values():
        reports.sort(key=lambda r: r.time)
    assert same_queries(expected, got) is None


@pytest.mark.long
def test_killed_before_changes_of_the_disk(tmp_path: Path, fate: Fate) -> None:
    """Before each of them with ``LEVADA_CASES``, before some in CI."""
    whole = tmp_path / "whole"
    whole.mkdir()
    attempt(whole, 0)
    assert attempt(whole, 1, fate)
    points = fate.calls
    assert points > 40
    for k in range(0, points, STRIDE):
        root = tmp_path / str(k)
        root.mkdir()
        attempt(root, 0)
        assert not attempt(root, 1, fate, k), f"the kill before call {k} came"
        assert attempt(root, 1), f"after a kill before call {k}"
        assert published(root) == published(whole), f"after a kill before call {k}"
        copies = [p for p in (root / "ck" / "static").iterdir() if len(p.stem) == 32]
        assert len(copies) == 1, f"after a kill before call {k}"
        assert imprints(root) == imprints(whole), f"after a kill before call {k}"


def imprints(root: Path) -> int:
    """How many files of imprints lie in a checkpoint, which are all that it names."""
    last = newest_manifest(root / "ck")
    assert last is not None
    named = names_of(root / "ck", last).files
    found = {f"state/{p.name}" for p in (root / "ck" / "state").glob("*-imprint-*")}
    before = read_manifest(root / "ck" / "manifests" / str(last.epoch - 1))
    assert found <= named | names_of(root / "ck", before).files
    return len(found)

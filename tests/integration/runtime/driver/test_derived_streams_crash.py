"""A chain of queries, killed before changes of the disk: what a maker's segments hold lives until
it has been read.

Before every change with ``LEVADA_CASES``, else before some: a run takes a third of a second.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from levada.connectors.serialization.serialize import Format
from levada.connectors.sinks.file_sink import FileSink, Roll
from levada.engine.engine import Engine
from levada.engine.query_request import QueryRequest
from levada.testing.stream_builders import write_lines
from support.fault_injection import Fate, published, survived
from support.query_dsl import S, element, step

ELEMENTS = [element(250 * i, f"a{i % 3} p {i % 4}", f"a{i % 3} q b{i % 2}") for i in range(12)]
WINDOW = f"ON <{S}> {step(1000, 500).rspql}"
QUERIES = {
    "reader": "SELECT ?a ?m ?n FROM NAMED WINDOW :w ON :most [RANGE PT2S STEP PT1S] "
    "FROM NAMED WINDOW :v ON :back [RANGE PT1S] "
    "WHERE { WINDOW :w { ?a :most ?m } WINDOW :v { [] :of ?a ; :n ?n } }",
    "back": "REGISTER ISTREAM :back AS CONSTRUCT { [] :of ?a ; :n ?m } "
    "FROM NAMED WINDOW :w ON :most [RANGE PT1S] "
    "WHERE { WINDOW :w { ?a :most ?m } }",
    "first": f"REGISTER RSTREAM :most AS CONSTRUCT {{ ?a :most ?m }} FROM NAMED WINDOW :w {WINDOW} "
    "WHERE { { SELECT ?a (MAX(?n) AS ?m) WHERE { WINDOW :w { ?a :p ?n } } GROUP BY ?a } }",
}

STRIDE = 1 if "LEVADA_CASES" in os.environ else 25


@pytest.fixture
def fate(monkeypatch: pytest.MonkeyPatch) -> Any:
    return Fate(monkeypatch)


def attempt(data: Any, root: Any, kills: Any = None, fate: Any = None, roll: Any = None) -> Any:
    """A run; whether it came to its end."""
    out = FileSink(root / "out", Format.NDJSON, roll or Roll())
    engine = Engine(
        spark=False,
        checkpoint=root / "ck",
        epoch_rows=4,
        partitions=2,
        sink=out,
        seed=7,
        keep_results=False,
    )
    engine.stream(S, data)
    engine.register_all(
        [QueryRequest(f"PREFIX : <http://e/>\n{text}", name) for name, text in QUERIES.items()]
    )
    return survived(engine, kills, fate)


@pytest.fixture
def data(tmp_path: Path) -> Any:
    write_lines(tmp_path / "s.nt", ELEMENTS)
    return tmp_path / "s.nt"


@pytest.mark.long
def test_killed_before_any_change_of_the_disk(tmp_path: Path, data: Any, fate: Any) -> None:
    assert attempt(data, tmp_path / "whole", None, fate)
    whole, points = published(tmp_path / "whole"), fate.calls
    assert {name.split("/")[1] for name in whole} == {"first", "back", "reader"}
    for k in range(3, points, STRIDE):
        root = tmp_path / str(k)
        assert not attempt(data, root, k, fate), f"the kill before call {k} came"
        assert attempt(data, root), f"after a kill before call {k}"
        assert published(root) == whole, f"after a kill before call {k}"


def test_killed_again_and_again_while_results_are_held_back(
    tmp_path: Path, data: Any, fate: Any
) -> None:
    roll = Roll(bytes=6_000, age=10**9)
    assert attempt(data, tmp_path / "whole", None, fate, roll)
    kills = 0
    while not attempt(data, tmp_path, 11 + 5 * kills, fate, roll):
        kills += 1
        assert kills < 60, "each start gets further than the one before"
    assert kills > 5
    assert published(tmp_path) == published(tmp_path / "whole")


def test_what_is_kept_are_the_segments_that_can_still_be_read(tmp_path: Path, data: Any) -> None:
    assert attempt(data, tmp_path)
    epochs = {int(p.name.split("-")[0]) for p in (tmp_path / "ck" / "results").iterdir()}
    last = max(int(p.name) for p in (tmp_path / "ck" / "manifests").iterdir())
    assert epochs <= {last - 1, last}

"""Queries whose ranges overlap, IStreams over windows of other ranges, and queries that read their
patterns in one window or in two and list values, killed before changes of the disk: their rows are
kept once for all, and are shown by cell, whoever goes on.

Before every change with ``LEVADA_CASES``, else before some: a run takes a third of a second.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from levada.connectors.serialization.serialize import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.engine.engine import Engine
from levada.engine.query_request import QueryRequest
from levada.testing.stream_builders import write_lines
from support.fault_injection import Fate, published, survived
from support.query_dsl import S, element, step

ELEMENTS = [element(250 * i, f"a{i % 3} p {i % 4}", f"a{i % 3} q b{i % 2}") for i in range(14)]
TEXT = f"""PREFIX : <http://e/>
SELECT ?a ?z FROM NAMED WINDOW :w ON <{S}> {step(1500, 500).rspql}
WHERE {{{{ WINDOW :w {{{{ ?a :p ?v . ?a :q ?z FILTER(?v > {{0}}) }}}} }}}}"""
ISTREAM = f"""PREFIX : <http://e/> REGISTER ISTREAM :o AS
SELECT ?a ?z FROM NAMED WINDOW :w ON <{S}> [RANGE PT{{0}}S]
WHERE {{{{ WINDOW :w {{{{ ?a :p ?v . ?a :q ?z }}}} }}}}"""
APART = f"""PREFIX : <http://e/>
SELECT ?a ?v ?z FROM NAMED WINDOW :w ON <{S}> [RANGE PT{{0}}S]
FROM NAMED WINDOW :u ON <{S}> {step(1500, 500).rspql}
WHERE {{{{ WINDOW :w {{{{ ?a :p ?v }}}} WINDOW :u {{{{ ?a :q ?z }}}}
FILTER(?v IN (0, {{0}}, 3)) }}}}"""
LISTED = TEXT.replace("?v > {0}", "?v IN (1, {0}, 3)")
ASKED = {
    "conditions": [QueryRequest(TEXT.format(i), f"above-{i}") for i in (-1, 0, 1, 2)],
    "ranges": [QueryRequest(ISTREAM.format(i / 2), f"of-{i}") for i in (1, 2, 3, 6)],
    "windows": [
        *(QueryRequest(APART.format(i), f"apart-{i}") for i in (1, 2)),
        *(QueryRequest(LISTED.format(i), f"one-{i}") for i in (0, 2)),
    ],
}
STRIDE = 1 if "LEVADA_CASES" in os.environ else 45


@pytest.fixture
def fate(monkeypatch: pytest.MonkeyPatch) -> Any:
    return Fate(monkeypatch)


def attempt(data: Path, root: Path, kind: str, kills: Any = None, fate: Any = None) -> Any:
    """A run; whether it came to its end."""
    engine = Engine(
        spark=False,
        checkpoint=root / "ck",
        epoch_rows=4,
        partitions=2,
        sink=FileSink(root / "out", Format.NDJSON),
        seed=7,
        sharing="relax",
        keep_results=False,
    )
    engine.stream(S, data)
    engine.register_all(ASKED[kind])
    return survived(engine, kills, fate)


@pytest.mark.long
@pytest.mark.parametrize("kind", ASKED)
def test_killed_before_any_change_of_the_disk(tmp_path: Path, fate: Any, kind: str) -> None:
    write_lines(tmp_path / "s.nt", ELEMENTS)
    data = tmp_path / "s.nt"
    assert attempt(data, tmp_path / "whole", kind, None, fate)
    whole, points = published(tmp_path / "whole"), fate.calls
    assert {name.split("/")[1] for name in whole} == {one.name for one in ASKED[kind]}
    for k in range(3, points, STRIDE):
        root = tmp_path / str(k)
        assert not attempt(data, root, kind, k, fate), f"the kill before call {k} came"
        assert attempt(data, root, kind), f"after a kill before call {k}"
        assert published(root) == whole, f"after a kill before call {k}"

"""Death before changes of the disk while several joins read a side that is kept once: the replay
meets what was there when the epoch began, and nothing that it had added itself.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from levada.connectors.serialization.serialize import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.engine.engine import Engine
from levada.plan.execution import steps as s
from levada.testing.compare import read_ndjson
from levada.testing.stream_builders import write_lines
from support.fault_injection import Fate, published, survived
from support.generators import Clause
from support.query_dsl import S, element, judge, query, register, step

ELEMENTS = [
    element(250 * i, f"a{i % 3} p {i % 4}", f"a{i % 3} q b{i % 2}", f"a{i % 2} r {i % 5}")
    for i in range(14)
]
STRIDE = 1 if os.environ.get("LEVADA_CASES") else 23
WINDOW = {"w": (S, step(2000, 1000))}
QUERIES = [
    query(f"SELECT {shown}", f"WINDOW :w {{ {body} }}", name=name, windows=WINDOW, output=output)
    for name, shown, body, output in (
        ("rest", "?a ?n", "?a :q ?b . ?a :r ?n", "RSTREAM"),
        ("fresh", "?a ?b ?n", "?a :q ?b . ?a :p ?n", "ISTREAM"),
        ("count", "(COUNT(*) AS ?all)", "?a :q ?b . ?a :p ?n . ?a :r ?m", "RSTREAM"),
    )
] + [
    query(
        "SELECT ?a ?b ?n", "WINDOW :w { ?a :q ?b . ?a :p ?n FILTER(?n > 1) }", name="range",
        windows={"w": (S, Clause("range", 1500))},
    )
]  # fmt: skip


def attempt(root: Path, kills: int | None = None, fate: Fate | None = None) -> bool:
    """A run; whether it came to its end."""
    out = FileSink(root / "out", Format.NDJSON)
    engine = Engine(
        spark=False, checkpoint=root / "ck", epoch_rows=12, partitions=2, sink=out, seed=7,
        keep_results=False,
    )  # fmt: skip
    path = root / "s.nt"
    engine.stream(S, path if path.exists() else write_lines(path, ELEMENTS))
    register(engine, QUERIES)
    ended = survived(engine, kills, fate)
    if ended and kills is None and engine._driver is not None and engine._driver.epochs.plan:
        steps = [type(node.step) for node in engine._driver.epochs.plan.nodes.values()]
        assert s.ArrangeStream in steps and s.StreamJoin in steps
    return ended


def test_killed_before_a_change_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fate = Fate(monkeypatch)
    (tmp_path / "whole").mkdir()
    assert attempt(tmp_path / "whole", None, fate)
    whole, points = published(tmp_path / "whole"), fate.calls
    judge(QUERIES, {S: ELEMENTS}, read_ndjson(
        line for name in sorted(whole) for line in whole[name].splitlines()
    ))  # fmt: skip
    assert points > 60, "there are several epochs with many steps each"
    for k in range(7, points, STRIDE):
        root = tmp_path / str(k)
        root.mkdir()
        assert not attempt(root, k, fate), f"the kill before call {k} came"
        assert attempt(root), f"after a kill before call {k}"
        assert published(root) == whole, f"after a kill before call {k}"

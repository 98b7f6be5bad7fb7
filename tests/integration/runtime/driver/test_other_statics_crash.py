"""Death before changes of the disk while a newcomer's static rows come to those that are kept for
others (``RelaxedStatic``): the replay adds them once, and each query says what it says with nothing
shared.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from levada.connectors.serialization.serialize import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.engine.engine import Engine
from levada.plan.execution import steps as s
from levada.testing.stream_builders import write_lines
from support.fault_injection import Fate, published, survived
from support.query_dsl import S, element, query, register, step

ELEMENTS = [element(250 * i, f"a{i % 9} p {i % 4}") for i in range(24)]
KINDS = "".join(f"<http://e/a{i}> <http://e/kind> <http://e/k{i % 3}> .\n" for i in range(9))
STRIDE = 1 if os.environ.get("LEVADA_CASES") else 13
WINDOW = {"w": (S, step(2000, 1000))}
FIRST = 12  # elements before the newcomers
QUERIES = [
    query(f"SELECT {shown}", f"WINDOW :w {{ ?a :p ?n }} {side}", name=name, windows=WINDOW)
    for name, shown, side in (
        ("zero", "?a ?n", "?a :kind :k0"),
        ("one", "?a", "?a :kind :k1"),
        ("two", "?a ?n", "?a :kind :k2"),
        ("some", "?n ?k", "?a :kind ?k FILTER(?k IN (:k0, :k2))"),
    )
]


def attempt(
    root: Path, mode: str, part: int, kills: int | None = None, fate: Fate | None = None
) -> bool:
    """A part of a run; whether it came to its end."""
    root.mkdir(exist_ok=True)
    out = FileSink(root / "out", Format.NDJSON)
    engine = Engine(
        spark=False, checkpoint=root / "ck", epoch_rows=3, partitions=2, sink=out, seed=7,
        keep_results=False, sharing=mode,
    )  # fmt: skip
    engine.stream(S, write_lines(root / "s.nt", ELEMENTS if part else ELEMENTS[:FIRST]))
    kinds = root / "kinds.nt"
    if not kinds.exists():
        kinds.write_text(KINDS)
    engine.static(kinds)
    register(engine, QUERIES if part else QUERIES[:2])
    ended = survived(engine, kills, fate, keep_open=not part)
    plan = None if engine._driver is None else engine._driver.epochs.plan
    if ended and mode == "relax" and plan is not None:  # there is an epoch to run
        (kept,) = [n for n in plan.nodes.values() if isinstance(n.step, s.RelaxedStatic)]
        assert kept.alive.any()
    return ended


def test_killed_before_a_change_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fate = Fate(monkeypatch)
    for mode in ("off", "relax"):
        assert attempt(tmp_path / mode, mode, 0)
    shutil.copytree(tmp_path / "relax", tmp_path / "begun")
    assert attempt(tmp_path / "off", "off", 1)
    right = published(tmp_path / "off")
    assert {name.split("/")[1] for name in right} == {q.name for q in QUERIES}
    assert attempt(tmp_path / "relax", "relax", 1, None, fate)
    points = fate.calls
    assert published(tmp_path / "relax") == right and points > 60
    for k in range(3, points, STRIDE):
        root = tmp_path / str(k)
        shutil.copytree(tmp_path / "begun", root)
        assert not attempt(root, "relax", 1, k, fate), f"the kill before call {k} came"
        assert attempt(root, "relax", 1), f"after a kill before call {k}"
        assert published(root) == right, f"after a kill before call {k}"

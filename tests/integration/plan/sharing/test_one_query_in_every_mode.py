"""A single query has the same operators in every mode of sharing, and they touch the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.operator_data import Size
from bench.operator_forms import CASES

from levada import Engine
from levada.checkpoint.manifest import Manifest
from levada.plan.sharing.sharing_modes import OFFERED, Sharing

SIZE = Size(epoch=50, window=100, groups=10, measured=100)


def run(name: str, folder: Path, sharing: Sharing) -> tuple[list[str], int, int]:
    """Returns the operators of a case of ``bench operators``, the rows that they touch, and the
    number of results.
    """
    folder.mkdir()
    case, touched = CASES[name](folder, SIZE), 0

    def count(manifest: Manifest) -> None:
        nonlocal touched
        touched += manifest.input_rows + manifest.state_rows

    with Engine(
        spark=False, checkpoint=folder / "c", epoch_rows=SIZE.epoch, partitions=1,
        keep_results=False, seed=7, sharing=sharing,
    ) as engine:  # fmt: skip
        for stream, options in case.streams.items():
            engine.stream(stream, **options)
        if case.static:
            engine.static(case.static)
        engine.register(case.text, name="q", dialect=case.dialect, **case.options)
        engine._on_epoch(count)
        engine.start(once=True)
        engine.await_end()
        assert engine._driver is not None
        topology = engine._driver._catalog._topology
        assert topology is not None
        nodes = topology.graph.nodes.values()
        steps = sorted(f"{type(n.shape.step).__name__} {len(n.members.index)}" for n in nodes)
        return steps, touched, engine._solutions()["q"]


@pytest.mark.parametrize("name", CASES)
def test_a_single_query_has_the_same_operators_in_every_mode(name: str, tmp_path: Path) -> None:
    first, *others = (run(name, tmp_path / mode, mode) for mode in OFFERED)
    assert first[0]
    assert others == [first] * len(others)

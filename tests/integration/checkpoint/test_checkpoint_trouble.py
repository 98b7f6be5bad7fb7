"""What can happen to a checkpoint while an engine runs on it: a full disk, a folder that is
deleted, a second engine. Each is a sentence with what to do, and the next start goes on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from levada.engine.engine import Engine
from levada.errors import CheckpointError
from levada.testing.compare import same_queries
from levada.testing.memory_sink import MemorySink
from levada.testing.stream_builders import write_lines
from support.generators import Clause
from support.query_dsl import S, element, judge, query, register, run

ELEMENTS = [element(300 * i, f"a{i % 5} p {i}") for i in range(60)]
ALL = query(
    "SELECT ?a ?n", "WINDOW :w { ?a :p ?n }", name="all", windows={"w": (S, Clause("range", 1500))}
)


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    return Path(write_lines(tmp_path / "s.nt", ELEMENTS))


def running(ck: Path, stream: Path, tell: Any) -> MemorySink:
    """A run in small epochs; ``tell`` is called after each."""
    sink = MemorySink()
    with Engine(spark=False, checkpoint=ck, epoch_rows=4, partitions=1, sink=sink) as engine:
        engine.stream(S, stream)
        register(engine, [ALL])
        engine._on_epoch(tell)
        engine.start(once=True)
        engine.await_end()
    return sink


def test_a_checkpoint_deleted_in_mid_run_is_told(tmp_path: Path, stream: Path) -> None:
    def tell(manifest: Any) -> None:
        if manifest.epoch == 3:
            shutil.rmtree(tmp_path / "ck")

    with pytest.raises(
        CheckpointError, match=r"The checkpoint .*/ck is gone: it was deleted or moved"
    ):
        running(tmp_path / "ck", stream, tell)


@pytest.mark.parametrize("folder", ["state", "results", "manifests", "plans", "intentions", "side"])
def test_a_folder_of_the_checkpoint_deleted_in_mid_run_is_told(
    tmp_path: Path, stream: Path, folder: str
) -> None:
    def tell(manifest: Any) -> None:
        if manifest.epoch == 3:
            shutil.rmtree(tmp_path / "ck" / folder)

    try:
        sink = running(tmp_path / "ck", stream, tell)
    except CheckpointError as error:
        assert str(tmp_path / "ck") in str(error)
        assert "start" in str(error) or "Bring" in str(error)
    else:
        judge([ALL], {S: ELEMENTS}, sink.reports)


# a child, since the limit is one of its process: the kernel refuses what makes a file larger
FULL = """
import resource, signal, sys
sys.path[:0] = sys.argv[3:]
from test_checkpoint_trouble import ALL, S
from support.query_dsl import register
from levada import Engine
from levada.errors import CheckpointError

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

def tell(manifest):
    if manifest.epoch == 3:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

with Engine(spark=False, checkpoint=sys.argv[1], epoch_rows=4, partitions=1) as engine:
    engine.stream(S, sys.argv[2])
    register(engine, [ALL])
    engine._on_epoch(tell)
    engine.start(once=True)
    try:
        engine.await_end()
    except CheckpointError as error:
        sys.exit(str(error))
"""


@pytest.mark.long
def test_a_file_that_may_not_grow_is_told_and_the_next_start_goes_on(
    tmp_path: Path, stream: Path
) -> None:
    whole, _ = run(tmp_path / "whole", {S: {"path": stream}}, [ALL], epoch_rows=4, partitions=1)
    paths = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "ck"), str(stream), *paths],
        capture_output=True, text=True, env=os.environ, timeout=300,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith(
        f"The checkpoint {tmp_path / 'ck'} cannot be written: File too large. "
    )
    assert "Make room and start again: the run goes on after the last epoch" in done.stderr
    rest, engine = run(tmp_path / "ck", {S: {"path": stream}}, [ALL], epoch_rows=4, partitions=1)
    assert engine.progress().epochs > 3
    assert rest["all"] == whole["all"][-len(rest["all"]) :]
    assert same_queries({"all": whole["all"][-len(rest["all"]) :]}, rest) is None

"""Two engines on one checkpoint whose lock does not lock, interleaved at every change of the disk:
at most one commits each epoch, the checkpoint opens afterwards, and what is published is right.
"""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_epoch_crash import QUERIES, STREAMS, source

from levada.checkpoint.verify import verify
from levada.connectors.serialization.serialize import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.engine.engine import Engine
from levada.errors import OvertakenError
from levada.testing.compare import read_ndjson
from support.fault_injection import published
from support.interleaved_engines import Turns, told
from support.query_dsl import S, T, judge, register

EVERY = int(os.environ.get("LEVADA_STRIDE", "23"))  # 1: each change of the disk
CASES = int(os.environ.get("LEVADA_SCHEDULES", "6"))


def an_engine(data: Path, root: Path) -> Callable[[], None]:
    """A run over what is there, as of a process of its own."""

    def run() -> None:
        engine = Engine(
            spark=False, checkpoint=root / "ck", epoch_rows=24, partitions=2, seed=7,
            sink=FileSink(root / "out", Format.NDJSON), letters=root / "out", keep_results=False,
        )  # fmt: skip
        try:
            engine.stream(S, data / "s.nt")
            engine.stream(T, data / "t.nt")
            register(engine, QUERIES[1:3])
            engine.start(once=True)
            engine.await_end()
        finally:
            engine.close()

    return run


def reports(files: Any) -> Any:
    names = sorted(n for n in files if not n.startswith(("out/late", "out/dead")))
    return read_ndjson(line for name in names for line in files[name].splitlines())


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    return Turns(monkeypatch)


@pytest.fixture
def whole(tmp_path: Path, turns: Turns) -> tuple[Path, dict[Any, Any], int]:
    """The data, what a run alone publishes, and how many changes of the disk it takes."""
    data = source(tmp_path / "data")
    points = turns.run([an_engine(data, tmp_path / "whole")], lambda steps, alive: alive[0])
    assert turns.ended == {0: None}
    files = published(tmp_path / "whole")
    judge(QUERIES[1:3], STREAMS, reports(files))
    return data, files, points


def check(root: Path, data: Path, turns: Turns, files: dict[Any, Any], why: Any) -> None:
    """What holds after every schedule."""
    epochs = [epoch for _, epoch in turns.committed]
    assert len(set(epochs)) == len(epochs), (why, turns.committed)
    fine = {told(error) for error in turns.ended.values()}
    assert fine == {True}, (why, turns.ended)
    turns.run([an_engine(data, root)], lambda steps, alive: alive[0])
    assert turns.ended == {0: None}, why
    assert published(root) == files, why
    assert not verify(root / "ck").damaged, why


def test_the_first_sleeps_anywhere_while_the_second_goes_to_its_end(
    tmp_path: Path, turns: Turns, whole: Any, random_seed: int
) -> None:
    data, files, points = whole
    assert points > 60
    overtaken = 0
    for k in range(random_seed % EVERY, points, EVERY):
        root = tmp_path / str(k)

        def asleep(steps: int, alive: Any, k: int = k) -> int:
            return 0 if steps < k and 0 in alive else alive[-1]

        turns.run([an_engine(data, root)] * 2, asleep)
        assert turns.ended[1] is None, (k, turns.ended)
        overtaken += isinstance(turns.ended[0], OvertakenError)
        check(root, data, turns, files, k)
    assert overtaken > points // EVERY // 2, "who was overtaken says so"


def test_in_any_order(tmp_path: Path, turns: Turns, whole: Any, random_seed: int) -> None:
    """Turns of three engines, of drawn lengths."""
    data, files, _ = whole
    for case in range(CASES):
        rng = random.Random(random_seed + case)
        root, left = tmp_path / str(case), [0, 0]

        def drawn(steps: int, alive: Any, rng: Any = rng, left: Any = left) -> int:
            if steps >= left[0] or left[1] not in alive:
                left[:] = steps + rng.choice((1, 2, 5, 40)), rng.choice(alive)
            return int(left[1])

        turns.run([an_engine(data, root)] * 3, drawn)
        check(root, data, turns, files, (random_seed, case))

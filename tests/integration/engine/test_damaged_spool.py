"""An engine on a spool with a damaged file: a sentence at every start, until the file is given
up; then its rows are lost, and all others are there once.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.checkpoint.manifest import EpochIntent
from levada.connectors.spool.push_spool import PushLog
from levada.connectors.spool.spool_folder import spool_folder
from levada.engine.engine import Engine
from levada.errors import CheckpointError, LevadaError
from levada.runtime.epoch_pipeline import EpochRunner

TEXT = """PREFIX : <http://e/> SELECT ?n FROM NAMED WINDOW :w ON :s [RANGE PT1S STEP PT1S]
WHERE { WINDOW :w { ?a :n ?n } }"""


class DiedError(Exception):
    """What a run sees in place of its end."""


def push(root: Path, *numbers: int) -> Path:
    """A file with these elements, one a second."""
    data = spool_folder(root / "ck", "http://e/s") / "data"
    data.mkdir(parents=True, exist_ok=True)
    lines = (f'<http://e/a> <http://e/n> "{n}" {1000 * n} .\n' for n in numbers)
    PushLog(data, "nq").append("".join(lines).encode(), {})
    return max(data.iterdir())


def run(root: Path) -> tuple[list[str], int]:
    """The values that it reports, and how many dead letters there are."""
    with Engine(spark=False, checkpoint=root / "ck", epoch_rows=2, partitions=1) as engine:
        engine.stream("http://e/s", "push:", format="nq")
        query = engine.register(TEXT, name="q")
        engine.start(once=True, keep_open=True)
        engine.await_end()
        values = [row["n"] for row in query.to_polars().to_dicts()]
        return values, sum(record.dead_letters for record in engine._records().values())


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"4"', b'"5"'))


def test_a_damaged_file_ends_each_start_until_it_is_given_up(tmp_path: Path) -> None:
    run(tmp_path)
    push(tmp_path, 1, 2, 3)
    assert run(tmp_path)[0] == ["1", "2"]
    path = push(tmp_path, 4, 5)
    push(tmp_path, 6, 7, 8, 9)
    damage(path)
    for _ in range(2):
        with pytest.raises(CheckpointError, match=path.name):
            run(tmp_path)
    path.rename(f"{path}.part")
    values, dead = run(tmp_path)
    assert values == ["3", "6", "7", "8"]
    assert dead == 0, "nobody has seen it"


def test_a_file_that_is_damaged_under_an_open_intention_ends_each_start_until_it_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path)
    push(tmp_path, 1, 2, 3)
    run(tmp_path)
    path = push(tmp_path, 4, 5)

    def die(self: EpochRunner, intention: EpochIntent) -> None:
        raise DiedError

    with monkeypatch.context() as patch, pytest.raises(LevadaError, match="stopped in epoch"):
        patch.setattr(EpochRunner, "run", die)
        run(tmp_path)
    push(tmp_path, 6, 7, 8)
    damage(path)
    for _ in range(2):
        with pytest.raises(CheckpointError, match=path.name):
            run(tmp_path)
    path.rename(f"{path}.part")
    values, dead = run(tmp_path)
    assert values == ["3", "6", "7"]
    assert dead == 1

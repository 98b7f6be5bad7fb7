"""A file that ends the process which reads it is found out by the next attempt, set aside and told
of; a process that was killed is not blamed on what it read.
"""

import json
import signal
from pathlib import Path

import pytest

from levada.checkpoint.manifest import EpochIntent
from levada.core.checksummed_files import read_sealed
from support.poison_files import deadly, died, documents, letters, start


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return documents(tmp_path / "data")


@pytest.mark.long
def test_a_file_that_ends_the_process_does_so_once(tmp_path: Path, data: Path) -> None:
    status, whole = start(tmp_path / "whole", data)
    assert status == 0 and whole[0] == 0 and len(whole[1]) > 2, whole
    names = [f"a_{at}.ttl" for at in (1900, 2100)]  # in epoch 2
    for name in names:
        deadly(data / name)
    root = tmp_path / "root"
    assert died(start(root, data)[0]), "the first attempt dies"
    # killed behind the verdict, before the epoch runs: the verdict stands
    assert start(root, data, killed=2)[0] == -signal.SIGKILL
    intention = json.loads(read_sealed(root / "c" / "intentions" / "open"))
    assert [reference["name"] for reference, _ in intention["crashing_splits"]] == names
    status, found = start(root, data)
    assert status == 0, found
    assert found == [2, whole[1]]
    told = letters(root)
    assert [letter["source"] for letter in told] == names
    assert all(
        letter["reason"].startswith("Reading it ended the process with SIG") for letter in told
    )


@pytest.mark.long
def test_a_killed_process_is_blamed_on_nothing(tmp_path: Path, data: Path) -> None:
    _, whole = start(tmp_path / "whole", data)
    root = tmp_path / "root"
    assert start(root, data, killed=2)[0] == -signal.SIGKILL
    assert start(root, data) == (0, whole)
    assert letters(root) == []


@pytest.mark.long
def test_deadly_static_data_end_the_next_start_with_a_sentence(tmp_path: Path, data: Path) -> None:
    static, root = tmp_path / "g.ttl", tmp_path / "root"
    deadly(static)
    assert died(start(root, data, static=static)[0])
    for _ in range(2):
        status, said = start(root, data, static=static)
        assert status == 0
        assert said.startswith(f"Reading the static file {static} ended the process with SIG"), said


def test_an_intention_of_before_has_nothing_deadly() -> None:
    assert EpochIntent(1, 1, 0).crashing_splits == []

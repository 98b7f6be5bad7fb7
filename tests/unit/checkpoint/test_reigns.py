"""A driver learns from its own takeover that it was overtaken, without a list of the commits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from levada.checkpoint.leadership.commit_log import FOLDER, Driver, Leadership
from levada.checkpoint.manifest import Manifest
from levada.errors import OvertakenError


def begin(root: Path, pid: int) -> Leadership:
    (root / "manifests").mkdir(parents=True, exist_ok=True)
    return Leadership(root, Driver("host", pid, 1_000))


def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that are listed from now on."""
    found: list[str] = []
    original = os.listdir

    def listdir(path: str) -> list[str]:
        found.append(str(path))
        return original(path)

    monkeypatch.setattr(os, "listdir", listdir)
    return found


def test_a_number_that_was_forgotten_and_is_created_anew_is_no_commit(tmp_path: Path) -> None:
    first = begin(tmp_path, 1)
    first.commit(Manifest(1, 1))
    begin(tmp_path, 2)
    third = begin(tmp_path, 3)
    third.commit(Manifest(2, 1))
    assert not (tmp_path / FOLDER / "3").exists(), "the number behind the first driver's last"
    with pytest.raises(OvertakenError):
        first.commit(Manifest(2, 1))


def test_a_driver_that_has_been_overtaken_sees_it_before_it_deletes(tmp_path: Path) -> None:
    first = begin(tmp_path, 1)
    first.commit(Manifest(1, 1))
    first.check()
    second = begin(tmp_path, 2)
    with pytest.raises(OvertakenError):
        first.check()
    second.check()


def test_the_takeover_of_the_driver_before_is_deleted_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = begin(tmp_path, 1)
    for epoch in range(1, 12):
        first.commit(Manifest(epoch, 1))
    gone: list[str] = []
    original = os.unlink

    def unlink(path: str) -> None:
        gone.append(os.path.basename(path))
        original(path)

    monkeypatch.setattr(os, "unlink", unlink)
    begin(tmp_path, 2)
    numbers = [int(name) for name in gone if name.isdigit()]
    assert numbers == sorted(numbers) and numbers[0] == 1


def test_an_epoch_lists_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only = begin(tmp_path, 1)
    only.commit(Manifest(1, 1))
    found = listed(monkeypatch)
    for epoch in range(2, 6):
        only.check()
        only.commit(Manifest(epoch, 1))
    assert not found
    assert sorted(os.listdir(tmp_path / FOLDER)) == ["1", "6"]


def test_another_file_under_the_name_of_the_takeover_is_not_the_takeover(tmp_path: Path) -> None:
    """A driver that slept may create a forgotten number anew."""
    first = begin(tmp_path, 1)
    first.commit(Manifest(1, 1))
    second = begin(tmp_path, 2)
    (tmp_path / FOLDER / "1").write_bytes((tmp_path / FOLDER / "2").read_bytes())
    with pytest.raises(OvertakenError):
        first.check()
    second.check()


def test_a_takeover_that_is_gone_before_it_is_opened_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = os.open

    def slow(path: str, *flags: int, **named: int) -> int:
        if str(path) == str(tmp_path / FOLDER / "1") and flags[0] == os.O_RDONLY | os.O_CLOEXEC:
            monkeypatch.setattr(os, "open", original)
            begin(tmp_path, 2)
        return original(path, *flags, **named)

    monkeypatch.setattr(os, "open", slow)
    with pytest.raises(OvertakenError):
        begin(tmp_path, 1)

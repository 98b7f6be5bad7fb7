"""A folder is listed while names may have come that its time does not show, and no longer."""

from __future__ import annotations

import os
from pathlib import Path

from levada.checkpoint.watched_folder import STEP, WatchedFolder


def set_time(folder: Path, seconds: float) -> None:
    os.utime(folder, (seconds, seconds))


def test_a_folder_that_is_not_there_is_not_listed_until_it_is(tmp_path: Path) -> None:
    watched = WatchedFolder(str(tmp_path / "f"))
    assert not watched.may_have_changed(0.0) and not watched.may_have_changed(100.0)
    (tmp_path / "f").mkdir()
    assert watched.may_have_changed(100.1)


def test_a_folder_is_listed_once_more_when_a_step_of_its_time_has_passed(tmp_path: Path) -> None:
    watched = WatchedFolder(str(tmp_path))
    set_time(tmp_path, 50.0)
    assert watched.may_have_changed(0.0)
    assert watched.may_have_changed(STEP / 2), "a name may have come within the step"
    (tmp_path / "late").touch()
    set_time(tmp_path, 50.0)  # within the step of the first look
    assert watched.may_have_changed(STEP + 0.1), "this list sees it"
    assert not watched.may_have_changed(STEP + 0.2)
    assert not watched.may_have_changed(1000.0)


def test_a_long_pause_between_looks_does_not_leave_a_name_out(tmp_path: Path) -> None:
    watched = WatchedFolder(str(tmp_path))
    set_time(tmp_path, 50.0)
    assert watched.may_have_changed(0.0)
    (tmp_path / "late").touch()
    set_time(tmp_path, 50.0)
    assert watched.may_have_changed(1000.0)
    assert not watched.may_have_changed(1000.1)


def test_a_change_is_seen(tmp_path: Path) -> None:
    watched = WatchedFolder(str(tmp_path))
    set_time(tmp_path, 50.0)
    for now in (0.0, 10.0):
        assert watched.may_have_changed(now)
    assert not watched.may_have_changed(20.0)
    set_time(tmp_path, 60.0)
    assert watched.may_have_changed(21.0)

"""What a look at a directory finds, and what it costs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources import file_listing
from levada.connectors.sources.file_listing import Listing
from levada.connectors.sources.file_source import FileSource
from levada.errors import MissingError, UsageError

SECOND = 1_000_000_000


class Clock:
    """Wall time in ns, far behind what the file system says, or as it is told."""

    now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The directories that were listed."""
    listed: list[str] = []
    really = os.listdir

    def listdir(path: str) -> list[str]:
        listed.append(path)
        return really(path)

    monkeypatch.setattr(os, "listdir", listdir)
    return listed


def touch(folder: Path, *names: str, at: int) -> None:
    """Makes files; the directory has changed at this time."""
    for name in names:
        (folder / name).write_text("")
    os.utime(folder, ns=(at, at))


def new(listed: Listing) -> list[str]:
    return [Path(found.name).name for found in listed.look()[0]]


def test_a_look_says_what_is_new_and_what_is_gone(folder: Path) -> None:
    listed = Listing("s", str(folder), Clock())
    touch(folder, "b", "a", "c.tmp", "_SUCCESS", at=1)
    (folder / "d").mkdir()
    assert new(listed) == ["a", "b"]
    touch(folder, "c", "0", at=2)
    os.rename(folder / "c.tmp", folder / "e")
    os.remove(folder / "b")
    found, gone = listed.look()
    assert ([f.name for f in found], set(gone)) == (["0", "c", "e"], {"b"})
    assert [f.path for f in found] == [str(folder / name) for name in ("0", "c", "e")]
    touch(folder, "b", at=3)
    assert new(listed) == ["b"], "one that comes again is new"


def test_files_of_folders_below_come_and_go(folder: Path) -> None:
    listed = Listing("s", str(folder), Clock())
    for name in ("b/c", "d", "_temporary", ".git"):
        (folder / name).mkdir(parents=True)
    for name in ("b/1.nt", "b/c/2.nt", "a.nt", "c.nt", "_temporary/3.nt", ".git/4.nt"):
        (folder / name).write_text("")
    (folder / "link").symlink_to(folder / "b")
    found, _ = listed.look()
    assert [f.name for f in found] == ["a.nt", "b/1.nt", "b/c/2.nt", "c.nt"]
    assert found == file_listing.list_files("s", str(folder))
    assert [f.path for f in found] == [str(folder / f.name) for f in found]
    (folder / "d" / "5.nt").write_text("")
    assert [f.name for f in listed.look()[0]] == ["d/5.nt"]
    listed.forget("b/c/2.nt")
    assert [f.name for f in listed.look()[0]] == ["b/c/2.nt"]
    (folder / "b" / "1.nt").unlink()
    assert set(listed.look()[1]) == {"b/1.nt"}
    shutil.rmtree(folder / "b")
    assert (listed.look()[1], listed.look()[1]) == ({"b/c/2.nt"}, set())


@pytest.mark.parametrize("path", ["{}", "{}/*.nt"])
def test_a_directory_that_has_not_changed_is_not_listed_again(
    folder: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    listed = Listing("s", path.format(folder), clock)
    touch(folder, "a.nt", at=SECOND)
    clock.now = 10 * SECOND
    assert new(listed) == ["a.nt"]
    with monkeypatch.context() as never:
        for name in ("listdir", "scandir"):
            never.setattr(os, name, lambda path: pytest.fail("listed"))
        assert new(listed) == []
    touch(folder, "b.nt", at=SECOND + 1)
    assert new(listed) == ["b.nt"]


def test_a_change_that_is_young_may_hide_another(folder: Path, looks: list[str]) -> None:
    clock = Clock()
    listed = Listing("s", str(folder), clock)
    for at, young, old in (
        (SECOND, 3 * SECOND, 5 * SECOND),
        (9 * SECOND + 1, 9 * SECOND + 2, 10 * SECOND),
    ):
        touch(folder, f"a{at}", at=at)
        clock.now = young
        assert new(listed) == [f"a{at}"]
        touch(folder, f"b{at}", at=at)
        assert new(listed) == [f"b{at}"]
        clock.now = old
        del looks[:]
        assert (new(listed), new(listed)) == ([], [])
        assert len(looks) == 1


def test_a_time_of_change_is_believed_for_a_while_only(folder: Path) -> None:
    clock = Clock()
    listed = Listing("s", str(folder), clock)
    clock.now = 10 * SECOND
    touch(folder, "a", at=SECOND)
    assert new(listed) == ["a"]
    touch(folder, "b", at=SECOND)
    assert new(listed) == []
    clock.now += file_listing._TRUSTED
    assert new(listed) == ["b"]


def test_a_time_of_change_is_not_believed_when_the_clock_went_back(folder: Path) -> None:
    clock = Clock()
    listed = Listing("s", str(folder), clock)
    clock.now = 90_000 * SECOND
    touch(folder, "a", at=SECOND)
    assert new(listed) == ["a"]
    touch(folder, "b", at=SECOND)
    clock.now = 10 * SECOND
    assert new(listed) == ["b"]


def test_only_new_files_and_those_that_may_grow_are_looked_at(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(folder, *(f"{i:03}.nt" for i in range(100)), at=SECOND)
    source = FileSource(StreamConfig.from_options("s", str(folder)), folder.parent)
    source.discover()
    touch(folder, "200.nt", at=2 * SECOND)
    asked: list[str] = []
    really = os.stat
    monkeypatch.setattr(
        os,
        "stat",
        lambda path, **given: (asked.append(str(path)), really(path, **given))[1],  # type: ignore[func-returns-value]
    )
    source.discover()
    assert {Path(path).name for path in asked} <= {"in", "099.nt", "200.nt"}


def test_a_last_file_that_is_gone_leaves_the_one_before_it_unfinished(folder: Path) -> None:
    touch(folder, "a.nt", "b.nt", at=SECOND)
    source = FileSource(StreamConfig.from_options("s", str(folder)), folder.parent)
    os.remove(folder / "b.nt")
    touch(folder, at=2 * SECOND)
    source.discover()
    assert not source.is_finished("s") and not source._files["a.nt"].finished


def test_a_path_without_a_file_is_a_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(MissingError) as error:
        file_listing.list_files("s", str(tmp_path / "missing.nt"))
    assert error.value.exit_code == UsageError.exit_code == 2

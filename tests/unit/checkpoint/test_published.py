"""The index of published epochs: durable, bounded, and the same whoever died when."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from levada.checkpoint import result_index
from levada.checkpoint.manifest import Manifest, encode_manifest
from levada.checkpoint.result_counts import ResultCounts
from levada.checkpoint.result_index import Cursor, Index, Keep
from levada.core.event_time import TIMELESS
from levada.core.frame import Frame
from levada.errors import CheckpointError, UsageError
from levada.plan.execution.member_table import MemberTable
from levada.plan.execution.plan import Plan
from levada.plan.execution.shapes import Member


def manifest(epoch: int, root: Path, size: int = 10) -> Manifest:
    """An epoch in which ``q`` reports at 1000 times its number."""
    (root / "results").mkdir(exist_ok=True)
    (root / "manifests").mkdir(exist_ok=True)
    name = f"results/{epoch}-0"
    (root / name).write_bytes(b"x" * size)
    time = 1000 * epoch
    return Manifest(epoch, 1, segments=[name], counts=counts_of(2, time))


def counts_of(solutions: int, report: int) -> ResultCounts:
    """``q`` has so many solutions in one report."""
    counts = {"node": 3, "op": 0, "n": solutions, "least": report, "most": report, "reports": 1}
    return ResultCounts.from_rows(
        Frame({name: np.array([n], np.int64) for name, n in counts.items()}, 1)
    )


def plan(version: int) -> Plan:
    """Of a plan what the index looks at: the names of queries."""
    node = SimpleNamespace(members=MemberTable.from_members([Member((0,), query="q")]))
    return cast(Plan, SimpleNamespace(version=version, nodes={3: node}))


def index(root: Path, keep: str = "1000", clock: int = 0) -> Index:
    (root / "manifests").mkdir(exist_ok=True)
    return Index(root, Keep.parse(keep), lambda: clock, plan)


def test_a_cursor_sees_what_is_added(tmp_path: Path) -> None:
    kept, cursor = index(tmp_path), Cursor(tmp_path)
    assert (cursor.has_index, cursor.read_new()) == (False, [])
    for epoch in (1, 2):
        assert kept.add(manifest(epoch, tmp_path)) == []
    assert kept.add(Manifest(3, 1)) == [], "an epoch without results has no line"
    found = cursor.read_new()
    assert [(e.epoch, e.queries) for e in found] == [
        (1, {"q": (1000, 1000, 1)}),
        (2, {"q": (2000, 2000, 1)}),
    ]
    assert cursor.read_new() == []
    kept.add(manifest(4, tmp_path))
    assert [e.epoch for e in cursor.read_new()] == [4]
    assert [e.epoch for e in Cursor(tmp_path).read_new()] == [1, 2, 4]


def test_an_epoch_that_is_published_twice_is_there_once(tmp_path: Path) -> None:
    index(tmp_path).add(manifest(1, tmp_path))
    again = index(tmp_path)
    again.add(manifest(1, tmp_path))
    again.add(manifest(2, tmp_path))
    assert [e.epoch for e in Cursor(tmp_path).read_new()] == [1, 2]


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_line_that_was_cut_short_is_cut_off(tmp_path: Path, cut: int) -> None:
    kept, cursor = index(tmp_path), Cursor(tmp_path)
    for epoch in (1, 2):
        kept.add(manifest(epoch, tmp_path))
    path = tmp_path / result_index.FILE
    path.write_bytes(path.read_bytes()[:-cut])
    assert [e.epoch for e in cursor.read_new()] == [1], "half a line is none yet"
    (tmp_path / "manifests" / "2").write_bytes(encode_manifest(manifest(2, tmp_path)))
    again = index(tmp_path)
    assert [e.epoch for e in again.entries] == [1, 2], "its manifest is there, and says it again"
    again.add(manifest(3, tmp_path))
    assert [e.epoch for e in cursor.read_new()] == [2, 3]


def four_epochs(root: Path) -> bytes:
    """The index of four epochs, of which the manifests of the last two are there; its bytes."""
    kept = index(root)
    for epoch in range(1, 5):
        made = manifest(epoch, root)
        made.previous_indexed_epoch = kept.newest
        kept.add(made)
        if epoch > 2:
            (root / "manifests" / str(epoch)).write_bytes(encode_manifest(made))
    return (root / result_index.FILE).read_bytes()


def is_told(root: Path, data: bytes | None) -> bool:
    """Whether an engine, a reader and ``levada verify`` name the file with this content."""
    path, told = root / result_index.FILE, 0
    looks = (
        lambda: index(root),
        lambda: Cursor(root).read_new(),
        lambda: result_index.check_index(root),
    )
    for look in looks:
        path.unlink(missing_ok=True)
        if data is not None:
            path.write_bytes(data)
        try:
            look()
        except CheckpointError as error:
            assert str(path) in str(error)
            told += 1
    assert told in (0, len(looks)), "all of them, or none"
    return told > 0


def test_every_bit_of_the_index_is_told(tmp_path: Path) -> None:
    data = four_epochs(tmp_path)
    last = data.rindex(b"\n", 0, -1) + 1  # what follows may be what a crash has left
    for bit in range(8 * last):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        assert is_told(tmp_path, bytes(damaged)), bit


@pytest.mark.parametrize("left", [None, 0, 1, 2], ids=["no file", "empty", "a line", "two lines"])
def test_lines_that_are_missing_at_the_end_are_told(tmp_path: Path, left: int | None) -> None:
    whole = four_epochs(tmp_path).splitlines(keepends=True)
    assert is_told(tmp_path, None if left is None else b"".join(whole[:left]))


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_a_line_that_is_missing_before_others_is_told(tmp_path: Path, gone: int) -> None:
    whole = four_epochs(tmp_path).splitlines(keepends=True)
    assert is_told(tmp_path, b"".join(line for i, line in enumerate(whole) if i != gone))


def test_the_last_line_is_cut_off_where_no_manifest_names_it(tmp_path: Path) -> None:
    data = four_epochs(tmp_path)
    last = data.rindex(b"\n", 0, -1) + 1
    for size in range(last, len(data)):
        for rest in (b"", b"\0" * (len(data) - size)):
            (tmp_path / result_index.FILE).write_bytes(data[:size] + rest)
            assert [e.epoch for e in index(tmp_path).entries] == [1, 2, 3, 4], size
            assert (tmp_path / result_index.FILE).read_bytes() == data, size


def test_a_reader_says_that_a_line_has_become_another(tmp_path: Path) -> None:
    kept, cursor = index(tmp_path), Cursor(tmp_path)
    kept.add(manifest(1, tmp_path))
    assert cursor.read_new()
    path = tmp_path / result_index.FILE
    kept.add(manifest(2, tmp_path))
    path.write_bytes(path.read_bytes().replace(b'"wall_ms":0', b'"wall_ms":1'))
    with pytest.raises(CheckpointError, match=r"published\.log cannot be read: it is cut short"):
        cursor.read_new()


@pytest.mark.parametrize(("keep", "left"), [("3", [7, 8, 9]), ("35B", [7, 8, 9])])
def test_what_is_beyond_the_bounds_goes(tmp_path: Path, keep: str, left: list[int]) -> None:
    kept = index(tmp_path, keep)
    gone = [e.epoch for n in range(1, 10) for e in kept.add(manifest(n, tmp_path))]
    assert gone == [1, 2, 3, 4, 5, 6]
    assert [e.epoch for e in kept.entries] == left
    assert kept.first is not None and kept.first.epoch == 7
    for again in (index(tmp_path, keep), kept):
        assert [e.epoch for e in again.entries] == left
        assert again.gone == {"q": 6000}
    cursor = Cursor(tmp_path)
    assert [e.epoch for e in cursor.read_new()] == left
    assert (cursor.first, cursor.gone) == (7, {"q": 6000})


def test_what_is_too_old_goes(tmp_path: Path) -> None:
    ticks = itertools.count(0, 1000)
    (tmp_path / "manifests").mkdir()
    kept = Index(tmp_path, Keep.parse("5s"), lambda: next(ticks), plan)
    for epoch in range(1, 20):
        kept.add(manifest(epoch, tmp_path))
    assert [e.epoch for e in kept.entries] == [17, 18, 19], "two looks at the clock an epoch"


def test_the_newest_epoch_is_never_given_up(tmp_path: Path) -> None:
    kept = index(tmp_path, "5B")
    for epoch in range(1, 4):
        kept.add(manifest(epoch, tmp_path))
    assert [e.epoch for e in kept.entries] == [3]


def test_lines_of_what_is_gone_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_index, "MAX_DROPPED_LINES", 5)
    kept, cursor = index(tmp_path, "2"), Cursor(tmp_path)
    seen = []
    for epoch in range(1, 40):
        kept.add(manifest(epoch, tmp_path))
        seen += [e.epoch for e in cursor.read_new()]
    assert seen == list(range(1, 40)), "a reader goes on in the file that took the place"
    assert len((tmp_path / result_index.FILE).read_bytes().splitlines()) < 12
    late = Cursor(tmp_path)
    assert [e.epoch for e in late.read_new()] == [38, 39]
    assert late.gone == {"q": 37_000}


def test_an_answer_has_its_epoch_for_an_id(tmp_path: Path) -> None:
    kept = index(tmp_path)
    answer = manifest(5, tmp_path)
    answer.counts = counts_of(1, TIMELESS)
    kept.add(answer)
    assert kept.entries[0].last("q") == 5


def test_empty_reports_count(tmp_path: Path) -> None:
    kept = index(tmp_path)
    shown = manifest(1, tmp_path)
    shown.shown_reports = {"q": [500, 1000, 1500], "r": [2000], "s": []}
    kept.add(shown)
    assert kept.entries[0].queries == {"q": (500, 1500, 3), "r": (2000, 2000, 1)}


@pytest.mark.parametrize("text", ["", "soon", "0", "1XB", "1h,", "-5"])
def test_what_does_not_say_how_much(text: str) -> None:
    with pytest.raises(UsageError):
        Keep.parse(text)

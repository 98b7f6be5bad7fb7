"""The index of published epochs: durable, bounded, and the same whoever died when."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from levada.errors import UsageError
from levada.model.frame import Frame
from levada.model.time import TIMELESS
from levada.plan.sealed.members.table import MemberTable
from levada.plan.sealed.plan import Plan
from levada.plan.sealed.shapes import Member
from levada.runtime.reported import Reported
from levada.runtime.store import published
from levada.runtime.store.manifest import Manifest, encode_manifest
from levada.runtime.store.published import Cursor, Index, Keep


def manifest(epoch: int, root: Path, size: int = 10) -> Manifest:
    """An epoch in which ``q`` reports at 1000 times its number."""
    (root / "results").mkdir(exist_ok=True)
    (root / "manifests").mkdir(exist_ok=True)
    name = f"results/{epoch}-0"
    (root / name).write_bytes(b"x" * size)
    time = 1000 * epoch
    return Manifest(epoch, 1, segments=[name], counts=counts_of(2, time))


def counts_of(solutions: int, report: int) -> Reported:
    """``q`` has so many solutions in one report."""
    counts = {"node": 3, "op": 0, "n": solutions, "least": report, "most": report, "reports": 1}
    return Reported.of(Frame({name: np.array([n], np.int64) for name, n in counts.items()}, 1))


def plan(version: int) -> Plan:
    """Of a plan what the index looks at: the names of queries."""
    node = SimpleNamespace(members=MemberTable.of([Member((0,), query="q")]))
    return cast(Plan, SimpleNamespace(version=version, nodes={3: node}))


def index(root: Path, keep: str = "1000", clock: int = 0) -> Index:
    (root / "manifests").mkdir(exist_ok=True)
    return Index(root, Keep.of(keep), lambda: clock, plan)


def test_a_cursor_sees_what_is_added(tmp_path: Path) -> None:
    kept, cursor = index(tmp_path), Cursor(tmp_path)
    assert (cursor.there, cursor.more()) == (False, [])
    for epoch in (1, 2):
        assert kept.add(manifest(epoch, tmp_path)) == []
    assert kept.add(Manifest(3, 1)) == [], "an epoch without results has no line"
    found = cursor.more()
    assert [(e.epoch, e.queries) for e in found] == [
        (1, {"q": (1000, 1000, 1)}),
        (2, {"q": (2000, 2000, 1)}),
    ]
    assert cursor.more() == []
    kept.add(manifest(4, tmp_path))
    assert [e.epoch for e in cursor.more()] == [4]
    assert [e.epoch for e in Cursor(tmp_path).more()] == [1, 2, 4]


def test_an_epoch_that_is_published_twice_is_there_once(tmp_path: Path) -> None:
    index(tmp_path).add(manifest(1, tmp_path))
    again = index(tmp_path)
    again.add(manifest(1, tmp_path))
    again.add(manifest(2, tmp_path))
    assert [e.epoch for e in Cursor(tmp_path).more()] == [1, 2]


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_line_that_was_cut_short_is_cut_off(tmp_path: Path, cut: int) -> None:
    kept, cursor = index(tmp_path), Cursor(tmp_path)
    for epoch in (1, 2):
        kept.add(manifest(epoch, tmp_path))
    path = tmp_path / published.FILE
    path.write_bytes(path.read_bytes()[:-cut])
    assert [e.epoch for e in cursor.more()] == [1], "half a line is none yet"
    (tmp_path / "manifests" / "2").write_bytes(encode_manifest(manifest(2, tmp_path)))
    again = index(tmp_path)
    assert [e.epoch for e in again.entries] == [1, 2], "its manifest is there, and says it again"
    again.add(manifest(3, tmp_path))
    assert [e.epoch for e in cursor.more()] == [2, 3]


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
    assert [e.epoch for e in cursor.more()] == left
    assert (cursor.first, cursor.gone) == (7, {"q": 6000})


def test_what_is_too_old_goes(tmp_path: Path) -> None:
    ticks = itertools.count(0, 1000)
    (tmp_path / "manifests").mkdir()
    kept = Index(tmp_path, Keep.of("5s"), lambda: next(ticks), plan)
    for epoch in range(1, 20):
        kept.add(manifest(epoch, tmp_path))
    assert [e.epoch for e in kept.entries] == [17, 18, 19], "two looks at the clock an epoch"


def test_the_newest_epoch_is_never_given_up(tmp_path: Path) -> None:
    kept = index(tmp_path, "5B")
    for epoch in range(1, 4):
        kept.add(manifest(epoch, tmp_path))
    assert [e.epoch for e in kept.entries] == [3]


def test_lines_of_what_is_gone_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "FEW", 5)
    kept, cursor = index(tmp_path, "2"), Cursor(tmp_path)
    seen = []
    for epoch in range(1, 40):
        kept.add(manifest(epoch, tmp_path))
        seen += [e.epoch for e in cursor.more()]
    assert seen == list(range(1, 40)), "a reader goes on in the file that took the place"
    assert len((tmp_path / published.FILE).read_bytes().splitlines()) < 12
    late = Cursor(tmp_path)
    assert [e.epoch for e in late.more()] == [38, 39]
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
        Keep.of(text)

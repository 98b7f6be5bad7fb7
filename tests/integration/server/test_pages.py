"""What lies on the disk, a page at a time: all of it, in its order, and read once for many."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from levada import Engine
from levada.engine.status.result_archive import Archive
from levada.server.live import event_pages as pages_module
from levada.server.live.event_pages import Event, Pages, events_of
from support.http_server import TEXT
from support.polling import PATIENCE


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three epochs with some forty reports each."""
    folder = tmp_path_factory.mktemp("pages")
    lines = (f'<http://e/a> <http://e/p> "{i}" {500 * i} .\n' for i in range(240))
    (folder / "s.nt").write_text("".join(lines))
    with Engine(spark=False, checkpoint=folder / "ck", keep="1h", epoch_rows=80) as engine:
        engine.stream("s", folder / "s.nt")
        engine.register(TEXT, name="hot")
        engine.start(once=True)
        assert engine.await_end(PATIENCE)
    return folder / "ck"


def archived(root: Path) -> tuple[Archive, int, list[Event]]:
    """An archive, the query's plan version, and all of its events."""
    archive = Archive(root)
    archive.refresh()
    found = list(archive.after("hot", None))
    return archive, found[0].query.since, [event for each in found for event in events_of(each)]


@pytest.mark.parametrize("held", [1 << 20, 30_000, 0])
def test_pages_are_all_there_is(
    root: Path, held: int, monkeypatch: pytest.MonkeyPatch, random_seed: int
) -> None:
    draw = random.Random(random_seed)
    monkeypatch.setattr(pages_module, "HELD", held)
    monkeypatch.setattr(pages_module, "PAGE", 2_000)
    archive, since, every = archived(root)
    pages = Pages(archive)
    assert len(every) > 100
    for _ in range(4):
        after = draw.randrange(-1000, 121_000, 500)
        wanted, found, at = [e for e in every if e.id > after], [], after
        while page := pages.behind("hot", at, since):
            found += page
            at = page[-1].id
            if held:
                assert sum(len(e.body) for e in page) < 2 * 2_000
        assert found == wanted
        assert sum(len(e.body) for each in pages._held.values() for e in each) <= held


def test_who_is_behind_shares_the_reading(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, since, every = archived(root)
    read, seen = Archive.read, []

    def counted(own: Archive, entry: object, *more: object) -> object:
        seen.append(entry)
        return read(own, entry, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(Archive, "read", counted)
    monkeypatch.setattr(pages_module, "PAGE", 2_000)
    pages = Pages(archive)
    epochs = len(list(archive.entries("hot", None, since)))
    for at in range(0, 100_000, 1_000):
        assert pages.behind("hot", at, since)[0] in every
    assert 1 < len(seen) <= epochs

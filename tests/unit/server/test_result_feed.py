"""The thread that reads results for all clients, when the results of one query cannot be read."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from levada.server.live import result_feed
from levada.server.live.event_pages import Event
from levada.server.live.result_feed import Feed
from support.polling import until


class Results:
    """An archive: each look has one more report of two queries."""

    def __init__(self) -> None:
        self.looks = 0

    def refresh(self) -> list[Any]:
        self.looks += 1
        if self.looks % 2:
            raise ValueError("the index has an odd line")
        queries = {"sound": None, "broken": None}
        return [SimpleNamespace(epoch=self.looks, queries=queries, last=lambda query: self.looks)]

    def read(self, entry: Any, query: str) -> Any:
        return SimpleNamespace(query=SimpleNamespace(since=0), name=query, epoch=entry.epoch)

    def last(self, query: str, since: int) -> None:
        return None

    def last_deleted(self, query: str, since: int) -> None:
        return None


def test_query_that_cannot_be_read_takes_no_events_of_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def events(archived: Any) -> list[Event]:
        if archived.name == "broken":
            raise TypeError("no such text")
        return [Event(archived.epoch, b"data")]

    monkeypatch.setattr(result_feed, "events_of", events)
    results, loop = Results(), asyncio.new_event_loop()
    feed = Feed(cast(Any, results), lambda query: 0)
    topics = {name: feed.listen(name, lambda: None) for name in ("sound", "broken")}
    monkeypatch.setattr(feed, "_post", lambda call: call())
    with caplog.at_level("WARNING"):
        feed.start(loop)
    until(lambda: results.looks > 6)
    feed.stop()
    loop.close()
    assert len(topics["sound"].behind(0) or ()) >= 2
    assert not topics["broken"].behind(topics["broken"].newest)
    assert "odd line" in caplog.text and "no such text" in caplog.text

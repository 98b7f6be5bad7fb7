"""The events on disk, for clients that have fallen behind: a page at a time.

The events of an epoch are read and serialized once for all clients that need them soon. After a
restart all clients are behind by the same epochs, and each would read them itself. An epoch larger
than ``HELD`` is returned whole: in pages, each page would read all of it again.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from levada.checkpoint.result_index import Entry
from levada.connectors.serialization.result_formats import Format
from levada.connectors.serialization.serialize import lines
from levada.core.event_time import TIMELESS
from levada.core.names import display_name
from levada.engine.status.result_archive import Archive, ArchivedReports
from levada.server.security.request_limits import FairSlots

PAGE = 64 << 10  # bytes of a page
HELD = 8 << 20  # bytes of epochs that stay in memory for other clients
TURNS = 2  # clients of a token that read at once: the others wait without a thread


class Event(NamedTuple):
    """A report as it is sent: its id, and the bytes after the id."""

    id: int
    body: bytes


class Pages:
    """The reader of events on disk. ``turns``: slots for clients that read."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.turns = FairSlots(2 * TURNS, TURNS)
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[str, int], list[Event]] = OrderedDict()
        self._size = 0

    def behind(self, query: str, after: int, since: int) -> list[Event]:
        """Returns events after an id, about a page and at least one if there is one. ``since``: the
        first plan version of the query; reports of another query under its name are skipped.
        """
        page: list[Event] = []
        room = PAGE
        for entry in self._archive.entries(query, after, since):
            with self._lock:
                events, large = self._events(entry, query, since)
            for event in events[bisect_right(events, after, key=lambda event: event.id) :]:
                if page and room < 0 and not large:
                    return page
                page.append(event)
                room -= len(event.body)
            if room < 0:
                break
        return page

    def _events(self, entry: Entry, query: str, since: int) -> tuple[list[Event], bool]:
        """Returns the events of an epoch, and whether they are too large to hold."""
        key = query, entry.epoch
        if key in self._held:
            self._held.move_to_end(key)
            return self._held[key], False
        archived = self._archive.read(entry, query)
        if archived is None or archived.query.since != since:
            return [], False  # deleted, or of another query with the same name
        events = list(events_of(archived))
        size = _size(events)
        if size > HELD:
            return events, True
        self._held[key] = events
        self._size += size
        while self._size > HELD:
            self._size -= _size(self._held.popitem(last=False)[1])
        return events, False


def _size(events: list[Event]) -> int:
    return sum(len(event.body) for event in events)


def events_of(archived: ArchivedReports) -> Iterator[Event]:
    """Yields the reports of an epoch as events. A relation's inserts and deletes at one report are
    one event.
    """
    query = archived.query
    texts = lines(Format.NDJSON, display_name(query.name), query.variables, archived.batch)
    if archived.ids == [archived.entry.epoch] and archived.entry.queries[query.name][1] == TIMELESS:
        yield _event(archived.entry.epoch, texts.to_list())
        return
    reports = texts.str.extract(r'"report": (-?[0-9]+)').cast(pl.Int64).to_list()
    report_lines: list[str] = []
    for at, (report, text) in enumerate(zip(reports, texts, strict=True)):
        report_lines.append(text)
        if at + 1 == len(reports) or reports[at + 1] != report:
            yield _event(report, report_lines)
            report_lines = []


def _event(report: int, texts: list[str]) -> Event:
    data = "".join(f"data: {text.rstrip()}\n" for text in texts)
    return Event(report, f"event: report\n{data}\n".encode())

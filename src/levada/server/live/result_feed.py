"""The reader of the checkpoint for all clients. It serializes the results of each followed query
once and keeps them for a while in a ring.

A client sends the id of its last event. While the ring begins at or before that id, the client gets
the ring's bytes, the same as all others. A client further behind reads from disk until it has
caught up. So a client's cost does not grow with its distance.

A topic belongs to one query. Another query that takes the name gets another topic (``stands``).
Results that the thread could not read, or read too late, are in no ring: a ring has no holes.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from levada.checkpoint.result_index import Entry
from levada.engine.status.result_archive import Archive
from levada.server.live.event_pages import PAGE, Event, Pages, events_of

LOOK = 0.02  # s between two looks at the checkpoint
RING = 4 << 20  # bytes of a query
SILENCE = 15.0  # s without an event after which a client gets a sign of life
NEVER = -(2**63)


class Topic:
    """A query with listening clients. ``since``: the first plan version of the query. The ring has
    all events after ``floor``.
    """

    def __init__(self, floor: int, since: int = 0) -> None:
        self.since = since
        self.floor = self.newest = floor
        self._ring: deque[Event] = deque()
        self._size = 0
        self.over = False
        self.wakes: set[Callable[[], None]] = set()

    def end(self) -> None:
        """Ends the topic: its query is gone, or the server stops. Wakes its listeners, which then
        disconnect.
        """
        self.over = True
        for wake in list(self.wakes):
            wake()

    def take(self, events: list[Event]) -> None:
        """Adds new events to the ring, drops the oldest beyond ``RING`` bytes, and wakes the
        listeners.
        """
        for event in events:
            if event.id > self.newest:
                self._ring.append(event)
                self._size += len(event.body)
                self.newest = event.id
        while self._size > RING and len(self._ring) > 1:
            gone = self._ring.popleft()
            self._size -= len(gone.body)
            self.floor = gone.id
        for wake in list(self.wakes):
            wake()

    def miss(self, lost: int) -> None:
        """Skips the reports up to ``lost``, which could not be read. Clients before them read from
        disk and get a gap for deleted reports.
        """
        if lost > self.newest:
            self._ring.clear()
            self._size, self.floor, self.newest = 0, lost, lost

    def behind(self, after: int) -> list[Event] | None:
        """Returns events after an id, at most about a page; None if the ring begins later."""
        if after < self.floor:
            return None
        events: list[Event] = []
        if after >= self.newest:
            return events
        size = 0
        start = len(self._ring)
        while start and self._ring[start - 1].id > after:
            start -= 1
        for at in range(start, len(self._ring)):
            if events and size > PAGE:
                break
            events.append(self._ring[at])
            size += len(self._ring[at].body)
        return events


class Feed:
    """The thread that follows the checkpoint and wakes listeners on the event loop. ``since`` maps
    the name of a query to the first plan version that has it, or None.
    """

    def __init__(self, archive: Archive, since: Callable[[str], int | None]) -> None:
        self.archive, self._since = archive, since
        self.pages = Pages(archive)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._topics: dict[str, Topic] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="levada feed", daemon=True)
        self._failed = ""
        self.clients = 0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Starts to follow the checkpoint."""
        self._loop = loop
        self._refresh()
        self._thread.start()

    def end(self) -> None:
        """Ends all topics, so that listeners disconnect."""
        for topic in list(self._topics.values()):
            topic.end()

    def stop(self) -> None:
        """Stops the thread."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def listen(self, query: str, wake: Callable[[], None]) -> Topic:
        """Returns the topic of a query. ``wake`` is called on new events."""
        since = self._since(query) or 0
        topic = self._topics.get(query)
        if topic is None or topic.since != since:
            if topic is not None:
                topic.end()
            topic = self._topics[query] = Topic(NEVER, since)  # the thread fills it from here on
            last = self.archive.last(query, since)
            topic.floor = topic.newest = NEVER if last is None else last
        topic.wakes.add(wake)
        return topic

    def stands(self, query: str, topic: Topic) -> bool:
        """Returns whether the query of a topic still exists."""
        return not topic.over and self._since(query) == topic.since

    def leave(self, query: str, topic: Topic, wake: Callable[[], None]) -> None:
        """Removes a listener. Deletes the topic with its last listener."""
        topic.wakes.discard(wake)
        if not topic.wakes and self._topics.get(query) is topic:
            del self._topics[query]

    def _follow(self) -> None:
        last_tick = time.monotonic()
        while not self._stopped.wait(LOOK):
            self._refresh()
            if time.monotonic() - last_tick >= SILENCE / 3:
                last_tick = time.monotonic()
                self._post(self._tick)

    def _refresh(self) -> None:
        try:
            entries = self.archive.refresh()
        except Exception as error:  # otherwise no client of any query would hear of a result
            self._warn(error)
            return
        topics = dict(self._topics)
        for query, topic in topics.items():
            if entries and (gone := self.archive.last_deleted(query, topic.since)) is not None:
                self._send(topic, gone, [])
        outcomes = [
            self._read_entry(e, q, topics[q]) for e in entries for q in e.queries.keys() & topics
        ]
        if all(outcomes):
            self._failed = ""

    def _read_entry(self, entry: Entry, query: str, topic: Topic) -> bool:
        """Sends the new events of a query to its topic. Returns whether they could be read."""
        try:
            archived = self.archive.read(entry, query)
            events = [] if archived is None else list(events_of(archived))
        except Exception as error:  # of this query: the others have their events
            self._warn(error)
            self._send(topic, entry.last(query), [])
            return False
        if archived is None:
            self._send(topic, entry.last(query), [])
        elif archived.query.since == topic.since:
            self._send(topic, None, events)
        return True

    def _warn(self, error: Exception) -> None:
        """Logs a warning once."""
        if str(error) != self._failed:
            self._failed = str(error)
            logging.getLogger("levada.server").warning("%s", str(error) or type(error).__name__)

    def _send(self, topic: Topic, lost: int | None, events: list[Event]) -> None:
        def take() -> None:
            if lost is not None:
                topic.miss(lost)
            topic.take(events)

        self._post(take)

    def _tick(self) -> None:
        for topic in list(self._topics.values()):
            for wake in list(topic.wakes):
                wake()

    def _post(self, call: Callable[[], None]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

"""Reads a feed as a stream: a thread logs its messages, and then acknowledges them.

    receiver's thread --buffer--> writer: log, fsync --> receiver.acknowledge
                                                     --> source of files --> epochs

A logged message is in exactly one place of the stream, whichever process crashes: an intention has
rows of the log. A broker of MQTT sends unacknowledged messages again (at least once). A server of
events is asked for events after the last id in the log. A WebSocket repeats nothing. An unavailable
feed is retried, with pauses that double; ``away`` returns the reason. A feed has no end, so one
that is read ``once`` ends after its ``idle`` without a message.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.spool.message_log import LOOK, MAX_WAITING_BYTES, Log, Message
from levada.connectors.spool.spool_folder import spool_folder
from levada.core.checkpoint_files import facts_of, file_mode
from levada.core.pending_requests import mark_pending
from levada.errors import SourceError

BUFFER = 20_000  # the most received messages that are not durable
BUFFER_BYTES = 64 << 20  # of these messages; the last one may exceed it
TOGETHER = 0.005  # s that a message waits for others
PATIENCE = 10.0  # s until the first answer of a feed


class Receiver(Protocol):
    """Connects to a feed, again whenever the connection breaks."""

    def start(self) -> None:
        """Connects, on a thread of its own."""

    def acknowledge(self, messages: list[Message]) -> None:
        """Acknowledges durable messages."""

    def stop(self) -> None:
        """Ends the connection."""


class FeedSpool:
    """The spool of one feed; ``config`` is the stream of the log's files. ``listen`` makes its
    receiver. ``kept``: the checkpoint outlives the engine, so the other side must recognize it.
    """

    def __init__(
        self,
        config: StreamConfig,
        root: Path,
        listen: Callable[[FeedSpool], Receiver],
        *,
        kept: bool,
    ) -> None:
        assert config.feed is not None, "the stream is a feed"
        self.config = config
        self.open_in(spool_folder(root, config.name))
        self.feed, self.stream, self.identity, self.note = config.feed, config.name, "", ""
        self._root, self.kept, self._listen = root, kept, listen
        self._log: Log | None = None
        self._receiver: Receiver | None = None
        self._room = threading.Condition()
        self._buffer: list[Message] = []
        self._bytes = 0  # of the buffer
        self._stopped = self._once = self._up = self._refused = self._full = False
        self._away = self._reason = ""
        self._answered = threading.Event()
        self.heard = 0.0
        self._failure: BaseException | None = None
        self._writer = threading.Thread(target=self._write, name="levada log", daemon=True)

    # -- for the driver --

    def open_in(self, folder: Path) -> None:
        """Sets the folder of the log, before the start."""
        self.folder = folder
        self.config = replace(self.config, path=str(folder / "data"), settled=True)

    @property
    def away(self) -> str:
        """Returns why no messages arrive; "" if the feed responds."""
        if self._full:
            most = MAX_WAITING_BYTES >> 20
            return f"The stream {self.stream} waits: {most} MB of it are not read yet."
        return self._away

    def start(self, *, once: bool) -> None:
        """Starts to listen; with ``once`` until no message arrives for ``idle``."""
        if once:
            self.config.check_once()
        self._log, self._once = Log(self.folder / "data"), once
        self.note = self._log.note
        self.identity = facts_of(self._root).id
        self._receiver = self._listen(self)
        self._writer.start()
        self._receiver.start()
        with mark_pending(f"The stream {self.stream}"):
            self._await_answer()
            if once:
                self._await_silence()
        if once:
            self.stop()
            self.check()

    def _await_answer(self) -> None:
        """Waits briefly for the first response of a feed: its address may be wrong."""
        known = self.folder / "known"
        if known.exists() and not self._once:
            return
        self._answered.wait(PATIENCE)
        if not self._up:
            why = self._reason or "it does not answer"
            self.stop()
            raise SourceError(
                f"The stream {self.stream}: {self.feed.server} cannot be listened to: {why}.",
                hint="Is it there, and are address, tls, user and password what it wants?",
            )
        known.touch(file_mode(self.folder))

    def _await_silence(self) -> None:
        assert self.config.idle is not None, "it ends by silence"
        with self._room:
            while self._failure is None:
                left = self.heard + self.config.idle / 1000 - time.monotonic()
                if left <= 0 and not self._buffer:
                    return
                self._room.wait(max(left, TOGETHER))

    def check(self) -> None:
        """Raises the error that made the spool fail."""
        if self._failure is not None:
            raise self._failure

    def forget(self, position: Mapping[str, Any]) -> None:
        """Deletes the files before a committed position."""
        if self._log is not None:
            self._log.forget(position)

    def stop(self) -> None:
        """Stops listening; logs the received messages."""
        if self._receiver is None:
            return
        with self._room:
            self._stopped = True
            self._room.notify_all()
        with mark_pending(f"The stream {self.stream}"):
            self._writer.join()
            self._receiver.stop()
        self._receiver = None

    # -- for the receiver --

    def put(self, message: Message) -> None:
        """Adds a message."""
        with self._room:
            self._room.wait_for(lambda: self._stopped or self._has_room())
            if not self._stopped:
                self._buffer.append(message)
                self._bytes += message.size
                if not message.fault:
                    self.heard = time.monotonic()
                self._room.notify_all()

    def _has_room(self) -> bool:
        return len(self._buffer) < BUFFER and self._bytes < BUFFER_BYTES

    def up(self) -> None:
        """Notes that the feed responds."""
        if not self._up:
            self.heard = time.monotonic()
        self._away, self._up = "", True
        self._answered.set()

    def down(self, why: str, *, refused: bool = False) -> None:
        """Notes that the feed does not respond."""
        self._reason = why.strip().rstrip(".")
        self._away = f"The stream {self.stream} waits for {self.feed.server}: {self._reason}."
        if refused:
            self._answered.set()

    # -- the writer --

    def _write(self) -> None:
        try:
            while (messages := self._next()) is not None:
                self._keep(messages)
        except BaseException as error:
            self._failure = error
            with self._room:
                self._stopped = True
                self._room.notify_all()

    def _next(self) -> list[Message] | None:
        """Returns the received messages; None at the end."""
        with self._room:
            self._room.wait_for(lambda: bool(self._buffer) or self._stopped)
            if self._buffer:
                self._room.wait_for(lambda: self._stopped, TOGETHER)  # collects more messages
            messages, self._buffer, self._bytes = self._buffer, [], 0
            self._room.notify_all()
            return messages or None

    def _keep(self, messages: list[Message]) -> None:
        assert self._log is not None and self._receiver is not None, "it has been started"
        self._log.append(messages)
        self._receiver.acknowledge(messages)
        while not self._once and self._log.full():
            self._full = True
            with self._room:
                if self._room.wait_for(lambda: self._stopped, LOOK):
                    break
        self._full = False

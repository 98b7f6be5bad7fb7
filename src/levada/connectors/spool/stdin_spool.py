"""Reads standard input as a stream (``--stream NAME=-``): whole lines, which are durable before an
epoch reads them, so that a repeated epoch reads the same.

A thread reads ahead up to the size of the buffer. Before each epoch the received data are written
as a file of the spool, up to the end of a line (of CSV: of a record). An incomplete line waits for
its end, or for that of the input. Each file of CSV begins with the header, the first line of the
input. A JSON array over several lines is written as one line for each file, which is not a row. A
later run on the checkpoint continues with its own standard input.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from levada.connectors.config.input_formats import STDIN
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.json_lines import HEAD, spans_lines
from levada.connectors.spool.spool_folder import Batches, spool_folder
from levada.errors import EngineError, UsageError

FORMATS = ("nt", "nq", "csv", "ndjson")
BUFFER = 16 << 20  # the most read bytes that are not written
AGE = 0.05  # s between two files
LONGEST = 1 << 20  # the most bytes of a record with line ends
_READ = 1 << 16


class StdinSpool:
    """The spool of standard input, or of another descriptor."""

    def __init__(self, config: StreamConfig, data: Path, descriptor: int = 0) -> None:
        self.config = config
        self.open_in(data.parent)
        self._descriptor = descriptor
        self._header: bytes | None = None if config.format == "csv" and not config.header else b""
        self._buffer, self._head = bytearray(), b""
        self._room = threading.Condition()
        self._ended = self._stopped = False
        self._written = 0.0
        self._failure: OSError | None = None

    def open_in(self, folder: Path) -> None:
        """Sets the folder of the batches, before the start."""
        self.config = replace(self.config, path=str(folder / "data"), settled=True)
        self._batches = Batches(folder / "data")

    def start(self, *, once: bool) -> None:
        """Starts to read; with ``once`` to the end of the input."""
        self._batches.make()
        if not once:
            threading.Thread(target=self._read, name="levada stdin", daemon=True).start()
            return
        while not self._ended:
            self._take(os.read(self._descriptor, _READ))
            if len(self._buffer) >= BUFFER:
                self._write()
        self._write()

    def check(self) -> None:
        """Writes the received lines. Raises ``EngineError`` if the input cannot be read."""
        if time.monotonic() - self._written >= AGE:
            self._write()
        if self._failure is not None:
            raise EngineError(f"Standard input cannot be read: {self._failure.strerror}.")

    def forget(self, position: Mapping[str, Any]) -> None:
        """Deletes the batches before a committed position."""
        self._batches.forget(position)

    def stop(self) -> None:
        """Stops reading; writes the received lines."""
        with self._room:
            self._stopped = True
            self._room.notify()
        if self._batches.data.exists():
            self._write()

    def _read(self) -> None:
        """Runs the thread: reads until the input or the engine ends."""
        try:
            while not self._ended and not self._stopped:
                self._take(os.read(self._descriptor, _READ))
                with self._room:
                    self._room.wait_for(lambda: self._stopped or len(self._buffer) < BUFFER)
        except OSError as error:
            self._failure = error

    def _take(self, data: bytes) -> None:
        with self._room:
            if data and not self._stopped:
                self._buffer += data
            elif not data:
                self._ended = True

    def _write(self) -> None:
        """Writes a file of the received whole lines."""
        with self._room:
            whole = self._whole()
            data = bytes(self._buffer[:whole])
            del self._buffer[:whole]
            self._room.notify()
        self._written = time.monotonic()
        if self._header is None and data:
            end = data.index(b"\n") + 1
            self._header, data = data[:end], data[end:]
        if data.strip():
            number = int(self._batches.last.partition(".")[0] or 0) + 1
            ending = f".{self.config.format}"
            text = (self._header or b"") + self._as_lines(data)
            self._batches.write(f"{number:015d}", ending, text)

    def _as_lines(self, data: bytes) -> bytes:
        """Returns the next lines; for a JSON value over several lines one that is not an object, so
        that none of its elements is read as a row.
        """
        if self.config.format != "ndjson":
            return data
        self._head += data[: max(HEAD + 1 - len(self._head), 0)]
        is_one = spans_lines(self._head)
        return b"[%s\n" % re.sub(rb"[\r\n]", b" ", data) if is_one else data

    def _whole(self) -> int:
        """Returns the length of the whole lines, or records, in the buffer; all of it at the
        end.
        """
        if self._ended and self._buffer:
            if not self._buffer.endswith(b"\n"):
                self._buffer += b"\n"
            return len(self._buffer)
        end = last = self._buffer.rfind(b"\n") + 1
        if self.config.format != "csv":
            return end
        while end and self._buffer.count(b'"', 0, end) % 2:
            end = self._buffer.rfind(b"\n", 0, end - 1) + 1
        return end if last - end < LONGEST else last


def stdin_spool(config: StreamConfig, root: Path) -> StdinSpool:
    """Makes the spool of standard input as this stream. Raises ``UsageError`` for options that need
    a file.
    """
    wrong = (
        (config.format not in FORMATS, f"is read as {', '.join(FORMATS)}", "Say format=nq."),
        (config.element != "line", "is read by lines", "Leave element= out, or say a file."),
        (config.undecided, "needs its schema said", "Say schema=k:integer, or a file."),
        (config.time_kind == "filename", "has no file name", "Leave time= out, or say a file."),
        (config.files != "sequence", "is one sequence", "Leave files= out."),
    )
    for broken, what, hint in wrong:
        if broken:
            message = f"The stream {config.name} is standard input, which {what}."
            raise UsageError(message, hint=hint)
    assert config.path == STDIN, "the path says so"
    return StdinSpool(config, spool_folder(root, config.name) / "data")

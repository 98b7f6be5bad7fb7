"""Spools rows that another process pushes (``--stream NAME=push:``). The server checks the rows and
responds when they are durable.

    spool/HASH/data/000000000000012.x78af5f94892f3950.nq        what came within some milliseconds
    spool/HASH/data/000000000000013.x8b17699e59f0a17b.w70.nq    the same, and that nothing before
                                         the time 70 follows
    spool/HASH/keys/000000000000012      the Idempotency-Keys of what is in it, and of what each
                                         was, sealed
    spool/HASH/push                      that it is such a stream

The server writes, the engine reads and deletes. The last batch stays, since its name contains the
progress. Keys are written before their batch, and count when that exists. So repeated requests are
recognized, whichever process crashes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from levada.connectors.config.input_formats import PUSH
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.spool.spool_folder import Batches, spool_folder
from levada.core.checkpoint_files import file_mode
from levada.core.checksummed_files import ALTERED, seal, unseal
from levada.core.clock import elapsed_ms
from levada.core.durable_files import write_atomic
from levada.core.event_time import MIN
from levada.errors import SinkError, UsageError, unreadable

FORMATS = ("nt", "nq", "ndjson")
MARK = "push"
REMEMBERED = 600_000  # ms that a key is valid
FORGET_MS = 1000  # between two looks for old keys
MAX_KEYS = 100_000  # that are remembered
WAY = "delete that file: what is sent again with its keys is taken twice then"


class PushSpool:
    """The engine's side; ``config`` is the stream of the files."""

    def __init__(self, config: StreamConfig, folder: Path) -> None:
        self.config = config
        self.open_in(folder)

    def open_in(self, folder: Path) -> None:
        """Sets the folder, before the start."""
        self.config = replace(self.config, path=str(folder / "data"), settled=True)
        self._batches, self._mark = Batches(folder / "data"), folder / MARK

    def start(self, *, once: bool) -> None:
        """Makes the folder; with ``once`` only the present batches are read."""
        self._batches.make()
        self._mark.touch(file_mode(self._mark.parent))

    def check(self) -> None:
        """Does nothing: this side cannot fail."""

    def forget(self, position: Mapping[str, Any]) -> None:
        """Deletes the batches before a committed position."""
        self._batches.forget(position)

    def stop(self) -> None:
        """Does nothing: other processes may continue to write."""


class PushedKey(NamedTuple):
    """The arrival time of data with a key, by the clock of durations (ms), and their digest."""

    came: int
    sent: str


class PushLog:
    """The server's side, with one writer at a time. ``clock``: of durations, ms; the age of a key
    of a previous process counts from the start of this one.
    """

    def __init__(self, data: Path, form: str, clock: Callable[[], int] = elapsed_ms) -> None:
        self._clock, self._begun = clock, clock()
        self._forgot = self._begun  # when old keys were last looked for
        self._came: dict[str, int] = {}  # files of keys of this process, and their arrival
        self._batches, self._form = Batches(data), form
        self._keys = data.parent / "keys"
        self._last = _number(self._batches.last)
        self._seen: dict[str, PushedKey] = self._read_keys()

    def find_by_key(self, key: str) -> str | None:
        """Returns the digest of the data with a key, as passed to ``append``; None for a new or an
        old key.
        """
        seen = self._seen.get(key)
        if seen is None or seen.came < self._clock() - REMEMBERED:
            return None
        return seen.sent

    def has_room_for_keys(self) -> bool:
        """Whether a batch with keys may come."""
        if len(self._seen) >= MAX_KEYS:
            self._forget_keys()
        return len(self._seen) < MAX_KEYS

    def append(self, data: bytes, keys: Mapping[str, str], complete: int = MIN) -> None:
        """Writes a batch durably. ``keys``: of its data, with a digest of the data of each.
        ``complete``: no earlier time (ms) follows, if that was declared. Raises ``SinkError``.
        """
        name = f"{self._last + 1:015d}"
        if keys:
            self._forget_keys()
            self._came[name] = self._clock()
            mode = file_mode(self._keys.parent)
            write_atomic(self._keys / name, seal(json.dumps(dict(keys)).encode()), mode)
        said = f".w{complete}" if complete > MIN else ""
        try:
            self._batches.write(name, f"{said}.{self._form}", data)
        except SinkError:
            (self._keys / name).unlink(missing_ok=True)  # the next batch gets this number
            raise
        self._last += 1
        now = self._clock()
        self._seen |= {key: PushedKey(now, sent) for key, sent in keys.items()}

    def backlog(self) -> int:
        """Returns the bytes of the batches after the one that is being read."""
        sizes: dict[str, int] = {}
        for path in self._batches.data.iterdir():
            if not path.name.startswith("."):
                with suppress(FileNotFoundError):
                    sizes[path.name] = path.stat().st_size
        return sum(size for name, size in sizes.items() if name != min(sizes))

    def _read_keys(self) -> dict[str, PushedKey]:
        """Returns the keys that still count. Raises ``CheckpointError`` for a damaged file of
        keys.
        """
        seen: dict[str, PushedKey] = {}
        for path in self._key_files():
            if _number(path.name) <= self._last:
                keys = read_keys(path)
                seen |= {key: PushedKey(self._begun, keys[key]) for key in keys}
            else:
                path.unlink(missing_ok=True)  # its batch was never written
        return seen

    def _forget_keys(self) -> None:
        now = self._clock()
        if now - self._forgot < FORGET_MS:
            return
        self._forgot, oldest = now, now - REMEMBERED
        self._seen = {key: seen for key, seen in self._seen.items() if seen.came >= oldest}
        self._forget_keys_before(oldest)

    def _forget_keys_before(self, oldest: int) -> None:
        for path in self._key_files():
            if self._came.get(path.name, self._begun) < oldest:
                path.unlink(missing_ok=True)
                self._came.pop(path.name, None)

    def _key_files(self) -> list[Path]:
        if not self._keys.exists():
            return []
        return [path for path in self._keys.iterdir() if not path.name.startswith(".")]


def read_keys(path: Path) -> dict[str, str]:
    """Reads the keys in a file, with their digests. Raises ``CheckpointError``."""
    try:
        data = unseal(path.read_bytes())
    except OSError as error:
        raise unreadable(path, str(error.strerror), way=WAY) from error
    if data is None:
        raise unreadable(path, ALTERED, way=WAY)
    keys: dict[str, str] = json.loads(data)
    return keys


def push_spool(config: StreamConfig, root: Path) -> PushSpool:
    """Makes the spool of a pushed stream. Raises ``UsageError`` for options that need a file."""
    wrong = (
        (config.format not in FORMATS, f"comes as {', '.join(FORMATS)}", "Say format=nq."),
        (
            config.element not in ("line", "blankline"),
            "comes by lines, or by bodies",
            "Leave element= out, or say element=blankline.",
        ),
        (config.undecided, "needs its schema said", "Say schema=k:integer."),
        (config.time_kind == "filename", "has no file name", "Leave time= out."),
        (config.files != "sequence", "is one sequence", "Leave files= out."),
    )
    for broken, what, hint in wrong:
        if broken:
            raise UsageError(f"The stream {config.name} is pushed, and {what}.", hint=hint)
    assert config.path == PUSH, "the path says so"
    return PushSpool(config, spool_folder(root, config.name))


def is_pushed(config: StreamConfig) -> bool:
    """Whether the files of a stream are pushed."""
    return (Path(config.path).parent / MARK).exists()


def _number(name: str) -> int:
    digits = name.partition(".")[0]
    return int(digits) if digits.isdecimal() else 0

"""The heartbeat of a checkpoint's leader, and the signs of its standbys
(docs/decisions/0038-takeover-is-a-commit.md).

    pulse          the engine's: another content every ``INTERVAL``; a mark of a clean end; the
                   streams whose sources do not respond; the last measurements of its load
    standby/ID     the name of each standby; another content every ``INTERVAL``

No process compares clocks. A standby measures by its own clock how long a content has stayed the
same, and the engine does so with its standbys. A heartbeat determines only when to try. The
takeover prevents that two engines commit (``checkpoint.leadership.commit_log``), however wrong a
clock or slow a disk is.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from levada.checkpoint.leadership.commit_log import Driver, last_takeover
from levada.core.checkpoint_files import create
from levada.core.checksummed_files import seal, unseal
from levada.core.durable_files import hidden_name, make_folder
from levada.core.frozen import frozen
from levada.core.msgspec_warmup import prepare_structs

INTERVAL = 1.0  # s
GONE = 10 * INTERVAL  # time after which a standby counts as gone
FILE, FOLDER = "pulse", "standby"
EPOCH_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
Clock = Callable[[], float]
T = TypeVar("T")


class Away(msgspec.Struct, frozen=True):
    """A stream with an unavailable source. ``since_ms``: the instant at which the engine found that
    (ms, its own clock). ``reason``: the reason, as a sentence.
    """

    stream: str
    since_ms: int
    reason: str


@frozen
class StreamBacklog:
    """The unread input of a stream: ``elements`` (of files: estimated; None before the first),
    and ``size_bytes`` (of files; None of a topic). ``oldest_ms``: when the oldest arrived (ms, the
    engine's clock; None: nothing is unread). Elements that are read and arrive a second, over
    ``WINDOW`` of ``engine.driver.backlog_thread``. ``catch_up_seconds``: until all is read at these
    rates (None: unknown, or never).
    """

    elements: int | None
    size_bytes: int | None
    oldest_ms: int | None
    read_per_second: float = 0.0
    arriving_per_second: float = 0.0
    catch_up_seconds: float | None = None


class Load(msgspec.Struct, frozen=True):
    """Measurements of a leader, renewed once a second at most. ``backlog``: by stream.
    ``epoch_counts``: the epochs of this run by their duration, up to each of ``EPOCH_SECONDS``, and
    longer; ``epoch_seconds``: of all of them. Resident memory on the leader's machine:
    ``driver_bytes`` of its process, ``task_bytes`` of its child processes.
    """

    backlog: dict[str, StreamBacklog] = {}
    epoch_counts: tuple[int, ...] = ()
    epoch_seconds: float = 0.0
    driver_bytes: int = 0
    task_bytes: int = 0


class Heartbeat(msgspec.Struct, frozen=True):
    """The ``count``-th heartbeat of a leader. ``is_last``: it is the last one.
    ``unavailable_streams``: the unavailable streams. ``clock_step``: the last step of the engine's
    clock, as a sentence. ``load``: its measurements.
    """

    leadership: int
    count: int
    is_last: bool = False
    unavailable_streams: tuple[Away, ...] = ()
    clock_step: str = ""
    load: Load = Load()


class Waiting(msgspec.Struct, frozen=True):
    """A standby, since the instant ``since_ms`` of its own clock (ms)."""

    host: str
    pid: int
    since_ms: int
    count: int = 0


class StabilityTimer:
    """Measures how long a content has stayed the same, by the reader's own clock (s)."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._last, self._since = clock, b"", clock()

    def look(self, content: bytes) -> float:
        """Returns how long the content has stayed the same, given the present one."""
        now = self._clock()
        if content != self._last:
            self._last, self._since = content, now
        return now - self._since


class LeaderWatch:
    """Watches an engine's heartbeat, to take over when it has been silent for ``lease`` seconds, or
    has left. A new leader gets as much time for its first heartbeat.
    """

    def __init__(self, root: Path, lease: float, clock: Clock) -> None:
        self._root, self._lease = root, lease
        self._seen, self._reigns = StabilityTimer(clock), StabilityTimer(clock)

    def is_due(self) -> bool:
        """Whether it is time to take over."""
        data = read_or_empty(self._root / FILE)
        pulse, silent = _decode(data, Heartbeat), self._seen.look(data) >= self._lease
        if pulse is None or not (silent or pulse.is_last):
            return silent
        last = last_takeover(self._root)
        if last is None or last.leadership <= pulse.leadership:
            return True
        return self._reigns.look(str(last).encode()) >= self._lease


class Sign:
    """The file of a standby."""

    def __init__(self, root: Path, who: Driver) -> None:
        self._path = root / FOLDER / secrets.token_hex(8)
        self._who = Waiting(who.host, who.pid, who.wall)

    def renew(self) -> None:
        """Renews the sign of a waiting standby. Raises ``OSError``."""
        make_folder(self._path.parent, parents=True)
        self._who = msgspec.structs.replace(self._who, count=self._who.count + 1)
        write_at_once(self._path, seal(msgspec.json.encode(self._who)))

    def close(self) -> None:
        """Deletes the sign."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


def read_pulse(root: Path) -> Heartbeat | None:
    """Returns the last heartbeat; None: no engine has run yet."""
    return _decode(read_or_empty(root / FILE), Heartbeat)


def write_pulse(root: Path, pulse: Heartbeat) -> None:
    """Writes the next heartbeat. Raises ``OSError``."""
    write_at_once(root / FILE, seal(msgspec.json.encode(pulse)))


def read_standbys(root: Path) -> dict[Path, Waiting]:
    """Returns the standbys, by their files."""
    standbys = {}
    with suppress(OSError):
        for path in sorted((root / FOLDER).iterdir()):
            who = _decode(read_or_empty(path), Waiting)
            if who is not None and not path.name.startswith("."):
                standbys[path] = who
    return standbys


def write_at_once(path: Path, data: bytes) -> None:
    """Replaces the content of a file at once, without durability. Raises ``OSError``."""
    temporary = Path(hidden_name(str(path)))
    try:
        with create(temporary) as file:
            file.write(data)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def read_or_empty(path: Path) -> bytes:
    """Returns the content of a file; empty if the file is missing or does not respond."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _decode(data: bytes, kind: type[T]) -> T | None:
    content = unseal(data)
    if content is None:
        return None
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(content, type=kind)
    return None


prepare_structs(Heartbeat, Waiting)

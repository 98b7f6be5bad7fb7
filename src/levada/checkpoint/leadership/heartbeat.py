"""The pulse of the engine at work on a checkpoint, and those that wait to take its place
(docs/decisions/0038-takeover-is-a-commit.md).

    pulse          the engine's: another content every ``INTERVAL``; at a clean end: it has left;
                   and which streams' sources do not answer it
    standby/ID     of each that waits: who it is; another content every ``INTERVAL``

Nobody compares clocks: who waits measures by its own how long a content has stayed the same, and so
does the engine with those that wait. A pulse says only when to try: that two engines commit is
hindered by the takeover (``checkpoint.leadership.commit_log``), however late a clock or slow a disk
is.
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
from levada.core.msgspec_warmup import prepare_structs

INTERVAL = 1.0  # s
GONE = 10 * INTERVAL  # after which one that waits is taken to be gone
FILE, FOLDER = "pulse", "standby"
Clock = Callable[[], float]
T = TypeVar("T")


class Away(msgspec.Struct, frozen=True):
    """A stream whose source does not answer: ``since`` the instant at which the engine found that
    (ms, its own clock), and ``why``, in a sentence.
    """

    stream: str
    since: int
    why: str


class Heartbeat(msgspec.Struct, frozen=True):
    """The ``count``-th of a reign; ``left``: the last one; ``away``: what it waits for; ``clock``:
    the last step of the engine's clock, in a sentence.
    """

    reign: int
    count: int
    left: bool = False
    away: tuple[Away, ...] = ()
    clock: str = ""


class Waiting(msgspec.Struct, frozen=True):
    """One that waits, since the instant ``since`` of its own clock (ms)."""

    host: str
    pid: int
    since: int
    count: int = 0


class StabilityTimer:
    """How long a content has stayed the same, by one's own clock (s)."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._last, self._since = clock, b"", clock()

    def look(self, content: bytes) -> float:
        """For how long, now that it is this."""
        now = self._clock()
        if content != self._last:
            self._last, self._since = content, now
        return now - self._since


class LeaderWatch:
    """Watches an engine's pulse, to take over when it has been silent for ``lease`` seconds, or
    has left; from one that has taken over since, a pulse is awaited for as long.
    """

    def __init__(self, root: Path, lease: float, clock: Clock) -> None:
        self._root, self._lease = root, lease
        self._seen, self._reigns = StabilityTimer(clock), StabilityTimer(clock)

    def is_due(self) -> bool:
        """Whether it is time to take over."""
        data = read_or_empty(self._root / FILE)
        pulse, silent = _decode(data, Heartbeat), self._seen.look(data) >= self._lease
        if pulse is None or not (silent or pulse.left):
            return silent
        last = last_takeover(self._root)
        if last is None or last.reign <= pulse.reign:
            return True
        return self._reigns.look(str(last).encode()) >= self._lease


class Sign:
    """The sign of one that waits."""

    def __init__(self, root: Path, who: Driver) -> None:
        self._path = root / FOLDER / secrets.token_hex(8)
        self._who = Waiting(who.host, who.pid, who.wall)

    def renew(self) -> None:
        """It still waits. Raises ``OSError``."""
        make_folder(self._path.parent, parents=True)
        self._who = msgspec.structs.replace(self._who, count=self._who.count + 1)
        write_at_once(self._path, seal(msgspec.json.encode(self._who)))

    def close(self) -> None:
        """It waits no more."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


def read_pulse(root: Path) -> Heartbeat | None:
    """The last pulse; None: no engine has run yet."""
    return _decode(read_or_empty(root / FILE), Heartbeat)


def write_pulse(root: Path, pulse: Heartbeat) -> None:
    """The next pulse. Raises ``OSError``."""
    write_at_once(root / FILE, seal(msgspec.json.encode(pulse)))


def read_standbys(root: Path) -> dict[Path, Waiting]:
    """Those that have given a sign, by their files."""
    standbys = {}
    with suppress(OSError):
        for path in sorted((root / FOLDER).iterdir()):
            who = _decode(read_or_empty(path), Waiting)
            if who is not None and not path.name.startswith("."):
                standbys[path] = who
    return standbys


def write_at_once(path: Path, data: bytes) -> None:
    """Gives a file this content at once; a power cut may take it. Raises ``OSError``."""
    temporary = Path(hidden_name(str(path)))
    try:
        with create(temporary) as file:
            file.write(data)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def read_or_empty(path: Path) -> bytes:
    """What a file holds; nothing, if it is not there or does not answer."""
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

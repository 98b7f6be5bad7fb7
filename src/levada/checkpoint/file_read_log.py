"""The log of the read positions of a stream's files, for ``files=parallel``, where each file that
ever existed has its own position: a manifest would grow with every file.

Entries that no take has changed lately move from a position into the log. The position contains a
mark: the length of the log with its hash. With its mark it represents a whole one (``expand``),
whatever was appended later: an appended entry was already in each position with an earlier mark. An
entry is a line ``[name, {key: value}]``, which replaces earlier ones of the name; an empty one
forgets the file. The log is durable before a position names it. Cost: a line for each file that is
no longer read, one fsync for at least ``MAX_SETTLED_FILES`` of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import xxhash

from levada.core.checkpoint_files import file_mode, sync_folder
from levada.core.checksummed_files import ALTERED
from levada.core.durable_files import make_folder, unwritable_error
from levada.core.size_thresholds import register
from levada.errors import unreadable

Position = dict[str, Any]
Entry = dict[str, Any]

KEYS = ("files", "rows", "fingerprints", "lives")
"""The fields of a position with an entry for each file."""
MARK = "log"
MAX_SETTLED_FILES = register(f"{__name__}.MAX_SETTLED_FILES", 32)
"""The most files without new reads that stay in a position."""


class Mark(msgspec.Struct, array_like=True, frozen=True):
    """The valid part of a log: its number, its bytes and their hash."""

    number: int
    length: int
    digest: str


class ReadLog:
    """The log of one stream. ``stem`` is the path of its files without their number."""

    def __init__(self, stem: Path) -> None:
        self._stem = stem
        self._number = self._length = self._lines = 0
        self._began = False  # the log that it appends to
        self._hash = xxhash.xxh3_64()
        self._entries: dict[str, Entry] = {}
        self._last: tuple[Position, Position] = ({}, {})
        self._log_numbers: list[int] = []  # the numbers of the logs that it has begun, or continued

    def expand(self, position: Position) -> Position:
        """Returns the whole position. Raises ``CheckpointError`` if the log is damaged."""
        if MARK not in position:
            return position
        if self._last[0] != position:
            self._follow(msgspec.convert(position[MARK], Mark))
            entries = self._entries | _entries_of(position)
            rest = {k: v for k, v in position.items() if k != MARK and k not in KEYS}
            self._last = position, rest | _position_of(entries)
        return self._last[1]

    def abbreviate(self, before: Position, after: Position) -> Position:
        """Returns the short position for the whole one ``after``. ``before`` is the short position
        from which it was taken. Many entries that the take did not change move into the log. A file
        in the log of which nothing is known any more is null in the position.
        """
        was = _entries_of(self.expand(before))
        now = _entries_of(after)
        known = self._entries if MARK in before else {}
        changed = {n: e for n, e in now.items() if known.get(n) != e}
        changed |= {n: {} for n in known if n not in now and known[n]}
        settled = {n: e for n, e in changed.items() if was.get(n, {}) == e}
        if len(settled) > MAX_SETTLED_FILES:
            self._append(settled, fresh=MARK not in before)
            changed = {n: e for n, e in changed.items() if n not in settled}
        elif MARK not in before:
            return after
        rest = {k: v for k, v in after.items() if k not in KEYS}
        kept = _position_of(changed)
        if gone := dict.fromkeys(n for n, e in changed.items() if not e):
            kept[KEYS[0]] = {**kept.get(KEYS[0], {}), **gone}
        # not the earlier mark: entries of a dropped epoch are known, too
        return {**rest, **kept, MARK: [self._number, self._length, self._hash.hexdigest()]}

    def _follow(self, mark: Mark) -> None:
        """Reads the log up to a later mark."""
        if mark.number == self._number and mark.length <= self._length:
            return
        path = self._path(mark.number)
        try:
            with path.open("rb") as file:
                data = file.read(mark.length)
        except OSError as error:
            raise unreadable(path, str(error.strerror)) from error
        check(path, data, mark)
        self._number, self._entries, self._lines = mark.number, {}, 0
        others = self._log_numbers or [mark.number - 1] * (mark.number > 0)
        self._log_numbers = [*(n for n in others if n != mark.number), mark.number]
        self._began = False
        self._hash = xxhash.xxh3_64(data)
        self._length = mark.length
        for line in data.splitlines():
            name, entry = msgspec.json.decode(line)
            self._entries[name] = entry
            self._lines += 1

    def _append(self, entries: Mapping[str, Entry], *, fresh: bool) -> None:
        """Appends entries durably. Begins a new log if half of this one is replaced (``.1`` after
        ``.0``), and deletes the one before the last.
        """
        if fresh:
            self._entries = {}
        self._entries = {**self._entries, **entries}
        anew = fresh or not self._began
        anew = anew or self._lines + len(entries) > 2 * len(self._entries) + MAX_SETTLED_FILES
        if anew:
            self._begin(0 if fresh else self._number + 1)
            entries = self._entries = {n: e for n, e in self._entries.items() if e}
        data = b"".join(msgspec.json.encode([n, e]) + b"\n" for n, e in entries.items())
        self._write(data)
        self._hash.update(data)
        self._length += len(data)
        self._lines += len(entries)
        while len(self._log_numbers) > 2:
            self._path(self._log_numbers.pop(0)).unlink(missing_ok=True)

    def _begin(self, number: int) -> None:
        """Begins a log of a number, or of the next unused one."""
        self._hash, self._length, self._lines = xxhash.xxh3_64(), 0, 0
        while not self._create(self._path(number)):
            number += 1
        self._number, self._began = number, True
        self._log_numbers.append(number)

    def _create(self, path: Path) -> bool:
        try:
            make_folder(path.parent)
            mode = file_mode(path.parent)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        except FileExistsError:
            return False
        except OSError as error:
            raise unwritable_error(path.parent.parent, error) from error
        return True

    def _write(self, data: bytes) -> None:
        """Writes after the valid part; discards data of earlier attempts after it."""
        path = self._path(self._number)
        try:
            with path.open("r+b") as file:
                file.truncate(self._length)
                file.seek(self._length)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if not self._length:
                sync_folder(path.parent)
        except OSError as error:
            raise unwritable_error(path.parent.parent, error) from error

    def _path(self, number: int) -> Path:
        return path_of(self._stem, number)


def path_of(stem: Path, number: int) -> Path:
    """Returns the file of the log with this number."""
    return stem.with_name(f"{stem.name}.{number}")


def stem_of(root: Path, stream: str) -> Path:
    """Returns the path of the logs of a stream in a checkpoint. Names of streams may be invalid
    file names.
    """
    return root / "positions" / xxhash.xxh3_64_hexdigest(stream.encode())


def check(path: Path, data: bytes, mark: Mark) -> None:
    """Raises ``CheckpointError`` if these are not the bytes of a mark."""
    if len(data) < mark.length or xxhash.xxh3_64_hexdigest(data[: mark.length]) != mark.digest:
        raise unreadable(path, ALTERED)


def logs_of(positions: Mapping[str, Position]) -> dict[str, Mark]:
    """Returns the logs that positions name, by their names in the checkpoint."""
    marks = {}
    for stream, position in positions.items():
        if MARK in position:
            mark = msgspec.convert(position[MARK], Mark)
            marks[path_of(stem_of(Path(), stream), mark.number).as_posix()] = mark
    return marks


def _entries_of(position: Position) -> dict[str, Entry]:
    """Returns the entries of a position by file; an empty one for a file of which nothing is known
    any more.
    """
    entries: dict[str, Entry] = {}
    for key in KEYS:
        for name, value in position.get(key, {}).items():
            entry = entries.setdefault(name, {})
            if value is not None:
                entry[key] = value
    return entries


def _position_of(entries: Mapping[str, Entry]) -> Position:
    position: Position = {}
    for name, entry in entries.items():
        for key, value in entry.items():
            position.setdefault(key, {})[name] = value
    return position

"""The index of published epochs, which readers in other processes, and of later runs, may still
read (docs/decisions/0025-readers-are-cursors.md).

    published.log    a line an epoch with results: JSON, a blank, the hash of that; only added to

A line contains the place of its epoch's results (plan, segments), the reports of each query, and
the oldest epoch that is kept. Reports of a query ascend, each in one epoch, so a report's time
determines where a reader continues. A line is written after the epoch's manifest, and before its
intention is deleted. A crash between the two publishes the epoch again, and a start adds missing
lines. Lines of dropped epochs are deleted when they are the majority: then the file is written
anew.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import msgspec
import xxhash

from levada.checkpoint.delivery_progress import forget_deliveries
from levada.checkpoint.manifest import Manifest, read_manifest
from levada.core.checkpoint_files import create, sync_folder
from levada.core.checksummed_files import ALTERED
from levada.core.durable_files import replace_file, unwritable_error
from levada.core.event_time import MAX, TIMELESS, parse_duration
from levada.core.frozen import frozen
from levada.core.integer_options import parse_count
from levada.core.msgspec_warmup import prepare_structs
from levada.core.query_limits import SIZES
from levada.core.size_thresholds import register
from levada.errors import CheckpointError, UsageError, unreadable
from levada.plan.execution.plan import Plan

FILE = "published.log"
MAX_DROPPED_LINES = register(
    f"{__name__}.MAX_DROPPED_LINES", 1000
)  # lines of dropped epochs that are tolerated
_HASH = 16
WAY = "run once without outputs and --keep: that gives up the results that were kept"


class Entry(msgspec.Struct, frozen=True):
    """An epoch with results. ``wall_ms``: when it was published (ms). ``segment_bytes``: the bytes
    of its segments. ``shown``: due reports of queries that show empty ones. ``queries``: the first
    and the last report of each, and their number. ``oldest_epoch``: the oldest epoch that is kept
    with it. ``dropped_reports``: the ids of the last reports that were dropped with it.
    ``result_bytes``: the bytes of each query's results, if these have a limit.
    """

    epoch: int
    plan: int
    wall_ms: int
    segment_bytes: int
    segments: list[str]
    shown_reports: dict[str, list[int]]
    queries: dict[str, tuple[int, int, int]]
    oldest_epoch: int = 0
    dropped_reports: dict[str, int] = {}
    result_bytes: dict[str, int] = {}
    previous_epoch: int = 0

    def last(self, query: str) -> int:
        """Returns the id of a query's last report: its time, or the epoch for an answer without a
        time.
        """
        report = self.queries[query][1]
        return self.epoch if report == TIMELESS else report


@frozen
class Keep:
    """The limits of kept results: ``age`` in ms, ``size`` in bytes, ``reports``; None: no limit."""

    age: int | None = None
    size: int | None = None
    reports: int | None = None

    @staticmethod
    def parse(text: str) -> Keep:
        """Parses a duration, a size or a number of reports, or several of them.

        >>> Keep.parse("1h,256MB,5k")
        Keep(age=3600000, size=256000000, reports=5000)
        """
        limits: dict[str, int] = {}
        for word in (part.strip() for part in text.split(",")):
            number = word.rstrip("BKMGT")
            if word.isdecimal() or word.rstrip("kM").isdecimal():
                limits["reports"] = parse_count(word, "the number of reports", least=0)
            elif word.endswith("B") and number.isdecimal() and word[len(number) :] in SIZES:
                limits["size"] = int(number) * SIZES[word[len(number) :]]
            else:
                limits["age"] = _age(word)
        if 0 in limits.values():
            raise UsageError("Something is to be kept: 0 keeps nothing.", hint="Leave --keep out.")
        return Keep(**limits)


def _age(word: str) -> int:
    try:
        return parse_duration(word)
    except UsageError as error:
        raise UsageError(
            f"{word or 'An empty text'} does not say how much is kept.",
            hint="Say a duration, a size or a number of reports, such as 1h, 256MB, 5000 or "
            "1h,256MB.",
        ) from error


@dataclass
class Index:
    """The index as the engine writes it. ``clock`` is the wall clock in ms. ``plans`` returns a
    version of the plan, which has the names of queries. ``needed``: the first epoch that an output
    still needs. It stays beyond all limits, and so do those after it.
    """

    root: Path
    keep: Keep
    clock: Callable[[], int]
    plans: Callable[[int], Plan]
    needed: Callable[[], int] = lambda: MAX
    entries: list[Entry] = field(default_factory=list)
    gone: dict[str, int] = field(default_factory=dict)  # by query: the last report that is not kept
    newest: int = 0  # the epoch of the last line
    _gone: int = 0  # lines in the file for dropped epochs
    _size: int = 0
    _reports: int = 0
    sizes: Counter[str] = field(default_factory=Counter)  # of kept results, by query

    def __post_init__(self) -> None:
        least = indexed_epoch(self.root)
        entries, whole, size = _read_whole(self.root)
        _check_reaches(self.root, entries, least)
        if whole < size:
            _cut(self.root / FILE, whole)
        for entry in entries:
            self.gone |= entry.dropped_reports
            self._add_entry(entry)
        self.newest = entries[-1].epoch if entries else 0
        self._gone = self._drop_before(entries[-1].oldest_epoch if entries else 0)
        for manifest in _manifests_behind(self.root, self.newest):
            self.add(manifest)

    @property
    def first(self) -> Entry | None:
        """The oldest epoch that is kept."""
        return self.entries[0] if self.entries else None

    def add(self, manifest: Manifest) -> list[Entry]:
        """Adds an epoch durably, unless it is present or has no results; returns the dropped
        entries. Raises ``CheckpointError``.
        """
        if self.entries and manifest.epoch <= self.entries[-1].epoch:
            self._replace_last(manifest)
            return []
        entry = entry_of(self.root, manifest, self.clock(), self.plans)
        if not entry.queries:
            return []
        self._add_entry(entry)
        gone = self._drop_excess()
        lost = {query: old.last(query) for old in gone for query in old.queries}
        self.gone |= lost
        entry = msgspec.structs.replace(
            entry,
            oldest_epoch=self.entries[0].epoch,
            dropped_reports=lost,
            previous_epoch=self.newest,
        )
        self.entries[-1] = entry
        if self._gone > MAX_DROPPED_LINES + len(self.entries):
            self._replace()
        else:
            _append(self.root / FILE, _line(entry), begins=not self.newest)
        self.newest = entry.epoch
        return gone

    def _replace(self) -> None:
        """Writes the file anew, without the lines of dropped epochs."""
        self.entries[0] = msgspec.structs.replace(
            self.entries[0], dropped_reports=self.gone, previous_epoch=0
        )
        replace_file(self.root / FILE, b"".join(map(_line, self.entries)))
        self._gone = 0

    def _replace_last(self, manifest: Manifest) -> None:
        """Replaces the last epoch, which was repeated: it has the same results in other files."""
        last = self.entries[-1]
        if manifest.epoch == last.epoch and manifest.segments != last.segments:
            self.entries[-1] = msgspec.structs.replace(last, segments=manifest.segments)
            self._replace()

    def _add_entry(self, entry: Entry) -> None:
        self.entries.append(entry)
        self._size += entry.segment_bytes
        self._reports += _reports(entry)
        self.sizes.update(entry.result_bytes)

    def _drop_excess(self) -> list[Entry]:
        """Drops epochs beyond the limits, but never the newest."""
        least, needed, now = 0, self.needed(), self.clock()
        size, reports = self._size, self._reports
        for entry, following in pairwise(self.entries):
            if entry.epoch >= needed or not self._exceeds(entry, size, reports, now):
                break
            size -= entry.segment_bytes
            reports -= _reports(entry)
            least = following.epoch
        gone = self.entries[: _place(self.entries, least)]
        self._gone += self._drop_before(least)
        return gone

    def _exceeds(self, oldest: Entry, size: int, reports: int, now: int) -> bool:
        """Whether entries from this one on, with these sums, exceed the limits."""
        keep = self.keep
        old = keep.age is not None and oldest.wall_ms < now - keep.age
        large = keep.size is not None and size > keep.size
        return old or large or (keep.reports is not None and reports > keep.reports)

    def is_full(self) -> bool:
        """Whether results that outputs still need exceed the limits. Then no epoch may follow."""
        now = self.clock()
        if not self.entries or not self._exceeds(self.entries[0], self._size, self._reports, now):
            return False
        left = self.entries[_place(self.entries, self.needed()) :]
        size = sum(entry.segment_bytes for entry in left)
        return bool(left) and self._exceeds(left[0], size, sum(map(_reports, left)), now)

    def _drop_before(self, epoch: int) -> int:
        n = _place(self.entries, epoch)
        for entry in self.entries[:n]:
            self._size -= entry.segment_bytes
            self._reports -= _reports(entry)
            self.sizes.subtract(entry.result_bytes)
        del self.entries[:n]
        return n


def _place(entries: list[Entry], epoch: int) -> int:
    """Returns the number of entries of epochs before this one."""
    n = 0
    while n < len(entries) and entries[n].epoch < epoch:
        n += 1
    return n


class Cursor:
    """The index as another process reads it while it grows."""

    def __init__(self, root: Path) -> None:
        self._root, self._path = root, root / FILE
        self._file, self._read, self._line = 0, 0, 0
        self._last = 0
        self._begun = self._absent = False
        self.first = 0  # the oldest epoch that is kept
        self.gone: dict[str, int] = {}  # by query: the id of the last dropped report

    def read_new(self) -> list[Entry]:
        """Returns the new entries since the last call; updates ``first``. Raises
        ``CheckpointError``.
        """
        least = 0 if self._begun else indexed_epoch(self._root)  # before it is read
        entries = self._read_more()
        if not self._begun:
            _check_reaches(self._root, entries, least)
        self._begun = True
        new = []
        for entry in entries:
            if entry.epoch > self._last:
                self._last = entry.epoch
                self.first = max(self.first, entry.oldest_epoch)
                new.append(entry)
        for entry in entries:
            self.gone |= entry.dropped_reports
        return [entry for entry in new if entry.epoch >= self.first]

    def _read_more(self) -> list[Entry]:
        """Returns the complete lines after those that were read."""
        try:
            with self._path.open("rb") as file:
                stat = os.fstat(file.fileno())
                if stat.st_ino != self._file or stat.st_size < self._read:
                    self._file, self._read, self._line = stat.st_ino, 0, 0
                if stat.st_size == self._read:
                    return []
                file.seek(self._read)
                data = file.read()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _damage_error(self._root, str(error.strerror)) from error
        entries, whole = _parse_lines(self._root, data, self._line)
        if b"\n" in data[whole:]:
            raise _damage_error(self._root, ALTERED)
        self._read += whole
        self._line = entries[-1].epoch if entries else self._line
        return entries

    @property
    def has_index(self) -> bool:
        """Whether the checkpoint has an index; also if its file is missing, which ``read_new``
        reports.
        """
        if self._path.exists():
            return True
        if not self._begun and not self._absent:
            self._absent = not indexed_epoch(self._root)
        return not self._begun and not self._absent


def entry_of(root: Path, manifest: Manifest, wall: int, plans: Callable[[int], Plan]) -> Entry:
    """Makes the index entry of an epoch. Raises ``CheckpointError`` if its plan is deleted."""
    counts = manifest.counts.by_name(plans(manifest.plan)) if len(manifest.counts) else {}
    queries = {name: (least, most, reports) for name, (_, least, most, reports) in counts.items()}
    for query, times in manifest.shown_reports.items():
        if times:
            first, last, n = queries.get(query, (times[0], times[0], 0))
            queries[query] = min(first, *times), max(last, *times), max(n, len(times))
    size = 0
    for name in manifest.segments:
        try:
            size += os.stat(root / name).st_size
        except OSError:
            continue  # of an epoch of long ago
    return Entry(
        manifest.epoch,
        manifest.plan,
        wall,
        size,
        manifest.segments,
        manifest.shown_reports,
        queries,
        result_bytes=manifest.result_bytes,
    )


def forget_index(root: Path) -> None:
    """Deletes the index, in a run that keeps nothing for readers."""
    forget_deliveries(root)
    if (root / FILE).exists():
        (root / FILE).unlink()
        sync_folder(root)  # what it names goes after it


def _reports(entry: Entry) -> int:
    return sum(n for _, _, n in entry.queries.values())


def _manifests_behind(root: Path, epoch: int) -> Iterable[Manifest]:
    """Yields the present manifests of later epochs, in order."""
    names = (p.name for p in (root / "manifests").iterdir() if p.name.isdigit())
    for number in sorted(int(name) for name in names):
        if number > epoch:
            manifest = read_manifest(root / "manifests" / str(number))
            if all((root / name).exists() for name in manifest.segments):
                yield manifest


def _line(entry: Entry) -> bytes:
    data = msgspec.json.encode(entry)
    return data + b" " + xxhash.xxh3_64_hexdigest(data).encode() + b"\n"


def indexed_epoch(root: Path) -> int:
    """Returns the epoch of the last line that the newest manifest names; 0: it names none."""
    numbers = [int(p.name) for p in (root / "manifests").glob("*") if p.name.isdigit()]
    return (
        read_manifest(root / "manifests" / str(max(numbers))).previous_indexed_epoch
        if numbers
        else 0
    )


def check_index(root: Path) -> None:
    """Reads the index to its end. Raises ``CheckpointError`` if it is damaged.

    A crash can truncate only the last line, and only that of the newest manifest's epoch: each
    manifest names the epoch of the line before it. The next start removes such a line. All else is
    damage: an incomplete line before a complete one, a line that does not name the previous one, a
    missing line that the manifest names.
    """
    least = indexed_epoch(root)
    _check_reaches(root, _read_whole(root)[0], least)


def kept_entries(root: Path) -> list[Entry]:
    """Returns the entries of the index. Raises ``CheckpointError`` if it is damaged."""
    entries = _read_whole(root)[0]
    return [entry for entry in entries if entry.epoch >= entries[-1].oldest_epoch]


def _read_whole(root: Path) -> tuple[list[Entry], int, int]:
    """Returns the entries of the file, the bytes of their lines, and the bytes of the file."""
    try:
        data = (root / FILE).read_bytes()
    except FileNotFoundError:
        return [], 0, 0
    except OSError as error:
        raise _damage_error(root, str(error.strerror)) from error
    return *_parse_lines(root, data, 0), len(data)


def _damage_error(root: Path, reason: str) -> CheckpointError:
    return unreadable(root / FILE, reason, way=WAY)


def _check_reaches(root: Path, entries: list[Entry], epoch: int) -> None:
    """Raises ``CheckpointError`` if the line of an epoch that a manifest names is missing."""
    if epoch > (entries[-1].epoch if entries else 0):
        raise _damage_error(root, f"it lacks what was published in epoch {epoch}")


def _parse_lines(root: Path, data: bytes, line: int) -> tuple[list[Entry], int]:
    """Parses the complete lines at the beginning; returns their entries and bytes. ``line``: the
    epoch of the previous line. Raises ``CheckpointError`` if a complete line follows an incomplete
    one, or a line does not name the one before it.
    """
    entries: list[Entry] = []
    at = 0
    while (end := data.find(b"\n", at)) >= 0 and (text := _text(data[at:end])) is not None:
        entry = msgspec.json.decode(text, type=Entry)
        if entry.epoch > line:  # an engine that was overtaken may have added what was there
            if entry.previous_epoch != line:
                raise _damage_error(
                    root, f"it lacks what was published in epoch {entry.previous_epoch}"
                )
            entries.append(entry)
            line = entry.epoch
        at = end + 1
    if any(_text(rest) is not None for rest in data[at:].split(b"\n")[1:]):
        raise _damage_error(root, ALTERED)
    return entries, at


def _text(line: bytes) -> bytes | None:
    """Returns the JSON of a line; None if the line is incomplete."""
    text = line[: -_HASH - 1]
    return text if line == text + b" " + xxhash.xxh3_64_hexdigest(text).encode() else None


def _append(path: Path, line: bytes, *, begins: bool) -> None:
    try:
        with create(path, "ab") as file:
            file.write(line)
            file.flush()
            os.fdatasync(file.fileno())
        if begins:
            sync_folder(path.parent)
    except OSError as error:
        raise unwritable_error(path.parent, error) from error


def _cut(path: Path, size: int) -> None:
    try:
        os.truncate(path, size)
    except OSError as error:
        raise unwritable_error(path.parent, error) from error


prepare_structs(Entry)

"""The commits of epochs and takeovers in a checkpoint: one sequence of files, each created only if
it is absent (docs/decisions/0038-takeover-is-a-commit.md).

    commits/N    a manifest (an epoch is done), or a takeover (another driver begins its *reign*)

A driver's next commit takes the next number, and so does a driver that takes over. So the previous
driver can commit nothing more, in any phase, and the new leader has read the last manifest. The
protocol needs no lock and no clock. Old numbers are deleted, and a driver that slept meanwhile may
create one again. So a driver that has created a number checks whether it was overtaken
(``_is_deleted``). Then its number has no meaning, or is the one from which the other driver
continues.
"""

from __future__ import annotations

import os
import secrets
import weakref
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from levada.checkpoint.manifest import Manifest, encode_manifest
from levada.checkpoint.object_store.folder_mirror import Mirror, Needed
from levada.core.checksummed_files import read_sealed, seal
from levada.core.durable_files import delete, make_folder, unwritable_error, write_once
from levada.core.frozen import frozen
from levada.core.msgspec_warmup import prepare_structs
from levada.errors import CheckpointError, OvertakenError, unreadable

FOLDER = "commits"
_OF_TAKEOVER = b'{"kind":"takeover"'


class Takeover(msgspec.Struct, frozen=True, tag="takeover", tag_field="kind"):
    """The beginning of a leadership, the so many-th of the checkpoint. ``epoch``: the last
    committed one (0: none), by the commit ``commit_number``. ``wall_ms``: when, by the driver's
    clock (ms). ``nonce``: a random text, since processes may have equal numbers.
    """

    leadership: int
    epoch: int
    commit_number: int
    host: str
    pid: int
    wall_ms: int
    nonce: str

    def __str__(self) -> str:
        return str(Driver(self.host, self.pid, self.wall_ms))


@frozen
class Driver:
    """The driver that takes over; ``wall`` in ms."""

    host: str
    pid: int
    wall: int

    def __str__(self) -> str:
        when = datetime.fromtimestamp(self.wall / 1000, UTC)
        return f"process {self.pid} on {self.host}, at {when:%Y-%m-%dT%H:%M:%SZ}"


class ElectionLostError(CheckpointError):
    """The standby lost the election: another driver has committed."""


class Leadership:
    """The leadership of one driver over the checkpoint in ``root``, from its takeover on. ``last``:
    the last manifest, its own or an earlier one. ``mirror``: the object store of the folder, if
    there is one: then its numbers count. ``behind``: the newest number when a standby's turn came;
    one of several gets it. Raises ``ElectionLostError``.
    """

    def __init__(
        self, root: Path, driver: Driver, mirror: Mirror | None = None, behind: int | None = None
    ) -> None:
        self._mirror, self._by, self._behind = mirror, "", behind
        self._root = root.absolute()
        make_folder(self._root / FOLDER)
        self._folder, self._shown = f"{self._root}/{FOLDER}", f"{self._root}/manifests"
        self.number = self._at = self._began = self._of_last = 0
        self._there = list[int]()
        self.last: Manifest | None = None
        while not self._take_over(driver):
            pass
        self._takeover = f"{self._folder}/{self._began}"
        try:
            opened = os.open(self._takeover, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:  # the next driver has deleted it already
            raise self.takeover_error() or unwritable_error(self._root, error) from error
        weakref.finalize(self, os.close, opened)  # no other file gets its number until then
        self._inode = os.fstat(opened).st_ino
        epoch = 0 if self.last is None else self.last.epoch
        try:
            check_newest(self._root, epoch)
        except CheckpointError as error:
            raise self.takeover_error() or error from error
        self._forget()

    def _take_over(self, driver: Driver) -> bool:
        """Takes the next number. Returns False if another driver has it by now."""
        if self._mirror is not None:
            self._mirror.restore()
        at, entry = newest(self._root) or (0, None)
        if self._behind not in (None, at):
            raise ElectionLostError(f"Another engine is at work on the checkpoint {self._root}.")
        reign = epoch = of = 0
        if isinstance(entry, Manifest):
            reign, epoch, of = entry.leadership, entry.epoch, at
        elif entry is not None:
            reign, epoch, of = entry.leadership, entry.epoch, entry.commit_number
        drawn = secrets.token_hex(8)
        mine = Takeover(reign + 1, epoch, of, driver.host, driver.pid, driver.wall, drawn)
        if not self._create(at + 1, seal(msgspec.json.encode(mine))):
            return False
        self._there = sorted(_numbers(self._root))
        if self._there[-1:] != [at + 1]:
            return False
        self.number, self._at, self._began, self._of_last = reign + 1, at + 1, at + 1, of
        self.last = entry if isinstance(entry, Manifest) else self._read_last()
        return True

    def _read_last(self) -> Manifest | None:
        """Reads the last manifest that a takeover names."""
        if not self._of_last:
            return None
        try:
            commit = read_commit(self._root, self._of_last)
        except CheckpointError as error:
            raise self.takeover_error() or error from error
        assert isinstance(commit, Manifest), "a takeover names a manifest"
        return commit

    def commit(self, manifest: Manifest, needed: Needed = frozenset) -> None:
        """Commits an epoch, with the files that are ``needed``. Raises ``OvertakenError``; then
        nothing of it counts.
        """
        manifest.leadership = self.number
        created = self._create(self._at + 1, encode_manifest(manifest), needed)
        if not created or (self._is_deleted() and newest_number(self._root) != self._at + 1):
            self._by = "" if self._mirror is None else self._mirror.newer()
            raise self.takeover_error() or CheckpointError(
                f"Epoch {manifest.epoch} of the checkpoint {self._root} cannot be committed: its "
                f"number {self._at + 1} is taken."
            )
        self._at = self._of_last = self._at + 1
        self._there.append(self._at)
        self.last = manifest
        self.expose_manifest()
        self._forget()

    def _create(self, number: int, data: bytes, needed: Needed = frozenset) -> bool:
        """Creates a number. Returns False if it exists."""
        if self._mirror is not None and not self._mirror.create(number, data, needed()):
            return False
        path = f"{self._folder}/{number}"
        return write_once(path, data) or _is_our_file(path, data)

    def _is_deleted(self) -> bool:
        """Whether another driver has deleted the takeover of this one.

        Each driver keeps its takeover open, and the next driver deletes that file before any later
        number. So if the takeover exists, no later driver has deleted a number. Cost: one ``stat``
        call; a list of the folder takes one for each number.
        """
        try:
            return os.stat(self._takeover).st_ino != self._inode
        except OSError:
            return True

    def expose_manifest(self) -> None:
        """Links the last manifest under its epoch for readers. The link need not be durable: the
        commit is, and a start makes it again.
        """
        if self.last is None:
            return
        try:
            os.link(f"{self._folder}/{self._of_last}", f"{self._shown}/{self.last.epoch}")
        except FileExistsError:
            pass
        except OSError as error:
            raise self.takeover_error() or unwritable_error(self._root, error) from error

    def takeover_error(self) -> OvertakenError | None:
        """Returns the error if another driver has taken over; costs a list of a small folder. On an
        object store only a commit detects it: until then nothing shared has changed.
        """
        if self._by:
            return self._overtaken_error(self._by)
        if max(_numbers(self._root), default=0) <= self._at:
            return None
        by = last_takeover(self._root)
        if by is None or by.leadership <= self.number:
            return None
        return self._overtaken_error(str(by))

    def _overtaken_error(self, by: str) -> OvertakenError:
        return OvertakenError(
            f"Another engine has taken over the checkpoint {self._root}: {by}.",
            hint="This one has ended, and has published nothing since then.",
        )

    def check(self) -> None:
        """Raises ``OvertakenError`` if another driver has taken over and begun to delete."""
        if (self._by or self._is_deleted()) and (error := self.takeover_error()) is not None:
            raise error

    def _forget(self) -> None:
        """Deletes old numbers. The newest number, the last manifest and the last takeover remain;
        nothing reads the others.
        """
        kept = sorted({self._began, self._of_last, self._at} - {0})
        # ascending: the takeover of the previous driver is deleted first
        for number in self._there:
            if number < self._at and number not in kept:
                delete(f"{self._folder}/{number}")
        self._there = kept


def newest(root: Path) -> tuple[int, Manifest | Takeover] | None:
    """Returns the newest commit and its number; None: there is none. Raises ``CheckpointError``."""
    while numbers := _numbers(root):
        number = max(numbers)
        try:
            return number, read_commit(root, number)
        except CheckpointError:
            if max(_numbers(root), default=0) == number:
                raise
    return None


def last_takeover(root: Path) -> Takeover | None:
    """Returns the last takeover; None if no driver has begun, or it cannot be read."""
    for number in sorted(_numbers(root), reverse=True):
        with suppress(CheckpointError):
            if isinstance(commit := read_commit(root, number), Takeover):
                return commit
    return None


def read_commit(root: Path, number: int) -> Manifest | Takeover:
    """Reads a commit. Raises ``CheckpointError``."""
    path = root / FOLDER / str(number)
    data = read_sealed(path)
    try:
        if data.startswith(_OF_TAKEOVER):
            return msgspec.json.decode(data, type=Takeover)
        return msgspec.json.decode(data, type=Manifest)
    except msgspec.MsgspecError as error:
        raise unreadable(path, str(error)) from error


def newest_number(root: Path) -> int:
    """Returns the number of the newest commit; 0: there is none."""
    return max(_numbers(root), default=0)


def check_newest(root: Path, epoch: int) -> None:
    """Raises ``CheckpointError`` if there is a manifest of a later epoch than that of the newest
    commit: then it is not the newest.
    """
    with suppress(OSError):
        shown = max((int(n) for n in os.listdir(root / "manifests") if n.isdigit()), default=0)
        if shown > epoch:
            raise unreadable(root / FOLDER, f"the commit of epoch {shown} is missing")


def _numbers(root: Path) -> list[int]:
    try:
        return [int(name) for name in os.listdir(root / FOLDER) if name.isdigit()]
    except OSError:
        return []


def _is_our_file(path: str, data: bytes) -> bool:
    """Whether this driver has created the file. A server may report that a file exists when it has
    just created it for this request.
    """
    try:
        return Path(path).read_bytes() == data
    except OSError:
        return False


prepare_structs(Takeover)

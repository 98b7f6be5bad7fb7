"""The mirror of a checkpoint on an object store: a local folder, and the files that its commits
name, epoch by epoch (docs/decisions/0064-checkpoints-on-object-stores.md).

    commits/N    created only if it is absent: the commit N of the folder
                 (``checkpoint.leadership``), and in which object each file of the folder is:
                 all that a start needs
    data/..      files of the folder, many small ones in one object; under random names

The store's commit is the commit and the fence; that of the folder follows it. Tasks read and write
only the folder, whose files are immutable or replaced as a whole. So an epoch is one object with
the new files, one conditional put, and one list that detects a later driver. Without the list, a
driver that slept could create a deleted number again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from itertools import groupby
from pathlib import Path, PurePosixPath

import msgspec

from levada.checkpoint.object_store.object_client import AbsentError, Objects
from levada.checkpoint.object_store.packed_objects import Packs, Piece, digest_of
from levada.core.checksummed_files import seal, unseal
from levada.core.durable_files import HIDDEN, replace_file, unwritable_error
from levada.core.size_thresholds import register
from levada.errors import CheckpointError, DamagedError

MARK = "object-store"
"""The file that names the checkpoint whose local folder this is."""
APART = frozenset({"lock", "pulse", "engine.json", MARK})
"""Files that belong to this machine."""
_APART = frozenset({"standby", "requests", "tails"})
_FIXED = frozenset({"state", "results", "side", "graph", "plans", "static"})
"""Folders whose files never change under one name."""
SWEPT = register(f"{__name__}.SWEPT", 16)  # commits between two deletions
COMMITS, DATA = "commits", "data"
Needed = Callable[[], Set[str]]
"""Names of files of the folder."""


class Saved(msgspec.Struct, frozen=True):
    """A commit: its number and bytes in the folder; ``who`` leads; the files, and the size of each
    object.
    """

    number: int
    data: bytes
    who: str
    pieces: list[Piece]
    sizes: dict[str, int]


class Mirror:
    """Mirrors the folder ``root`` to an object store. ``who``: this driver, in words."""

    def __init__(self, root: Path, objects: Objects, who: str) -> None:
        self._root, self._objects, self._who = root.absolute(), objects, who
        self._packs = Packs(self._root, objects)
        self._at = 0
        self._gone: list[str] = []
        objects.probe()

    def restore(self) -> None:
        """Makes the folder equal to the newest commit. If that is the folder's own newest commit,
        only changed immutable files are fetched; otherwise the next commit would record them as
        deleted or changed. Raises ``CheckpointError``.
        """
        while True:
            saved = self._newest()
            if saved is None:
                self._check_new()
                return
            self._packs.know(saved.pieces, saved.sizes)
            self._at = saved.number
            try:
                if self._has(saved):
                    fixed = [p for p in saved.pieces if PurePosixPath(p.path).parts[0] in _FIXED]
                    self._fetch([p for p in fixed if not self._packs.is_whole(p)])
                else:
                    self._bring(saved)
                return
            except AbsentError:
                if self._newest_number() == saved.number:
                    raise

    def create(self, number: int, data: bytes, needed: Set[str] = frozenset()) -> bool:
        """Creates the commit of this number, with all files of the folder. Returns False if another
        driver has an equal or later one. Fetches ``needed`` files again that others have deleted.
        Raises ``CheckpointError``, also if such a file was never committed.
        """
        before = self._packs.objects()
        pieces, sizes = self._packs.save(number, self._files())
        if missing := needed - {piece.path for piece in pieces}:
            self._fetch(self._packs.committed_pieces(missing))
            pieces, sizes = self._packs.save(number, self._files())
        body = seal(msgspec.msgpack.encode(Saved(number, data, self._who, pieces, sizes)))
        name = _name(number)
        if not self._objects.create(name, body) and self._objects.get(name) != body:
            return False
        if self._objects.names(COMMITS, after=name):
            return False
        self._packs.know(pieces, sizes)
        self._gone += [*before - sizes.keys(), *([_name(self._at)] if self._at else [])]
        self._at = number
        if number % SWEPT == 0:
            self._objects.delete(self._gone)
            self._gone = []
        return True

    def newer(self) -> str:
        """Returns the driver that has committed after this one; "" if there is none."""
        saved = self._newest()
        return saved.who if saved is not None and saved.number > self._at else ""

    def sweep(self) -> None:
        """Deletes the objects of incomplete attempts: lists them, checks the leadership, then
        deletes. (A commit deletes the objects that only the previous commit named.)
        """
        named = {_name(self._at), *self._packs.objects()}
        names = [*self._objects.names(DATA), *self._objects.names(COMMITS)]
        if self._newest_number() == self._at:
            self._objects.delete([name for name in names if name not in named])

    def _newest_number(self) -> int:
        names = self._objects.names(COMMITS)
        return int(names[-1].rpartition("/")[2]) if names else 0

    def _newest(self) -> Saved | None:
        """Returns the newest commit. Raises ``CheckpointError``."""
        while number := self._newest_number():
            try:
                return self._decode(_name(number), self._objects.get(_name(number)))
            except AbsentError:
                if self._newest_number() == number:
                    raise
        return None

    def _decode(self, name: str, body: bytes) -> Saved:
        data = unseal(body)
        if data is not None:
            try:
                saved = msgspec.msgpack.decode(data, type=Saved)
            except msgspec.MsgspecError:
                pass
            else:
                if all(map(_is_inside, (piece.path for piece in saved.pieces))):
                    return saved
        raise DamagedError(
            f"The object {name} of the checkpoint {self._objects.address} is cut short or altered."
        )

    def _check_new(self) -> None:
        """Raises ``CheckpointError`` for a folder with epochs that the store does not have."""
        if any((self._root / COMMITS).glob("[0-9]*")):
            raise CheckpointError(
                f"There is nothing at {self._objects.address}, but {self._root} is a checkpoint "
                "that was kept there.",
                hint="Bring the objects back, or delete the folder to start anew.",
            )

    def _has(self, saved: Saved) -> bool:
        """Whether the folder's newest commit is this one."""
        numbers = [int(p.name) for p in (self._root / COMMITS).glob("[0-9]*")]
        if max(numbers, default=0) != saved.number:
            return False
        try:
            return (self._root / COMMITS / str(saved.number)).read_bytes() == saved.data
        except OSError as error:
            raise unwritable_error(self._root, error) from error

    def _bring(self, saved: Saved) -> None:
        """Fetches the files of a commit. The commit file of the folder is last, so an interrupted
        fetch is repeated.
        """
        wanted = {piece.path: piece for piece in saved.pieces}
        for path in [*self._files(hidden=True)]:
            name = path.relative_to(self._root).as_posix()
            if name not in wanted or digest_of(path) != wanted[name].digest:
                path.unlink(missing_ok=True)
            else:
                del wanted[name]
        self._fetch(wanted.values())
        replace_file(self._root / COMMITS / str(saved.number), saved.data)

    def _fetch(self, missing: Iterable[Piece]) -> None:
        ordered = sorted(missing, key=lambda piece: (piece.object, piece.offset))
        for _, pieces in groupby(ordered, key=lambda piece: piece.object):
            self._packs.bring([*pieces])

    def _files(self, *, hidden: bool = False) -> Iterator[Path]:
        """Yields the files of the folder to mirror; with ``hidden`` also incomplete files."""
        for path in sorted(self._root.rglob("*")):
            parts = path.relative_to(self._root).parts
            if parts[0] in (APART if len(parts) == 1 else _APART):
                continue
            if (hidden or not HIDDEN.fullmatch(path.name)) and path.is_file():
                yield path


def mirror_of(root: Path, objects: Objects | None, who: str) -> Mirror | None:
    """Returns the mirror of a folder with an object store; None: the folder has none. Raises
    ``CheckpointError``, also if the folder has one and ``objects`` is None.
    """
    there = kept_at(root)
    if objects is None and there:
        raise CheckpointError(
            f"{root} is where the checkpoint {there} is worked on.",
            hint=f"Only a run with --checkpoint {there} changes it.",
        )
    if objects is None:
        return None
    mirror = Mirror(root, objects, who)
    replace_file(root / MARK, f"{objects.address}\n".encode())
    mirror.restore()
    return mirror


def kept_at(root: Path) -> str:
    """Returns the address of a folder's object store; "" if it has none."""
    try:
        return (root / MARK).read_text().strip()
    except OSError:
        return ""


def _name(number: int) -> str:
    return f"{COMMITS}/{number:015}"


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and name not in ("", ".")

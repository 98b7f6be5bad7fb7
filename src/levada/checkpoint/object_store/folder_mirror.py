"""A checkpoint on an object store: a local folder, and what a commit of it names, epoch by epoch
(docs/decisions/0064-checkpoints-on-object-stores.md).

    commits/N    created only if it is absent: the commit N of the folder
                 (``checkpoint.leadership``), and in which object each file of the folder is:
                 all that a start needs
    data/..      files of the folder, many small ones in one object; under drawn names

The store's commit is the commit and the fence; that of the folder follows it. Tasks read and write
the folder alone, whose files are immutable or replaced as a whole. So an epoch is one object with
what is new, one conditional put, and one list that says whether a later driver is there: numbers
are forgotten, so one that slept could create an old one anew.

A start brings the folder to what the newest commit names, to the letter. If that is the folder's
own newest commit it is left as it is: what came after it is what a crash leaves on a disk. But what
is never written over is brought again if it is not as it was; else the next commit would say that
it is gone, or what it has become.

Deleted is what the commit before named and the new one does not: nobody names it again. What died
attempts have left goes at a start: listed, then looked at who reigns, then deleted.
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
"""The file that says of which checkpoint a folder is the local one."""
APART = frozenset({"lock", "pulse", "engine.json", MARK})
"""Files of this machine's own."""
_APART = frozenset({"standby", "requests", "tails"})
_FIXED = frozenset({"state", "results", "side", "graph", "plans", "static"})
"""Folders of which a name has one content for ever."""
SWEPT = register(f"{__name__}.SWEPT", 16)  # commits between two deletions
COMMITS, DATA = "commits", "data"
Needed = Callable[[], Set[str]]
"""Names of files of the folder."""


class Saved(msgspec.Struct, frozen=True):
    """A commit: its number and bytes in the folder; ``who`` reigns; the files, and how large each
    object is.
    """

    number: int
    data: bytes
    who: str
    pieces: list[Piece]
    sizes: dict[str, int]


class Mirror:
    """Keeps the folder ``root`` on an object store. ``who``: this driver, in words."""

    def __init__(self, root: Path, objects: Objects, who: str) -> None:
        self._root, self._objects, self._who = root.absolute(), objects, who
        self._packs = Packs(self._root, objects)
        self._at = 0
        self._gone: list[str] = []
        objects.probe()

    def restore(self) -> None:
        """Brings the folder to the newest commit. Raises ``CheckpointError``."""
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
        """The commit of this number, with all that the folder holds; False if another driver has
        one as late. What is ``needed`` and was deleted by others is brought again. Raises
        ``CheckpointError``, also if that was not committed yet.
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
        """Who has committed after this driver; "" if nobody."""
        saved = self._newest()
        return saved.who if saved is not None and saved.number > self._at else ""

    def sweep(self) -> None:
        """Deletes what attempts have left that did not come to an end."""
        named = {_name(self._at), *self._packs.objects()}
        names = [*self._objects.names(DATA), *self._objects.names(COMMITS)]
        if self._newest_number() == self._at:
            self._objects.delete([name for name in names if name not in named])

    def _newest_number(self) -> int:
        names = self._objects.names(COMMITS)
        return int(names[-1].rpartition("/")[2]) if names else 0

    def _newest(self) -> Saved | None:
        """The newest commit. Raises ``CheckpointError``."""
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
        """Raises ``CheckpointError`` for a folder with epochs of which the store knows nothing."""
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
        """The commit of the folder is written last: before that it is brought again."""
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
        """What of the folder is kept; also what was being written, if ``hidden``."""
        for path in sorted(self._root.rglob("*")):
            parts = path.relative_to(self._root).parts
            if parts[0] in (APART if len(parts) == 1 else _APART):
                continue
            if (hidden or not HIDDEN.fullmatch(path.name)) and path.is_file():
                yield path


def mirror_of(root: Path, objects: Objects | None, who: str) -> Mirror | None:
    """What keeps a folder on an object store, from where it has been brought; None: it is kept
    nowhere else. Raises ``CheckpointError``, also if it should be and no ``objects`` are named.
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
    """The address where a folder is kept; "" if it is kept nowhere else."""
    try:
        return (root / MARK).read_text().strip()
    except OSError:
        return ""


def _name(number: int) -> str:
    return f"{COMMITS}/{number:015}"


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and name not in ("", ".")

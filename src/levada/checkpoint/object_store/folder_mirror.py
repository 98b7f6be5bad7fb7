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

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import groupby
from pathlib import Path, PurePosixPath

import msgspec
import xxhash

from levada.checkpoint.object_store.object_client import AbsentError, Objects
from levada.core.checksummed_files import seal, unseal
from levada.core.durable_files import HIDDEN, make_folders, replace_file, unwritable_error
from levada.core.size_thresholds import register
from levada.errors import CheckpointError, DamagedError, unreadable

# Objects, into which files of a folder are packed.
#
# New small files go into one object, in the order of their names; a large file is an object of its
# own. An object of which less than half is named is rewritten with the others. So the store
# contains at most twice the named bytes, and a byte is written twice on average.
#
# An object is fetched in one piece, with ``LARGE_FILE_BYTES`` bytes of small files, or one large
# file, which is in memory meanwhile.
#
# A file is identified by its path, size and time: checkpoints replace files and append to them, and
# never write within one. A file that cannot be identified so is read and identified by its hash.


# bytes from which a file is an object of its own, and of which one is full
LARGE_FILE_BYTES = register(f"{__name__}.LARGE_FILE_BYTES", 16 << 20)
BLOCK = 8 << 20
Sign = tuple[int, int, int]
"""A file's number, size and time of change."""


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """A file: ``size`` bytes of an object from ``offset`` on, with this hash."""

    path: str
    object: str
    offset: int
    size: int
    digest: str


class Packs:
    """The files of ``root`` in the objects of a store."""

    def __init__(self, root: Path, objects: Objects) -> None:
        self._root, self._objects = root, objects
        self._pieces: dict[str, Piece] = {}
        self._sizes: dict[str, int] = {}
        self._signs: dict[str, Sign] = {}

    def know(self, pieces: Iterable[Piece], sizes: dict[str, int]) -> None:
        """Sets the committed files."""
        self._pieces, self._sizes = {piece.path: piece for piece in pieces}, dict(sizes)
        self._signs = {path: sign for path, sign in self._signs.items() if path in self._pieces}

    def objects(self) -> set[str]:
        """Returns the objects that the last commit names."""
        return {*self._sizes}

    def save(self, number: int, files: Iterable[Path]) -> tuple[list[Piece], dict[str, int]]:
        """Writes the new ones of these files; returns the places of all, and the sizes of the
        objects.
        """
        kept: list[Piece] = []
        new: list[tuple[str, Sign]] = []
        for path in files:
            name = path.relative_to(self._root).as_posix()
            try:
                sign = _sign(path)
                piece = self._known_piece(name, path, sign)
            except FileNotFoundError:  # it was being replaced, or goes with an answer
                continue
            except OSError as error:
                raise unwritable_error(self._root, error) from error
            if piece is None:
                new.append((name, sign))
            else:
                kept.append(piece)
        kept, again = self._thin(kept)
        written = _Writing(self._root, self._objects, number)
        for name, sign in sorted([*new, *((name, self._signs[name]) for name in again)]):
            written.add(name, sign)
        written.flush()
        self._signs |= written.signs
        named = {piece.object for piece in kept}
        sizes = {name: size for name, size in self._sizes.items() if name in named}
        return [*kept, *written.pieces], sizes | written.sizes

    def _known_piece(self, name: str, path: Path, sign: Sign) -> Piece | None:
        piece = self._pieces.get(name)
        if piece is None or piece.size != sign[1]:
            return None
        if self._signs.get(name) != sign:
            if digest_of(path) != piece.digest:
                return None
            self._signs[name] = sign
        return piece

    def committed_pieces(self, names: Iterable[str]) -> list[Piece]:
        """Returns the places of these files in the last commit. Raises ``DamagedError`` if one is
        missing.
        """
        for name in names:
            if name not in self._pieces:
                raise unreadable(self._root / name, "it was deleted before it was committed")
        return [self._pieces[name] for name in names]

    def is_whole(self, piece: Piece) -> bool:
        """Whether the file is present as committed. Reads the file."""
        path = self._root / piece.path
        try:
            return self._known_piece(piece.path, path, _sign(path)) is not None
        except OSError:
            return False

    def _thin(self, kept: Sequence[Piece]) -> tuple[list[Piece], list[str]]:
        """Returns the files that keep their places, and those to be rewritten."""
        named: Counter[str] = Counter()
        for piece in kept:
            named[piece.object] += piece.size
        thin = {name for name, size in named.items() if 2 * size < self._sizes[name]}
        again = [piece.path for piece in kept if piece.object in thin]
        return [piece for piece in kept if piece.object not in thin], again

    def bring(self, pieces: Sequence[Piece]) -> None:
        """Writes files from an object, in their order in it. Raises ``AbsentError``,
        ``DamagedError``.
        """
        first, last = pieces[0].offset, pieces[-1].offset + pieces[-1].size
        data = self._objects.part(pieces[0].object, first, last) if first < last else b""
        for piece in pieces:
            begin = piece.offset - first
            self._place(piece, data[begin : begin + piece.size])

    def _place(self, piece: Piece, data: bytes) -> None:
        if xxhash.xxh3_128_hexdigest(data) != piece.digest:
            raise DamagedError(
                f"The object {piece.object} of the checkpoint {self._objects.address}, which has "
                f"{piece.path}, is cut short or altered."
            )
        path = self._root / piece.path
        try:
            make_folders(path.parent)
            replace_file(path, data)
            self._signs[piece.path] = _sign(path)
        except OSError as error:
            raise unwritable_error(self._root, error) from error


class _Writing:
    """Objects that are being filled for a commit."""

    def __init__(self, root: Path, objects: Objects, number: int) -> None:
        self._root, self._objects, self._number = root, objects, number
        self._name, self._data = "", bytearray()
        self.pieces: list[Piece] = []
        self.sizes: dict[str, int] = {}
        self.signs: dict[str, Sign] = {}

    def add(self, name: str, sign: Sign) -> None:
        """Adds a file, unless it is deleted."""
        path = self._root / name
        if sign[1] >= LARGE_FILE_BYTES:
            self._add_large(name, sign)
            return
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return
        if not self._name:
            self._name = self._draw_name()
        digest = xxhash.xxh3_128_hexdigest(data)
        self.pieces.append(Piece(name, self._name, len(self._data), len(data), digest))
        self.signs[name] = sign
        self._data += data
        if len(self._data) >= LARGE_FILE_BYTES:
            self.flush()

    def _add_large(self, name: str, sign: Sign) -> None:
        path, drawn = self._root / name, self._draw_name()
        digest = digest_of(path)
        self._objects.put(drawn, path)
        self.pieces.append(Piece(name, drawn, 0, sign[1], digest))
        self.signs[name], self.sizes[drawn] = sign, sign[1]

    def flush(self) -> None:
        """Writes the object that is being filled."""
        if self._name:
            self._objects.put(self._name, bytes(self._data))
            self.sizes[self._name] = len(self._data)
            self._name, self._data = "", bytearray()

    def _draw_name(self) -> str:
        return f"data/{self._number:015}-{secrets.token_hex(8)}"


def digest_of(path: Path) -> str:
    """Returns the hash of a file."""
    hashed = xxhash.xxh3_128()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            hashed.update(block)
    return str(hashed.hexdigest())


def _sign(path: Path) -> Sign:
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


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

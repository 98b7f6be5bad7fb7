"""Objects, into which files of a folder are packed.

New small files go into one object, in the order of their names; a large file is an object of its
own. An object of which less than half is named is rewritten with the others. So the store contains
at most twice the named bytes, and a byte is written twice on average.

An object is fetched in one piece, with ``LARGE_FILE_BYTES`` bytes of small files, or one large
file, which is in memory meanwhile.

A file is identified by its path, size and time: checkpoints replace files and append to them, and
never write within one. A file that cannot be identified so is read and identified by its hash.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import xxhash

from levada.checkpoint.object_store.object_client import Objects
from levada.core.atomic_file import make_folders
from levada.core.durable_files import replace_file, unwritable_error
from levada.core.size_thresholds import register
from levada.errors import DamagedError, unreadable

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

"""Fingerprints, which recognize a file by its inode and hashes of the bytes read.

A file is the same if its first bytes and the last 64 to 128 KB before the place are unchanged. With
another inode all read bytes must be: the file may have been copied to another machine. So a growing
file costs a look at that much, and a replaced one is read again up to the place. A file that is
shorter than the read bytes is another one if its inode is another. Otherwise it was truncated,
which its reader reports. A change in place long before the place is not noticed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

import xxhash

from levada.connectors.sources.regular_files import open_regular
from levada.connectors.sources.splits import FileSplit, Piece
from levada.core.array_types import Bytes
from levada.errors import FileFault, LevadaError, SourceError

HEAD = 4096
BLOCK = 64 << 10
_PART = 1 << 20
_DIGEST = 16  # characters of a hash


class Fingerprint(NamedTuple):
    """The fingerprint of a file; as text in positions ``number.bytes.hash.whole.read.blocks.rest``
    (of former versions the first four).

    ``read`` bytes of the unpacked text (of Parquet the whole file) are hashed by blocks: each hash
    is that of the previous hash and of a block (``blocks``), except for the last block and the
    bytes after it (``rest``). So a take adds the hashes of its ranges. If tasks read the ranges,
    they hash the blocks; until then ``blocks`` is the previous hash and its end: ``hash+bytes``.
    ``whole`` is the size on the disk of a packed file that was read to its end (else -1): it need
    not be unpacked to know that.
    """

    number: int
    head: int
    digest: str
    whole: int
    read: int = 0
    blocks: str = ""
    rest: str = ""

    @classmethod
    def from_file(
        cls, path: str, state: tuple[int, int], *, whole: int, read: int, before: str = "",
        taken_from: int | None = None,
    ) -> Fingerprint:  # fmt: skip
        """Returns the fingerprint of the file with a number and a size whose text is at ``path``,
        of which ``read`` bytes are read. ``before``: the fingerprint when less of it was read.
        ``taken_from``: tasks read, and hash, the text from there on.
        """
        number, size = state
        old = cls.parse(before) if before else None
        same = old is not None and old.number == number and old.read <= read
        known = old.hashed if same and old is not None else ("", 0)
        with open_descriptor(path) as file:
            head = _part(file, 0, min(size, HEAD))
            if taken_from is not None and known[1] >= taken_from - 2 * BLOCK:
                blocks = "{}+{}".format(*known)
            else:
                blocks = _blocks(file, known, _edge(read))
            rest = xxhash.xxh3_64_hexdigest(_part(file, _edge(read), read))
        return cls(number, len(head), xxhash.xxh3_64_hexdigest(head), whole, read, blocks, rest)

    @classmethod
    def parse(cls, text: str) -> Fingerprint:
        """Parses the fingerprint in a position.

        >>> Fingerprint.parse(Fingerprint(7, 10, "00ff", -1, 10, "", "0f").text()).digest
        '00ff'
        """
        number, head, digest, whole, *more = text.split(".")
        read, blocks, rest = more or ("0", "", "")
        return cls(int(number), int(head), digest, int(whole), int(read), blocks, rest)

    def text(self) -> str:
        """Returns the fingerprint as positions contain it."""
        return ".".join(map(str, self))

    @property
    def hashed(self) -> tuple[str, int]:
        """The hash of blocks, and how far it reaches."""
        known, waits, at = self.blocks.partition("+")
        return known, int(at) if waits else _edge(self.read)

    @property
    def missing(self) -> tuple[int, int]:
        """The range of the blocks that are not hashed yet."""
        return self.hashed[1], _edge(self.read)

    def complete(self, path: str, digests: str) -> Fingerprint:
        """Returns the fingerprint with the missing blocks, by their hashes; missing hashes are
        computed from the file at ``path``.
        """
        (known, at), stop = self.hashed, _edge(self.read)
        if len(digests) == _DIGEST * ((stop - at) // BLOCK):
            raw = bytes.fromhex(digests)
            for i in range(0, len(raw), _DIGEST // 2):
                known = xxhash.xxh3_64_hexdigest(known.encode() + raw[i : i + _DIGEST // 2])
        else:
            with open_descriptor(path) as file:
                known = _blocks(file, (known, at), stop)
        return self._replace(blocks=known)

    def begins(self, file: int, number: int, size: int) -> bool:
        """Whether the open file of ``size`` bytes begins like the known one; a file that is too
        short for that is compared by its inode.
        """
        if size < self.head:
            return number == self.number
        return xxhash.xxh3_64_hexdigest(_part(file, 0, self.head)) == self.digest

    def is_of(self, file: int, number: int, size: int) -> bool:
        """Whether the open file is the known one."""
        if size < max(self.head, self.read):
            return number == self.number
        if not self.begins(file, number, size):
            return False
        edge = _edge(self.read)
        if self.rest and xxhash.xxh3_64_hexdigest(_part(file, edge, self.read)) != self.rest:
            return False
        known, stop = self.hashed
        return number == self.number or _blocks(file, ("", 0), stop) == known


def _edge(read: int) -> int:
    """Returns where the permanently hashed blocks end: a block before the end of the read bytes."""
    return max(read // BLOCK - 1, 0) * BLOCK


def _blocks(file: int, hashed: tuple[str, int], stop: int) -> str:
    """Returns the hash of the blocks up to ``stop``, some of which are ``hashed``."""
    known, at = hashed
    with suppress(OSError):
        for begin in range(at, stop, BLOCK):
            block = xxhash.xxh3_64_digest(os.pread(file, BLOCK, begin))
            known = xxhash.xxh3_64_hexdigest(known.encode() + block)
    return known


def hashed_ranges(text: str, stops: Sequence[int]) -> list[tuple[int, int]]:
    """Divides the missing blocks of a fingerprint among the ranges that end at these places: the
    task of each range hashes its blocks.

    >>> made = Fingerprint(7, 10, "00ff", -1, 400_000, "+0", "0f")
    >>> hashed_ranges(made.text(), [100_000, 390_000, 400_000])
    [(0, 131072), (131072, 327680), (327680, 327680)]
    """
    at, edge = Fingerprint.parse(text).missing if text else (0, 0)
    ranges = []
    for stop in stops:
        end = max(min(-(-stop // BLOCK) * BLOCK, edge), at)
        ranges.append((at, end))
        at = end
    return ranges


def last_piece(text: str, start: int) -> tuple[Piece, ...]:
    """Returns the bytes before the end of the read part, as the fingerprint knows them, if they are
    after ``start``.

    >>> made = Fingerprint(7, 10, "00ff", -1, 400_000, "+0", "0f")
    >>> last_piece(made.text(), 200_000), last_piece(made.text(), 390_000)
    (((327680, 400000, '0f'),), ())
    """
    known = Fingerprint.parse(text)
    edge = _edge(known.read)
    return ((edge, known.read, known.rest),) if start <= edge < known.read else ()


def hash_blocks(reference: FileSplit, data: Bytes) -> str:
    """Returns the hashes of the blocks that a reference names; reads blocks at its ends that are
    not completely in its ``data``. Rows of Parquet have no ``data``.
    """
    begin, end = reference.hashed
    if begin == end:
        return ""
    whole, start = data.data, reference.start if len(data) else begin
    first = min(max(-(-start // BLOCK) * BLOCK, begin), end)
    last = max(min((start + len(data)) // BLOCK * BLOCK, end), first)
    inside = [
        xxhash.xxh3_64_hexdigest(whole[at : at + BLOCK])
        for at in range(first - start, last - start, BLOCK)
    ]
    with open_descriptor(reference.path) as file:
        before, behind = (_hash_range(file, *ends) for ends in ((begin, first), (last, end)))
    return "".join([*before, *inside, *behind])


def _hash_range(file: int, begin: int, end: int) -> list[str]:
    """Returns the hashes of the blocks of a range of an open file, which is read in large parts."""
    hashes = list[str]()
    for at in range(begin, end, _PART):
        size = min(_PART, end - at)
        data = memoryview(_part(file, at, at + size))
        hashes += [xxhash.xxh3_64_hexdigest(data[i : i + BLOCK]) for i in range(0, size, BLOCK)]
    return hashes


def piece(at: int, data: Bytes) -> Piece:
    """Returns the position and hash of data.

    >>> import numpy as np
    >>> piece(7, np.frombuffer(b"abc", np.uint8))
    (7, 10, '78af5f94892f3950')
    """
    return at, at + len(data), xxhash.xxh3_64_hexdigest(data.data)


def first_altered(pieces: Sequence[Piece], start: int, data: Bytes) -> Piece | None:
    """Returns the first piece that has changed in ``data``, which were read from ``start`` on.

    >>> import numpy as np
    >>> one, other = (np.frombuffer(text, np.uint8) for text in (b"abcdef", b"abcxyz"))
    >>> pieces = [piece(0, one[:3]), piece(3, one[3:])]
    >>> first_altered(pieces, 0, one), first_altered(pieces, 0, other)[:2]
    (None, (3, 6))
    """
    for known in pieces:
        if piece(known[0], data[known[0] - start : known[1] - start]) != known:
            return known
    return None


@contextmanager
def open_descriptor(path: str) -> Iterator[int]:
    """Opens a file for ``os.pread``; yields its descriptor, or -1 if the file cannot be opened."""
    try:
        file = open_regular(path)
    except OSError:  # deleted meanwhile: the reader reports it
        file = -1
    try:
        yield file
    finally:
        if file >= 0:
            os.close(file)


def _part(file: int, start: int, stop: int) -> bytes:
    """Returns these bytes of an open file; fewer at its end."""
    try:
        return os.pread(file, stop - start, start)
    except OSError:
        return b""


def altered_file_error(reference: FileSplit, how: str) -> LevadaError:
    """Returns the error of a changed file."""
    said = f"The file {reference.path} {how}"
    if reference.sure:
        message = f"{said} since it was read, and what came of it is published."
        return SourceError(message, hint="Bring it back as it was.")
    fault = FileFault(f"{said} before it was read: that part of it is lost.")
    fault.other = True
    return fault


def check_same(reference: FileSplit, data: Bytes | None) -> None:
    """Raises ``FileFault`` if the file of a reference was replaced, or modified in the read part.
    ``data``: the bytes that were read of it (None: unknown). The reader reports deleted and
    truncated files.

    A task may read a range long after the driver has cut it. Another size or time means a change:
    after the range, as usual for growing files, or in it. Hashes of the pieces that the driver has
    read distinguish these. So it costs a pass over those bytes in the driver, and one ``stat`` in a
    task (docs/decisions/0050-state-that-moves.md). If a range is cut by size, the driver has read
    only the bytes at its ends. A task hashes all of it, and the manifest keeps that hash for later
    readers (docs/decisions/0127-tasks-read-first.md).
    """
    path = reference.path
    try:
        stat = os.stat(path)
    except OSError:
        return
    if not reference.fingerprint or (stat.st_size, stat.st_mtime_ns) == reference.seen:
        return
    known, size = Fingerprint.parse(reference.fingerprint), stat.st_size
    with open_descriptor(path) as file:
        if not known.begins(file, stat.st_ino, size):
            raise altered_file_error(reference, "was replaced by another")
        if (how := _rewritten(reference, size, data)) is not None:
            raise altered_file_error(reference, f"was rewritten ({how})")
        copied = reference.seen and known.number != stat.st_ino
        if copied and not known.is_of(file, stat.st_ino, size):
            raise altered_file_error(reference, "was replaced by another")


def _rewritten(reference: FileSplit, size: int, data: Bytes | None) -> str | None:
    """Describes the change in a file of now ``size`` bytes with an unchanged beginning: a change in
    the read part or, of Parquet, which does not grow, another length.
    """
    if (
        data is not None
        and (other := first_altered(reference.pieces, reference.start, data)) is not None
    ):
        return f"bytes {other[0]} to {other[1]} are others than were found there"
    if reference.format == "parquet" and reference.seen and reference.seen[0] != size:
        return f"it had {reference.seen[0]} bytes, and has {size}"
    return None

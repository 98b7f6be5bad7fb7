"""What is known again of a file: its number on the disk, and a hash of its first bytes.

Where the first bytes are as they were and the file is no shorter than they are, it is the same
file, whatever its number: it may have been copied to another machine. A file that is shorter than
they are is another one if its number is another, else it was cut short (which reading it tells).
``whole`` is the size on the disk with which a packed file was read to its end (-1: it was not): it
need not be unpacked to know that.

A fingerprint is a text in positions and references: ``number.bytes.hash.whole``.

The driver reads a text to cut it, a task reads it again: later, in another process, after a crash
on another day. Where the file's size or time is another by then, somebody has written to it; behind
the range, as is the rule with files that grow, or into it. A hash of each piece that was cut tells
these apart. It is compared only then, so it costs a pass over the bytes in the driver, which has
just read them, and in a task one ``stat`` (docs/decisions/0050-state-that-moves.md).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import xxhash

from levada.errors import FileFault, LevadaError, SourceError
from levada.model.arrays import Bytes
from levada.sources.reference import Piece, Reference

HEAD = 4096


class Fingerprint(NamedTuple):
    """What is known of a file of before: see the module's head."""

    number: int
    head: int
    digest: str
    whole: int

    @classmethod
    def of(cls, path: str, number: int, size: int, whole: int) -> Fingerprint:
        """The fingerprint of the file of ``size`` bytes whose text lies at ``path``."""
        head = _head(path, min(size, HEAD))
        return cls(number, len(head), xxhash.xxh3_64_hexdigest(head), whole)

    @classmethod
    def read(cls, text: str) -> Fingerprint:
        """The fingerprint that a position holds.

        >>> Fingerprint.read(Fingerprint(7, 10, "00ff", -1).text()).digest
        '00ff'
        """
        number, head, digest, whole = text.split(".")
        return cls(int(number), int(head), digest, int(whole))

    def text(self) -> str:
        """The fingerprint as positions hold it."""
        return ".".join(map(str, self))

    def is_of(self, path: str, number: int, size: int) -> bool:
        """Whether the file whose text of ``size`` bytes lies at ``path`` is the one of before."""
        if size < self.head:
            return number == self.number
        return xxhash.xxh3_64_hexdigest(_head(path, self.head)) == self.digest


def piece(at: int, data: Bytes) -> Piece:
    """What was found at a place.

    >>> import numpy as np
    >>> piece(7, np.frombuffer(b"abc", np.uint8))
    (7, 10, '78af5f94892f3950')
    """
    return at, at + len(data), xxhash.xxh3_64_hexdigest(data.data)


def altered(pieces: Sequence[Piece], start: int, data: Bytes) -> Piece | None:
    """The first piece that is not in ``data`` as it was, which were read from ``start`` on.

    >>> import numpy as np
    >>> one, other = (np.frombuffer(text, np.uint8) for text in (b"abcdef", b"abcxyz"))
    >>> pieces = [piece(0, one[:3]), piece(3, one[3:])]
    >>> altered(pieces, 0, one), altered(pieces, 0, other)[:2]
    (None, (3, 6))
    """
    for found in pieces:
        if piece(found[0], data[found[0] - start : found[1] - start]) != found:
            return found
    return None


def _head(path: str, size: int) -> bytes:
    """The first bytes of a file; fewer, if there are fewer."""
    try:
        with open(path, "rb", buffering=0) as file:
            return os.pread(file.fileno(), size, 0)
    except OSError:
        return b""  # it has just gone, which reading it tells


def changed(reference: Reference, how: str) -> LevadaError:
    """The error of a file that is not as it was found, in a sentence."""
    said = f"The file {reference.path} {how}"
    if reference.sure:
        told = f"{said} since it was read, and what came of it is published."
        return SourceError(told, hint="Bring it back as it was.")
    fault = FileFault(f"{said} before it was read: that part of it is lost.")
    fault.other = True
    return fault


def check_same(reference: Reference, data: Bytes | None) -> None:
    """Raises ``FileFault`` if the file of a reference is not the one that is meant, or another was
    written into it than was found; ``data``: what was read of it (None: that is not known). A file
    that is gone is for its reader to tell, and so is one that is too short.
    """
    path = reference.path
    try:
        found = os.stat(path)
    except OSError:
        return
    if not reference.fingerprint or (found.st_size, found.st_mtime_ns) == reference.seen:
        return
    if not Fingerprint.read(reference.fingerprint).is_of(path, found.st_ino, found.st_size):
        raise changed(reference, "was replaced by another")
    if (how := _rewritten(reference, found.st_size, data)) is not None:
        raise changed(reference, f"was rewritten ({how})")


def _rewritten(reference: Reference, size: int, data: Bytes | None) -> str | None:
    """What is another in a file of now ``size`` bytes, whose beginning is as it was: something in
    what was read; of Parquet, which does not grow, how long it is.
    """
    if data is not None and (other := altered(reference.pieces, reference.start, data)) is not None:
        return f"bytes {other[0]} to {other[1]} are others than were found there"
    if reference.format == "parquet" and reference.seen and reference.seen[0] != size:
        return f"it had {reference.seen[0]} bytes, and has {size}"
    return None

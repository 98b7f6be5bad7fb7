"""What is known again of a file: its number on the disk, and a hash of its first bytes.

Where the first bytes are as they were and the file is no shorter than they are, it is the same
file, whatever its number: it may have been copied to another machine. A file that is shorter than
they are is another one if its number is another, else it was cut short (which reading it tells).
``whole`` is the size on the disk with which a packed file was read to its end (-1: it was not): it
need not be unpacked to know that.

A fingerprint is a text in positions and references: ``number.bytes.hash.whole``.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import xxhash

from levada.errors import FileFault

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


def _head(path: str, size: int) -> bytes:
    """The first bytes of a file; fewer, if there are fewer."""
    try:
        with open(path, "rb", buffering=0) as file:
            return os.pread(file.fileno(), size, 0)
    except OSError:
        return b""  # it has just gone, which reading it tells


def check_same(path: str, text: str) -> None:
    """Raises ``FileFault`` if the file at ``path`` is not the one of the fingerprint ("": none is
    known); one that is gone is for its reader to tell.
    """
    if not text:
        return
    try:
        found = os.stat(path)
    except OSError:
        return
    if not Fingerprint.read(text).is_of(path, found.st_ino, found.st_size):
        raise FileFault(
            f"The file {path} was replaced by another before it was read: that part of it is lost."
        )

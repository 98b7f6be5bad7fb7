"""Small files of the checkpoint with a seal: a last line that is the hash of all bytes before it.

Reading returns the bytes that were written, or raises a ``CheckpointError`` that names the file.
Plans, catalogs and setups have a hash of their own (``plan.encoding.document``), files of frames
one for each frame (``operators.state.checksummed_frames``).
"""

from __future__ import annotations

from pathlib import Path

import xxhash

from levada.errors import unreadable

# The messages for a file whose bytes do not match their written checksum.


ALTERED = "it is cut short or altered"
OTHER = "it is not what was written under this name"


SEAL = 18
"""The bytes of a seal: 16 digits between two line ends."""


def seal(data: bytes) -> bytes:
    """Bytes with their seal.

    >>> seal(b"{}")
    b'{}\\n1349cde127705c16\\n'
    """
    return data + b"\n" + xxhash.xxh3_64_hexdigest(data).encode() + b"\n"


def unseal(data: bytes) -> bytes | None:
    """Returns the sealed content, or None if it is cut short or altered."""
    content = data[:-SEAL]
    return content if seal(content) == data else None


def read_sealed(path: Path) -> bytes:
    """Returns the content of a sealed file. Raises ``CheckpointError``."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, str(error.strerror)) from error
    content = unseal(data)
    if content is None:
        raise unreadable(path, ALTERED)
    return content

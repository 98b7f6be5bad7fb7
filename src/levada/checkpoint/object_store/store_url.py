"""The location of a checkpoint: in a folder, or on an object store (``s3://BUCKET/PREFIX``) with a
working folder on this machine.

The working folder is below ``LEVADA_CHECKPOINTS``, else below the cache folder; its name depends on
the address and the endpoint. Its content may be deleted while no engine runs: a start restores it.
Credentials are not a part of an address, so code that prints one cannot print them.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from levada.core.cache_folder import cache_folder
from levada.core.frozen import frozen
from levada.errors import UsageError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
HINT = "Say --checkpoint DIR, or --checkpoint s3://BUCKET/PREFIX."


@frozen
class Address:
    """The address of a checkpoint on an object store.

    >>> str(Address.parse("s3://data/engines/one/"))
    's3://data/engines/one'
    """

    bucket: str
    prefix: str

    @classmethod
    def parse(cls, text: str) -> Address | None:
        """Parses an address; None: the text is the path of a folder. Raises ``UsageError`` if it is
        neither.
        """
        match = _SCHEME.match(text)
        if match is None or match[1] == "file":
            return None
        if match[1] != "s3":
            raise UsageError(
                f"A checkpoint is a folder or s3://BUCKET/PREFIX, and not {match[1]}://.", hint=HINT
            )
        # s3:/ is what is left of s3:// in a path
        bucket, _, prefix = text[len("s3:") :].lstrip("/").partition("/")
        if "@" in bucket or "?" in text:
            raise UsageError(
                "A checkpoint's address has a bucket and a prefix, and nothing of who may read it.",
                hint="Credentials are taken from AWS_ACCESS_KEY_ID and the like.",
            )
        parts = [part for part in prefix.split("/") if part]
        if not _BUCKET.fullmatch(bucket) or not parts or {".", ".."} & {*parts}:
            raise UsageError(f"{text} is not s3://BUCKET/PREFIX.", hint=HINT)
        return cls(bucket, "/".join(parts))

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}"

    def folder(self, environ: Mapping[str, str] | None = None) -> Path:
        """Returns the working folder.

        >>> Address("b", "a/one").folder({"LEVADA_CHECKPOINTS": "/work"}).parent.as_posix()
        '/work'
        """
        environment = os.environ if environ is None else environ
        below = environment.get("LEVADA_CHECKPOINTS", "")
        named = f"{self} {environment.get('AWS_ENDPOINT_URL', '')}".encode()
        name = f"{self.prefix.rpartition('/')[2]}-{hashlib.sha256(named).hexdigest()[:12]}"
        return (Path(below) if below else cache_folder(environment) / "checkpoints") / name


def folder_of(checkpoint: str | os.PathLike[str]) -> Path:
    """Returns the folder of a checkpoint, local or on an object store. Raises ``UsageError``."""
    address = Address.parse(os.fspath(checkpoint))
    return Path(checkpoint) if address is None else address.folder()


def locate_checkpoint(checkpoint: str | os.PathLike[str] | None) -> tuple[Address | None, Path]:
    """Returns the address of a checkpoint on an object store, if it is one, and its folder; None: a
    new temporary folder.
    """
    if checkpoint is None:
        return None, Path(tempfile.mkdtemp(prefix="levada-"))
    return Address.parse(os.fspath(checkpoint)), folder_of(checkpoint)

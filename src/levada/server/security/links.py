"""Links: short-lived tokens in a URL, each for the results of one query.

    base64(["hot", 3, 1700003600, "grafana"]) . base64(HMAC-SHA256)

The key is made of the checkpoint's secret and the hash of the owner's token. So a link survives a
restart. It ends at its time, with its query, and when the owner's line leaves the file of tokens.
The server stores no links.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from levada.core.durable_files import write_once
from levada.core.frozen import frozen
from levada.errors import unreadable
from levada.server.security.tokens import Role, Token, TokenFile

SECRET = "link-secret"
SIZE = 32  # bytes of the secret


class _Fields(msgspec.Struct, frozen=True, array_like=True):
    query: str
    since: int
    expires: int
    owner: str


@frozen
class LinkToken(Token):
    """The token of a request with a link. ``since``: the plan version of its query."""

    since: int = 0


class Links:
    """The links of a checkpoint. ``clock``: seconds since 1970. A read-only server without a secret
    in the checkpoint has one of its own, until it ends.
    """

    def __init__(
        self,
        root: Path,
        tokens: TokenFile,
        *,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path, self._tokens, self._clock = root / SECRET, tokens, clock
        self._own = secrets.token_bytes(SIZE) if read_only else b""

    def make(self, query: str, since: int, seconds: int, owner: Token) -> tuple[str, int]:
        """Returns a new link and its last second. Raises ``CheckpointError``."""
        if not self._own and not self._path.exists():
            write_once(self._path, secrets.token_bytes(SIZE))
        secret = self._secret()
        if len(secret) != SIZE:
            raise unreadable(self._path, f"it has {len(secret)} bytes in place of {SIZE}")
        fields = _Fields(query, since, int(self._clock()) + seconds, owner.name)
        data = msgspec.json.encode(fields)
        return f"{_text(data)}.{_text(_sign(secret, data, owner))}", fields.expires

    def find(self, link: str, path: str) -> LinkToken | None:
        """Returns the token of a link that is valid at the path, or None."""
        try:
            data, signature = (urlsafe_b64decode(part + "==") for part in link.split("."))
            fields = msgspec.json.decode(data, type=_Fields)
        except ValueError:  # msgspec's errors, too
            return None
        owner = next((t for t in self._tokens.now().all if t.name == fields.owner), None)
        place = f"/queries/{fields.query}/results"
        if owner is None or not owner.may(Role.READ) or self._clock() >= fields.expires:
            return None
        secret = self._secret()
        if len(secret) != SIZE or not hmac.compare_digest(signature, _sign(secret, data, owner)):
            return None
        if path != place and not path.startswith(f"{place}/"):
            return None
        reads = frozenset({Role.READ})
        return LinkToken(f"{owner.name}/link", reads, owner.digest, owner.allowance, fields.since)

    def _secret(self) -> bytes:
        with suppress(OSError):
            return self._path.read_bytes()
        return self._own


def _sign(secret: bytes, data: bytes, owner: Token) -> bytes:
    key = hmac.digest(secret, owner.digest, hashlib.sha256)
    return hmac.digest(key, data, hashlib.sha256)


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()

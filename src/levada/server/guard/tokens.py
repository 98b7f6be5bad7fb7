"""Tokens: who they are, by their hashes.

    # name    roles            SHA-256 of the token    what it may have, if that is said
    grafana   read             sha256:1f3c..
    station   push             sha256:77ab..           body=1MB,connections=4
    anna      read,register    sha256:0c9e..           queries=10,bytes=5MB

A token is 256 random bits, so a plain hash gives nothing away. It comes in the header
``Authorization: Bearer``, and nowhere else. The file is read again when it has changed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import threading
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from levada.errors import LevadaError, UsageError, near
from levada.frozen import frozen
from levada.server.guard.allowance import AS_ALL, Allowance, parse_allowance

PREFIX = "sha256:"
_NAME = re.compile(r"[\w.-]{1,64}")


class Role(StrEnum):
    """What a token may: look, push rows, add and drop its own queries, everything."""

    READ = "read"
    PUSH = "push"
    REGISTER = "register"
    ADMIN = "admin"


@frozen
class Token:
    """One of the file."""

    name: str
    roles: frozenset[Role]
    digest: bytes
    allowance: Allowance = AS_ALL

    def may(self, role: Role) -> bool:
        """Whether it has the role; who may change may look."""
        if Role.ADMIN in self.roles or role in self.roles:
            return True
        return role is Role.READ and Role.REGISTER in self.roles


EVERYBODY = Token("", frozenset({Role.ADMIN}), b"")
"""Who asks where no tokens are asked for: on this machine."""


NOBODY = Token("", frozenset(), b"")
"""Who asks for the page, which is the same for all."""


@frozen
class Tokens:
    """All of them."""

    all: Sequence[Token]

    def found(self, presented: str) -> Token | None:
        """The token that was presented. Each is compared, to its end: how long that takes says
        nothing.
        """
        digest = hashlib.sha256(presented.encode("utf-8", "replace")).digest()
        found = None
        for token in self.all:
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found


class TokenFile:
    """The tokens of a file as it is now."""

    def __init__(self, path: Path | None, first: Tokens) -> None:
        self._path, self._tokens = path, first
        self._stat = _stamp(path)
        self._lock = threading.Lock()

    @property
    def asked(self) -> bool:
        """Whether tokens are asked for."""
        return self._path is not None

    def found(self, presented: str) -> Token | None:
        """The token that was presented. A file that has become none leaves those of before."""
        return self._now().found(presented)

    def has(self, token: Token) -> bool:
        """Whether a token that was let in would be so now, with the roles that it had."""
        if not self.asked:
            return True
        return any((t.digest, t.roles) == (token.digest, token.roles) for t in self._now().all)

    def _now(self) -> Tokens:
        with self._lock:
            stamp = _stamp(self._path)
            if self._path is not None and stamp != self._stat:
                self._stat = stamp
                with suppress(LevadaError):
                    self._tokens = read_tokens(self._path)
            return self._tokens


def read_tokens(path: Path) -> Tokens:
    """The tokens of a file. Raises ``UsageError``, with the line."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(
            f"The tokens {path} cannot be read: {why}.",
            hint=f"Make some: levada token {path} NAME --roles read",
        ) from error
    found = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if words:
            found.append(_token(words, f"{path}, line {number}"))
    names = [token.name for token in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"{path}: the token {twice[0]} is there twice.")
    return Tokens(tuple(found))


def _token(words: Sequence[str], where: str) -> Token:
    known = len(words) in (3, 4) and _NAME.fullmatch(words[0])
    if not known or not words[2].startswith(PREFIX):
        raise UsageError(f"{where}: a line is NAME ROLES {PREFIX}HASH, and WORD=N,WORD=N at most.")
    try:
        digest = bytes.fromhex(words[2].removeprefix(PREFIX))
    except ValueError:
        digest = b""
    if len(digest) != hashlib.sha256().digest_size:
        raise UsageError(f"{where}: what stands behind {PREFIX} is no SHA-256.")
    roles = parse_roles(words[1], where)
    try:
        return Token(words[0], roles, digest, parse_allowance("".join(words[3:])))
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}", hint=error.hint) from error


def parse_roles(text: str, where: str) -> frozenset[Role]:
    """The roles of ``read,push``. Raises ``UsageError``."""
    for word in text.split(","):
        if word not in list(Role):
            raise UsageError(f"{where}: there is no role {word}.", hint=near(word, map(str, Role)))
    return frozenset(map(Role, text.split(",")))


def add_token(path: Path, name: str, roles: str, limits: str = "") -> str:
    """Adds a new token to a file, which is made if it is not there; the token itself is told once,
    and kept nowhere. ``limits``: what it may have. Raises ``UsageError``.
    """
    parse_roles(roles, "--roles")
    parse_allowance(limits)
    words = [name, roles, "", "".join(limits.split())]
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name of a token.", hint="Letters, digits, _ . and -.")
    known = read_tokens(path).all if path.exists() else ()
    if any(token.name == name for token in known):
        raise UsageError(f"There is a token {name} already.", hint="Delete its line first.")
    token = secrets.token_urlsafe(32)
    digest = hashlib.sha256(token.encode()).hexdigest()
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(fd, "w") as file:
            words[2] = PREFIX + digest
            file.write(f"{' '.join(filter(None, words))}\n")
    except OSError as error:
        raise UsageError(f"The tokens {path} cannot be written: {error.strerror}.") from error
    return token


def _stamp(path: Path | None) -> tuple[int, int]:
    if path is not None:
        with suppress(OSError):
            found = path.stat()
            return found.st_mtime_ns, found.st_size
    return 0, 0

"""Tokens, their roles and quotas, in a file that has only their hashes.

    # name    roles            SHA-256 of the token    quota (optional)
    grafana   read             sha256:1f3c..
    station   push             sha256:77ab..           body=1MB,connections=4
    anna      read,register    sha256:0c9e..           queries=10,bytes=5MB

A token has 256 random bits, so a plain hash reveals nothing. Requests send it in the header
``Authorization: Bearer`` only.

The file is read again when it changes. A deleted or malformed line ends its token, and no other.
Faults of the file are printed once on standard error and counted in ``/status`` and ``/metrics``.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import sys
import threading
import time
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from levada.core.count_text import count_text
from levada.core.frozen import frozen
from levada.errors import UsageError, near
from levada.server.security.token_limits import AS_ALL, TokenQuota, parse_allowance

PREFIX = "sha256:"
SETTLED = 2.0  # s: two changes within it may leave a file with the same time
MAX_SENTENCES = 10  # about one file
_NAME = re.compile(r"[\w.-]{1,64}")


class Role(StrEnum):
    """The permissions of a token: read, push rows, add queries and drop those that it added,
    everything.
    """

    READ = "read"
    PUSH = "push"
    REGISTER = "register"
    ADMIN = "admin"


@frozen
class Token:
    """A token of the file. ``digest``: its SHA-256."""

    name: str
    roles: frozenset[Role]
    digest: bytes
    allowance: TokenQuota = AS_ALL

    def may(self, role: Role) -> bool:
        """Returns whether it has the role. ``register`` includes ``read``, and ``admin`` includes
        all roles.
        """
        if Role.ADMIN in self.roles or role in self.roles:
            return True
        return role is Role.READ and Role.REGISTER in self.roles


EVERYBODY = Token("", frozenset({Role.ADMIN}), b"")
"""The token of all requests to a server without tokens, which only this machine reaches."""


NOBODY = Token("", frozenset(), b"")
"""The token of requests for the page, which is the same for all."""


@frozen
class LineFault:
    """A rejected line of the file: its number from 1, and the reason. Line 0 is the whole file."""

    line: int
    reason: str
    hint: str = ""

    def __str__(self) -> str:
        what = f"Line {self.line:,} is not taken" if self.line else "No line can be read"
        return " ".join(filter(None, (f"{what}: {self.reason}", self.hint)))


@frozen
class Tokens:
    """The tokens of a file. ``faults``: its rejected lines."""

    all: Sequence[Token]
    faults: Sequence[LineFault] = ()

    def find(self, presented: str) -> Token | None:
        """Returns the token that a client presented, or None. Compares all tokens in constant time,
        so the duration reveals nothing.
        """
        digest = hashlib.sha256(presented.encode("utf-8", "replace")).digest()
        matching_token = None
        for token in self.all:
            if hmac.compare_digest(token.digest, digest):
                matching_token = token
        return matching_token

    def sentences(self) -> list[str]:
        """Returns a sentence for each of the first faults."""
        rest = len(self.faults) - MAX_SENTENCES
        lines = count_text(rest, "more line is", "more lines are")
        more = [f"{lines} not taken."] if rest > 0 else []
        return [*map(str, self.faults[:MAX_SENTENCES]), *more]


def _print_sentence(sentence: str) -> None:
    with suppress(OSError):  # a full disk must not end the request
        print(f"levada: {sentence}", file=sys.stderr, flush=True)


class TokenFile:
    """The current tokens of a file. ``report`` is called with sentences about its faults."""

    def __init__(self, path: Path | None, report: Callable[[str], None] = _print_sentence) -> None:
        self._path, self._report = path, report
        self._tokens = Tokens(())
        self._stamp: object = None
        self._since = self._read = 0.0
        self._lock = threading.Lock()

    @property
    def requires_tokens(self) -> bool:
        """Returns whether requests need a token."""
        return self._path is not None

    def find(self, presented: str) -> Token | None:
        """Returns the token that a client presented, or None."""
        return self.now().find(presented)

    def has(self, token: Token) -> bool:
        """Returns whether an accepted token is still valid with the same roles."""
        if not self.requires_tokens:
            return True
        return any((t.digest, t.roles) == (token.digest, token.roles) for t in self.now().all)

    def now(self) -> Tokens:
        """Returns the valid tokens of the file. Reports new faults."""
        with self._lock:
            if self._path is not None and not self._is_unchanged(self._path):
                self._read = time.monotonic()
                before, self._tokens = self._tokens, sound_tokens(self._path)
                self._report_faults(self._path, before.faults)
            return self._tokens

    def _is_unchanged(self, path: Path) -> bool:
        """Returns whether the file is that of the last read, and had been stable for ``SETTLED``
        seconds at that read.
        """
        stamp = _stamp(path)
        if stamp != self._stamp:
            self._stamp, self._since = stamp, time.monotonic()
        unreadable = any(fault.line == 0 for fault in self._tokens.faults)
        return not unreadable and self._read - self._since > SETTLED

    def _report_faults(self, path: Path, before: Sequence[LineFault]) -> None:
        if self._tokens.faults == before:
            return
        for sentence in self._tokens.sentences():
            self._report(f"The tokens {path}: {sentence}")
        if not self._tokens.faults:
            self._report(f"The tokens {path}: all lines are taken.")


def read_tokens(path: Path) -> Tokens:
    """Reads the tokens of a file without faults. Raises ``UsageError``, with the line."""
    tokens = sound_tokens(path)
    for fault in tokens.faults[:1]:
        if fault.line:
            raise UsageError(f"{path}, line {fault.line}: {fault.reason}", hint=fault.hint)
        raise UsageError(
            f"The tokens {path} cannot be read: {fault.reason}",
            hint=f"Make some: levada token {path} NAME --roles read",
        )
    return tokens


def sound_tokens(path: Path) -> Tokens:
    """Reads the tokens of the valid lines, and the faults of the others. Two lines with one name
    are both invalid. Comments may have any text.
    """
    try:
        lines = path.read_bytes().removeprefix(BOM_UTF8).splitlines()
    except OSError as error:
        return Tokens((), (LineFault(0, f"{error.strerror}."),))
    tokens_by_line: dict[int, Token] = {}
    faults: list[LineFault] = []
    for number, line in enumerate(lines, 1):
        try:
            if words := line.partition(b"#")[0].decode().split():
                tokens_by_line[number] = _token(words)
        except UnicodeDecodeError:
            faults.append(LineFault(number, "It is not UTF-8."))
        except UsageError as error:
            faults.append(LineFault(number, error.message, error.hint))
    counts = Counter(token.name for token in tokens_by_line.values())
    for number, token in tokens_by_line.items():
        if counts[token.name] > 1:
            faults.append(LineFault(number, f"The token {token.name} is there twice."))
    sound = [token for token in tokens_by_line.values() if counts[token.name] == 1]
    return Tokens(sound, tuple(sorted(faults, key=lambda fault: fault.line)))


def _token(words: Sequence[str]) -> Token:
    known = len(words) in (3, 4) and _NAME.fullmatch(words[0])
    if not known or not words[2].startswith(PREFIX):
        raise UsageError(f"A line is NAME ROLES {PREFIX}HASH, and WORD=N,WORD=N at most.")
    try:
        digest = bytes.fromhex(words[2].removeprefix(PREFIX))
    except ValueError:
        digest = b""
    if len(digest) != hashlib.sha256().digest_size:
        raise UsageError(f"What stands behind {PREFIX} is no SHA-256.")
    return Token(words[0], parse_roles(words[1]), digest, parse_allowance("".join(words[3:])))


def parse_roles(text: str) -> frozenset[Role]:
    """Parses roles such as ``read,push``. Raises ``UsageError``."""
    for word in text.split(","):
        if word not in list(Role):
            raise UsageError(f"There is no role {word[:20]}.", hint=near(word, map(str, Role)))
    return frozenset(map(Role, text.split(",")))


def add_token(path: Path, name: str, roles: str, limits: str = "") -> str:
    """Adds a new token to a file, which it creates if missing. Returns the token, which is stored
    nowhere. ``limits``: its quota. Raises ``UsageError``.
    """
    parse_roles(roles)
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
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(fd, "rb+") as file:
            words[2] = PREFIX + digest
            line = f"{' '.join(filter(None, words))}\n".encode()
            file.write(line if _ends_line(file) else b"\n" + line)
    except OSError as error:
        raise UsageError(f"The tokens {path} cannot be written: {error.strerror}.") from error
    return token


def _ends_line(file: BinaryIO) -> bool:
    """Returns whether a file is empty or ends with a line end."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - 1, 0))
    return file.read() in (b"", b"\n", b"\r")


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Returns numbers that change with a file, or None if it cannot be read."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns

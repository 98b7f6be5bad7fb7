"""The settings of a server, and its limits."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path

from levada.core.frozen import frozen
from levada.errors import UsageError
from levada.server.security.token_limits import AS_ALL
from levada.server.security.tokens import Token, read_tokens


@frozen
class Limits:
    """The limits of a server. Sizes in bytes, times in seconds."""

    body: int = 16 << 20
    bodies: int = 512 << 20  # of all unanswered requests
    text: int = 256 << 10  # of a query
    patterns: int = 500  # of a query's text: triples, or tables
    head: int = 32 << 10  # the request's line and headers
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    unread_seconds: float = 30.0  # in which a client must read on
    connections: int = 10_000
    queries: int = 1000  # of the checkpoint, beyond which none is added
    own_queries: int = 100  # of one token
    own_streams: int = 100
    reports: int = 1000  # in one answer
    answer: int = 16 << 20  # bytes of its reports; at least one report
    answers: int = 512 << 20  # of all large answers that wait to be sent
    own_connections: int = 1000  # of one token
    sparql_seconds: float = 30.0
    sparql_memory: int = 1 << 30
    sparql_dataset: int = 64 << 20  # of N-Triples, the data of one query
    sparql_answer: int = 64 << 20
    sparql_waiting: int = 32  # simultaneous queries of one token
    check_seconds: float = 10.0  # of CPU for the check of one text
    check_memory: int = 512 << 20
    checks_waiting: int = 32  # simultaneous checks of one token
    backlog: int = 64 << 20  # of a stream, pushed and not yet read by the engine

    def limits_of_token(self, token: Token) -> Limits:
        """Returns the limits for a token: those of its quota, or these."""
        allowance = token.allowance
        if allowance is AS_ALL:
            return self
        return replace(
            self,
            own_queries=allowance.queries or self.own_queries,
            own_streams=allowance.streams or self.own_streams,
            own_connections=allowance.connections or self.own_connections,
            body=min(allowance.body or self.body, self.body),
            text=min(allowance.text or self.text, self.text),
            sparql_seconds=min(allowance.seconds or self.sparql_seconds, self.sparql_seconds),
            check_seconds=min(allowance.seconds or self.check_seconds, self.check_seconds),
        )


_ORIGIN = re.compile(r"\*|https?://(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:[0-9]+)?")


@frozen
class Settings:
    """The settings of a server. ``read_only``: it sends no requests to the engine. ``tokens``: the
    file of their hashes; None lets everybody on this machine do everything. ``letters``: the folder
    of late elements and dead letters; None for the checkpoint. ``max_future``: the limit of streams
    that clients make without one, ms. ``origins``: those whose pages may read results, or ``*``.
    """

    root: Path
    host: str = "127.0.0.1"
    port: int = 8790
    read_only: bool = False
    tokens: Path | None = None
    limits: Limits = field(default_factory=Limits)
    letters: Path | None = None
    max_future: int | None = None
    origins: tuple[str, ...] = ()

    @property
    def loopback(self) -> bool:
        """Returns whether only this machine reaches the server."""
        return is_loopback(self.host)

    def check(self) -> None:
        """Raises ``UsageError`` if a server cannot start with these settings: as ``check_exposure``
        does, and for a fault in the file of tokens or in an origin.
        """
        self.check_exposure()
        for origin in self.origins:
            if not _ORIGIN.fullmatch(origin):
                raise UsageError(
                    f"--allow-origin is an origin or *, not {origin}.",
                    hint="A browser sends it as https://HOST or https://HOST:PORT, without a path, "
                    "in lower case.",
                )
        if self.tokens is not None:
            read_tokens(self.tokens)

    def check_exposure(self) -> None:
        """Raises ``UsageError`` for a server that other machines reach without tokens."""
        if self.tokens is None and not self.loopback:
            raise UsageError(
                f"Who reaches {self.host} could register queries: there are no tokens.",
                hint="Say --tokens FILE (levada token makes one), or --listen 127.0.0.1:8790.",
            )


def parse_listen(text: str) -> tuple[str, int]:
    """Parses host and port of ``--listen``; port 0 is any free one. Raises ``UsageError``.

    >>> parse_listen("127.0.0.1:8790"), parse_listen("[::1]:0"), parse_listen(":80")
    (('127.0.0.1', 8790), ('::1', 0), ('127.0.0.1', 80))
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageError(
            f"--listen is HOST:PORT, not {text}.", hint="Say for example 127.0.0.1:8790."
        )
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Returns whether a host name is a loopback name of this machine.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.2", "::1", "0.0.0.0")]
    [True, True, True, False]
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

"""Which token has added which query or stream: the ledger of the checkpoint says so, and forgets
it with the query or the stream, in whatever way that ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from levada.checkpoint.request_files import read_owners
from levada.server.problem_json import Problem
from levada.server.security.tokens import Role, Token
from levada.server.settings import Limits


def stream_key(name: str) -> str:
    """A stream's name here, which is no query's."""
    return f"stream {name}"


def _display_name(name: str) -> str:
    return name if name.startswith("stream ") else f"query {name}"


def only_of(token: Token) -> str:
    """Whose queries and streams alone a token takes away; "": anybody's."""
    return "" if Role.ADMIN in token.roles else token.name


class Owners:
    """Names of tokens by query, or by stream (``of_stream``); ``coming``: of those that are being
    added by this server.
    """

    def __init__(self, root: Path, coming: dict[str, str]) -> None:
        self._root, self._coming = root, coming

    def _read(self) -> dict[str, str]:
        owners = read_owners(self._root)
        queries = {one.name: one.owner for one in owners.added}
        return queries | {stream_key(one.name): one.owner for one in owners.streams}

    @contextmanager
    def adding(
        self, token: Token, name: str, there: Collection[str], limits: Limits
    ) -> Iterator[None]:
        """While a query, or a stream, is added or replaced, it is counted: by who asks for more at
        the same time, too. Raises ``Problem`` 403, 429.
        """
        self.check_own(token, name, new=name not in there)
        if name in there or name in self._coming:
            yield
            return
        self._check_room(token, name, there, limits)
        self._coming[name] = token.name
        try:
            yield
        finally:
            del self._coming[name]

    def _check_room(self, token: Token, name: str, there: Collection[str], limits: Limits) -> None:
        """Whether there may be one more. Raises ``Problem`` 429."""
        is_stream = name.startswith("stream ")
        kind, most = (
            ("streams", limits.own_streams) if is_stream else ("queries", limits.own_queries)
        )
        coming = {n: o for n, o in self._coming.items() if n.startswith("stream ") == is_stream}
        all_ = {*there, *coming}
        if len(all_) >= limits.queries:
            raise Problem(
                429, f"There are {len(all_):,} {kind}, and no more are taken.", limit=kind
            )
        owners = {n: o for n, o in self._read().items() if n in there} | coming
        count = sum(owner == token.name for owner in owners.values())
        if token.name and count >= most:
            raise Problem(
                429, f"The token {token.name} has added {count:,} {kind}, which is all.", limit=kind
            )

    def check_own(self, token: Token, name: str, *, new: bool = False) -> None:
        """Whether a token may change a query: its own, with the role admin any."""
        only = only_of(token)
        if not new and only and self._read().get(name) != only:
            raise Problem(403, f"The token {token.name} has not added the {_display_name(name)}.")

"""The owners of queries and streams: the token that added each. The ledger of the checkpoint has
them and drops an owner with the query or stream, whatever ends it.
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
    """Returns the key of a stream, which differs from that of every query."""
    return f"stream {name}"


def _display_name(name: str) -> str:
    return name if name.startswith("stream ") else f"query {name}"


def only_of(token: Token) -> str:
    """Returns the token's name if it may remove only queries and streams that it added; "" if
    all.
    """
    return "" if Role.ADMIN in token.roles else token.name


class Owners:
    """The names of tokens by query or stream (``stream_key``). ``coming``: those of queries and
    streams that this server is adding.
    """

    def __init__(self, root: Path, coming: dict[str, str]) -> None:
        self._root, self._coming = root, coming

    def _read(self) -> dict[str, str]:
        owners = read_owners(self._root)
        queries = {one.name: one.owner for one in owners.added_queries}
        return queries | {stream_key(one.name): one.owner for one in owners.added_streams}

    @contextmanager
    def adding(
        self, token: Token, name: str, there: Collection[str], limits: Limits
    ) -> Iterator[None]:
        """Counts a query or stream while it is added, so that simultaneous requests of a token
        count it, too. Raises ``Problem`` 403, 429.
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
        """Raises ``Problem`` 429 if no more queries or streams may be added."""
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
        """Raises ``Problem`` 403 if a token may not change a query or stream. The role admin may
        change any, other roles only those that they added.
        """
        only = only_of(token)
        if not new and only and self._read().get(name) != only:
            raise Problem(403, f"The token {token.name} has not added the {_display_name(name)}.")

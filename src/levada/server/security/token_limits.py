"""The quotas of one token, from its line in the file of tokens: ``queries=10,bytes=1MB``.

    queries streams connections         in place of the server's limits for a token
    body text seconds                   of one request, at most the server's limits
    solutions bytes reports kept state rate   of each query that it adds, at most the common limits

A token without such words has the server's limits.
"""

from __future__ import annotations

from levada.core.frozen import frozen
from levada.core.query_limits import check_limits, most_of, words_of_limits
from levada.errors import UsageError, near

_SIZED = ("body", "text")
_COUNTED = ("queries", "streams", "connections", "seconds")


@frozen
class TokenQuota:
    """Numbers, of which 0 is the server's limit. ``of_queries``: the limits of each query that the
    token adds, in the syntax of ``levada.core.query_limits.QueryLimits``.
    """

    queries: int = 0
    streams: int = 0
    connections: int = 0
    body: int = 0
    text: int = 0
    seconds: int = 0
    of_queries: str = ""


AS_ALL = TokenQuota()
"""The quota of a line without such words."""


def parse_allowance(text: str) -> TokenQuota:
    """Parses a token's quota. The last value of a repeated word counts. Raises ``UsageError``.

    >>> parse_allowance("queries=10,body=1MB,bytes=5MB")
    TokenQuota(queries=10, streams=0, connections=0, body=1000000, text=0, seconds=0, \
of_queries='bytes=5MB')
    """
    limits: dict[str, int] = {}
    of_queries = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        word, _, number = (side.strip() for side in part.partition("="))
        if word in (*_SIZED, *_COUNTED):
            limits[word] = most_of(word, number, sized=word in _SIZED)
        elif word in words_of_limits():
            of_queries.append(check_limits(f"{word}={number}"))
        else:
            known = (*_SIZED, *_COUNTED, *words_of_limits())
            raise UsageError(f"A token has no limit {word[:40]}.", hint=near(word, known))
    return TokenQuota(**limits, of_queries=",".join(of_queries))

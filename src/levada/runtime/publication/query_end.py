"""Determines when a query ends: the last instant at which it reports, by its options and its start
(docs/semantics.md#queries-that-end).

The end is fixed when the query is added, and stored in the plan. So a lifetime continues over a
restart, and does not begin again.
"""

from __future__ import annotations

from levada.core.event_time import MAX, MIN, instant
from levada.errors import UsageError
from levada.plan.logical.query_options import QueryOptions


def end_of(options: QueryOptions, start: int) -> int:
    """Returns the last instant at which a query reports that begins at ``start``; MAX: it has no
    end.

    >>> end_of(QueryOptions(lifetime=3_600_000), 1000)
    3601000
    """
    if options.lifetime is not None:
        return min(_beginning(options, start) + options.lifetime, MAX)
    return MAX if options.until is None else options.until


def check_end(name: str, options: QueryOptions, start: int) -> None:
    """Raises ``UsageError`` if all reports of a query would be in the past, or if its lifetime has
    no beginning.
    """
    if options.lifetime is not None and _beginning(options, start) <= MIN:
        raise UsageError(
            f"The lifetime of the query {name} has no beginning: its streams have not said "
            "anything yet.",
            hint="Say from where on it is counted (t0), or its end itself (until).",
        )
    if options.until is not None and options.until < start:
        raise UsageError(
            f"The query {name} ends at {instant(options.until)} (until), which its streams have "
            f"passed: it would begin at {instant(start)}.",
            hint="Say a later instant, or lifetime=1h: so long from where it begins.",
        )


def _beginning(options: QueryOptions, start: int) -> int:
    """Returns the beginning of a lifetime; MIN: unknown."""
    return start if start > MIN or options.t0 is None else options.t0

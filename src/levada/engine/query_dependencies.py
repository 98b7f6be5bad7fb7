"""Dependencies between queries that read each other's streams, and their order.

A query is registered with or after the makers of its streams. The queries of one batch may have any
order; this module sorts them.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter

from levada.core.names import display_name, is_derived, match_streams
from levada.core.query_model import Form
from levada.engine.name_scope import NameScope
from levada.errors import LevadaError, UsageError
from levada.plan.logical import nodes as a


def maker_of(said: str, known: NameScope) -> str | None:
    """Returns the query that makes the stream of this name, or None if it comes from outside.
    Unknown names are an error only when names are bound.
    """
    with suppress(LevadaError):
        stream = match_streams([said], known.streams, known.makers)[said]
        return display_name(stream) if is_derived(stream) else None
    return None


def makers_read(query: a.Query, known: NameScope) -> set[str]:
    """Returns the queries whose streams a query reads, by its text."""
    makers = (maker_of(window.stream, known) for window in query.windows)
    return {maker for maker in makers if maker is not None}


def order_by_makers(names: Collection[str], known: NameScope) -> list[str]:
    """Orders queries of one batch so that each follows the queries whose streams it reads. Raises
    ``UsageError`` for a cycle.
    """
    reads = {name: makers_read(known.queries[name], known) & {*names} for name in names}
    try:
        return list(TopologicalSorter(reads).static_order())
    except CycleError as error:
        cycle = list(reversed(error.args[1]))
        chain = ", which reads that of ".join(cycle[1:])
        message = (
            f"The query {cycle[0]} reads the stream of {chain}: "
            "queries cannot read each other's streams in a circle."
        )
        raise UsageError(message) from None


def check_maker(said: str, maker: str, known: NameScope) -> None:
    """Raises ``UsageError`` if a query cannot make the stream that another calls ``said``."""
    query = known.queries[maker]
    if query.form is not Form.CONSTRUCT:
        message = f"The {query.form} query {maker} makes no triples, and so not the stream {said}."
        raise UsageError(message, hint="Use CONSTRUCT.")
    if not query.windows:
        message = (
            f"The query {maker}, which is to make the stream {said}, has no windows: "
            "its one answer has no time."
        )
        raise UsageError(message, hint="Give the query a window, or its result as static data.")
    if maker in known.streams:
        message = (
            f"There is a stream {maker} beside the query {maker}, which is to make the stream "
            f"{said}."
        )
        raise UsageError(message, hint="Give the query another name.")

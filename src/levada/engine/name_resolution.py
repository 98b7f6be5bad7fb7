"""Name resolution: it maps the streams and graphs of a query's text to existing ones.

A stream is matched by its IRI or by its last word; outside streams come before those of queries. A
missing name is an error, and nothing is fetched. All errors are the user's. Cost: linear in the
names that queries use.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace

from levada.core.names import display_name, is_derived, match_streams
from levada.engine.name_scope import NameScope
from levada.engine.query_dependencies import check_maker
from levada.engine.query_request import QueryRequest
from levada.errors import Span, UnknownNameError, UsageError
from levada.plan.logical import nodes as a
from levada.plan.optimizer.traversal import rewrite_query

_NOWHERE: Mapping[str, Span] = {}


def bind_names(
    query: a.Query, asked: QueryRequest, known: NameScope, places: Mapping[str, Span] = _NOWHERE
) -> a.Query:
    """Returns the query over the existing streams and graphs. ``places``: where its text names
    streams.

    ``known.said`` gets the query's names for streams, so that a word never means two IRIs. Raises
    ``UnknownNameError``, ``UsageError``.
    """
    matched = _match(query, asked, known, places)
    for said, stream in known.said.items():
        if matched[said] != stream:
            message = (
                f"The stream {said} is read already, and would be another one with the query "
                f"{asked.name}."
            )
            raise UsageError(message, hint="Register the query under another name.")
    for said in dict.fromkeys(w.stream for w in query.windows):
        if is_derived(matched[said]):
            check_maker(said, display_name(matched[said]), known)
        else:
            _check_kind(said, asked, tuples=known.streams[matched[said]].schema is not None)
    known.said.update(matched)
    windows = tuple(replace(w, stream=matched[w.stream]) for w in query.windows)
    return _over_graphs(replace(query, windows=windows), known.graphs)


def _match(
    query: a.Query, asked: QueryRequest, known: NameScope, places: Mapping[str, Span]
) -> dict[str, str]:
    """Maps all names for streams, those used so far and the query's, to streams."""
    stream_names = [w.stream for w in query.windows]
    try:
        return match_streams([*known.said, *stream_names], known.streams, known.makers)
    except UnknownNameError:
        for said in stream_names:
            with suppress(UnknownNameError):
                other = display_name(match_streams([said], known.streams, known.others())[said])
                if other not in known.streams:
                    check_maker(said, other, known)
        for said in stream_names:
            _check_there(said, asked, known, places)
        raise


def _check_there(
    said: str, asked: QueryRequest, known: NameScope, places: Mapping[str, Span]
) -> None:
    """Raises ``UnknownNameError`` for a missing stream, with its place in the text."""
    try:
        match_streams([said], known.streams, known.makers)
    except UnknownNameError as error:
        if said not in places:
            raise
        raise UnknownNameError(
            error.message, span=places[said], text=asked.text, hint=error.hint
        ) from None


def _check_kind(said: str, asked: QueryRequest, *, tuples: bool) -> None:
    """Raises ``UsageError`` for a stream of rows in SPARQL, or of RDF in CQL."""
    if tuples != (asked.spoken == "cql"):
        raise UsageError(
            f"The stream {said} holds {'tuples' if tuples else 'RDF'}, which a query in "
            f"{asked.spoken} does not read."
        )


def _over_graphs(query: a.Query, graphs: Collection[str | None] | None) -> a.Query:
    """Returns the query over these static graphs. Without a default graph, a merge with it has the
    windows alone.
    """
    if graphs is None or None in graphs or query.graphs is not None:
        return query
    return rewrite_query(query, _without_default)


def _without_default(node: a.Node) -> a.Node:
    match node:
        case a.Bgp(a.InMerge((window,), True), patterns):
            return a.Bgp(a.InWindow(window), patterns)
        case a.Bgp(a.InMerge(windows, True), patterns):
            return a.Bgp(a.InMerge(windows, False), patterns)
        case _:
            return node

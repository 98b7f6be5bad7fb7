"""Registration: a query's text and options -> its algebra over the engine's streams and static graphs.

The names of streams in the text are matched with those that the engine has; a graph that is not there is an error, nothing is
fetched. All errors are the user's: ``QueryError`` with a place in the text, ``UsageError`` for options.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from levada.algebra import nodes as a
from levada.algebra.cql import translate_cql
from levada.algebra.options import QueryOptions, options_of
from levada.algebra.translate import translate
from levada.config import StreamConfig, parse_time
from levada.errors import UsageError, near
from levada.naming import match_streams
from levada.optimizer.pipeline import optimize
from levada.optimizer.rewrite import bottom_up
from levada.syntax import parse
from levada.syntax.dialects.recognise import dialect_of

OPTIONS = ("bounds", "t0", "report", "empty_reports")


def query_options(given: Mapping[str, Any]) -> QueryOptions:
    """The options of a query by their words; ``t0`` is ISO or ms. Raises ``UsageError``.

    >>> query_options({"t0": "1970-01-01T00:00:01Z", "report": "periodic:5s"}).period
    5000
    """
    for key in given:
        if key not in OPTIONS:
            raise UsageError(f"A query has no option {key}.", hint=near(key, OPTIONS))
    values = {k: v for k, v in given.items() if v is not None}
    if "t0" in values:
        values["t0"] = parse_time(values["t0"])
    return options_of(values)


def translated(
    text: str,
    dialect: str | None,
    options: QueryOptions,
    streams: Mapping[str, StreamConfig],
    named: dict[str, str],
    graphs: set[str | None],
) -> a.Query:
    """The algebra with the streams by their registered names; ``dialect`` None is the one that the text is recognised as.

    ``named`` maps the names by which queries have called streams so far to registered ones; what is new is added, so that a
    word cannot come to stand for two IRIs.
    """
    spoken = dialect_of(text, dialect).name
    if spoken == "cql":
        schemas = {n: c.columns for n, c in streams.items() if c.tabular}
        query = translate_cql(text, schemas, options, [n for n, c in streams.items() if c.sign])
    else:
        names = {g for g in graphs if g is not None}
        query = translate(parse(text, dialect), options, text=text, graphs=names)
    matched = match_streams([*named, *(w.stream for w in query.windows)], streams)
    check_kinds(query, spoken, {w.stream for w in query.windows if streams[matched[w.stream]].tabular})
    named.update(matched)
    windows = tuple(replace(w, stream=matched[w.stream]) for w in query.windows)
    return optimize(over_static(replace(query, windows=windows), graphs))


def check_kinds(query: a.Query, spoken: str, tabular: Collection[str]) -> None:
    """Raises ``UsageError`` for a stream of rows in SPARQL, or of RDF in CQL; ``tabular`` are the windows' streams of rows."""
    for w in query.windows:
        if (w.stream in tabular) != (spoken == "cql"):
            kind = "tuples" if spoken != "cql" else "RDF"
            raise UsageError(f"The stream {w.stream} holds {kind}, which a query in {spoken} does not read.")


def over_static(query: a.Query, graphs: Collection[str | None]) -> a.Query:
    """The query over these static graphs: without a default graph, a merge is that of the windows alone."""
    if None in graphs or query.graphs is not None:
        return query
    return replace(query, pattern=bottom_up(query.pattern, _no_default))


def _no_default(node: a.Node) -> a.Node:
    """A merge of windows with a default graph that is not there is that of the windows."""
    match node:
        case a.Bgp(a.InMerge((window,), True), patterns):
            return a.Bgp(a.InWindow(window), patterns)
        case a.Bgp(a.InMerge(windows, True), patterns):
            return a.Bgp(a.InMerge(windows, False), patterns)
        case _:
            return node

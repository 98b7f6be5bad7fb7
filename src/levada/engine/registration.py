"""Registration: a query's text and options -> its algebra over the engine's streams and static
graphs.

The names of streams in the text are matched with those that the engine has; a graph that is not
there is an error, nothing is fetched. All errors are the user's: ``QueryError`` with a place in the
text, ``UsageError`` for options.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from levada.algebra import nodes as a
from levada.algebra.options import QueryOptions, options_of
from levada.algebra.schema import Regime
from levada.engine.ontology import Ontology
from levada.errors import LevadaError, UnknownNameError, UsageError, near
from levada.model.names import Makers, is_made, match_streams, shown
from levada.model.query import Form
from levada.optimizer.entail import entail
from levada.optimizer.pipeline import optimize
from levada.optimizer.rewrite import bottom_up
from levada.streams.stream_config import StreamConfig, parse_time
from levada.syntax import parse
from levada.syntax.dialects.recognise import dialect_of
from levada.translation.cql.translate import translate_cql
from levada.translation.sparql.translate import translate

OPTIONS = ("bounds", "t0", "report", "empty_reports", "entailment")


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


@dataclass(frozen=True, slots=True)
class Asked:
    """A query that is to be registered: its text and name, and what ``Engine.register`` takes
    beside them.
    """

    text: str
    name: str
    dialect: str | None = None
    options: QueryOptions = field(default_factory=QueryOptions)


@dataclass(frozen=True, slots=True)
class Around:
    """What a query's names can be: the streams, the static graphs (None: the default one), what
    queries make and these.

    ``others`` are the queries that make no stream, by the names that it would have. ``ontology``:
    what entailment goes by.
    """

    streams: Mapping[str, StreamConfig]
    graphs: Collection[str | None]
    makers: Makers
    others: Makers
    query: Callable[[str], a.Query]
    ontology: Ontology


def understood(asked: Asked, around: Around) -> a.Query:
    """The algebra of a query whose streams still have the names of its text."""
    spoken = dialect_of(asked.text, asked.dialect).name
    if spoken == "cql":
        schemas = {n: c.columns for n, c in around.streams.items() if c.tabular}
        signed = [n for n, c in around.streams.items() if c.sign]
        return translate_cql(asked.text, schemas, asked.options, signed)
    names = {g for g in around.graphs if g is not None}
    streams = [n for n, c in around.streams.items() if not c.tabular]
    return translate(
        parse(asked.text, asked.dialect),
        asked.options,
        text=asked.text,
        graphs=names,
        streams=streams,
    )


def resolved(asked: Asked, query: a.Query, around: Around, named: dict[str, str]) -> a.Query:
    """The query with the names that its streams and graphs have in the engine, optimized.

    ``named`` maps the names by which queries have called streams so far to those; what is new is
    added, so that a word cannot come to stand for two IRIs.
    """
    spoken = dialect_of(asked.text, asked.dialect).name
    matched = _matched(query, around, named)
    for said, stream in named.items():
        if matched[said] != stream:
            message = f"The stream {said} is read already, and would be another one with the query {asked.name}."
            raise UsageError(message, hint="Register the query under another name.")
    made = {w.stream for w in query.windows if is_made(matched[w.stream])}
    for said in made:
        _check_maker(said, shown(matched[said]), around)
    read = {w.stream for w in query.windows} - made
    check_kinds(query, spoken, {said for said in read if around.streams[matched[said]].tabular})
    named.update(matched)
    windows = tuple(replace(w, stream=matched[w.stream]) for w in query.windows)
    whole = over_static(replace(query, windows=windows), around.graphs)
    return optimize(whole if spoken == "cql" else entailed(whole, asked.options, around.ontology))


def entailed(query: a.Query, options: QueryOptions, ontology: Ontology) -> a.Query:
    """The query over what its graphs entail, if its options say so. Raises ``UsageError`` without
    an ontology.
    """
    regime = options.entailment or Regime.NONE
    return query if regime is Regime.NONE else entail(query, ontology.schema(regime))


def check_kinds(query: a.Query, spoken: str, tabular: Collection[str]) -> None:
    """Raises ``UsageError`` for a stream of rows in SPARQL, or of RDF in CQL; ``tabular`` are the
    windows' streams of rows.
    """
    for w in query.windows:
        if (w.stream in tabular) != (spoken == "cql"):
            kind = "tuples" if spoken != "cql" else "RDF"
            raise UsageError(
                f"The stream {w.stream} holds {kind}, which a query in {spoken} does not read."
            )


def over_static(query: a.Query, graphs: Collection[str | None]) -> a.Query:
    """The query over these static graphs: without a default graph, a merge is that of the windows
    alone.
    """
    if None in graphs or query.graphs is not None:
        return query
    return replace(query, pattern=bottom_up(query.pattern, _no_default))


def _matched(query: a.Query, around: Around, named: Mapping[str, str]) -> dict[str, str]:
    """The names in the engine of all streams that have been named so far, and of the query's."""
    try:
        return match_streams(
            [*named, *(w.stream for w in query.windows)], around.streams, around.makers
        )
    except UnknownNameError:
        for w in query.windows:
            with suppress(UnknownNameError):
                other = shown(match_streams([w.stream], around.streams, around.others)[w.stream])
                if other not in around.streams:
                    _check_maker(w.stream, other, around)
        raise


def _check_maker(said: str, maker: str, around: Around) -> None:
    query = around.query(maker)
    if query.form is not Form.CONSTRUCT:
        message = f"The {query.form} query {maker} makes no triples, and so not the stream {said}."
        raise UsageError(message, hint="Use CONSTRUCT.")
    if not query.windows:
        message = f"The query {maker}, which is to make the stream {said}, has no windows: its one answer has no time."
        raise UsageError(message, hint="Give the query a window, or its result as static data.")
    if maker in around.streams:
        message = f"There is a stream {maker} beside the query {maker}, which is to make the stream {said}."
        raise UsageError(message, hint="Give the query another name.")


def in_order(queries: Mapping[str, a.Query], around: Around) -> list[str]:
    """The names of queries that come together, each behind those whose streams it reads. Raises
    ``UsageError`` for a cycle.
    """
    reads = {}
    for name, query in queries.items():
        matched = _known_streams(query, around)
        reads[name] = {shown(s) for s in matched if is_made(s)} & queries.keys()
    try:
        return list(TopologicalSorter(reads).static_order())
    except CycleError as error:
        cycle = list(reversed(error.args[1]))
        told = ", which reads that of ".join(cycle[1:])
        message = f"The query {cycle[0]} reads the stream of {told}: queries cannot read each other's streams in a circle."
        raise UsageError(message) from None


def _known_streams(query: a.Query, around: Around) -> Iterator[str]:
    """The streams of a query; for those that cannot be matched there is an error when it is
    resolved.
    """
    for w in query.windows:
        with suppress(LevadaError):
            yield from match_streams([w.stream], around.streams, around.makers).values()


def _no_default(node: a.Node) -> a.Node:
    """A merge of windows with a default graph that is not there is that of the windows."""
    match node:
        case a.Bgp(a.InMerge((window,), True), patterns):
            return a.Bgp(a.InWindow(window), patterns)
        case a.Bgp(a.InMerge(windows, True), patterns):
            return a.Bgp(a.InMerge(windows, False), patterns)
        case _:
            return node

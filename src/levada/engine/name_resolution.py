"""Name resolution: it maps the streams and graphs of a query's text to existing ones.

A stream is matched by its IRI or by its last word; outside streams come before those of queries. A
missing name is an error, and nothing is fetched. All errors are the user's. Cost: linear in the
names that queries use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from levada.core.names import display_name, is_derived, match_streams
from levada.core.query_model import Form
from levada.core.stream_facts import StreamFacts
from levada.engine.ontology import Ontology
from levada.engine.query_request import QueryRequest
from levada.errors import LevadaError, Span, UnknownNameError, UsageError
from levada.language.dialects.detect import is_cql
from levada.plan.execution.joins import JoinForm
from levada.plan.logical import nodes as a
from levada.plan.optimizer.rule import rewrite_query
from levada.plan.sharing.regions.regions import Regions

if TYPE_CHECKING:
    from levada.plan.statistics.statistics import Measures


# The names that a query's text can use: streams, static graphs, the streams of other queries, and
# the ontology for entailment.
#
# An engine's ``Registry`` keeps one; ``levada check`` and ``levada explain`` build one for an
# application. It grows with streams, data and queries, and ``prepare`` reads it. So equal
# ``NameScope`` means equal plans.


@dataclass(slots=True)
class NameScope:
    """The names that a text can use.

    ``streams``: the outside streams. ``graphs``: the static graphs (None among them: the default
    graph); None instead: any graph that a text names exists. ``replaceable``: the graphs that may
    be replaced while the engine runs. ``queries``: the queries by name, with names as in their
    texts. ``makers``: the queries that make a stream, by each name of the stream. ``said``: the
    streams by their names in queries. ``words``: how many queries use each such name; a name is
    removed with its last query. ``regions``: those of the engine (None: the engine checks them).
    ``of_streams``: the regions of streams. ``tables``: the columns of static tables, which CQL
    reads. ``joins``: the form of joins where it can be chosen, by these ``measures`` of streams.
    """

    streams: dict[str, StreamFacts] = field(default_factory=dict)
    graphs: Collection[str | None] | None = None
    replaceable: frozenset[str | None] = frozenset()
    ontology: Ontology = field(default_factory=lambda: Ontology(()))
    queries: dict[str, a.Query] = field(default_factory=dict)
    makers: dict[str, list[str]] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    words: Counter[str] = field(default_factory=Counter)
    joins: JoinForm = JoinForm.BINARY
    measures: Measures | None = None
    regions: Regions | None = field(default_factory=Regions)
    of_streams: dict[str, str] = field(default_factory=dict)
    tables: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def add_query(self, name: str, query: a.Query) -> None:
        """Adds a query, which makes a stream if it is a CONSTRUCT."""
        self.queries[name] = query
        self.words.update({window.stream for window in query.windows})
        if query.form is Form.CONSTRUCT:
            for word in _words(name, query):
                self.makers.setdefault(word, []).append(name)

    def remove_query(self, name: str) -> None:
        """Removes a query, and the names that only it uses."""
        query = self.queries.pop(name)
        for word in _words(name, query) if query.form is Form.CONSTRUCT else ():
            self.makers[word].remove(name)
            if not self.makers[word]:
                del self.makers[word]
        for word in {window.stream for window in query.windows}:
            self.words[word] -= 1
            if not self.words[word]:
                del self.words[word]
                self.said.pop(word, None)

    def copy(self) -> NameScope:
        """Returns a copy that changes independently."""
        return replace(
            self, streams=dict(self.streams), queries=dict(self.queries), said=dict(self.said),
            makers={word: list(names) for word, names in self.makers.items()},
            words=Counter(self.words), of_streams=dict(self.of_streams),
        )  # fmt: skip

    def apart(self) -> NameScope:
        """Returns a copy for a text that is only checked: its names are discarded."""
        return replace(self, said=dict(self.said))

    def others(self) -> dict[str, list[str]]:
        """Returns the queries that do not make a stream, by their names, in the form of
        ``makers``.
        """
        queries_by_word: dict[str, list[str]] = {}
        for name, query in self.queries.items():
            for word in _words(name, query) if query.form is not Form.CONSTRUCT else ():
                queries_by_word.setdefault(word, []).append(name)
        return queries_by_word


def _words(name: str, query: a.Query) -> list[str]:
    """Returns the names of the stream that a query makes."""
    return list(dict.fromkeys([name, query.registered] if query.registered else [name]))


# Dependencies between queries that read each other's streams, and their order.
#
# A query is registered with or after the makers of its streams. The queries of one batch may have
# any order; this module sorts them.


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
    if tuples != is_cql(asked.spoken):
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

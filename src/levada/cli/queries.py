"""Query texts -> algebra -> plan, as far as a command needs; nothing here starts Spark.

Errors leave with the query's name as a note (PEP 678), which ``errors.message_of`` puts before
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from levada.algebra import nodes
from levada.app.app_file import App, QuerySource
from levada.engine.ontology import Ontology, ontology_files
from levada.engine.registration import check_kinds, entailed, over_static
from levada.errors import LevadaError, QueryError
from levada.intake.static_files import StaticFile, static_source
from levada.model.names import Makers, is_made, match_streams
from levada.model.query import Form
from levada.optimizer.pipeline import optimize
from levada.plan.lowering.lower import Lowered, StreamFacts, lower
from levada.plan.topology.check_size import check_plan
from levada.sources.parquet import with_schema
from levada.syntax import parse
from levada.translation.cql.translate import translate_cql
from levada.translation.sparql.translate import translate


@dataclass(frozen=True, slots=True)
class Catalog:
    """What queries may refer to: the streams of an application, with the schemas of the tuple
    streams.

    ``ontology`` is there when the first query has asked for it. ``replaceable``: the static graphs
    that are read anew when their files change.
    """

    facts: Mapping[str, StreamFacts]
    ontology: list[Ontology] = field(default_factory=list)
    replaceable: frozenset[str | None] = frozenset()

    @staticmethod
    def of(app: App) -> Catalog:
        """The catalog of an application; a Parquet stream without a schema is asked for its own."""
        configs = [with_schema(config) for config in app.streams]
        replaceable = frozenset(static.graph for static in app.static if static.reload)
        return Catalog({c.name: StreamFacts.of(c) for c in configs}, replaceable=replaceable)

    @property
    def schemas(self) -> dict[str, Mapping[str, str]]:
        """The tuple streams."""
        return {name: fact.schema for name, fact in self.facts.items() if fact.schema is not None}

    @property
    def relations(self) -> list[str]:
        """The tuple streams whose rows come and go."""
        return [name for name, fact in self.facts.items() if fact.sign]


def translate_query(app: App, source: QuerySource, catalog: Catalog) -> nodes.Query:
    """The algebra of a query, its streams as it names them. Raises ``QueryError``."""
    options = app.query_options(source)
    with naming(source.name):
        if source.spoken == "cql":
            return translate_cql(source.text, catalog.schemas, options, catalog.relations)
        files = _static(app)
        graphs = {graph for file in files for graph in file.graphs}
        given = bool(files or app.streams)  # else any graph can be there
        known = {graph for graph in graphs if graph is not None} if given else None
        streams = [name for name, fact in catalog.facts.items() if fact.schema is None]
        query = translate(
            parse(source.text, source.dialect),
            options,
            text=source.text,
            graphs=known,
            streams=streams,
        )
        return over_static(query, graphs) if given else query


def optimized(app: App, source: QuerySource, catalog: Catalog, query: nodes.Query) -> nodes.Query:
    """A query's algebra after entailment, if it is asked for, and the optimizer's rules. Raises
    ``UsageError``, ``QueryError``.
    """
    if source.spoken == "cql":
        return optimize(query)
    with naming(source.name):
        if not catalog.ontology:
            catalog.ontology.append(Ontology(ontology_files(app.options.ontology) or _static(app)))
        return optimize(entailed(query, app.query_options(source), catalog.ontology[0]))


def _static(app: App) -> list[StaticFile]:
    return [static_source(static.path, static.graph, static.format) for static in app.static]


def makers_of(app: App, catalog: Catalog) -> Makers:
    """The queries of an application that make streams, by the names of these; texts with an error
    make none.
    """
    found: dict[str, list[str]] = {}
    for source in app.queries:
        if source.spoken == "cql":
            continue
        with suppress(QueryError):
            query = translate_query(app, source, catalog)
            if query.form is Form.CONSTRUCT:
                for word in dict.fromkeys(
                    [source.name, query.registered] if query.registered else [source.name]
                ):
                    found.setdefault(word, []).append(source.name)
    return found


def plan_query(
    query: nodes.Query, source: QuerySource, catalog: Catalog, makers: Makers
) -> Lowered:
    """The physical operators of a query; without any stream in the catalog its streams are taken as
    RDF streams.
    """
    used = [window.stream for window in query.windows]
    with naming(source.name):
        facts = catalog.facts or dict.fromkeys(used, StreamFacts())
        matched = match_streams(used, facts, makers)
        facts = {
            **facts,
            **{stream: StreamFacts() for stream in matched.values() if is_made(stream)},
        }
        if catalog.facts:
            check_kinds(
                query,
                source.spoken,
                {name for name in used if facts[matched[name]].schema is not None},
            )
        windows = tuple(replace(window, stream=matched[window.stream]) for window in query.windows)
        placed = replace(query, windows=windows)
        check_plan(placed, facts, source.text)
        return lower(placed, facts, replaceable=catalog.replaceable)


@contextmanager
def naming(query: str) -> Iterator[None]:
    """Notes on an error which query it is about."""
    try:
        yield
    except LevadaError as error:
        error.add_note(query)
        raise

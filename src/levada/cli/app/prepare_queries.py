"""The queries of an application and the names in their scope, for commands that plan queries
without running them.

A ``Registry`` takes the streams and static data, as in an engine. An application without streams,
or without any data, is assumed to have those that its queries name.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from levada.cli.app.app_file import App
from levada.connectors.config.stream_config import StreamConfig
from levada.core.stream_facts import StreamFacts
from levada.engine.name_resolution import NameScope, maker_of
from levada.engine.ontology import ontology_files
from levada.engine.query_pipeline import Prepared, prepare
from levada.engine.query_request import QueryRequest
from levada.engine.registry import Registry
from levada.errors import LevadaError
from levada.plan.execution.joins import join_form_of
from levada.plan.sharing.sharing_modes import Planning
from levada.runtime.driver.static_graphs import StaticGraphs

if TYPE_CHECKING:
    from levada.plan.statistics.statistics import Run


def queries_of(app: App) -> list[QueryRequest]:
    """Returns the queries of the application, each with its effective options."""
    return [
        QueryRequest(query.text, query.name, query.dialect, app.query_options(query))
        for query in app.queries
    ]


def known_to(app: App) -> NameScope:
    """Returns the names that the application's queries can use. Reads the columns of a Parquet
    stream without a schema. Raises ``UsageError`` and ``SourceError``.
    """
    planning = Planning(joins=join_form_of(app.options.join))
    if app.options.regions:
        # imported here: few applications name regions
        from levada.engine.placement.planning_options import regions_of

        planning = planning._replace(regions=regions_of(app.options.regions))
    registry = Registry(ontology_files(app.options.ontology), planning=planning)
    for config in app.streams:
        registry.add_stream(with_columns(config))
    statics = StaticGraphs(Path())
    for file in app.static:
        statics.add(file.path, file.graph, file.format, replaceable=False, reload=file.reload)
    for table in app.tables:
        statics.add_table(table)
    registry.name_static(statics.files)
    if statics.tables is not None:
        registry.name_tables(statics.tables.schemas)
    if (measures := registry.planning.measures) is not None:
        # imported here: binary joins need nothing of the runtime
        from levada.runtime.executor import cores

        wanted = app.options.partitions
        many = wanted if isinstance(wanted, int) else cores(app.options.master or "local[*]")
        measures.see(_run(Path(app.options.checkpoint or "")), many)
    if not (app.streams or app.static or app.tables):
        registry.known.graphs = None
    return registry.known


def _run(folder: Path) -> dict[str, Run]:
    """Returns the triples and the greatest event time of each stream of a run on a local
    checkpoint.
    """
    if not (folder / "levada.json").exists():
        return {}
    # imported here: few commands need a checkpoint
    from levada.checkpoint.checkpoint_folder import newest_manifest

    last = newest_manifest(folder)
    streams = {} if last is None else last.streams
    return {name: (s.triples, s.max_ts) for name, s in streams.items() if s.triples}


def with_columns(config: StreamConfig) -> StreamConfig:
    """Returns a stream with its columns, which are read from a table if needed. Raises
    ``SourceError``.
    """
    if config.format != "parquet" and not config.undecided:
        return config
    # imported here: streams of lines need no reader of tables
    from levada.connectors.ingest.tables.schema_inference import with_columns

    return with_columns(config)


def prepare_app(app: App, known: NameScope) -> list[Prepared]:
    """Prepares the application's queries. A query with an error makes no stream; the error is
    raised when a stage of the query is used.
    """
    queries = [prepare(asked, known) for asked in queries_of(app)]
    for query in queries:
        with suppress(LevadaError):
            known.add_query(query.asked.name, query.algebra)
    if not app.streams:
        _assume_streams(queries, known)
    return queries


def _assume_streams(queries: Iterable[Prepared], known: NameScope) -> None:
    """Adds streams of RDF for all stream names that no query makes."""
    readable = (query for query in queries if query.asked.name in known.queries)
    names = {window.stream for query in readable for window in query.algebra.windows}
    outside = [name for name in sorted(names) if maker_of(name, known) is None]
    known.streams |= dict.fromkeys(outside, StreamFacts())

"""An application's queries, and what they know, as the engine that runs it has them: for commands
that look at queries without running them.

What is said of the streams and static data is told to a ``Registry``, as an engine tells it. Where
no stream is named, or no data at all, whichever a text names is taken to be there.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from levada.cli.app.app_file import App
from levada.connectors.config.stream_config import StreamConfig
from levada.core.stream_facts import StreamFacts
from levada.engine.name_scope import NameScope
from levada.engine.ontology import ontology_files
from levada.engine.query_dependencies import maker_of
from levada.engine.query_pipeline import Prepared, prepare
from levada.engine.query_request import QueryRequest
from levada.engine.registry import Registry
from levada.errors import LevadaError
from levada.plan.execution.join_kinds import join_form_of
from levada.plan.sharing.sharing_modes import Planning
from levada.runtime.driver.static_graphs import StaticGraphs

if TYPE_CHECKING:
    from levada.plan.statistics.statistics import Run


def queries_of(app: App) -> list[QueryRequest]:
    """The queries that the application asks, each with the options that hold for it."""
    return [
        QueryRequest(query.text, query.name, query.dialect, app.query_options(query))
        for query in app.queries
    ]


def known_to(app: App) -> NameScope:
    """What the application's queries can name. A Parquet stream without a schema is asked for its
    own. Raises ``UsageError``, ``SourceError``.
    """
    planning = Planning(joins=join_form_of(app.options.join))
    if app.options.regions:
        # here: few name regions beside those of streams
        from levada.engine.placement.planning_options import regions_of

        planning = planning._replace(regions=regions_of(app.options.regions))
    registry = Registry(ontology_files(app.options.ontology), planning=planning)
    for config in app.streams:
        registry.add_stream(with_columns(config))
    statics = StaticGraphs(Path())
    for file in app.static:
        statics.add(file.path, file.graph, file.format, replaceable=False, reload=file.reload)
    registry.name_static(statics.files)
    if (measures := registry.planning.measures) is not None:
        # here: who does not ask for a form of joins loads nothing that runs
        from levada.runtime.executor import cores

        wanted = app.options.partitions
        many = wanted if isinstance(wanted, int) else cores(app.options.master or "local[*]")
        measures.see(_run(Path(app.options.checkpoint or "")), many)
    if not app.streams and not app.static:
        registry.known.graphs = None
    return registry.known


def _run(folder: Path) -> dict[str, Run]:
    """What a run on a checkpoint of this machine has read of each stream."""
    if not (folder / "levada.json").exists():
        return {}
    # here: few ask what has run
    from levada.checkpoint.checkpoint_folder import newest_manifest

    last = newest_manifest(folder)
    streams = {} if last is None else last.streams
    return {name: (s.triples, s.max_ts) for name, s in streams.items() if s.triples}


def with_columns(config: StreamConfig) -> StreamConfig:
    """A stream with its columns, which a table may be asked for. Raises ``SourceError``."""
    if config.format != "parquet" and not config.undecided:
        return config
    # here: a query over lines needs nothing that reads tables
    from levada.connectors.ingest.tables.schema_inference import with_columns

    return with_columns(config)


def prepare_app(app: App, known: NameScope) -> list[Prepared]:
    """The application's queries. One whose text cannot be read makes no stream; its error comes
    when a stage of it is asked for.
    """
    queries = [prepare(asked, known) for asked in queries_of(app)]
    for query in queries:
        with suppress(LevadaError):
            known.add_query(query.asked.name, query.algebra)
    if not app.streams:
        _assume_streams(queries, known)
    return queries


def _assume_streams(queries: Iterable[Prepared], known: NameScope) -> None:
    """Streams of RDF, for all names of streams that no query makes."""
    readable = (query for query in queries if query.asked.name in known.queries)
    names = {window.stream for query in readable for window in query.algebra.windows}
    outside = [name for name in sorted(names) if maker_of(name, known) is None]
    known.streams |= dict.fromkeys(outside, StreamFacts())

"""The engine: streams, static data and queries in; results out. It is a facade: the ``Registry``
has the declarations, and the ``Driver`` runs them.

    with levada.Engine() as engine:
        engine.stream("http://example.org/temp", "temp.nt")
        hot = engine.register(text, name="hot")
        engine.start(once=True)
        for report in hot.results():
            print(report.time, report.rows)

Streams and queries can be added and removed while the engine runs; each change takes effect with
the next epoch. ``start`` runs until ``stop``, or with ``once`` until all existing input is read.
All durable data are in the checkpoint (a temporary one without ``checkpoint``).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.leadership.rollback import with_rollback_hint
from levada.checkpoint.manifest import Manifest, StreamRecord
from levada.checkpoint.object_store.object_client import Objects
from levada.checkpoint.object_store.store_url import locate_checkpoint
from levada.checkpoint.result_index import Keep
from levada.checkpoint.send_graph_options import check_slices
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.config.stream_options import StreamOptions, TableOptions
from levada.connectors.ingest.parse.json_ld_contexts import declare_contexts
from levada.connectors.sinks import Sink
from levada.connectors.sources.file_listing import check_regular
from levada.connectors.spool.row_batches import Rows
from levada.core.checkpoint_files import parse_mode
from levada.core.cpu_guard import cpu_guard
from levada.core.integer_options import Partitions, check_count, check_partitions
from levada.core.names import check_stream_name, display_name
from levada.core.query_limits import MOST_ROWS, Memory
from levada.core.user_functions import check_importable
from levada.engine.delivery.delivery_manager import Deliveries, Shape
from levada.engine.driver.driver_inputs import Fits, Inputs
from levada.engine.driver.epoch_pacing import EpochPacing, parse_pacing, wall_clock_ms
from levada.engine.driver.query_quotas import limits_of
from levada.engine.engine_driver import Driver
from levada.engine.epoch_loop import start_epochs
from levada.engine.ontology import Paths, ontology_files
from levada.engine.placement.apply_placement import apply_placement
from levada.engine.placement.placement_options import (
    LearnPlacementOption,
    Wanted,
    balancing_of,
    degree_by,
    parse_placement_option,
    partitions_of,
)
from levada.engine.placement.planning_options import planning_of
from levada.engine.python.executor_choice import (
    await_up,
    check_surroundings,
    executor_of,
    paths_read,
)
from levada.engine.python.file_outputs import Files, Outputs
from levada.engine.python.static_source import StaticSource, TableSource, static_sources
from levada.engine.query import PublishSignal, Query, Report, name_and_lifetime, set_or_later
from levada.engine.query_request import QueryRequest
from levada.engine.registry import Registry
from levada.engine.restart_checks import columns_of
from levada.engine.status.run_status import progress_of_run, status_of_run
from levada.engine.status.status import Status, live_streams
from levada.engine.status.summary import Progress
from levada.engine.templates.parameter_tables import Rows as TableRows
from levada.engine.templates.query_per_row import RowQueryTemplate, name_failing_row
from levada.engine.watchdog import End, end_of
from levada.errors import DamagedError, UsageError
from levada.plan.execution.joins import JoinForm
from levada.plan.logical.ontology_schema import regime_of
from levada.plan.logical.print_logical import show
from levada.plan.logical.query_options import QueryOptions, QueryWords, options_of
from levada.runtime.cost_model.partition_count import MODEL, chosen_of
from levada.runtime.driver.after_commit import Tell
from levada.runtime.driver.spool_registry import Spools, StreamSource
from levada.runtime.driver.static_graphs import StaticGraphs
from levada.runtime.driver.stream_progress import carry_over
from levada.runtime.executor import Executor, cores, master_of
from levada.runtime.publication.publication import Publication
from levada.runtime.spark.spark_settings import check_conf

if TYPE_CHECKING:
    from levada.runtime.spark.spark_session import SparkSession


NO_SPARK = "none"
STARTING = "Levada is starting"


class Engine:
    """An engine of continuous queries on Spark.

    - ``spark``: a session to use. None: the engine starts a session with the URL ``master``. False,
      or the master ``none``: epochs run in this process without Spark. While a session of the
      engine starts, this process runs the first epochs; a failed start ends the engine.
    - ``checkpoint``: a durable folder, or ``s3://BUCKET/PREFIX``; None for a temporary one.
    - ``epoch``: the least time between the starts of two epochs (ms, or "1s"). None: as short as
      keeps the fixed cost of epochs below half a core. 0: at once.
    - ``epoch_rows``: the most elements of an epoch.
    - ``delay``: the target latency of results ("250ms"). It bounds the elements of epochs, which
      begin a quarter of it apart.
    - ``sink``: where results are published, in addition to the Python readers.
    - ``entailment``: none, rdfs or owl for queries without that option. ``ontology``: its files,
      else the schema triples of static data.
    - ``max_rows``: the most rows that an operator of a query may make in an epoch; a query above it
      is suspended. ``limits``: other limits of one query ("bytes=100MB,reports=1000000").
    - ``memory``: the most memory of a task ("512MB"), apart from window contents. Epochs shrink to
      stay below it.
    - ``slices``: counts the traffic between tasks, by slices of event time (1d, 1mo,
      "1d,groups=65536"), for ``levada graph export``.
    - ``sharing``: which operators queries share: relax (equal ones, and joins that differ in
      constants, conditions and windows), exact (equal ones) or off. "": relax, or exact if
      ``limits`` bound the rows of state.
    - ``join``: the form of joins of three and more parts: binary, multiway, auto or replicated.
    - ``regions``: names, or a machine file, for ``region`` of streams and queries.
    - ``keep``: how long results stay for other processes ("1h,256MB").
    - ``place``: a placement file, which assigns work to executors. ``balance``: whether groups move
      to idle executors (off, on, "on,reorganize_every=20", a mapping); by default on a cluster.
    - ``watchdog``: ends the process with exit code 5 when an operator does not finish; else the
      engine warns.
    - ``checkpoint_mode``: who may read the checkpoint (owner, group, all). A new one is the owner's
      only.
    """

    _checkpoint: Checkpoint | None = None

    _driver: Driver | None = None  # before the start

    _letters_url: tuple[str, dict[str, str]] | None = None

    def __init__(
        self,
        *,
        spark: SparkSession | Literal[False] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        epoch: int | str | None = None,
        epoch_rows: int = 1_000_000,
        delay: int | str | None = None,
        master: str = "local[*]",
        partitions: Partitions = None,
        sink: Sink | None = None,
        letters: Path | None = None,
        keep_results: bool = True,
        seed: int | None = None,
        entailment: str = "none",
        ontology: Paths = (),
        max_rows: int = MOST_ROWS,
        limits: str = "",
        memory: str = "",
        slices: str = "",
        sharing: str = "",
        join: str = JoinForm.BINARY,
        regions: str | os.PathLike[str] = "",
        keep: str = "",
        place: str | os.PathLike[str] = "",
        balance: Wanted = None,
        watchdog: bool | End = False,
        checkpoint_mode: str = "",
        spark_conf: Mapping[str, str] = {},
        contexts: Mapping[str, str | os.PathLike[str]] = {},
    ) -> None:
        declare_contexts(contexts) if contexts else None
        regime, schema = regime_of(entailment), ontology_files(ontology)
        planning = planning_of(sharing, join, regions, limits)
        self._interval, self._delay = parse_pacing(epoch, delay)
        self._epoch_rows = check_count(epoch_rows, "epoch_rows")
        self._seed = None if seed is None else check_count(seed, "seed", 0, 2**63 - 1)
        self._spark = False if spark is None and master == NO_SPARK else spark
        self._conf = spark_conf and check_conf(spark_conf, has_session=self._spark is not None)
        check_surroundings(self._spark, master, os.environ, kept=checkpoint is not None)
        master = master_of(self._spark, master)
        self._master = master
        self.temporary = checkpoint is None
        self._address, self.root = locate_checkpoint(checkpoint)
        self._mode = parse_mode(checkpoint_mode)
        self._memory, self._wish = Memory.parse(memory), parse_placement_option(place, master)
        self._slices = check_slices(slices, learned=isinstance(self._wish, LearnPlacementOption))
        partitions = check_partitions(partitions)
        self._balancing = balancing_of(balance, self._wish, partitions, master, self._interval or 0)
        self._partitions = partitions_of(partitions, self._wish, self._balancing, self._master)
        self._sink, self._letters, self._keep = sink, letters, keep_results
        self._kept = Keep.parse(keep) if keep else None  # for others
        self._limits = limits_of(limits, max_rows, self._kept, planning.sharing)
        self._statics = StaticGraphs(self.root.absolute() / "static")  # tasks may run elsewhere
        self._registry = Registry(schema, self._statics.folder, regime, planning)
        self._registry.guard = cpu_guard
        self._spools = Spools(lasting=not self.temporary, elsewhere=str(self._address or ""))
        self._outputs, self._deliveries = Outputs(), Deliveries(lasting=not self.temporary)
        self._settled, self._end = threading.Event(), end_of(watchdog)  # started, or closed
        self._publish_signal, self._followers = PublishSignal(), list[threading.Thread]()
        self._tell: list[Tell] = [self._publish_signal.notify]
        self._fits: Fits = lambda query, queries: None
        self._held, self._closing = register_cleanup(self, self.root if self.temporary else None)
        self._held.callback(self._spools.stop)

    # -- streams and static data --

    def stream(
        self, name: str, source: StreamSource = None, **options: Unpack[StreamOptions]
    ) -> None:
        """Declares a stream: its IRI or a plain word, and a source. The source is a path (options
        of ``StreamConfig.from_options``), a streaming DataFrame of Spark, or Python data. Without a
        source, rows are pushed.

        While the engine runs you can add any source but a DataFrame. The stream is read from the
        next epoch on, and an engine that starts on the checkpoint restores it. Raises
        ``UsageError``, ``SourceError``.
        """
        named = check_stream_name(name)
        if self._driver is not None:
            self._check_running("another stream")
            self._driver.streams.add(named, source, options)
            self._wake()
            return
        if not isinstance(source, StreamConfig) and isinstance(source, str | Path):
            source = StreamConfig.from_options(named, source, **options)
        config = self._spools.config_of(named, source, self.root, options)
        declared = source if isinstance(source, StreamConfig) else replace(config, path="")
        check_regular(config.name, config.path)
        before = self._open() if config.undecided and not self.temporary else None
        self._registry.add_stream(columns_of(config, before), declared)

    def remove_stream(self, name: str) -> None:
        """Removes a stream. From the next epoch on nothing of it is read. A later stream of the
        same name is new. Raises ``UsageError`` if the stream does not exist or if queries read it.
        """
        named = check_stream_name(name)
        if self._driver is None:
            self._registry.remove_stream(named)
            self._registry.removed_streams.discard(named)
            self._spools.remove_stream(named)
            return
        self._check_running("a stream less")
        self._driver.streams.remove(named)
        self._wake()

    def push(self, stream: str, rows: Rows) -> None:
        """Adds rows to a stream that is not a file. The rows are durable when the call returns.
        Rows that you push before the start wait for it. Raises ``UsageError`` for rows that do not
        fit.
        """
        self._check_running("these rows")
        if self._driver is not None and self._driver.once:
            raise UsageError("The engine reads what was there when it started.")
        self._spools.push(stream, rows)
        self._wake()

    def count_received(self, stream: str) -> int:
        """Counts the durable rows of a stream that is not a file."""
        return self._spools.durable_rows(stream)

    def _check_running(self, what: str) -> None:
        if self._driver is not None and not self.running:
            raise UsageError(f"The engine has ended; no report would see {what}.")

    def static(
        self, source: StaticSource, graph: str | None = None, format: str | None = None, *,
        replaceable: bool = False, reload: bool = False,
    ) -> None:  # fmt: skip
        """Adds static RDF: a file in any RDF format (by its extension, or ``format``), N-Triples
        lines, triples, or a graph of RDFLib. ``graph``: the one graph for all triples.

        While the engine runs you can replace the content of a ``replaceable`` graph. The new
        content holds for reports after the largest event time that the streams have when the next
        epoch begins. ``reload``: the file is read again whenever it changes on disk.
        """
        if self._driver is not None and not self.running:
            raise UsageError("The engine has ended; no report would see other static data.")
        for part, into in static_sources(source, graph):
            if self._driver is None:
                self._statics.add(part, into, format, replaceable=replaceable, reload=reload)
            else:
                self._statics.replace(part, into, format)
        if self._driver is None:
            self._registry.name_static(self._statics.files)
        self._wake()

    def table(self, name: str, source: TableSource, **options: Unpack[TableOptions]) -> None:
        """Adds a static table, for queries in CQL and SPARQL: a file of CSV, NDJSON, JSON or
        Parquet, ``postgresql://USER@HOST/DATABASE#TABLE``, a data frame, or a list of mappings.

        A source is read again whenever it changes. While the engine runs you replace a data frame
        by calling this again. Reports after the largest event time of that moment see the new rows.
        Options: ``schema``, ``format``, ``separator``, ``every`` (ms, or a text), ``password``.
        Raises ``SourceError``, ``UsageError``.
        """
        # imported here: most engines have no tables
        from levada.engine.python.table_source import declare_table

        self._check_running("another table")
        if name in self._registry.streams:
            raise UsageError(f"There is a stream {name}.", hint="Give the table another name.")
        statics = self._statics
        declare_table(statics, name, source, options, starts=self._driver is None)
        if self._driver is None and statics.tables is not None:
            self._held.callback(statics.tables.close)
            statics.tables.letters = self._letters or self.root
            self._registry.name_tables(statics.tables.schemas)
            self._registry.name_static(statics.files)
        self._wake()

    def letters_to(self, url: str, **options: str) -> None:
        """Sends dead letters and late elements to a topic or a table, too: call it before start().
        ``url`` and ``options`` are those of ``Query.to``. Raises ``UsageError``.
        """
        if self._driver is not None or self.temporary:
            message = "Letters go on where they were, which takes a checkpoint that survives."
            raise UsageError(message, hint="Say checkpoint=, and where letters go before start().")
        self._letters_url = url, options

    # -- queries --

    def register(
        self,
        text: str,
        *,
        name: str | None = None,
        dialect: str | None = None,
        options: QueryOptions | None = None,
        sink: Callable[[Report], object] | None = None,
        out: str | os.PathLike[str] | None = None,
        format: str = "ndjson",
        terms: bool = False,
        overwrite: bool = False,
        as_: str = "changes",
        **said: Unpack[QueryWords],
    ) -> Query:
        """Registers a query, before or while the engine runs. Raises ``QueryError`` if that is
        impossible.

        - ``dialect``: rspql, cqels, cqels2, csparql, sparqlstream, cql or stream. None: the engine
          detects the dialect from the text.
        - ``said``: options by their words (``plan.logical.query_options.WORDS``), in place of
          ``options``.
        - ``sink``: called with each report (``Query.subscribe``).
        - ``out``, ``format``, ``terms``, ``overwrite``, ``as_``: files, as the command line's
          options of these names.

        A query that is added while the engine runs ignores elements up to the largest event time of
        its streams so far. Over later elements it gives the results of a fresh run.
        """
        chosen = options or options_of(said)
        files = Files.from_options(out, format, terms=terms, overwrite=overwrite, shape=as_)
        with self._registry.lock:  # no epoch of the query before its files
            asked = QueryRequest(text, name or self._registry.free_name(), dialect, chosen)
            query = self.register_all([asked])[0]
            try:
                if files is not None:
                    query._check_fits(files.form, state=files.state)
                    self._outputs.add(query.name, files, self._open(), self._held)
            except BaseException:
                query.unregister()
                raise
        if sink is not None:
            query.subscribe(sink)
        return query

    def register_all(self, batch: Sequence[QueryRequest]) -> list[Query]:
        """Registers all queries of a batch, or none. Each may read the streams that others make, in
        any order of the batch.
        """
        with self._registry.lock:
            self._deliveries.await_some()
            queries = self._registry.add(batch)
            self._outputs.forget(asked.name for asked in batch)
        self._wake()
        return [Query(registered, self) for registered in queries]

    def register_each(
        self,
        text: str,
        table: TableRows,
        *,
        name: str = "",
        dialect: str | None = None,
        options: QueryOptions | None = None,
        **said: Unpack[QueryWords],
    ) -> list[Query]:
        """Registers a query for each row of a table, all of them or none. Returns them in order. In
        ``text`` the row's values replace its columns, which it names as ``{{column}}``.

        In an IRI (``<http://e/{{sensor}}>``) and in a string a value is inserted as it is. Alone it
        is a number, a truth value, an instant (UTC offset and all), or the term in a text.
        ``table``: a frame of pandas or polars, a table of Arrow, a list of mappings, or a path.
        Paths name a CSV (all cells texts), TSV or Parquet file. ``name``: the name of each query,
        with columns in it; "" for automatic names. ``options`` and ``said`` are those of
        ``register``. The results of each query are those of its text.

        A row costs some tens of µs if its values are in patterns and comparisons, else as much as a
        separate query. Raises ``UsageError`` or ``QueryError``, with the row.

        >>> import levada
        >>> text = '''SELECT ?v FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT1M STEP PT1M]
        ... WHERE { WINDOW <e:w> { <e:{{sensor}}> <e:temp> ?v FILTER(?v > {{most}}) } }'''
        >>> with levada.Engine(spark=False) as engine:
        ...     engine.stream("e:s")
        ...     table = [{"sensor": "a", "most": 30}, {"sensor": "b", "most": 25}]
        ...     [query.name for query in engine.register_each(text, table, name="hot-{{sensor}}")]
        ['hot-a', 'hot-b']
        """
        asked = RowQueryTemplate(text, name, dialect)
        with self._registry.lock:
            batch = asked.make_requests(
                table, options or options_of(said), self._registry.free_name
            )
            with name_failing_row(batch):
                return self.register_all(batch)

    def unregister(self, query: str | Query) -> None:
        """Removes a query, which reports nothing from the next epoch on. Raises ``UsageError`` if
        others read its stream.

        Give its name or its handle. A handle never removes a later query of the same name.
        """
        self._registry.remove(*name_and_lifetime(query))
        self._wake()

    def explain(self, query: str | Query) -> str:
        """Returns a query's algebra, as text."""
        return show(self._registry.get(*name_and_lifetime(query)).query)

    # -- running --

    def start(
        self, *, once: bool = False, keep_open: bool = False, accept_changes: bool = False
    ) -> None:
        """Starts epochs. ``once``: reads the existing input and ends the streams (unless
        ``keep_open``). ``accept_changes``: continues although changed options of streams alter the
        meaning of elements in windows. Without it such changes raise ``UsageError``.
        """
        if self._driver is not None:
            raise UsageError("The engine has been started already.")
        try:
            if self._spark is not False:
                check_importable()
            self._check_start(once=once)
            self._registry.begin()
            placed, learner = apply_placement(self._wish, self._open(), self._registry.streams)
            local_cores = cores(self._master) if self._is_here else 0
            tempo = EpochPacing(
                self._interval, self._epoch_rows, once, keep_open, self._limits, self._slices,
                placed, self._balancing, local_cores, learner, self._delay,
                self._degree, self._memory, accept_changes,
            )  # fmt: skip
            self._start(tempo)
        except BaseException:
            self._close()
            raise

    def _check_start(self, *, once: bool) -> None:
        """Refuses a start before it makes a checkpoint."""
        is_new = self._address is None and not (self.root / "levada.json").exists()
        self._registry.check_start(once=once, is_new=is_new)

    @property
    def _is_here(self) -> bool:
        return self._master.startswith("local") or self._master == NO_SPARK

    @property
    def _degree(self) -> str:
        return degree_by(self._partitions, self._wish, self._balancing)

    def _start(self, tempo: EpochPacing) -> None:
        checkpoint = self._open()
        self._deliveries.restore(checkpoint)
        publication = self._publication_on(checkpoint)
        self._driver = Driver(
            checkpoint,
            Inputs(self._registry, self._statics, self._spools, self._fits, self._deliveries),
            tempo,
            publication,
            executor=self._executor,
            tell=self._tell,
            end=self._end,
        )
        self._tell.append(self._deliveries.wake)
        if self._letters_url is not None:
            # imported here: few engines send letters
            from levada.engine.delivery.letters_output import open_output

            output = open_output(self._letters or self.root, checkpoint, *self._letters_url)
            self._tell.append(output.note)
            self._held.callback(output.stop)
        self._held.callback(self._deliveries.stop)
        self._deliveries.start(publication.index)
        start_epochs(self._driver, self._held)
        self._settled.set()
        self._publish_signal.notify()

    def _publication_on(self, checkpoint: Checkpoint) -> Publication:
        letters, files = self._letters or self.root, self._outputs.sinks
        self._deliveries.letters, index = letters, self._deliveries.first_index(self._kept)
        return Publication(checkpoint, self._sink, letters, self._keep, files, index)

    def _open(self, *, locked: bool = True, behind: int | None = None) -> Checkpoint:
        """Opens the checkpoint for this engine, as ``start`` does. ``locked``: only if no other
        engine holds the lock. ``behind``: only if it is this process's turn. Raises
        ``CheckpointError``.
        """
        if self._checkpoint is None:
            await_up(self._spark, self._master)
            wanted, available_cores = self._partitions, cores(self._master, self._spark)
            partitions = wanted if isinstance(wanted, int) else available_cores
            if self._wish is not None and wanted is None:
                partitions = self._wish.partitions(available_cores)
            objects = None if self._address is None else Objects(self._address)
            try:
                self._checkpoint = Checkpoint(
                    self.root, partitions=partitions, seed=self._seed, wall=wall_clock_ms(),
                    locked=locked, objects=objects, behind=behind, mode=self._mode,
                )  # fmt: skip
            except DamagedError as error:
                raise with_rollback_hint(self.root, error) from error
            # a choice of the model for as many cores holds; a cluster's cores are unknown yet
            kept = self._degree == MODEL and chosen_of(self._checkpoint.last) == available_cores
            if isinstance(wanted, int) or (wanted is not None and self._is_here and not kept):
                self._checkpoint.tables.deal(partitions)
            self._held.callback(self._checkpoint.close)
        return self._checkpoint

    def _executor(self) -> Executor:
        kept = not self.temporary
        return executor_of(
            self._spark, self._master, self.root, self._held, self._spools, kept=kept,
            read=lambda: paths_read(self._registry, self._statics),
            conf=self._conf,
        )  # fmt: skip

    def _wake(self) -> None:
        """Makes the epoch loop look for changes at once."""
        if self._driver is not None:
            self._driver.loop.wake()

    def await_start(self) -> bool:
        """Waits until the engine has been started. Returns False if it was closed without a
        start.
        """
        return self._settled.wait() and self._driver is not None

    def await_end(self, timeout: float | None = None) -> bool:
        """Waits until the epochs end (``once``, or ``stop``). Raises the engine's failure."""
        return self._driver is None or self._driver.await_end(timeout)

    async def wait_for_end(self) -> None:
        """Waits for the start and the end without a thread, as ``await_end()`` for asyncio. Raises
        the engine's failure.
        """
        async with self._publish_signal.subscribe() as event:
            while not self._begun or not self.await_end(0):
                await set_or_later(event)

    def stop(self, timeout: float | None = None) -> None:
        """Stops after the current epoch, and after epochs in which queries read its derived
        streams. Then frees all resources. Results stay readable until ``close``.
        """
        if self._driver is not None:
            self._driver.loop.stop(timeout)

    def close(self) -> None:
        """Stops, waits for callbacks to have had every report, and removes a temporary
        checkpoint.
        """
        try:
            self.stop()
            self._settled.set()
            self._publish_signal.notify()
            join_all(self._followers)
        finally:  # also if Ctrl-C ends the waiting
            self._close()

    def _close(self) -> None:
        self._settled.set()
        self._closing.detach()
        self._held.close()
        self._publish_signal.notify()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if kind is None:
            self.close()
        else:
            self.stop()
            self._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        await asyncio.to_thread(self.__exit__, kind, *exc)

    # -- progress and status --

    @property
    def note(self) -> str:
        """Returns a remark about the start, such as that the checkpoint's streams had ended."""
        return "" if self._driver is None else self._driver.note

    @property
    def running(self) -> bool:
        """Returns whether more epochs may come."""
        return self._driver is not None and not self._driver.loop.await_end(0)

    def progress(self) -> Progress:
        """Returns the progress: epochs, elements and results of this run and of all runs,
        watermarks, and the stream that holds queries back.
        """
        if self._driver is None:
            return Progress(0, 0, 0, 0.0, waiting_for=STARTING)
        return progress_of_run(self._driver)

    def status(self) -> Status:
        """Returns the status: watermarks, counts of matched patterns, and next reports of all
        queries. Raises ``UsageError`` before the start.
        """
        if self._driver is None:
            raise UsageError("The engine has not been started.")
        return status_of_run(self._driver, [d.progress for d in self._deliveries.all])

    def streams(self) -> list[str]:
        """Returns the names of the outside streams."""
        return list(self._registry.streams)

    def queries(self) -> list[str]:
        """Returns the names of the registered queries."""
        return list(self._registry.queries)

    # -- for the command line and for query handles --

    def _solutions(self) -> dict[str, int]:
        """Returns the number of results of each query in this run."""
        if self._driver is None:
            return dict.fromkeys(self._registry.queries, 0)
        totals = self._driver.publication.totals
        return {
            name: totals.query_totals(query.lifetime.query)[0]
            for name, query in self._registry.queries.items()
        }

    def _records_at(self, before: Manifest | None) -> dict[str, StreamRecord]:
        """Returns the counts of an earlier run for the current streams, by name."""
        if before is None or self._driver is None or self._driver.epochs.plan is None:
            return {}
        records = carry_over(before, self._driver.epochs.plan.streams).streams
        return {display_name(name): record for name, record in records.items()}

    def _records(self) -> dict[str, StreamRecord]:
        """Returns the counts by stream since the beginning of the checkpoint. A derived stream has
        its query's name.
        """
        if self._driver is None or self._driver.epochs.plan is None:
            return {}
        return live_streams(self._driver.last, self._driver.epochs.plan)

    def _await_spark(self) -> None:
        """Waits until a starting Spark is up, after the start of the engine."""
        if self._driver is not None:
            self._driver.await_spark()

    def _on_epoch(self, tell: Tell) -> None:
        """Calls ``tell`` with the manifest of every epoch, after its publication."""
        self._tell.append(tell)

    @property
    def _begun(self) -> bool:
        """Returns whether the engine was started or closed."""
        return self._settled.is_set()

    def _check_outputs(
        self, query: Query, outputs: Iterable[tuple[str, Mapping[str, Any]]]
    ) -> None:
        """Checks outputs of a query without opening the checkpoint. Raises ``UsageError``."""
        self._deliveries.check(_shape_of(query), outputs)

    def _deliver(self, query: Query, url: str, options: Mapping[str, Any]) -> None:
        """Sends the query's reports to this URL, too. Raises ``UsageError``."""
        if self._driver is not None and not self.running:
            raise UsageError("The engine has ended; nothing more would go to another output.")
        shape = _shape_of(query)
        if not self.temporary:
            self._deliveries.open(self._open())
        with self._registry.lock:
            self._registry.get(query.name, query._lifetime)
            self._deliveries.add(shape, query._lifetime, url, options)
        self._wake()

    @property
    def _publication(self) -> Publication:
        """Returns the publication of results. Raises ``UsageError`` before the start, and for a
        temporary checkpoint after ``close``.
        """
        if not self._closing.alive and self.temporary:
            raise UsageError(
                "The engine is closed: its results went with its temporary folder.",
                hint="Read them before the end of with, or say Engine(checkpoint=FOLDER).",
            )
        if self._driver is None:
            raise UsageError("The engine has not been started.")
        return self._driver.publication


def _shape_of(query: Query) -> Shape:
    plan = query._query
    return Shape(query.name, plan.form, plan.output, tuple(plan.variables))


# The resources of an engine, freed in the right order even if the program does not close it. Then
# its garbage collection or the end of the process frees them.


def register_cleanup(
    engine: object, temporary: Path | None
) -> tuple[ExitStack, weakref.finalize[..., object]]:
    """Returns the stack of resources to free, the last first, and a finalizer that frees them
    without ``close``. It removes the folder ``temporary`` at the end.
    """
    held = ExitStack()
    if temporary is not None:
        held.callback(shutil.rmtree, temporary, ignore_errors=True)
    return held, weakref.finalize(engine, abandon, held)


def abandon(held: ExitStack) -> None:
    """Frees everything. On the loop's thread, where the garbage collector may run, another thread
    does so, since it waits for the loop.
    """
    if threading.current_thread().name == "levada loop":
        threading.Thread(target=held.close, name="levada close").start()
    else:
        held.close()


def join_all(threads: Iterable[threading.Thread]) -> None:
    """Waits for threads, except the calling one."""
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join()

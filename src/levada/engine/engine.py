"""The engine: streams, static data and queries in; results out. A facade: what it has been told is
in the ``Registry``, what runs it is the ``Driver``.

    with levada.Engine() as engine:
        engine.stream("http://example.org/temp", "temp.nt")
        hot = engine.register(text, name="hot")
        engine.start(once=True)
        for report in hot.results():
            print(report.time, report.rows)

Queries come and go while the engine runs; each change takes effect with the next epoch. ``start``
runs until ``stop``; with ``once`` until all that is there has been read. Everything that survives
is in the checkpoint (a temporary one if none is given).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from levada.algebra.options import QueryOptions, options_of
from levada.algebra.schema import regime_of
from levada.algebra.show import show
from levada.engine.asked import Asked
from levada.engine.driver import Driver, Inputs, Tell, Tempo
from levada.engine.ontology import Paths, ontology_files
from levada.engine.query import Query, named
from levada.engine.registry import Registry
from levada.engine.status import Status, living, progress_of, status_of
from levada.engine.summary import Progress
from levada.errors import UsageError
from levada.model.durations import parse_duration
from levada.model.names import check_stream_name
from levada.runtime.driver.publication import Publication
from levada.runtime.driver.spools import Spools
from levada.runtime.driver.statics import Source, Statics
from levada.runtime.local import Executor, LocalExecutor, cores
from levada.runtime.store.checkpoint import Checkpoint
from levada.runtime.store.manifest import StreamRecord
from levada.sinks import Sink
from levada.sources.parquet import with_schema
from levada.streams.stream_config import StreamConfig

GROUPS = 64


class Engine:
    """Continuous queries on Spark.

    ``spark``: a session to use, or None for one of our own (``master``), or False to step epochs in
    this process without Spark.
    ``checkpoint``: a folder that survives; None for a temporary one. ``epoch``: the least time
    between the starts of two epochs (ms, or "1s"). ``epoch_rows``: the most elements in one.
    ``sink``: where results are published beside the Python readers.
    ``entailment``: none, rdfs or owl for queries that do not say; ``ontology``: its files, else the
    schema triples of static data.
    """

    def __init__(
        self,
        *,
        spark: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        epoch: int | str = 0,
        epoch_rows: int = 1_000_000,
        master: str = "local[*]",
        partitions: int | None = None,
        sink: Sink | None = None,
        letters: Path | None = None,
        keep_results: bool = True,
        seed: int | None = None,
        entailment: str = "none",
        ontology: Paths = (),
    ) -> None:
        regime, schema = regime_of(entailment), ontology_files(ontology)
        self._spark = spark
        self._own_session = False
        self._master = master
        self._temporary = checkpoint is None
        self.root = (
            Path(tempfile.mkdtemp(prefix="levada-")) if checkpoint is None else Path(checkpoint)
        )
        self._interval, self._epoch_rows = parse_duration(epoch), epoch_rows
        self._partitions, self._seed = partitions, seed
        self._sink, self._letters, self._keep = sink, letters, keep_results
        placed = self.root.absolute() / "static"  # a task may stand in another directory
        self._registry = Registry(schema, placed, regime)
        self._statics = Statics(placed)
        self._spools = Spools()
        self._checkpoint: Checkpoint | None = None
        self._driver: Driver | None = None
        self._settled = threading.Event()  # it has been started, or closed
        self._tell: list[Tell] = []

    # -- what there is --

    def stream(
        self, name: str, source: str | os.PathLike[str] | StreamConfig, **options: Any
    ) -> None:
        """A stream: its IRI or a plain word, and a path (options of ``StreamConfig.of``) or a
        streaming DataFrame of Spark.
        """
        if self._driver is not None:
            raise UsageError("Streams are named before the engine starts.")
        config = self._spools.config_of(check_stream_name(name), source, self.root, options)
        self._registry.add_stream(with_schema(config))

    def static(
        self, source: Source, graph: str | None = None, format: str | None = None, *,
        replaceable: bool = False, reload: bool = False,
    ) -> None:  # fmt: skip
        """Static RDF: a file in any RDF format (by its ending, or ``format``), or N-Triples lines;
        ``graph``: all into that one.

        While the engine runs: the content of a ``replaceable`` graph from now on, that is for
        reports after the largest event time that the streams have said when the next epoch begins.
        ``reload``: the file is read anew whenever it changes on the disk.
        """
        if self._driver is None:
            self._statics.add(source, graph, format, replaceable=replaceable, reload=reload)
            self._registry.name_static(self._statics.files)
        elif not self.running:
            raise UsageError("The engine has ended; no report would see other static data.")
        else:
            self._statics.replace(source, graph, format)
            self._wake()

    def register(
        self,
        text: str,
        *,
        name: str | None = None,
        dialect: str | None = None,
        options: QueryOptions | None = None,
        **said: Any,
    ) -> Query:
        """A query, before or while the engine runs; raises ``QueryError`` if it cannot be.

        ``dialect``: rspql, cqels, cqels2, csparql, sparqlstream or cql; None is the one that the
        text shows. ``said``: options by their words (``algebra.options.WORDS``), in place of
        ``options``. A query that comes while the engine runs gives the results of a fresh run over
        the elements after the largest event time that its streams had seen.
        """
        chosen = options or options_of(said)
        return self.register_all(
            [Asked(text, name or self._registry.free_name(), dialect, chosen)]
        )[0]

    def register_all(self, batch: Sequence[Asked]) -> list[Query]:
        """Queries that come together, all of them or none: each may read what another makes, in
        whatever order they are given.
        """
        found = self._registry.add(batch)
        self._wake()
        return [Query(registered, self) for registered in found]

    def unregister(self, query: str | Query) -> None:
        """Takes a query out; it reports no more from the next epoch on. Raises ``UsageError`` if
        others read what it makes.

        By its name, or by its handle: then not another one that has come under the name since.
        """
        self._registry.remove(*named(query))
        self._wake()

    def explain(self, query: str | Query) -> str:
        """A query's algebra, as text."""
        return show(self._registry.found(*named(query)).query)

    # -- running --

    def start(self, *, once: bool = False, keep_open: bool = False) -> None:
        """Starts epochs. ``once``: reads what is there, ends the streams (if not ``keep_open``)."""
        if self._driver is not None:
            raise UsageError("The engine has been started already.")
        if not self._registry.streams and not self._registry.queries:
            hint = (
                "Name a stream with engine.stream(name, path), or register a query without windows."
            )
            raise UsageError("The engine has no stream and no query.", hint=hint)
        try:
            self._start(Tempo(self._interval, self._epoch_rows, once, keep_open))
        except BaseException:
            self._close()
            raise

    def _start(self, tempo: Tempo) -> None:
        checkpoint = self._open()
        self._driver = Driver(
            checkpoint,
            Inputs(self._registry, self._statics, self._spools),
            tempo,
            Publication(checkpoint, self._sink, self._letters or self.root, self._keep),
            executor=self._executor,
            tell=self._tell,
        )
        self._driver.loop.start()
        self._settled.set()

    def _open(self) -> Checkpoint:
        """The checkpoint, taken for it; ``start`` does that too. Raises ``CheckpointError``."""
        if self._checkpoint is None:
            partitions = self._partitions or cores(self._master)
            self._checkpoint = Checkpoint(
                self.root, partitions=partitions, groups=GROUPS, seed=self._seed
            )
        return self._checkpoint

    def _executor(self) -> Executor:
        if self._spark is False:
            return LocalExecutor()
        from levada.runtime.spark.executor import SparkExecutor
        from levada.runtime.spark.session import start_session

        if self._spark is None:
            self._spark = start_session(
                self._master, scratch=self.root / "spark-local", kept=not self._temporary
            )
            self._own_session = True
        return SparkExecutor(self._spark)

    def _wake(self) -> None:
        """Has the loop look at what has changed at once."""
        if self._driver is not None:
            self._driver.loop.wake()

    def await_start(self) -> bool:
        """Waits until the engine has been started; False if it was closed without."""
        return self._settled.wait() and self._driver is not None

    def await_end(self, timeout: float | None = None) -> bool:
        """Waits until the epochs end (``once``, or ``stop``); raises what made them fail."""
        return self._driver is None or self._driver.await_end(timeout)

    def stop(self, timeout: float | None = None) -> None:
        """Stops after this epoch, and frees everything. Results stay readable until ``close``."""
        if self._driver is not None:
            self._driver.loop.stop(timeout)

    def close(self) -> None:
        """Stops, and removes a temporary checkpoint."""
        self.stop()
        self._close()

    def _close(self) -> None:
        self._settled.set()
        self._spools.stop()
        if self._own_session and self._spark:
            from levada.runtime.spark.session import stop_session

            stop_session(self._spark)
            self._spark, self._own_session = None, False
        if self._checkpoint is not None:
            self._checkpoint.close()
            self._checkpoint = None
        if self._temporary:
            shutil.rmtree(self.root, ignore_errors=True)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- looking --

    @property
    def note(self) -> str:
        """What is to be said of the start, such as that the checkpoint's streams had ended."""
        return "" if self._driver is None else self._driver.note

    @property
    def running(self) -> bool:
        """Whether epochs may still come."""
        return self._driver is not None and not self._driver.loop.await_end(0)

    def progress(self) -> Progress:
        """Where the engine is: epochs, elements, results, watermarks, what holds queries back."""
        if self._driver is None:
            return Progress(0, 0, 0, 0.0)
        return progress_of(self._driver.last, time.monotonic() - self._driver.began)

    def status(self) -> Status:
        """What each query waits for: watermarks, elements that matched patterns, next report."""
        if self._driver is None:
            raise UsageError("The engine has not been started.")
        last = self._driver.last
        if not last.plan:
            return Status(0, False, {}, ())
        return status_of(last, self._driver.epochs.checkpoint.load_plan(last.plan))

    def streams(self) -> list[str]:
        """The names of the streams from outside."""
        return list(self._registry.streams)

    def queries(self) -> list[str]:
        """The names of the registered queries."""
        return list(self._registry.queries)

    # -- for the command line and for query handles: what the runtime knows --

    def _on_epoch(self, tell: Tell) -> None:
        """Calls ``tell`` with the manifest of every epoch, after its publication."""
        self._tell.append(tell)

    def _records(self) -> dict[str, StreamRecord]:
        """Counts per stream since the beginning of the checkpoint; of a stream that a query makes
        by the query's name.
        """
        if self._driver is None or self._driver.epochs.plan is None:
            return {}
        return living(self._driver.last, self._driver.epochs.plan)

    @property
    def _publication(self) -> Publication:
        """What has been published."""
        if self._driver is None:
            raise UsageError("The engine has not been started.")
        return self._driver.publication

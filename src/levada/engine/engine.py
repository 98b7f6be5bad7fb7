"""The engine: streams, static data and queries in; results out. The facade over the driver's side
of everything.

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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from levada.algebra.options import QueryOptions
from levada.algebra.schema import regime_of
from levada.algebra.show import show
from levada.engine.ontology import Paths, ontology_files
from levada.engine.query import Query, named
from levada.engine.registration import Asked, query_options
from levada.engine.registry import Registry
from levada.engine.status import Status, living, status_of
from levada.engine.summary import Progress
from levada.errors import EngineError, LevadaError, UsageError
from levada.model.names import check_stream_name, is_made
from levada.model.time import MAX
from levada.runtime.driver.catalog import Catalog
from levada.runtime.driver.epoch import Epochs
from levada.runtime.driver.loop import Loop
from levada.runtime.driver.publication import Publication
from levada.runtime.driver.sourcing import Sourcing
from levada.runtime.driver.spools import Spools
from levada.runtime.driver.statics import Source, Statics
from levada.runtime.local import Executor, LocalExecutor, cores
from levada.runtime.store.checkpoint import Checkpoint
from levada.runtime.store.manifest import Intention, Manifest, StreamRecord
from levada.sinks import Sink
from levada.sources.parquet import with_schema
from levada.streams.stream_config import StreamConfig, parse_duration

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
        self._interval = parse_duration(epoch)
        self._epoch_rows, self._partitions, self._seed = epoch_rows, partitions, seed
        self._sink, self._letters, self._keep = sink, letters, keep_results
        placed = self.root.absolute() / "static"  # a task may stand in another directory
        self._known = Registry(schema, placed, regime)
        self._statics = Statics(placed)
        self._spools = Spools()
        self._changed = threading.RLock()
        self._new_plan = True
        self._once = False
        self._full = False  # the last epoch took so much that there may be a backlog
        self._started = self._last_start = 0.0
        self._checkpoint: Checkpoint | None = None
        self._publication: Publication | None = None
        self._epochs: Epochs | None = None
        self._catalog: Catalog | None = None
        self._loop: Loop | None = None
        self._settled = threading.Event()  # it has been started, or closed
        self._on_epoch: list[Callable[[Manifest], None]] = []
        self.note = ""

    # -- what there is --

    def stream(
        self, name: str, source: str | os.PathLike[str] | StreamConfig, **options: Any
    ) -> None:
        """A stream: its IRI or a plain word, and a path (options of ``StreamConfig.of``) or a
        streaming DataFrame of Spark.
        """
        if self._loop is not None:
            raise UsageError("Streams are named before the engine starts.")
        config = self._spools.config_of(check_stream_name(name), source, self.root, options)
        self._known.add_stream(with_schema(config))

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
        if self._loop is None:
            self._statics.add(source, graph, format, replaceable=replaceable, reload=reload)
            self._known.name_static(self._statics.files)
        elif not self.running:
            raise UsageError("The engine has ended; no report would see other static data.")
        else:
            self._statics.replace(source, graph, format)
            self._loop.wake()

    def register(
        self,
        text: str,
        *,
        name: str | None = None,
        dialect: str | None = None,
        options: QueryOptions | None = None,
        **given: Any,
    ) -> Query:
        """A query, before or while the engine runs; raises ``QueryError`` if it cannot be.

        ``dialect``: rspql, cqels, cqels2, csparql, sparqlstream or cql; None is the one that the
        text shows. ``given``: bounds, t0 (ISO or ms), report, empty_reports, entailment. A query
        that comes while the engine runs gives the results of a fresh run over the elements after
        the largest event time that its streams had seen.
        """
        chosen = options or query_options(given)
        return self.register_all([Asked(text, name or self._known.free_name(), dialect, chosen)])[0]

    def register_all(self, batch: Sequence[Asked]) -> list[Query]:
        """Queries that come together, all of them or none: each may read what another makes, in
        whatever order they are given.
        """
        with self._changed:
            found = self._known.add(batch)
            self._plan_changed()
            return [Query(r, self) for r in found]

    def unregister(self, query: str | Query) -> None:
        """Takes a query out; it reports no more from the next epoch on. Raises ``UsageError`` if
        others read what it makes.

        By its name, or by its handle: then not another one that has come under the name since.
        """
        with self._changed:
            self._known.remove(*named(query))
            self._plan_changed()

    def explain(self, query: str | Query) -> str:
        """A query's algebra, as text."""
        return show(self._known.found(*named(query)).query)

    # -- running --

    def open(self) -> Checkpoint:
        """The checkpoint, taken for this engine; ``start`` does that too. Raises
        ``CheckpointError``.
        """
        if self._checkpoint is None:
            partitions = self._partitions or cores(self._master)
            self._checkpoint = Checkpoint(
                self.root, partitions=partitions, groups=GROUPS, seed=self._seed
            )
        return self._checkpoint

    def start(self, *, once: bool = False, keep_open: bool = False) -> None:
        """Starts the epochs. ``once``: reads what is there and ends the streams (not with
        ``keep_open``).
        """
        if self._loop is not None:
            raise UsageError("The engine has been started already.")
        if not self._known.streams and not self._known.queries:
            hint = (
                "Name a stream with engine.stream(name, path), or register a query without windows."
            )
            raise UsageError("The engine has no stream and no query.", hint=hint)
        try:
            self._start(self.open(), once, keep_open)
        except BaseException:
            self._close()
            raise

    def _start(self, checkpoint: Checkpoint, once: bool, keep_open: bool) -> None:
        self._started, self._once = time.monotonic(), once
        configs = [self._known.streams[name] for name in checkpoint.ordered(self._known.streams)]
        self._spools.start(once=once)
        sourcing = Sourcing(configs, self.root / "scratch", once=once, keep_open=keep_open)
        if checkpoint.last is not None and checkpoint.last.ended:
            self._after_end(sourcing, checkpoint, checkpoint.last)
        self._publication = Publication(
            checkpoint, self._sink, self._letters or self.root, self._keep
        )
        self._catalog = Catalog(checkpoint, configs, self._statics.replaceable)
        self._statics.place()
        self._epochs = Epochs(
            checkpoint,
            configs,
            self._statics,
            sourcing,
            self._executor(),
            self._publish,
            epoch_rows=self._epoch_rows,
            wall=_wall,
            due=self._publication.due,
        )
        self._loop = Loop(
            self.root / "intentions", self._next, self._run, last_intention=self._epochs.flush
        )
        self._loop.start()
        self._settled.set()

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

    def _after_end(self, sourcing: Sourcing, checkpoint: Checkpoint, last: Manifest) -> None:
        """A checkpoint whose streams have ended: what is missing is published; new data are
        refused, new queries told of.
        """
        for name, source in sourcing.sources.items():
            source.check_grown(last.positions.get(name, {}))
        self.note = "This checkpoint had ended; its last results are published."
        known = checkpoint.load_topology(last.plan)[1] if last.plan else {}
        new = [
            name for name, query in self._known.queries.items() if known.get(name) != query.identity
        ]
        if new:
            self.note += f" What it had not run before has no results: {', '.join(new)}."

    def _plan_changed(self) -> None:
        self._new_plan = True
        if self._loop is not None:
            self._loop.wake()

    def _next(self, last: str | None) -> str | None:
        """The loop's question: what comes next? Under backlog at once, else not before the least
        interval is over.

        What was there to read is looked up after the plan: queries that came between the two would
        miss elements that came after them. Then the answer is dropped, and the question asked again
        with their plan.
        """
        assert self._epochs is not None, "started"
        self._spools.check()
        self._statics.reload()
        if self._new_plan:
            self._replan(self._epochs)
        now = time.monotonic() * 1000
        full = self._epochs.sourcing.once or self._full
        if not full and now - self._last_start < self._interval:
            return None
        intention = self._epochs.intend()
        if intention is None:
            if self._over() and self._loop is not None:
                self._loop.request_stop()
            return None
        if self._new_plan:
            return None
        self._last_start = now
        self._full = sum(r.elements for r in intention.references) >= self._epoch_rows // 2
        return msgspec.json.encode(intention).decode()

    def _replan(self, epochs: Epochs) -> None:
        """The plan for the queries as they are now. At the first time the open intention, if any,
        has been run.
        """
        assert self._catalog is not None, "started"
        if epochs.last.ended:
            self._catalog.stand(self._known.queries, epochs.last)
            return
        with self._changed:
            plan = self._catalog.follow(
                self._known.queries, self._known.dropped, epochs.checkpoint.last
            )
            self._new_plan = False
            self._known.dropped.clear()
        if plan is not None:
            epochs.use(plan)
        elif epochs.plan is None:
            epochs.plan = self._catalog.plan(epochs.last.plan)

    def _over(self) -> bool:
        """Whether everything is read and published; never without ``once``, unless the checkpoint
        had ended.
        """
        assert self._epochs is not None, "started"
        last = self._epochs.last
        if last.ended or not self._once:
            return last.ended
        return self._epochs.sourcing.keep_open and not self._epochs.sourcing.backlog(
            last.positions, last.streams
        )

    def _run(self, text: str) -> None:
        assert self._epochs is not None, "started"
        self._epochs.run(msgspec.json.decode(text, type=Intention))

    def _publish(self, manifest: Manifest) -> None:
        self.publication.publish(manifest)
        self._spools.forget(manifest.positions)
        for tell in list(self._on_epoch):
            tell(manifest)

    def await_start(self) -> bool:
        """Waits until the engine has been started; False if it was closed without."""
        return self._settled.wait() and self._loop is not None

    def await_end(self, timeout: float | None = None) -> bool:
        """Waits until the epochs end (``once``, or ``stop`` from elsewhere); raises what made them
        fail.
        """
        if self._loop is None:
            return True
        ended = self._loop.await_end(timeout)
        if ended and self._loop.failure is not None:
            self._raise(self._loop.failure)
        return ended

    def _raise(self, failure: BaseException) -> None:
        if isinstance(failure, LevadaError):
            raise failure
        epoch = self._epochs.last.epoch if self._epochs is not None else 0
        raise EngineError(f"The engine stopped in epoch {epoch + 1}: {failure}") from failure

    def stop(self, timeout: float | None = None) -> None:
        """Stops after the current epoch, and gives everything free. Results stay readable until
        ``close``.
        """
        if self._loop is not None:
            self._loop.stop(timeout)

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

    def progress(self) -> Progress:
        """Where the engine is: epochs, elements, results, watermarks, and which stream holds
        queries back.
        """
        last = self._epochs.last if self._epochs is not None else Manifest(0, 0)
        given = {
            n: s for n, s in last.streams.items() if not is_made(n)
        }  # what queries make waits for these
        w = {n: s.watermark for n, s in given.items()}
        open_ = {n: v for n, v in w.items() if v < MAX}
        holder = min(open_, key=lambda n: open_[n]) if len(w) > 1 and open_ else None
        elements = sum(s.elements for s in given.values())
        results = last.gone + sum(n for n, _ in last.totals.values())
        return Progress(last.epoch, elements, results, time.monotonic() - self._started, w, holder)

    def status(self) -> Status:
        """What each query waits for: watermarks, the elements that matched its patterns, its next
        report.
        """
        if self._epochs is None:
            raise UsageError("The engine has not been started.")
        last = self._epochs.last
        return (
            status_of(last, self._epochs.checkpoint.load_plan(last.plan))
            if last.plan
            else Status(0, False, {}, ())
        )

    def on_epoch(self, tell: Callable[[Manifest], None]) -> None:
        """Calls ``tell`` with the manifest of every epoch, after its publication."""
        self._on_epoch.append(tell)

    def streams(self) -> list[str]:
        """The names of the streams from outside."""
        return list(self._known.streams)

    def queries(self) -> list[str]:
        """The names of the registered queries."""
        return list(self._known.queries)

    def records(self) -> dict[str, StreamRecord]:
        """Counts per stream since the beginning of the checkpoint; of a stream that a query makes
        by the query's name.
        """
        if self._epochs is None or self._epochs.plan is None:
            return {}
        return living(self._epochs.last, self._epochs.plan)

    @property
    def publication(self) -> Publication:
        """What has been published; for readers."""
        if self._publication is None:
            raise UsageError("The engine has not been started.")
        return self._publication

    @property
    def running(self) -> bool:
        """Whether epochs may still come."""
        return self._loop is not None and not self._loop.await_end(0)


def _wall() -> int:
    return time.time_ns() // 1_000_000

"""The engine: streams, static data and queries in; results out. The facade over the driver's side of everything.

    with levada.Engine() as engine:
        engine.stream("http://example.org/temp", "temp.nt")
        hot = engine.register(text, name="hot")
        engine.start(once=True)
        for report in hot.results():
            print(report.time, report.rows)

Queries come and go while the engine runs; each change takes effect with the next epoch. ``start`` runs until ``stop``; with
``once`` until all that is there has been read. Everything that survives is in the checkpoint (a temporary one if none is given).
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import msgspec

from levada.algebra import nodes as a
from levada.algebra.cql import translate_cql
from levada.algebra.options import QueryOptions
from levada.algebra.show import show
from levada.algebra.translate import translate
from levada.config import StreamConfig, parse_duration, parse_time
from levada.errors import CheckpointError, EngineError, LevadaError, UnknownNameError, UsageError, near
from levada.model.time import MAX, MIN
from levada.naming import check_query_name, check_stream_name, match_streams
from levada.optimizer.pipeline import optimize
from levada.plan.lower import StreamFacts
from levada.plan.topology import Topology
from levada.query import Query
from levada.runtime.checkpoint import Checkpoint
from levada.runtime.epoch import Epochs
from levada.runtime.local import Executor, LocalExecutor
from levada.runtime.loop import SteppedLoop
from levada.runtime.manifest import Intention, Manifest, StreamRecord, read_manifest
from levada.runtime.publication import Publication
from levada.runtime.sourcing import Sourcing
from levada.sinks import Sink
from levada.sources.parquet import with_schema
from levada.summary import Progress
from levada.syntax import parse

GROUPS = 64


@dataclass
class Registered:
    """A query as it was registered."""

    name: str
    text: str
    dialect: str
    options: QueryOptions
    query: a.Query


class Engine:
    """Continuous queries on Spark.

    ``spark``: a session to use, or None for one of our own (``master``), or False to step epochs in this process without Spark.
    ``checkpoint``: a folder that survives; None for a temporary one. ``epoch``: the least time between the starts of two epochs
    (ms, or "1s"). ``epoch_rows``: the most elements in one. ``sink``: where results are published beside the Python readers.
    """

    def __init__(
        self,
        spark: Any = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        epoch: int | str = 0,
        epoch_rows: int = 1_000_000,
        master: str = "local[*]",
        partitions: int | None = None,
        sink: Sink | None = None,
        letters: Path | None = None,
        keep_results: bool = True,
        seed: int | None = None,
    ) -> None:
        self._spark = spark
        self._own_session = False
        self._master = master
        self._temporary = checkpoint is None
        self.root = Path(tempfile.mkdtemp(prefix="levada-")) if checkpoint is None else Path(checkpoint)
        self._interval = parse_duration(epoch)
        self._epoch_rows = epoch_rows
        self._partitions = partitions
        self._sink, self._letters, self._keep = sink, letters, keep_results
        self._seed = seed
        self._streams: dict[str, StreamConfig] = {}
        self._static: list[tuple[str, str | None]] = []
        self._queries: dict[str, Registered] = {}
        self._handles: dict[str, Query] = {}
        self._changed = threading.RLock()
        self._new_plan = False
        self._started = 0.0
        self._last_start = 0.0
        self._checkpoint: Checkpoint | None = None
        self._publication: Publication | None = None
        self._epochs: Epochs | None = None
        self._loop: Any = None
        self._topology: Topology | None = None
        self._on_epoch: list[Callable[[Manifest], None]] = []
        self.note = ""

    # -- what there is --

    def stream(self, name: str, source: str | os.PathLike[str] | StreamConfig, **options: Any) -> None:
        """A stream: ``name`` is its IRI or a plain word, ``source`` a path (options as in ``StreamConfig.of``)."""
        if self._loop is not None:
            raise UsageError("Streams are named before the engine starts.")
        bare = check_stream_name(name)
        if bare in self._streams:
            raise UsageError(f"There are two streams {bare}.")
        config = source if isinstance(source, StreamConfig) else StreamConfig.of(bare, source, **options)
        self._streams[bare] = with_schema(config)

    def static(self, source: str | os.PathLike[str] | Iterable[str], graph: str | None = None) -> None:
        """Static RDF: a file (N-Triples, Turtle), or N-Triples lines; into the default graph, or the graph of this IRI."""
        if self._loop is not None:
            raise UsageError("Static data are named before the engine starts.")
        if isinstance(source, (str, os.PathLike)):
            path = Path(source)
            if not path.exists():
                raise UsageError(f"There is no static file {path}.")
        else:
            self.root.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix="levada-static-", suffix=".nt")
            with os.fdopen(handle, "w") as file:
                file.writelines(line.rstrip().removesuffix(".").rstrip() + " .\n" for line in source)
            path = Path(name)
        self._static.append((str(path), graph))

    def register(
        self,
        text: str,
        *,
        name: str | None = None,
        dialect: str = "rspql",
        options: QueryOptions | None = None,
        **given: Any,
    ) -> Query:
        """A query, before or while the engine runs; raises ``QueryError`` if it cannot be.

        ``given``: bounds, t0 (ISO or ms), report, empty_reports. A query that comes while the engine runs gives the results of a
        fresh run over the elements after the largest event time that its streams had seen.
        """
        with self._changed:
            word = check_query_name(name or f"q{len(self._queries) + 1}")
            if word in self._queries:
                raise UsageError(
                    f"There is a query {word} already.", hint="Unregister it first, or choose another name."
                )
            chosen = options or _options(given)
            query = self._translated(text, dialect, chosen)
            self._queries[word] = Registered(word, text, dialect, chosen, query)
            self._handles[word] = Query(word, query, self)
            self._plan_changed()
            return self._handles[word]

    def _translated(self, text: str, dialect: str, options: QueryOptions) -> a.Query:
        """The algebra with streams by their registered names, and known static graphs."""
        if dialect == "cql":
            schemas = {n: dict(c.schema) for n, c in self._streams.items() if c.tabular}
            query = translate_cql(text, cast("Mapping[str, Mapping[str, str]]", schemas), options)
        elif dialect == "rspql":
            query = translate(parse(text), options, text=text)
        else:
            raise UsageError(f"There is no dialect {dialect}.", hint=near(dialect, ("rspql", "cql")))
        others = [w.stream for r in self._queries.values() for w in r.query.windows if w.stream not in self._streams]
        matched = match_streams([*others, *(w.stream for w in query.windows)], self._streams)
        for w in query.windows:
            if self._streams[matched[w.stream]].tabular != (dialect == "cql"):
                kind = "tuples" if dialect != "cql" else "RDF"
                raise UsageError(f"The stream {w.stream} holds {kind}, which a query in {dialect} does not read.")
        _check_graphs(query, {g for _, g in self._static})
        windows = tuple(replace(w, stream=matched[w.stream]) for w in query.windows)
        return optimize(replace(query, windows=windows))

    def unregister(self, name: str) -> None:
        """Takes a query out; it reports no more from the next epoch on."""
        with self._changed:
            if name not in self._queries:
                raise UsageError(f"There is no query {name}.", hint=near(name, self._queries))
            del self._queries[name]
            if self._topology is not None and name in self._topology.queries:
                self._topology.remove(name)
            self._plan_changed()

    def explain(self, name: str) -> str:
        """A query's algebra, as text."""
        return show(self._queries[name].query)

    # -- running --

    def start(self, *, once: bool = False, keep_open: bool = False) -> None:
        """Starts the epochs. ``once``: reads what is there and ends the streams (not with ``keep_open``)."""
        if self._loop is not None:
            raise UsageError("The engine is running.")
        if not self._streams:
            raise UsageError("The engine has no stream.", hint="Name one with engine.stream(name, path).")
        self._checkpoint = Checkpoint(
            self.root, partitions=self._partitions or cores(self._master), groups=GROUPS, seed=self._seed
        )
        try:
            self._start(self._checkpoint, once, keep_open)
        except BaseException:
            self._close()
            raise

    def _start(self, checkpoint: Checkpoint, once: bool, keep_open: bool) -> None:
        self._started = time.monotonic()
        last = checkpoint.last
        configs = self._ordered(last)
        sourcing = Sourcing(configs, self.root / "scratch", once=once, keep_open=keep_open)
        self._publication = Publication(checkpoint, self._sink, self._letters or self.root, self._keep)
        executor = self._executor()
        self._epochs = Epochs(
            checkpoint,
            configs,
            self._static,
            sourcing,
            executor,
            self._publish,
            epoch_rows=self._epoch_rows,
            wall=_wall,
        )
        self._plan_at_start(checkpoint, last)
        if last is not None and last.ended:
            self._after_end(checkpoint, sourcing, last)
        self._once = once
        self._loop = self._make_loop()
        self._loop.start()

    def _ordered(self, last: Manifest | None) -> list[StreamConfig]:
        """The streams in the order of the checkpoint's plan; new ones behind."""
        if last is None:
            return list(self._streams.values())
        missing = [n for n in last.streams if n not in self._streams]
        if missing:
            raise CheckpointError(f"The checkpoint {self.root} has a stream {missing[0]}, which is not named now.")
        return [self._streams[n] for n in last.streams] + [c for n, c in self._streams.items() if n not in last.streams]

    def _executor(self) -> Executor:
        if self._spark is False:
            return LocalExecutor()
        from levada.runtime.spark.executor import SparkExecutor
        from levada.runtime.spark.session import start_session

        if self._spark is None:
            self._spark = start_session(self._master, scratch=self.root / "spark-local")
            self._own_session = True
        return SparkExecutor(self._spark)

    def _make_loop(self) -> Any:
        if self._spark is False:
            return SteppedLoop(self.root / "intentions", self._next, self._run)
        from levada.runtime.spark.intentions import SparkLoop

        return SparkLoop(self._spark, self.root / "spark", self._next, self._run)

    def _plan_at_start(self, checkpoint: Checkpoint, last: Manifest | None) -> None:
        """The checkpoint's catalog with what has changed since: queries gone, new, or of another text."""
        facts = {n: StreamFacts(dict(c.schema) if c.tabular else None, c.unique) for n, c in self._streams.items()}
        if last is None:
            self._topology = Topology(facts)
            self._register_missing(MIN)
            return
        self._topology = checkpoint.load_topology(last.plan)
        for name in [n for n in facts if n not in self._topology.facts]:
            self._topology.facts[name] = facts[name]
            self._topology.streams = (*self._topology.streams, name)
        known = checkpoint.root / "plans" / "queries"
        texts = msgspec.json.decode(known.read_bytes()) if known.exists() else {}
        before = self._topology.version
        same = {n: _identity(r) for n, r in self._queries.items()}
        for name in list(self._topology.queries):
            if same.get(name) != texts.get(name):
                self._topology.remove(name)
                self._new_plan = True
        if set(self._queries) - set(self._topology.queries):
            self._new_plan = True
        if self._new_plan:
            self._register_missing(max((s.max_ts for s in last.streams.values()), default=MIN))
        else:
            from levada.runtime.context import load_plan

            assert self._epochs is not None, "the epochs are there"
            self._epochs.plan = load_plan(str(checkpoint.plan_path(before)))

    def _register_missing(self, seen: int) -> None:
        """Adds queries that are not in the catalog yet, each from the largest event time of its streams; seals the plan."""
        assert self._topology is not None and self._checkpoint is not None and self._epochs is not None, "started"
        records = self._checkpoint.last.streams if self._checkpoint.last else {}
        for name, registered in self._queries.items():
            if name not in self._topology.queries:
                of = [records[w.stream].max_ts for w in registered.query.windows if w.stream in records]
                latest = max(of, default=MIN)
                start = latest + 1 if latest > MIN else MIN
                self._topology.add(name, registered.query, start, empty_reports=registered.options.empty_reports)
        plan = self._topology.seal()
        self._checkpoint.save_plan(plan, self._topology)
        texts = {n: _identity(r) for n, r in self._queries.items()}
        (self.root / "plans" / "queries").write_bytes(msgspec.json.encode(texts))
        self._epochs.use(plan)
        self._new_plan = False

    def _after_end(self, checkpoint: Checkpoint, sourcing: Sourcing, last: Manifest) -> None:
        """A checkpoint whose streams have ended: what is missing is published; new data are refused."""
        for name, source in sourcing.sources.items():
            source.check_grown(last.positions.get(name, {}))
        self.note = "This checkpoint had ended; its last results are published."

    def _plan_changed(self) -> None:
        self._new_plan = True
        if self._loop is not None:
            self._loop.wake()

    def _next(self, last: str | None) -> str | None:
        """The loop's question: what comes next? Under backlog at once, else not before the least interval is over."""
        assert self._epochs is not None, "started"
        with self._changed:
            if self._new_plan and not self._epochs.last.ended:
                self._register_missing(MIN)
        now = time.monotonic() * 1000
        full = self._epochs.sourcing.once or self._full
        if not full and now - self._last_start < self._interval:
            return None
        intention = self._epochs.intend()
        if intention is None:
            if self._over():
                self._loop.request_stop()
            return None
        self._last_start = now
        self._full = sum(r.elements for r in intention.references) >= self._epoch_rows // 2
        return msgspec.json.encode(intention).decode()

    _full = False
    _once = False

    def _over(self) -> bool:
        """With ``once``: whether everything is read and published."""
        assert self._epochs is not None, "started"
        if not self._once:
            return False
        last = self._epochs.last
        if last.ended:
            return True
        return self._epochs.sourcing.keep_open and not self._epochs.sourcing.unread(last.positions)

    def _run(self, text: str) -> None:
        assert self._epochs is not None, "started"
        self._epochs.run(msgspec.json.decode(text, type=Intention))

    def _publish(self, manifest: Manifest) -> None:
        assert self._publication is not None, "started"
        self._publication.publish(manifest)
        for tell in list(self._on_epoch):
            tell(manifest)

    def await_end(self, timeout: float | None = None) -> bool:
        """Waits until the epochs end (``once``, or ``stop`` from elsewhere); raises what made them fail."""
        if self._loop is None:
            return True
        ended: bool = self._loop.await_end(timeout)
        if ended:
            self._raise()
        return ended

    def _raise(self) -> None:
        failure = self._loop.failure
        if failure is None:
            return
        if isinstance(failure, LevadaError):
            raise failure
        raise EngineError(f"The engine stopped in epoch {self._epoch() + 1}: {failure}") from failure

    def _epoch(self) -> int:
        return self._epochs.last.epoch if self._epochs is not None else 0

    def stop(self, timeout: float | None = None) -> None:
        """Stops after the current epoch, and gives everything free. Results stay readable until ``close``."""
        if self._loop is not None:
            self._loop.stop(timeout)

    def close(self) -> None:
        """Stops, and removes a temporary checkpoint."""
        self.stop()
        self._close()

    def _close(self) -> None:
        if self._own_session and self._spark:
            from levada.runtime.spark.session import stop_session

            stop_session(self._spark)
            self._spark, self._own_session = None, False
        if self._checkpoint is not None:
            self._checkpoint.close(delete=self._temporary)
            self._checkpoint = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- looking --

    def progress(self) -> Progress:
        """Where the engine is: epochs, elements, results, watermarks, and which stream holds queries back."""
        last = self._epochs.last if self._epochs is not None else Manifest(0, 0)
        w = {n: s.watermark for n, s in last.streams.items()}
        open_ = {n: v for n, v in w.items() if v < MAX}
        holder = min(open_, key=lambda n: open_[n]) if len(w) > 1 and open_ else None
        elements = sum(s.elements for s in last.streams.values())
        results = sum(n for n, _ in last.totals.values())
        return Progress(last.epoch, elements, results, time.monotonic() - self._started, w, holder)

    def on_epoch(self, tell: Callable[[Manifest], None]) -> None:
        """Calls ``tell`` with the manifest of every epoch, after its publication."""
        self._on_epoch.append(tell)

    def last_manifest(self) -> Manifest | None:
        """The last epoch of the checkpoint as it is on disk, before the engine starts."""
        folder = self.root / "manifests"
        epochs = sorted(int(p.name) for p in folder.iterdir() if p.name.isdigit()) if folder.is_dir() else []
        return read_manifest(folder / str(epochs[-1])) if epochs else None

    def queries(self) -> list[str]:
        """The names of the registered queries."""
        return list(self._queries)

    def records(self) -> dict[str, StreamRecord]:
        """Counts per stream since the beginning of the checkpoint."""
        return dict(self._epochs.last.streams) if self._epochs is not None else {}

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


def _identity(r: Registered) -> str:
    return f"{r.dialect}\n{r.options}\n{r.text}"


def _options(given: Mapping[str, Any]) -> QueryOptions:
    known = ("bounds", "t0", "report", "empty_reports")
    for key in given:
        if key not in known:
            raise UsageError(f"A query has no option {key}.", hint=near(key, known))
    values = {k: v for k, v in given.items() if v is not None}
    if "t0" in values:
        values["t0"] = parse_time(values["t0"])
    return QueryOptions(**values)


def _check_graphs(query: a.Query, known: set[str | None]) -> None:
    """Every static graph that a query names is there."""
    for name in sorted(_graphs(query.pattern) | set(query.graphs or ())):
        if name not in known:
            raise UnknownNameError(f"There is no static graph <{name}>.", hint=near(name, (g for g in known if g)))


def _graphs(node: a.Node) -> set[str]:
    if isinstance(node, a.Bgp):
        return {node.source.name} if isinstance(node.source, a.InGraph) and node.source.name else set()
    children: Sequence[a.Node] = [
        c for c in (getattr(node, n, None) for n in ("left", "right", "child")) if c is not None
    ]
    return {g for c in children for g in _graphs(c)}


def cores(master: str) -> int:
    """How many partitions a master's default is: its cores, for ``local`` masters; else those of this machine."""
    if master.startswith("local[") and master[6:-1].isdigit():
        return int(master[6:-1])
    return os.cpu_count() or 1


def _wall() -> int:
    return time.time_ns() // 1_000_000

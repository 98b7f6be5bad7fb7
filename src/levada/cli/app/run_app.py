"""Runs a whole application (an ``App``, from the command line or an app file) to its end or until a
signal stops it.
"""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from levada.checkpoint.checkpoint_folder import Checkpoint, catalog_of, check_free, newest_manifest
from levada.checkpoint.leadership.commit_log import (
    Driver,
    ElectionLostError,
    last_takeover,
    newest_number,
)
from levada.checkpoint.leadership.heartbeat import INTERVAL, LeaderWatch, Sign
from levada.checkpoint.manifest import Manifest
from levada.checkpoint.request_files import read_ledger
from levada.cli.app.app_file import STDOUT, App
from levada.cli.app.prepare_queries import queries_of
from levada.cli.app.signals import Stopped, stopped_by_signals
from levada.connectors.serialization.result_formats import (
    Format,
    check_fits,
    check_state,
    check_stdout,
)
from levada.connectors.sinks import Sink
from levada.connectors.sinks.dead_letter_files import Letter
from levada.connectors.sinks.file_sink import FileSink, Roll, hold_claim
from levada.core.checkpoint_files import facts_of
from levada.core.durable_files import make_folders
from levada.core.event_time import MAX, MIN, instant
from levada.core.integer_options import check_partitions
from levada.core.names import is_derived
from levada.engine.driver.epoch_pacing import wall_clock_ms
from levada.engine.engine import Engine
from levada.engine.query import Query
from levada.engine.query_request import note
from levada.engine.registry import Registry
from levada.engine.restart_checks import check_streams
from levada.engine.status.status import behind, counts_of, reasons
from levada.engine.status.summary import Progress, StreamCounts, Summary, unread
from levada.engine.suspended_queries import read_suspended
from levada.engine.watchdog import End, end_process, restart_process
from levada.errors import QueryFailureError, UsageError, near
from levada.runtime.publication.registered_query import Registered
from levada.runtime.publication.relation_files import StateFiles

# ``levada run --standby``: waits while an engine is at work, and takes over when that engine has
# been silent for a lease (docs/reliability.md#two-drivers).


LOOK = 0.1  # s between two looks at the heartbeat


def take_turn(
    engine: Engine, lease: float, stopped: Stopped, *, accept_changes: bool = False
) -> Checkpoint | None:
    """Returns the checkpoint when it is this process's turn; None if a signal stops it before. If
    several wait, one wins and the others wait for that one. Raises as ``await_turn``.
    """
    wait = partial(await_turn, accept_changes=accept_changes)
    while (at := wait(engine.root, engine._registry, lease, stopped)) is not None:
        with suppress(ElectionLostError):
            return engine._open(locked=False, behind=at)
    return None


def await_turn(
    root: Path, registry: Registry, lease: float, stopped: Stopped, *, accept_changes: bool = False
) -> int | None:
    """Waits until the engine on the checkpoint has left or been silent for ``lease`` seconds by
    this process's clock.

    Returns the number of the newest commit at that moment; None if ``stopped`` is set before.
    Raises ``UsageError`` or ``CheckpointError`` if this process could not continue that run.
    """
    make_folders(root)
    check_same(root, registry, accept_changes=accept_changes)
    _say_waiting(root, lease)
    watch, sign = LeaderWatch(root, lease, time.monotonic), _sign(root)
    signed = -INTERVAL
    try:
        while True:
            at = newest_number(root)  # a later commit is by an engine at work
            if watch.is_due():
                break
            if stopped.wait(LOOK):
                return None
            if time.monotonic() - signed >= INTERVAL:
                signed = time.monotonic()
                with suppress(OSError):  # invisible then, but it still takes over
                    sign.renew()
        check_same(root, registry, accept_changes=accept_changes)
        return at
    finally:
        sign.close()


def _sign(root: Path) -> Sign:
    return Sign(root, Driver(platform.node(), os.getpid(), wall_clock_ms()))


def _say_waiting(root: Path, lease: float) -> None:
    by = last_takeover(root)
    who = "an engine" if by is None else f"the engine ({by})"
    warnings.warn(
        f"This is a standby on the checkpoint {root}: it goes on when {who} has left, or has been "
        f"silent for {lease:g} s.",
        stacklevel=2,
    )


def check_same(root: Path, registry: Registry, *, accept_changes: bool = False) -> None:
    """Raises ``UsageError`` if the engine on the checkpoint has other queries, streams or
    conflicting options. Raises ``CheckpointError`` if the format of the checkpoint differs.
    """
    if not (root / "levada.json").exists():
        check_free(root)
        return
    facts, manifest = facts_of(root), newest_manifest(root)
    if manifest is None:
        return
    topology, known = catalog_of(root, facts, manifest.plan)
    ledger = read_ledger(root)
    for query in ledger.added_queries:
        known.pop(query.name, None)
    known |= ledger.dropped_queries | {
        n: s.identity for n, s in read_suspended(root).items() if not s.is_absent
    }
    identities = {name: query.identity for name, query in registry.queries.items()}
    _check("query", known, identities)
    came = {named.name for named in ledger.added_streams}
    kept = [name for name in topology.streams.names if not is_derived(name) and name not in came]
    streams = dict.fromkeys(
        [*kept, *(n for n, left in ledger.removed_streams.items() if left.declaration)], ""
    )
    _check("stream", streams, dict.fromkeys(registry.streams, ""))
    if not accept_changes:
        check_streams(root, manifest, registry.streams.values(), ())


def _check(kind: str, known: dict[str, str], identities: dict[str, str]) -> None:
    for name in sorted(known.keys() | identities.keys()):
        if name in identities and known.get(name) == identities[name]:
            continue
        if name not in known:
            what, hint = f"has a {kind} {name}, which that one has not", near(name, known)
        elif name not in identities:
            what, hint = f"lacks the {kind} {name}, which that one has", near(name, identities)
        else:
            what, hint = f"has another {kind} {name} than that one (its text or its options)", ""
        raise UsageError(f"A standby runs what the engine at work runs, and this one {what}.",
                         hint=hint)  # fmt: skip


def check_columns(app: App) -> None:
    """Raises ``UsageError`` for a stream whose columns only the checkpoint knows, since a standby
    cannot read it yet.
    """
    for config in app.streams:
        if config.undecided:
            raise UsageError(
                f"A standby must know the columns of the stream {config.name} before it has the "
                "checkpoint, and schema=auto looks for them there.",
                hint="Name them: levada sample FILE prints the option.",
            )


POLL = 0.2
EPOCH_WITH_FILES = 1000
"""The default least time in ms between the starts of two epochs if each epoch writes files."""
LETTERS = "levada-dead-letters.ndjson"


def run_app(
    app: App,
    *,
    once: bool,
    keep_open: bool,
    overwrite: bool,
    master: str | None = None,
    progress: Callable[[Progress], None] | None = None,
    on_results: Sink | None = None,
    on_manifest: Callable[[Engine, Manifest], None] | None = None,
    keep: str = "",
    published: bool = True,
    spark: Any = None,
    standby: float = 0.0,
    endless: bool = False,
    accept_changes: bool = False,
) -> Summary:
    """Runs until all input is read (``once``), or until SIGINT or SIGTERM, and returns a summary.

    Without a stream and without static data to reload, the run ends when its queries are answered,
    unless it is ``endless``. A second signal ends the process at once (``signals``).
    ``on_results``: the sink of ``--out -``; None publishes files below the option ``out``.
    ``keep``: how long results stay for other processes. ``published``: results also go to the sink
    or to files. ``standby``: seconds for which the engine on the checkpoint must be silent before
    this one starts; 0: starts at once. ``accept_changes``: as in ``Engine.start``.
    """
    form = Format(app.options.format)
    out = Path(app.options.out)
    roll = Roll(age=app.options.roll)
    terms, state = app.options.terms, app.options.shape == "state"
    files = (
        StateFiles(out, form, terms, roll=roll)
        if state
        else FileSink(out, form, roll, terms, claimed=True)
    )
    sink = (on_results or files) if published else None
    if standby:
        check_columns(app)
    end = restart_process if endless else end_process
    engine = _engine(app, sink, master or "local[*]", spark, keep, end=end)
    began, cpu = time.monotonic(), cpu_seconds()
    temporary = engine.root if engine.temporary else None
    with stopped_by_signals(temporary) as stopped, ExitStack() as held, engine:
        queries = _set_up_engine(engine, app, form)
        if on_manifest is not None:
            engine._on_epoch(lambda manifest: on_manifest(engine, manifest))
        engine._check_start(once=once)
        checkpoint = _open(engine, standby, stopped, accept_changes=accept_changes)
        if checkpoint is None:
            return Summary(note="It has waited as a standby, and was stopped.")
        _name_outputs(app, queries)
        before = checkpoint.last
        if on_results is None and published:
            owner, alone = checkpoint.facts.id, not standby
            held.enter_context(hold_claim(out, owner, overwrite=overwrite, alone=alone))
        ends = once or not (endless or _waits_for_input(app, engine.root))
        engine.start(once=ends, keep_open=keep_open, accept_changes=accept_changes)
        while not engine.await_end(POLL):
            if progress is not None:
                progress(engine.progress())
            if stopped.is_set():
                engine.stop()
        if progress is not None:
            progress(engine.progress())
        totals = summary(engine, before, time.monotonic() - began, cpu_seconds() - cpu)
        unread = _unread(engine, app) if once else {}
        return replace(
            totals,
            dead_letter_path=_letters_folder(app, engine.root),
            unread_streams=unread,
            open_windows=_open_windows(app, totals) if once and keep_open else "",
        )


def _open_windows(app: App, totals: Summary) -> str:
    """Describes that windows are left open; "" if no element has come, or no query has windows."""
    read = [counts.watermark for counts in totals.streams.values() if MIN < counts.watermark < MAX]
    if not read:
        return ""
    until = f"Windows are left open at {instant(min(read))}."
    if app.options.checkpoint is None:
        return f"{until} Without --keep-open they report."
    return f"{until} The next run goes on with them; --close reports them and ends the streams."


def _open(
    engine: Engine, standby: float, stopped: Stopped, *, accept_changes: bool
) -> Checkpoint | None:
    """Opens the checkpoint, for a ``standby`` when it is its turn. Returns None if a signal stops
    it before.
    """
    if standby:
        return take_turn(engine, standby, stopped, accept_changes=accept_changes)
    return engine._open()


def _waits_for_input(app: App, root: Path) -> bool:
    """Returns whether input may arrive after the start."""
    again = bool(app.tables) or any(static.reload for static in app.static)
    return bool(app.streams) or again or bool(read_ledger(root).added_streams)


def _epoch(app: App) -> int | None:
    """Returns the least time between the starts of two epochs in ms; None: by their cost."""
    options = app.options
    if options.epoch is not None or options.delay or options.out == STDOUT:
        return options.epoch
    return EPOCH_WITH_FILES


def _engine(app: App, sink: Sink | None, master: str, spark: Any, keep: str, *, end: End) -> Engine:
    """Returns an engine with the application's options, without streams, data and queries."""
    return Engine(
        spark=spark,
        checkpoint=app.options.checkpoint,
        epoch=_epoch(app),
        epoch_rows=app.options.epoch_rows,
        delay=app.options.delay,
        max_rows=app.options.max_rows,
        limits=app.options.limits,
        memory=app.options.memory,
        partitions=check_partitions(app.options.partitions),
        slices=app.options.slice,
        place=app.options.place,
        checkpoint_mode=app.options.checkpoint_mode,
        balance=app.options.balance,
        sharing=app.options.sharing,
        join=app.options.join,
        regions=app.options.regions,
        master=master,
        sink=sink,
        letters=_letters(app),
        keep_results=False,
        ontology=app.options.ontology,
        keep=keep,
        watchdog=end,
        spark_conf=app.options.spark_conf,
        contexts=app.options.contexts,
    )


def _set_up_engine(engine: Engine, app: App, form: Format) -> dict[str, Query]:
    """Adds the application's streams, data and queries to the engine, and a check that results fit
    the format. Returns the queries by name.
    """
    for config in app.streams:
        said = config.max_future is not None
        stream = config if said else replace(config, max_future=app.options.max_future)
        engine.stream(config.name, stream)
    for static in app.static:
        engine.static(static.path, static.graph, static.format, reload=static.reload)
    if (letters := app.options.letters_to) is not None:
        engine.letters_to(letters.url, **letters.options)
    for table in app.tables:
        engine.table(table.name, table.source, **table.options)
    queries = {query.name: query for query in _register(engine, app)}
    for source in app.queries:
        registered = queries.get(source.name)
        if registered is None:
            continue
        with note(registered.name):
            registered._check_fits(form, state=app.options.shape == "state")
            engine._check_outputs(registered, [(to.url, to.options) for to in source.to])

    def fits(query: Registered, queries: int) -> None:
        with note(query.name):
            check_fits(form, query.name, query.query.form, query.query.output)
            if app.options.shape == "state":
                check_state(form, query.name, query.query.output)
        if app.options.out == STDOUT:
            check_stdout(form, queries)

    engine._fits = fits
    return queries


def _name_outputs(app: App, queries: Mapping[str, Query]) -> None:
    """Adds the outputs of queries. This opens the checkpoint, so a standby calls it when it takes
    over.
    """
    for source in app.queries:
        registered = queries.get(source.name)
        if registered is not None:
            with note(registered.name):
                for to in source.to:
                    registered.to(to.url, **to.options)


def _register(engine: Engine, app: App) -> list[Query]:
    """Registers the application's queries. Warns of a query on which Levada fails, and leaves it
    out.

    Raises ``QueryFailureError`` if no query is left.
    """
    asked = {each.name: each for each in queries_of(app)}
    while True:
        try:
            return engine.register_all(list(asked.values()))
        except QueryFailureError as error:
            names = [name for name in getattr(error, "__notes__", ()) if name in asked]
            if not names or len(asked) == 1:
                raise
            del asked[names[0]]
            warnings.warn(f"The query {names[0]} is not run: {error}", stacklevel=2)


def _unread(engine: Engine, app: App) -> dict[str, str]:
    """Returns the streams of which nothing was read on this checkpoint, with the reasons."""
    records = engine._records()
    reasons = {}
    for config in app.streams:
        record = records.get(config.name)
        if record is not None and not record.elements + record.late + record.cut:
            reasons[config.name] = unread(config.name, config.path, counts_of(record))
    return reasons


def _letters_folder(app: App, root: Path) -> str:
    """Returns the place of dead letters. Those of a temporary checkpoint are copied into one file
    of the working directory.
    """
    if app.options.out != STDOUT or app.options.checkpoint is not None:
        return str((_letters(app) or root) / Letter.DEAD)
    files = sorted((root / Letter.DEAD).glob("*.ndjson"))
    if not files:
        return ""
    try:
        with open(LETTERS, "wb") as kept:
            for path in files:
                kept.write(path.read_bytes())
    except OSError as error:
        return f"no file: {LETTERS} cannot be written ({error.strerror})"
    return LETTERS


def _letters(app: App) -> Path | None:
    return None if app.options.out == STDOUT else Path(app.options.out)


def cpu_seconds() -> float:
    """Returns the CPU seconds of this process and all below it, with the JVM and its workers."""
    total = 0.0
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def summary(engine: Engine, before: Manifest | None, wall: float, cpu: float) -> Summary:
    """Returns the summary of this run: the counts of the checkpoint less those at the start."""
    old, progress, status = engine._records_at(before), engine.progress(), engine.status()
    streams, backlog = {}, {name: counts.backlog for name, counts in status.streams.items()}
    for name, record in engine._records().items():
        was = old.get(name)
        streams[name] = StreamCounts(
            record.elements - (was.elements if was else 0),
            record.triples - (was.triples if was else 0),
            record.late - (was.late if was else 0),
            record.dead_letters - (was.dead_letters if was else 0),
            record.watermark,
            record.late_files - (was.late_files if was else 0),
            record.deleted_files - (was.deleted_files if was else 0),
            record.replaced_files - (was.replaced_files if was else 0),
            record.suspected_unit,
            tuple(record.dead_letter_reasons),
            late_cause=behind(record),
            missing_values=counts_of(record).missing_values,
            backlog=backlog.get(name),
        )
    input_streams = [streams[config] for config in engine.streams() if config in streams]
    publication = engine._publication
    return Summary(
        elements=sum(s.elements for s in input_streams),
        triples=sum(s.triples for s in input_streams),
        results=progress.results,
        reports=publication.reports,
        epochs=progress.epochs,
        late=sum(s.late for s in streams.values()),
        dead_letters=sum(s.dead_letters for s in streams.values()),
        query_results=engine._solutions(),
        streams=streams,
        wall_seconds=wall,
        cpu_seconds=cpu,
        blocking_stream=progress.blocking_stream,
        note=engine.note,
        no_result_reasons=reasons(status),
        unmatched_patterns={
            q.name: q.unmatched_patterns for q in status.queries if q.unmatched_patterns
        },
        all_runs=progress.all_runs,
        undelivered_outputs=tuple(o.undelivered for o in status.outputs if o.pending_reports),
    )

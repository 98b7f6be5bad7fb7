"""The run of one query of the shell: an engine in this process, over the available data or as data
arrive.

Each question has a new engine, since a query that joins a running engine sees only later data. An
engine costs some 30 ms, since kernels are loaded once. An interrupt ends the question and its
engine; printed rows remain.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from levada.cli.app.app_file import App
from levada.cli.app.prepare_queries import known_to, queries_of
from levada.connectors.serialization.serialize import Batch
from levada.connectors.sinks import Sink
from levada.engine.engine import Engine
from levada.engine.query_dependencies import makers_read
from levada.engine.query_pipeline import Prepared, prepare
from levada.engine.status.status import reasons
from levada.errors import LevadaError

EPOCH_ROWS = 100_000
"""The elements of an epoch: few, so that the first rows appear soon and an interrupt takes effect
soon.
"""
LOOK = 0.05  # s


def ask(app: App, name: str, sink: Sink, *, once: bool) -> tuple[bool, list[str]]:
    """Asks the query ``name`` of the application, ``once`` over the available data, else until an
    interrupt.

    Returns whether the query ended by itself, and remarks: elements that were set aside, and why
    there is no result. Raises ``LevadaError``.
    """
    heard = Heard(sink)
    engine = Engine(
        spark=False,
        sink=heard,
        keep_results=False,
        epoch_rows=EPOCH_ROWS,
        max_rows=app.options.max_rows,
        limits=app.options.limits,
        sharing=app.options.sharing,
        join=app.options.join,
        regions=app.options.regions,
        ontology=app.options.ontology,
    )
    try:
        _register_streams(engine, app, name)
        endless = bool(app.streams) or any(static.reload for static in app.static)
        with heard.until_interrupted():
            engine.start(once=once or not endless)
            while not engine.await_end(LOOK):
                heard.check()
        remarks = list(_remarks(engine, name))
    except KeyboardInterrupt:
        heard.over = True
        # its epoch may run for seconds: it ends in the background
        threading.Thread(target=engine.close, name="levada stopping", daemon=True).start()
        return False, []
    except BaseException:
        engine.close()
        raise
    engine.close()
    return True, remarks


class Heard:
    """A sink that drops batches after an interrupt."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.over = False

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """Passes a batch to the sink, unless an interrupt came before."""
        return [] if self.over else self._sink.publish(query, variables, epoch, batch)

    @contextmanager
    def until_interrupted(self) -> Iterator[None]:
        """Records Ctrl-C while it is active, since Python drops an exception in a finalizer."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def interrupt(number: int, frame: FrameType | None) -> None:
            self.over = True
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def check(self) -> None:
        """Raises ``KeyboardInterrupt`` after an interrupt."""
        if self.over:
            raise KeyboardInterrupt


def _register_streams(engine: Engine, app: App, name: str) -> None:
    """Adds the streams, static data and queries to the engine."""
    for config in app.streams:
        engine.stream(config.name, config)
    for static in app.static:
        engine.static(static.path, static.graph, static.format, reload=static.reload)
    _register(engine, app, name)


def _register(engine: Engine, app: App, name: str) -> None:
    """Registers a query and those that make its streams."""
    asked = {query.name: query for query in queries_of(app)}
    engine.register_all([asked[each] for each in needed_by(app, name)])


def needed_by(app: App, name: str) -> list[str]:
    """Returns the names of a query and of those that make its streams. Raises ``LevadaError`` for
    an error in the query.
    """
    if len(app.queries) == 1:
        return [name]
    known = known_to(app)
    prepared: dict[str, Prepared] = {}
    for asked in queries_of(app):
        query = prepare(asked, known)
        try:
            known.add_query(asked.name, query.algebra)
        except LevadaError:
            if asked.name == name:
                raise
            continue
        prepared[asked.name] = query
    needed, waiting = [], [name]
    while waiting:
        each = waiting.pop()
        if each not in needed and each in prepared:
            needed.append(each)
            waiting += makers_read(prepared[each].algebra, known)
    return needed


def _remarks(engine: Engine, name: str) -> Iterator[str]:
    for stream, record in engine._records().items():
        said = [
            f"{n:,} {what}"
            for n, what in ((record.late, "late"), (record.dead_letters, "dead"))
            if n
        ]
        if said:
            why = f": {record.dead_letter_reasons[0]}" if record.dead_letter_reasons else ""
            yield f"Set aside of {stream}: {', '.join(said)}{why}"
    if nothing := reasons(engine.status()).get(name):
        yield nothing

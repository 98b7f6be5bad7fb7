"""The shell: reads statements, runs them and shows answers until its input ends.

prompt_toolkit edits the input of a terminal; other input is read line by line without a prompt. An
error is a sentence, with the place in the text as in ``levada check``, and the shell continues.
Ctrl-C ends only the running query.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from rich.console import Console
from rich.text import Text

from levada.cli.app.app_file import App, QuerySource
from levada.cli.app.prepare_queries import known_to, queries_of
from levada.cli.cql_scripts import statements
from levada.cli.errors import message_of
from levada.cli.shell.commands import command
from levada.cli.shell.session import TABLE, Session
from levada.cli.shell.statements import is_command, query_of
from levada.cli.tables.answer_table import Answer
from levada.cli.tables.table_cells import grid, rows_of
from levada.cli.tables.watch_results import Watching
from levada.connectors.serialization.result_formats import Format
from levada.connectors.serialization.serialize import Batch
from levada.connectors.sinks import Sink
from levada.connectors.sinks.stdout_sink import StdoutSink
from levada.engine.engine import Engine
from levada.engine.name_resolution import makers_read
from levada.engine.query_pipeline import Prepared, prepare
from levada.engine.status.status import reasons
from levada.errors import LevadaError, QueryError

# The run of one query of the shell: an engine in this process, over the available data or as data
# arrive.
#
# Each question has a new engine, since a query that joins a running engine sees only later data. An
# engine costs some 30 ms, since kernels are loaded once. An interrupt ends the question and its
# engine; printed rows remain.


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


class Interactive:
    """The shell over a session. ``read`` returns the next whole statement or raises
    ``EOFError``.
    """

    def __init__(self, session: Session, console: Console, read: Callable[[], str]) -> None:
        self.session, self.console, self._read = session, console, read
        self.failed = False  # sets the exit code if input is a file

    def run(self) -> None:
        """Runs statements until the input ends."""
        while True:
            try:
                self.take(self._read())
            except EOFError:
                return
            except KeyboardInterrupt:
                continue

    def take(self, text: str) -> None:
        """Runs a statement and prints its errors. Raises ``EOFError`` at the end."""
        try:
            if is_command(text):
                command(self, text)
            elif text.strip():
                source = self.session.add_query(query_of(text, self.session.dialect))
                for one in statements(source):
                    self.ask(one, "once")
        except EOFError:
            raise
        except KeyboardInterrupt:
            self.say("stopped")
        except Exception as error:
            self.failed = True
            self._complain(error)

    def say(self, text: str) -> None:
        """Prints a line for the user."""
        self.console.print(Text(text), soft_wrap=True)

    def _complain(self, error: Exception) -> None:
        # without the query's name, which the shell has invented
        shown = str(error) if isinstance(error, QueryError) else message_of(error)
        self.console.print(Text(shown, style="red"), soft_wrap=True)

    def ask(self, source: QuerySource, how: str) -> None:
        """Asks a query: ``once``, or ``follow`` or ``watch`` it."""
        before = self.session.last
        self.session.last, self.session.answer = source, None
        try:
            self._ask(self.session.with_query(source), source, how)
        except QueryError:
            self.session.last = before
            raise

    def _ask(self, app: App, source: QuerySource, how: str) -> None:
        began = time.monotonic()
        if how == "watch":
            watching = Watching(
                self.console, {source.name: self.session.prefixes}, self.session.times
            )
            try:
                ask(app, source.name, watching, once=False)
            finally:
                watching.close()
            return
        if how == "follow":
            sink = Following(self) if self.session.form == TABLE else self._lines()
            ask(app, source.name, Only(source.name, sink), once=False)
            return
        answer = Answer(source.name)
        lines = None if self.session.form == TABLE else self._lines()
        sinks = (answer,) if lines is None else (answer, lines)
        ended, remarks = ask(app, source.name, Only(source.name, *sinks), once=True)
        self.session.answer = answer
        if lines is None and answer.rows:
            self.console.print(answer.table(self.session.times, self.session.prefixes))
        self._end(answer.summary(time.monotonic() - began), ended, remarks)

    def _end(self, summary: str, ended: bool, remarks: Sequence[str]) -> None:
        """Prints the remarks and the summary of an answer."""
        for remark in remarks:
            self.say(remark)
        self.console.print(Text(summary if ended else f"{summary}, stopped", style="dim"))

    def _lines(self) -> StdoutSink:
        sys.stdout.flush()
        form = Format(self.session.form)
        iso = self.session.times == "iso" and form not in (Format.NQ, Format.TRIG)
        return StdoutSink(form, sys.stdout.buffer, iso=iso and sys.stdout.isatty())


class Following:
    """A sink that shows each batch as a table."""

    def __init__(self, shell: Interactive) -> None:
        self._console, self._session = shell.console, shell.session

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """Prints a batch."""
        if len(batch.report):
            rows = rows_of(batch).tail(MOST_FOLLOWED)
            self._console.print(grid(rows, self._session.times, self._session.prefixes))
        return []


MOST_FOLLOWED = 1000
"""The most rows of a batch that are shown: the newest."""


class Only:
    """Sinks of one query; results of queries that make its streams are dropped."""

    def __init__(self, name: str, *sinks: Sink) -> None:
        self._name, self._sinks = name, sinks

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """Passes a batch of the query to all sinks."""
        if query == self._name:
            for sink in self._sinks:
                sink.publish(query, variables, epoch, batch)
        return []

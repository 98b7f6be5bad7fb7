"""The shell: reads statements, runs them and shows answers until its input ends.

prompt_toolkit edits the input of a terminal; other input is read line by line without a prompt. An
error is a sentence, with the place in the text as in ``levada check``, and the shell continues.
Ctrl-C ends only the running query.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import cast, get_args

import polars as pl
from rich.console import Console
from rich.text import Text

from levada.cli.app.app_file import App, QuerySource
from levada.cli.app.prepare_queries import known_to, queries_of
from levada.cli.cql_scripts import statements
from levada.cli.errors import message_of
from levada.cli.explain import explain
from levada.cli.shell.complete import STAGES
from levada.cli.shell.describe import look
from levada.cli.shell.session import TABLE, Session
from levada.cli.shell.statements import is_command, query_of
from levada.cli.tables.answer_table import Answer
from levada.cli.tables.table_cells import Times, grid, rows_of
from levada.cli.tables.watch_results import Watching
from levada.connectors.serialization.columnar_tables import arrow_table, table, table_bytes
from levada.connectors.serialization.encode_batch import records
from levada.connectors.serialization.result_formats import (
    HEADED,
    LINES,
    TABLES,
    Format,
    check_fits,
)
from levada.connectors.serialization.serialize import Batch, heading
from levada.connectors.serialization.typed_columns import typed_frame
from levada.connectors.sinks import Sink
from levada.connectors.sinks.stdout_sink import StdoutSink
from levada.core.durable_files import write_atomic
from levada.core.query_model import Form, Output
from levada.core.text_columns import join_lines
from levada.engine.engine import Engine
from levada.engine.name_resolution import makers_read
from levada.engine.query_pipeline import Prepared, prepare
from levada.engine.status.status import reasons
from levada.errors import LevadaError, QueryError, UsageError, near
from levada.language.dialects.detect import DIALECTS, dialect_of_ending

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
    for source in app.tables:
        engine.table(source.name, source.source, **source.options)
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


# The commands of the shell: lines that begin with a backslash. A command is a function of the shell
# and of the text after its name. The docstring is its help.


Command = Callable[[Interactive, str], None]


def _stream(shell: Interactive, argument: str) -> None:
    """NAME=PATH[,key=value...]: adds a stream as --stream does; levada sample FILE prints it"""
    shell.say(f"There is a stream {shell.session.add_stream(_require(argument, 'NAME=PATH'))}.")


def _static(shell: Interactive, argument: str) -> None:
    """FILE[,graph=IRI]: adds static RDF, as --static does"""
    shell.say(f"There are the triples of {shell.session.add_static(_require(argument, 'FILE'))}.")


def _table(shell: Interactive, argument: str) -> None:
    """NAME=PATH[,key=value...]: adds a static table, as --table does"""
    shell.say(f"There is a table {shell.session.add_table(_require(argument, 'NAME=PATH'))}.")


def _look(shell: Interactive, argument: str) -> None:
    """lists streams, their fields, elements and times, static data, queries"""
    for part in look(shell.session.app, shell.session.times):
        shell.console.print(part)


def _run(shell: Interactive, argument: str) -> None:
    """[NAME]: asks a query of the application, or the last one again"""
    shell.ask(_choose_query(shell, argument), "once")


def _follow(shell: Interactive, argument: str) -> None:
    """[NAME]: runs the last query, or the one of this name, as data arrive, until Ctrl-C"""
    shell.ask(_choose_query(shell, argument), "follow")


def _watch(shell: Interactive, argument: str) -> None:
    """[NAME]: the same as a table that is drawn anew"""
    shell.ask(_choose_query(shell, argument), "watch")


def _explain(shell: Interactive, argument: str) -> None:
    """[ast|algebra|optimized|physical|topology]: what becomes of the last query"""
    stage = _one_of(argument or "physical", STAGES)
    source = shell.session.the_last()
    for text in explain(shell.session.with_query(source), [source.name], stage, as_json=False):
        shell.say(text)


def _format(shell: Interactive, argument: str) -> None:
    """[table|ndjson|csv|tsv|nq|trig]: how answers are shown"""
    if argument:
        shell.session.form = _one_of(argument, (TABLE, *map(str, LINES)))
    shell.say(f"Answers are shown as {shell.session.form}.")


def _dialect(shell: Interactive, argument: str) -> None:
    """[auto|rspql|cqels|cqels2|csparql|sparqlstream|cql|stream]: the language of what is typed"""
    if argument:
        chosen = _one_of(argument, ("auto", *DIALECTS))
        shell.session.dialect = None if chosen == "auto" else chosen
    spoken = shell.session.dialect
    shell.say("Each text shows its dialect." if spoken is None else f"The dialect is {spoken}.")


def _times(shell: Interactive, argument: str) -> None:
    """[iso|ms]: how times are shown"""
    if argument:
        shell.session.times = cast(Times, _one_of(argument, get_args(Times)))
    shell.say(f"Times are shown as {shell.session.times}.")


def _save(shell: Interactive, argument: str) -> None:
    """FILE: the last answer (.ndjson, .csv, .tsv, .nq, .trig, .parquet, .arrow), or query (.rq)"""
    path = Path(os.path.expanduser(_require(argument, "FILE")))
    shell.say(f"{save(shell.session, path)} is in {path}.")


def _help(shell: Interactive, argument: str) -> None:
    """this help"""
    shell.say("A query ends with a semicolon at the end of a line, or with an empty line.")
    shell.say("Ctrl-C stops a query, Ctrl-D ends the shell.")
    width = max(map(len, COMMANDS))
    for name, command in COMMANDS.items():
        said = (command.__doc__ or "").strip()
        shell.say(f"  {name:<{width}}  {said}")


def _quit(shell: Interactive, argument: str) -> None:
    """ends the shell, as Ctrl-D does"""
    raise EOFError


COMMANDS: dict[str, Command] = {
    "\\d": _look,
    "\\stream": _stream,
    "\\static": _static,
    "\\table": _table,
    "\\run": _run,
    "\\follow": _follow,
    "\\watch": _watch,
    "\\explain": _explain,
    "\\format": _format,
    "\\dialect": _dialect,
    "\\times": _times,
    "\\save": _save,
    "\\?": _help,
    "\\q": _quit,
}


def command(shell: Interactive, text: str) -> None:
    """Runs the command of a line. Raises ``UsageError`` for an unknown command, and the errors of
    the command.
    """
    name, _, rest = text.strip().partition(" ")
    if name not in COMMANDS:
        raise UsageError(f"There is no command {name}.", hint=near(name, COMMANDS))
    COMMANDS[name](shell, rest.strip().removesuffix(";").strip())


def _require(argument: str, what: str) -> str:
    if not argument:
        raise UsageError(f"This command needs {what}.", hint="\\? tells what each takes.")
    return argument


def _one_of(word: str, words: tuple[str, ...]) -> str:
    if word not in words:
        raise UsageError(f"{word} is none of {', '.join(words)}.", hint=near(word, words))
    return word


def _choose_query(shell: Interactive, name: str) -> QuerySource:
    """Returns the query of this name, else the last one. Raises ``UsageError``."""
    if not name:
        return shell.session.the_last()
    known = {query.name: query for query in shell.session.app.queries}
    if shell.session.last is not None:
        known.setdefault(shell.session.last.name, shell.session.last)
    if name not in known:
        raise UsageError(f"There is no query {name}.", hint=near(name, known))
    return known[name]


# ``\save FILE``: the last answer in the format of the file's extension, or the last query's text.


_TEXTS = (".rq", ".sparql")


def save(session: Session, path: Path) -> str:
    """Writes the file; returns a name of its contents. Raises ``UsageError`` and ``SinkError``."""
    if path.suffix in _TEXTS or dialect_of_ending(path.suffix):
        write_atomic(path, session.the_last().text.rstrip().encode() + b"\n")
        return "The query"
    known = {f".{form}": form for form in (*LINES, *TABLES) if form != "json"}
    if path.suffix not in known:
        hint = f"Name a file that ends in {', '.join(known)}; of a query in .rq or .cql."
        raise UsageError(f"{path} does not say a format.", hint=hint)
    write_atomic(path, _content(session, known[path.suffix]))
    return "The answer"


def _content(session: Session, form: Format) -> bytes:
    """Returns the last answer in a format. Raises ``UsageError``."""
    answer = session.answer
    if answer is None:
        raise UsageError(
            "There is no answer to be saved.", hint="Ask a query first; \\follow keeps none."
        )
    batches = answer.batches
    if batches is None:
        hint = "Save the query, and run it with levada run --out DIR."
        raise UsageError(f"The answer has {answer.rows:,} rows, too many to be kept.", hint=hint)
    if not batches:
        raise UsageError("The last answer is empty.")
    first = batches[0]
    output = Output.RSTREAM if first.change is None else Output.RELATION
    check_fits(form, answer.query, first.form, output)
    if form in TABLES:
        frame, types = typed_frame(pl.concat(map(table, batches), how="vertical_relaxed"))
        return table_bytes(form, arrow_table(frame, types, answer.query))
    head = heading(form, answer.variables, first) if form in HEADED else b""
    assert form is not Format.NQ or first.form is Form.CONSTRUCT, "quads are of graphs"
    parts = [join_lines(records(form, answer.query, answer.variables, b)) for b in batches]
    return head + b"".join(parts)

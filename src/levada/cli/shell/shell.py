"""The shell: reads statements, runs them and shows answers until its input ends.

prompt_toolkit edits the input of a terminal; other input is read line by line without a prompt. An
error is a sentence, with the place in the text as in ``levada check``, and the shell continues.
Ctrl-C ends only the running query.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from levada.cli.app.app_file import App, QuerySource
from levada.cli.cql_scripts import statements
from levada.cli.errors import message_of
from levada.cli.shell.commands import command
from levada.cli.shell.run_query import ask
from levada.cli.shell.session import TABLE, Session
from levada.cli.shell.statements import is_command, query_of
from levada.cli.tables.answer_table import Answer
from levada.cli.tables.table_cells import grid, rows_of
from levada.cli.tables.watch_results import Watching
from levada.connectors.serialization.result_formats import Format
from levada.connectors.serialization.serialize import Batch
from levada.connectors.sinks import Sink
from levada.connectors.sinks.stdout_sink import StdoutSink
from levada.errors import QueryError


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

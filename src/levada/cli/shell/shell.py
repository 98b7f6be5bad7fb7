"""The shell: reads, asks, shows, until its input ends.

On a terminal what is typed is edited with prompt_toolkit; else lines are read as they are, without
a prompt. An error is a sentence, with the place in the text as ``levada check`` shows it, and the
shell goes on; Ctrl-C ends what is being asked, and nothing else.
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
    """The shell over a session; ``read`` gives what is typed next, whole, or raises
    ``EOFError``.
    """

    def __init__(self, session: Session, console: Console, read: Callable[[], str]) -> None:
        self.session, self.console, self._read = session, console, read
        self.failed = False  # something was wrong: what reads from a file ends so

    def run(self) -> None:
        """Until the input ends."""
        while True:
            try:
                self.take(self._read())
            except EOFError:
                return
            except KeyboardInterrupt:
                continue

    def take(self, text: str) -> None:
        """Does what is typed; what is wrong with it is told. Raises ``EOFError`` at the end."""
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
        """A line for the user."""
        self.console.print(Text(text), soft_wrap=True)

    def _complain(self, error: Exception) -> None:
        # the name that the shell gave a query says nothing to who has just typed it
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
        """What is to be said of an answer."""
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
        """Shows a batch."""
        if len(batch.report):
            rows = rows_of(batch).tail(MOST_FOLLOWED)
            self._console.print(grid(rows, self._session.times, self._session.prefixes))
        return []


MOST_FOLLOWED = 1000
"""Rows of a batch that are shown as they come: the newest."""


class Only:
    """Sinks of one query: what makers of its streams give is not for the user."""

    def __init__(self, name: str, *sinks: Sink) -> None:
        self._name, self._sinks = name, sinks

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """Gives a batch of the query to all of them."""
        if query == self._name:
            for sink in self._sinks:
                sink.publish(query, variables, epoch, batch)
        return []

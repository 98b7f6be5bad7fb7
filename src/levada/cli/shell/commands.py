"""The commands of the shell: lines that begin with a backslash.

A command is a function of the shell and of the text after its name. The docstring is its help.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, cast, get_args

import polars as pl
from rich.console import Console

from levada.cli.app.app_file import QuerySource
from levada.cli.explain import explain
from levada.cli.shell.complete import STAGES
from levada.cli.shell.describe import look
from levada.cli.shell.session import TABLE, Session
from levada.cli.tables.table_cells import Times
from levada.connectors.serialization.columnar_tables import arrow_table, table, table_bytes
from levada.connectors.serialization.encode_batch import records
from levada.connectors.serialization.result_formats import (
    HEADED,
    LINES,
    TABLES,
    Format,
    check_fits,
)
from levada.connectors.serialization.serialize import heading
from levada.connectors.serialization.typed_columns import typed_frame
from levada.core.atomic_file import write_atomic
from levada.core.query_model import Form, Output
from levada.core.text_columns import join_lines
from levada.errors import UsageError, near
from levada.language.dialects.detect import DIALECTS, dialect_of_ending

# ``\save FILE``: the last answer in the format of the file's extension, or the last query's
# text.


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


class Shell(Protocol):
    """The parts of the shell that commands use."""

    session: Session
    console: Console

    def ask(self, source: QuerySource, how: str) -> None:
        """Asks a query: ``once``, or ``follow`` or ``watch`` it."""

    def say(self, text: str) -> None:
        """Prints a line for the user."""


Command = Callable[[Shell, str], None]


def _stream(shell: Shell, argument: str) -> None:
    """NAME=PATH[,key=value...]: adds a stream as --stream does; levada sample FILE prints it"""
    shell.say(f"There is a stream {shell.session.add_stream(_require(argument, 'NAME=PATH'))}.")


def _static(shell: Shell, argument: str) -> None:
    """FILE[,graph=IRI]: adds static RDF, as --static does"""
    shell.say(f"There are the triples of {shell.session.add_static(_require(argument, 'FILE'))}.")


def _look(shell: Shell, argument: str) -> None:
    """lists streams, their fields, elements and times, static data, queries"""
    for part in look(shell.session.app, shell.session.times):
        shell.console.print(part)


def _run(shell: Shell, argument: str) -> None:
    """[NAME]: asks a query of the application, or the last one again"""
    shell.ask(_choose_query(shell, argument), "once")


def _follow(shell: Shell, argument: str) -> None:
    """[NAME]: runs the last query, or the one of this name, as data arrive, until Ctrl-C"""
    shell.ask(_choose_query(shell, argument), "follow")


def _watch(shell: Shell, argument: str) -> None:
    """[NAME]: the same as a table that is drawn anew"""
    shell.ask(_choose_query(shell, argument), "watch")


def _explain(shell: Shell, argument: str) -> None:
    """[ast|algebra|optimized|physical|topology]: what becomes of the last query"""
    stage = _one_of(argument or "physical", STAGES)
    source = shell.session.the_last()
    for text in explain(shell.session.with_query(source), [source.name], stage, as_json=False):
        shell.say(text)


def _format(shell: Shell, argument: str) -> None:
    """[table|ndjson|csv|tsv|nq|trig]: how answers are shown"""
    if argument:
        shell.session.form = _one_of(argument, (TABLE, *map(str, LINES)))
    shell.say(f"Answers are shown as {shell.session.form}.")


def _dialect(shell: Shell, argument: str) -> None:
    """[auto|rspql|cqels|cqels2|csparql|sparqlstream|cql]: the language of what is typed"""
    if argument:
        chosen = _one_of(argument, ("auto", *DIALECTS))
        shell.session.dialect = None if chosen == "auto" else chosen
    spoken = shell.session.dialect
    shell.say("Each text shows its dialect." if spoken is None else f"The dialect is {spoken}.")


def _times(shell: Shell, argument: str) -> None:
    """[iso|ms]: how times are shown"""
    if argument:
        shell.session.times = cast(Times, _one_of(argument, get_args(Times)))
    shell.say(f"Times are shown as {shell.session.times}.")


def _save(shell: Shell, argument: str) -> None:
    """FILE: the last answer (.ndjson, .csv, .tsv, .nq, .trig, .parquet, .arrow), or query (.rq)"""
    path = Path(os.path.expanduser(_require(argument, "FILE")))
    shell.say(f"{save(shell.session, path)} is in {path}.")


def _help(shell: Shell, argument: str) -> None:
    """this help"""
    shell.say("A query ends with a semicolon at the end of a line, or with an empty line.")
    shell.say("Ctrl-C stops a query, Ctrl-D ends the shell.")
    width = max(map(len, COMMANDS))
    for name, command in COMMANDS.items():
        said = (command.__doc__ or "").strip()
        shell.say(f"  {name:<{width}}  {said}")


def _quit(shell: Shell, argument: str) -> None:
    """ends the shell, as Ctrl-D does"""
    raise EOFError


COMMANDS: dict[str, Command] = {
    "\\d": _look,
    "\\stream": _stream,
    "\\static": _static,
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


def command(shell: Shell, text: str) -> None:
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


def _choose_query(shell: Shell, name: str) -> QuerySource:
    """Returns the query of this name, else the last one. Raises ``UsageError``."""
    if not name:
        return shell.session.the_last()
    known = {query.name: query for query in shell.session.app.queries}
    if shell.session.last is not None:
        known.setdefault(shell.session.last.name, shell.session.last)
    if name not in known:
        raise UsageError(f"There is no query {name}.", hint=near(name, known))
    return known[name]

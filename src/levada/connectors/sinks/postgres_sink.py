"""Publishes reports as rows of a PostgreSQL table: the results of an epoch and the position are a
transaction.

    levada_outputs   output, epoch, report, since, owner: a row for each output, in the database
    TABLE            as changes: report, change (of a relation), the variables
                     as state:   the variables; the rows that a relation has now, each by its key

The process that opens an output becomes its ``owner``, after the open transaction of the previous
one. A process that is no longer the owner writes nothing. A missing table is created, with the
types of ``columns=`` or of the first results: text where these have no common type. An existing
table receives values by its columns' types; ``report`` as an instant, or in ms. Rows are written by
COPY, from columns. docs/decisions/0032.

A connection on which the server is silent for too long is closed. Each time the limit doubles,
since a transaction may take longer than the limit.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

import polars as pl

from levada.connectors.config.postgres_url import check_url, first_line, library, quote_name
from levada.connectors.config.secret_reference import password_at, password_place
from levada.connectors.serialization.columnar_tables import table
from levada.connectors.serialization.decode_terms import plain_values
from levada.connectors.serialization.serialize import Batch
from levada.connectors.serialization.typed_columns import infer_values
from levada.connectors.serialization.unwritable_results import Unwritable
from levada.connectors.sinks.relation_changes import keys_of, net_changes, split_by_sign
from levada.connectors.sinks.transactional_sink import Piece, Position, skips_of
from levada.core.query_model import Form, Output
from levada.errors import (
    RefusedValueError,
    SinkError,
    SourceError,
    TargetAwayError,
    TargetTakenError,
    UsageError,
    near,
)

# Turns a batch into rows of a table, and the changes of a relation into changes of rows with a
# key.
#
#     rows_to_append   every solution a row: report (ms), change (+1, -1: of a relation), values
#     change_of        what an epoch makes of a relation: rows go, change, come; what goes and comes
#                      again within the epoch is nothing
#
# Values are those of CSV: an IRI, a lexical form, ``_:label``; unbound is null. U+0000, which
# PostgreSQL does not support, becomes U+FFFD. Cost: a few copies of the columns.


class Change(NamedTuple):
    """The changes of rows: ``go`` (the keys of deleted rows), ``change`` or ``come``."""

    kind: str
    rows: pl.DataFrame


def rows_to_append(batch: Batch) -> pl.DataFrame:
    """Returns the rows of a batch.

    >>> import numpy as np
    >>> rows_to_append(Batch(np.array([5]), columns={"x": pl.Series(['"a"@en'])})).rows()
    [(5, 'a')]
    """
    rows = table(batch)
    texts = [name for name in rows.columns if rows[name].dtype == pl.String]
    return rows.with_columns(_plain(rows[name]).alias(name) for name in texts)


def change_of(variables: Sequence[str], key: Sequence[str], batch: Batch) -> list[Change]:
    """Returns the changes of the rows of a table by a batch of changes. Raises
    ``UnfitResultError`` for two rows with one key.
    """
    net = net_changes(variables, batch)
    left, new = split_by_sign(key, net.with_columns(_plain(net[name]) for name in variables))
    names = list(variables)
    return [
        Change("go", left.join(new, on=list(key), how="anti").select(*key)),
        Change("change", new.join(left, on=list(key), how="semi").select(names)),
        Change("come", new.join(left, on=list(key), how="anti").select(names)),
    ]


def csv_of(rows: pl.DataFrame) -> bytes:
    """Encodes rows for COPY: an unquoted empty field is null, a quoted one the empty text."""
    return rows.write_csv(include_header=False, quote_style="non_numeric").encode()


def _plain(texts: pl.Series) -> pl.Series:
    values = plain_values(texts).alias(texts.name)
    return values.str.replace_all("\0", "\N{REPLACEMENT CHARACTER}", literal=True)


OUTPUTS = "levada_outputs"
_MAKING = 0x6C6576616461  # the advisory lock for the creation of tables
ANSWER = 10  # s until a server must accept a connection
SILENCE, LONGEST_SILENCE = 60.0, 3600.0  # s of silence after which a connection is closed
_PLAIN = ("report", "change")
_INSTANTS = ("timestamp with time zone", "timestamp without time zone")
TYPES = (
    "bigint", "boolean", "date", "double precision", "integer", "numeric", "text", "timestamp",
    "timestamptz",
)  # fmt: skip
_OF_KIND = {
    "integer": "numeric", "decimal": "numeric", "float": "double precision",
    "double": "double precision", "boolean": "boolean", "date": "date", "dateTime": "timestamptz",
}  # fmt: skip
_COMES_AGAIN = (
    "starting up", "shutting down", "recovery", "too many", "terminating", "slots", "not yet",
)  # fmt: skip


@dataclass
class PostgresTarget:
    """A table for the reports of one query. ``output``: its name among the outputs. ``key``: of the
    rows of a state, none of changes.
    """

    OPTIONS: ClassVar[tuple[str, ...]] = ("table", "as", "key", "columns", "lost", "password")

    query: str
    url: str
    table: tuple[str, ...]
    key: tuple[str, ...]
    password: str
    skips: bool
    output: str
    types: tuple[tuple[str, str], ...] = ()  # of columns of a table that is created
    interval_ms: int = 0
    _connection: Any = None
    _silence: float = 0.0  # s, for this connection
    _owner: str = ""
    _columns: tuple[str, ...] = ()  # of the table; () until it is read
    _instants: bool = False  # whether its reports are instants
    _before: Position | None = None
    unwritable: list[Unwritable] = field(default_factory=list)  # a text represents all results
    _begun: bool = False  # whether it has worked once: later errors are temporary
    _staged: set[str] = field(default_factory=set)

    @classmethod
    def from_url(
        cls, query: str, url: str, options: Mapping[str, Any], owner: str
    ) -> PostgresTarget:
        """Makes the target of a URL and its options. Raises ``UsageError``."""
        who = f"The output of {query}"
        check_url(who, url)
        shape = str(options.get("as") or "changes")
        key = keys_of(options.get("key"))
        skips = skips_of(who, options)
        state = shape == "state"
        for broken, message, hint in (
            (shape not in ("changes", "state"), f"as is changes or state, not {shape}.", ""),
            (state and not key, "a state needs a key.", "Say key=NAME, or key=NAME;NAME."),
            (bool(key) and not state, "a key is for as=state.", "Say as=state, too."),
            (state and skips, "of a state nothing may be left out.", "Leave lost=skip out."),
        ):
            if broken:
                raise UsageError(f"{who}: {message}", hint=hint)
        table = tuple(str(options.get("table") or query).split("."))
        password = _place(who, options["password"]) if options.get("password") else ""
        output = f"{owner}/{query}/{'.'.join(table)}"
        types = _types(who, options.get("columns"))
        return cls(query, url, table, key, password, skips, output, types)

    @property
    def name(self) -> str:
        """The URL, without user and parameters, and the table."""
        parts = urlsplit(self.url)
        return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}#{'.'.join(self.table)}"

    @property
    def whole(self) -> bool:
        """Whether all changes are needed: a state is the result of all."""
        return bool(self.key)

    def check(self, query: str, form: Form, output: Output, variables: tuple[str, ...]) -> None:
        """Raises ``UsageError`` if the table cannot represent the results of such a query."""
        who = f"The output of {query}"
        taken = next((name for name in variables if name in _PLAIN and not self.key), None)
        missing = next((name for name in self.key if name not in variables), None)
        for broken, message, hint in (
            (form is Form.ASK, "a table has rows, and ASK has none.", "Ask SELECT."),
            (
                self.whole and output is not Output.RELATION,
                f"its results are no relation ({output}): they have no state.",
                "Leave as=state out, or ask for the relation: CQL without Istream, Dstream or "
                "Rstream.",
            ),
            (missing is not None, f"there is no variable {missing} for the key.", ""),
            (taken is not None, f"the table has a column {taken} of its own.", "Rename it."),
        ):
            if broken:
                raise UsageError(f"{who}: {message}", hint=hint)

    # -- the transactions --

    def open(self, known: Position | None) -> Position | None:
        """Connects and becomes the owner of the output; returns its position."""
        self.close()
        with self._translated_errors():
            credentials = {"password": password_at(self.password)} if self.password else {}
            self._silence = self._silence or SILENCE
            self._connection = _with_timeout(library(), self._silence).connect(
                self.url, connect_timeout=ANSWER, application_name="levada", **credentials
            )
            self._owner = secrets.token_hex(8)
            with self._connection.transaction():
                # limits how long a disconnected driver keeps its locks
                self._run(f"SET idle_in_transaction_session_timeout = {SILENCE * 1000:.0f}")
                self._before = self._take(known)
        self._begun = True
        return self._before

    def _take(self, known: Position | None) -> Position | None:
        if self._lacks((OUTPUTS,)):
            self._run(
                f"CREATE TABLE IF NOT EXISTS {OUTPUTS} (output text PRIMARY KEY, epoch bigint NOT "
                "NULL, report bigint NOT NULL, since bigint NOT NULL, owner text NOT NULL)"
            )
        find = f"SELECT epoch, report, since FROM {OUTPUTS} WHERE output = %s FOR UPDATE"
        row = self._run(find, self.output).fetchone()
        if row is None and known is not None and known.epoch:
            raise self._lost_row_error()
        position = known or Position()
        if row is None:
            self._run(
                f"INSERT INTO {OUTPUTS} VALUES (%s, %s, %s, %s, %s)",
                self.output, position.epoch, position.report, position.since, self._owner,
            )  # fmt: skip
            return known
        self._run(f"UPDATE {OUTPUTS} SET owner = %s WHERE output = %s", self._owner, self.output)
        return Position(*row) if row[0] else known

    def write(self, piece: Piece) -> None:
        """Writes rows and position, in a transaction."""
        with self._translated_errors(), self._connection.transaction():
            position = piece.position
            done = self._run(
                f"UPDATE {OUTPUTS} SET epoch = %s, report = %s, since = %s "
                "WHERE output = %s AND owner = %s",
                position.epoch, position.report, position.since, self.output, self._owner,
            )  # fmt: skip
            if done.rowcount != 1:
                find = f"SELECT owner FROM {OUTPUTS} WHERE output = %s"
                if self._run(find, self.output).fetchone() is None:
                    raise self._lost_row_error()
                raise TargetTakenError(
                    f"Another engine writes the results of {self.query} to {self.name}, as the "
                    "same checkpoint's.",
                    hint="End one of the two, and start the other again: nothing is lost.",
                )
            if self.key:
                self._change(piece)
            else:
                self._append(piece)
        self._before, self._silence = piece.position, 0.0

    def _lost_row_error(self) -> SinkError:
        """Returns the error of an output whose row was deleted."""
        return SinkError(
            f"The database has lost how far {self.name} is: the row {self.output} of "
            f"{OUTPUTS} is gone.",
            hint="Bring it back, or name another table.",
        )

    def _append(self, piece: Piece) -> None:
        frame = rows_to_append(piece.batch)
        self._make(tuple(frame.columns), (), piece.batch)
        if self._instants:
            instants = pl.from_epoch("report", "ms").dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
            frame = frame.with_columns(instants)
        self._copy(self.table, frame.columns, csv_of(frame))

    def _change(self, piece: Piece) -> None:
        """Changes the rows of a state by their keys; deletes those of an earlier query of the
        name.
        """
        self._make(piece.query.variables, self.key, piece.batch)
        before = self._before
        if before is not None and before.since not in (0, piece.query.since):
            self._run(f"DELETE FROM {quote_name(self.table)}")
        change = change_of(piece.query.variables, self.key, piece.batch)
        same = " AND ".join(f"t.{quote_name((k,))} = s.{quote_name((k,))}" for k in self.key)
        for step in change:
            if step.rows.height:
                self._step(step, same)

    def _step(self, step: Change, same: str) -> None:
        """Deletes, changes, or inserts rows, through a table of this transaction."""
        table, columns = quote_name(self.table), step.rows.columns
        if step.kind == "come":
            self._copy(self.table, columns, csv_of(step.rows))
            return
        listed = ", ".join(quote_name((c,)) for c in columns)
        staged = f"levada_{step.kind}"
        if staged not in self._staged:  # once a connection, since each table adds to the catalogues
            text = f"SELECT {listed} FROM {table} LIMIT 0"
            self._run(f"CREATE TEMP TABLE {staged} ON COMMIT DELETE ROWS AS {text}")
            self._staged.add(staged)
        self._copy((staged,), columns, csv_of(step.rows))
        if step.kind == "go":
            done = self._run(f"DELETE FROM {table} t USING {staged} s WHERE {same}")
        else:
            others = [c for c in columns if c not in self.key] or [self.key[0]]
            sets = ", ".join(f"{quote_name((c,))} = s.{quote_name((c,))}" for c in others)
            done = self._run(f"UPDATE {table} t SET {sets} FROM {staged} s WHERE {same}")
        if done.rowcount != step.rows.height:
            raise SinkError(
                f"Rows of {self.name} are not there any more that Levada has written: somebody "
                "else has changed the table.",
                hint="Leave the table to Levada, and start anew with another one.",
            )

    # -- SQL --

    def _run(self, text: str, *values: object) -> Any:
        return self._connection.execute(text, values or None)

    def _is_there(self, table: tuple[str, ...]) -> bool:
        # FROM: a session sees the tables of others only after it opens one itself
        there = "SELECT to_regclass(%s) IS NOT NULL FROM pg_namespace LIMIT 1"
        row = self._run(there, quote_name(table)).fetchone()
        return bool(row[0])

    def _lacks(self, table: tuple[str, ...]) -> bool:
        """Whether a table must be created. Locks out other creators until this transaction ends:
        PostgreSQL lets one of two simultaneous ones fail, also with IF NOT EXISTS.
        """
        if self._is_there(table):
            return False
        self._run("SELECT pg_advisory_xact_lock(%s)", _MAKING)
        return not self._is_there(table)

    def _make(self, columns: tuple[str, ...], key: tuple[str, ...], batch: Batch) -> None:
        """Creates the table, unless it exists; checks that a state's table has its key."""
        if self._columns == columns:
            return
        if self._lacks(self.table):
            fixed = {"report": "timestamptz", "change": "smallint"} if not key else {}
            kinds = {**_inferred_types(batch), **dict(self.types), **fixed}
            made = [f"{quote_name((c,))} {kinds.get(c, 'text')}" for c in columns]
            listed = ", ".join(quote_name((k,)) for k in key)
            made += [f"PRIMARY KEY ({listed})"] if key else []
            self._run(f"CREATE TABLE {quote_name(self.table)} ({', '.join(made)})")
        elif key:
            self._check_key(key)
        self._instants = not key and self._type_of("report") in _INSTANTS
        self._columns = columns

    def _type_of(self, column: str) -> str:
        """Returns the type of a column of the table, "" if there is none."""
        row = self._run(
            "SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = to_regclass(%s) "
            "AND attname = %s AND NOT attisdropped",
            quote_name(self.table), column,
        ).fetchone()  # fmt: skip
        return str(row[0]) if row else ""

    def _check_key(self, key: tuple[str, ...]) -> None:
        indexes = self._run(
            "SELECT array_agg(a.attname::text) FROM pg_index i JOIN pg_attribute a ON a.attrelid = "
            "i.indrelid AND a.attnum = ANY(i.indkey) WHERE i.indrelid = to_regclass(%s) AND "
            "i.indisunique GROUP BY i.indexrelid",
            quote_name(self.table),
        ).fetchall()
        if not any(set(names) == set(key) for (names,) in indexes):
            raise SinkError(
                f"The table {'.'.join(self.table)} has no unique index of {', '.join(key)}.",
                hint="Make one, or leave it to Levada to make the table.",
            )

    def _copy(self, table: tuple[str, ...], columns: list[str], data: bytes) -> None:
        listed = ", ".join(quote_name((c,)) for c in columns)
        text = f"COPY {quote_name(table)} ({listed}) FROM STDIN (FORMAT csv)"
        with self._connection.cursor() as cursor, cursor.copy(text) as copy:
            copy.write(data)

    def close(self) -> None:
        """Closes the connection; an open transaction is rolled back."""
        connection, self._connection, self._columns = self._connection, None, ()
        self._staged.clear()
        if connection is not None:
            with suppress(Exception):
                connection.close()

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Turns errors of psycopg into errors for users."""
        try:
            yield
        except SourceError as error:  # no password; temporary if it has worked once
            kind = TargetAwayError if self._begun else SinkError
            raise kind(error.message, hint=error.hint) from error
        except library().Error as error:
            self._columns = ()  # the transaction that created the table was rolled back
            if isinstance(error, TimeoutError):
                self._silence = min(2 * self._silence, LONGEST_SILENCE)
            why = first_line(error)
            text = f"The results of {self.query} cannot be written to {self.name}: {why}."
            away = isinstance(error, library().OperationalError) and _comes_again(error)
            if self._begun or away:  # data must not end the engine
                refused = isinstance(error, library().DataError | library().IntegrityError)
                raise (RefusedValueError if refused else TargetAwayError)(text) from None
            raise SinkError(text, hint="Mend that and start again: nothing is lost.") from None


def _with_timeout(psycopg: Any, silence: float) -> Any:
    """Returns psycopg's connection class with an error when the server is silent for so many
    seconds.
    """

    class SilentError(psycopg.OperationalError, TimeoutError):  # type: ignore[misc]
        pass

    def listen(steps: Generator[int, int, Any]) -> Generator[int, int, Any]:
        heard = time.monotonic()
        try:
            wish = next(steps)
            while True:
                ready = yield wish
                if ready:
                    heard = time.monotonic()
                elif time.monotonic() - heard > silence:
                    raise SilentError(f"it has not answered for {silence:g} s")
                wish = steps.send(ready)
        except StopIteration as end:
            return end.value

    class Bounded(psycopg.Connection):  # type: ignore[misc]
        def wait(self, steps: Generator[int, int, Any], *arguments: Any, **more: Any) -> Any:
            return super().wait(listen(steps), *arguments, **more)

    return Bounded


def _comes_again(error: Any) -> bool:
    """Whether a failure to connect, or to continue, may be temporary: not a wrong password."""
    text = str(error)
    return "FATAL" not in text or any(word in text for word in _COMES_AGAIN)


def _inferred_types(batch: Batch) -> dict[str, str]:
    """Returns the types of columns whose values all have one. Whole numbers may have any size."""
    types = {}
    for name, column in batch.columns.items():
        typed = infer_values(column.cast(pl.String))
        dtype = typed.values.dtype
        if isinstance(dtype, pl.Datetime) and dtype.time_zone is None:
            types[name] = "timestamp"
        elif typed.kind in _OF_KIND and dtype != pl.String:
            types[name] = _OF_KIND[typed.kind]
    return types


def _types(who: str, value: Any) -> tuple[tuple[str, str], ...]:
    """Parses ``n bigint;t double precision``. Raises ``UsageError``.

    >>> _types("q", "n bigint; t double precision")
    (('n', 'bigint'), ('t', 'double precision'))
    """
    types = []
    for text in filter(None, (part.strip() for part in str(value or "").split(";"))):
        name, _, kind = text.partition(" ")
        if kind.strip() not in TYPES:
            message = f"{who}: columns: {text} has no type that is known."
            raise UsageError(message, hint=near(kind.strip(), TYPES))
        types.append((name, kind.strip()))
    return tuple(types)


def _place(who: str, value: Any) -> str:
    try:
        return password_place(value)
    except UsageError as error:
        raise UsageError(f"{who}: {error.message}", hint=error.hint) from None

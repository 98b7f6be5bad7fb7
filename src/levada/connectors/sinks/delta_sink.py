"""Publishes reports as rows of a Delta table: rows and position are one commit of its log.

    delta://PATH, delta://s3://BUCKET/PATH
    as changes   report, sign, number, the variables (``connectors.serialization.report_tables``)
    as state     the variables; the rows that a relation has now, each by its key

The position is stored as application transactions (Delta's ``txn`` actions), whose versions are the
epoch, the report and the plan version. A writer also commits a random number, ``owner``. A commit
that names an application fails if another commit has named it since the table was read. So of two
engines on copies of a checkpoint, the older one is shut out. Commits of others, such as compaction,
do not disturb.

The first results make the table; their types are its types. A killed writer may leave data files
without a commit, which ``vacuum`` deletes. Cost: a commit is a file of the log and a data file, so
``every`` gathers the reports of an interval. docs/decisions/0135.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar

import polars as pl
import pyarrow as pa

from levada.connectors.config.stream_options import parse_flag
from levada.connectors.serialization.report_tables import (
    Column,
    UnfitValueError,
    arrow_schema,
    choose_variables,
    columns_of,
    inferred_type,
    parse_columns,
    report_table,
    result_terms,
    result_variables,
    term_table,
)
from levada.connectors.serialization.unwritable_results import Unwritable
from levada.connectors.sinks.relation_changes import TIMES, keys_of, net_changes, split_by_sign
from levada.connectors.sinks.transactional_sink import Piece, Position, skips_of
from levada.core.distribution import install_command
from levada.core.event_time import parse_duration
from levada.core.query_model import Form, Output
from levada.errors import SinkError, TargetAwayError, TargetTakenError, UsageError, near

SCHEME = "delta://"
_TYPES = {
    "long": "bigint", "double": "double", "boolean": "boolean", "date": "date",
    "timestamp": "timestamp", "timestamp_ntz": "timestamp_ntz", "string": "string",
}  # fmt: skip
_NEW_COLUMNS = ("stop", "add")
_SIGN = "levada_sign"  # in the source of a merge: -1 for a row that goes
_FULL = ("no space left", "disk quota exceeded", "os error 28")
_FORBIDDEN = ("permission denied", "accessdenied", "invalidaccesskeyid", "signaturedoesnotmatch")
_NO_BUCKET = "nosuchbucket"
_TRANSIENT = ("generic s3 error", "error performing", "timed out", "connection")

# faults of Levada: waiting for the table would hide them
_FAULTS_OF_CODE = (AssertionError, AttributeError, LookupError, NameError, TypeError)


@dataclass
class DeltaTarget:
    """A Delta table for the reports of one query. ``application``: the id of its positions.
    ``key``: of the rows of a state, none of changes. ``columns``: types by variable.
    """

    OPTIONS: ClassVar[tuple[str, ...]] = (
        "as", "key", "columns", "datatypes", "every", "new_columns", "lost",
    )  # fmt: skip

    query: str
    path: str
    application: str
    key: tuple[str, ...]
    columns: Mapping[str, str]
    datatypes: bool
    adds_columns: bool
    interval_ms: int
    skips: bool
    _table: Any = None  # None: it does not exist
    _owner: int = 0
    _variables: tuple[str, ...] = ()
    _begun: bool = False  # whether it has worked once: later errors are temporary
    _before: Position | None = None
    unwritable: list[Unwritable] = field(default_factory=list)  # a text represents all results

    @classmethod
    def from_url(cls, query: str, url: str, options: Mapping[str, Any], owner: str) -> DeltaTarget:
        """Makes the target of a URL and its options. Raises ``UsageError``."""
        who = f"The output of {query}"
        path = url.removeprefix(SCHEME)
        if not path.strip("/"):
            raise UsageError(f"{who}: the URL names no table.", hint="Say delta://PATH.")
        if "://" not in path:
            path = os.path.abspath(os.path.expanduser(path))
        shape = str(options.get("as") or "changes")
        key = keys_of(options.get("key"))
        skips = skips_of(who, options)
        new_columns = str(options.get("new_columns") or "stop")
        state = shape == "state"
        for broken, message, hint in (
            (shape not in ("changes", "state"), f"as is changes or state, not {shape}.", ""),
            (state and not key, "a state needs a key.", "Say key=NAME, or key=NAME;NAME."),
            (bool(key) and not state, "a key is for as=state.", "Say as=state, too."),
            (state and skips, "of a state nothing may be left out.", "Leave lost=skip out."),
            (
                new_columns not in _NEW_COLUMNS,
                f"new_columns is stop or add, not {new_columns}.",
                near(new_columns, _NEW_COLUMNS),
            ),
        ):
            if broken:
                raise UsageError(f"{who}: {message}", hint=hint)
        columns = parse_columns(str(options["columns"])) if options.get("columns") else {}
        return cls(
            query, path, f"levada/{owner}/{query}", key, columns,
            parse_flag(options.get("datatypes") or "false"), new_columns == "add",
            parse_duration(str(options.get("every") or "0ms")), skips,
        )  # fmt: skip

    @property
    def name(self) -> str:
        """The URL of the table."""
        return f"{SCHEME}{self.path}"

    @property
    def whole(self) -> bool:
        """Whether all changes are needed: a state is the result of all."""
        return bool(self.key)

    def check(self, query: str, form: Form, output: Output, variables: tuple[str, ...]) -> None:
        """Raises ``UsageError`` if the table cannot represent the results of such a query."""
        who = f"The output of {query}"
        library()
        self._variables = result_variables(form, variables)
        chosen = choose_variables(query, self.columns, self._variables)
        missing = next((name for name in self.key if name not in chosen), None)
        for broken, message, hint in (
            (
                self.whole and output is not Output.RELATION,
                f"its results are no relation ({output}): they have no state.",
                "Leave as=state out, or ask for the relation: CQL without Istream, Dstream or "
                "Rstream.",
            ),
            (missing is not None, f"there is no variable {missing} for the key.", ""),
        ):
            if broken:
                raise UsageError(f"{who}: {message}", hint=hint)

    # -- the commits --

    def open(self, known: Position | None) -> Position | None:
        """Opens the table and becomes the owner of the output; returns its position."""
        self.close()
        self._owner = 1 + secrets.randbits(62)
        with self._translated_errors():
            self._table = self._load()
            position = None if self._table is None else self._stored_position()
            if position is None and known is not None and known.epoch:
                raise SinkError(
                    f"{self.name} has lost how far it is: it is not the table that Levada wrote.",
                    hint="Bring it back, or name another table.",
                )
            if self._table is not None:
                if self._variables:
                    self._check_schema(self._columns(None))
                self._commit_nothing(position or Position())
        self._before = position or known
        self._begun = True
        return self._before

    def _load(self) -> Any:
        delta = library()
        try:
            return delta.DeltaTable(self.path, storage_options=self._storage_options)
        except delta.exceptions.TableNotFoundError:
            return None

    @property
    def _storage_options(self) -> dict[str, str]:
        """The options of an object store that deltalake does not find in the environment."""
        endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
        return {"allow_http": "true"} if endpoint.startswith("http://") else {}

    def _stored_position(self) -> Position | None:
        epoch, report, since = (
            self._table.transaction_version(f"{self.application}/{part}")
            for part in ("epoch", "report", "since")
        )
        return Position(epoch, report, since) if epoch else None

    def write(self, piece: Piece) -> None:
        """Writes rows and position, in a commit."""
        with self._translated_errors():
            self._variables = result_variables(piece.query.form, piece.query.variables)
            terms = result_terms(piece.batch)
            columns = self._columns(terms)
            rows = None if self.key else report_table(piece.batch, columns)
            if self._table is None:
                self._create(columns)
            self._table.update_incremental()
            if self._table.transaction_version(f"{self.application}/owner") not in (
                None,
                self._owner,
            ):
                raise self._taken_error()
            self._check_schema(columns)
            if rows is None:
                self._merge(piece, columns)
            else:
                self._append(rows, piece.position)
        self._before = piece.position

    def _create(self, columns: Sequence[Column]) -> None:
        library().DeltaTable.create(
            self.path, arrow_schema(columns), "ignore", storage_options=self._storage_options
        )
        self._table = self._load()

    def _append(self, rows: pa.Table, position: Position) -> None:
        if not rows.num_rows:
            self._commit_nothing(position)
            return
        names = [f.name for f in self._table.schema().fields]
        library().write_deltalake(
            self._table,
            rows,
            mode="append",
            schema_mode=None if names == rows.column_names else "merge",
            commit_properties=self._properties(position),
        )

    def _merge(self, piece: Piece, columns: Sequence[Column]) -> None:
        """Deletes, changes and inserts the rows of a state by their keys, in one commit. Deletes
        the rows of an earlier query of the name.
        """
        source = self._source(piece, columns)
        before = self._before
        anew = before is not None and before.since not in (0, piece.query.since)
        if not source.num_rows and not anew:
            self._commit_nothing(piece.position)
            return
        same = " AND ".join(f"t.{_quote(k)} = s.{_quote(k)}" for k in self.key)
        values = {_quote(c.name): f"s.{_quote(c.name)}" for c in columns}
        merge = self._table.merge(
            source, predicate=same, source_alias="s", target_alias="t",
            merge_schema=self.adds_columns, commit_properties=self._properties(piece.position),
        )  # fmt: skip
        merge = (
            merge.when_matched_delete(f"s.{_SIGN} < 0")
            .when_matched_update(updates=values)
            .when_not_matched_insert(updates=values, predicate=f"s.{_SIGN} > 0")
        )
        (merge.when_not_matched_by_source_delete() if anew else merge).execute()
        self._table.update_incremental()

    def _source(self, piece: Piece, columns: Sequence[Column]) -> pa.Table:
        """Returns the rows that go or come, with their sign; a row that changes comes."""
        net = net_changes(piece.query.variables, piece.batch)
        typed = pl.from_arrow(term_table(net, columns))
        assert isinstance(typed, pl.DataFrame), "a table is a frame"
        left, new = split_by_sign(self.key, typed.with_columns(net[TIMES]))
        gone = left.join(new, on=list(self.key), how="anti")
        source = pl.concat([gone, new]).rename({TIMES: _SIGN})
        schema = arrow_schema(columns).append(pa.field(_SIGN, pa.int64()))
        return source.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema)

    def _commit_nothing(self, position: Position) -> None:
        """Commits a position without rows."""
        self._table.create_write_transaction(
            [], "append", self._table.schema(), commit_properties=self._properties(position)
        )
        self._table.update_incremental()

    def _properties(self, position: Position) -> Any:
        delta = library()
        versions = {
            "owner": self._owner, "epoch": position.epoch, "report": position.report,
            "since": position.since,
        }  # fmt: skip
        return delta.CommitProperties(
            app_transactions=[
                delta.Transaction(f"{self.application}/{part}", version)
                for part, version in versions.items()
            ]
        )

    # -- columns --

    def _columns(self, terms: pl.DataFrame | None) -> tuple[Column, ...]:
        """Returns the columns of the query's rows: with the types of the user, else those of the
        table, else those of the terms.
        """
        chosen = choose_variables(self.query, self.columns, self._variables)
        words = {name: type_ for name, type_ in self.columns.items() if type_}
        types = {**self._table_types(), **words}
        if terms is not None:
            open_names = (name for name in chosen if name not in types)
            types |= {name: inferred_type(terms[name]) for name in open_names}
        columns = columns_of(chosen, types, datatypes=self.datatypes)
        return columns[3:] if self.key else columns

    def _table_types(self) -> dict[str, str]:
        """Returns the types of the table's columns, in Levada's words."""
        if self._table is None:
            return {}
        types = {f.name: str(getattr(f.type, "type", f.type)) for f in self._table.schema().fields}
        return {
            name: _TYPES.get(type_, type_)
            for name, type_ in types.items()
            if type_ in _TYPES or type_.startswith("decimal")
        }

    def _check_schema(self, columns: Sequence[Column]) -> None:
        """Raises ``SinkError`` if the table cannot take rows of these columns."""
        fields = {f.name for f in self._table.schema().fields}
        types = self._table_types()
        for column in columns:
            if column.name not in fields and not self.adds_columns:
                raise SinkError(
                    f"{self.name} has no column {column.name}.",
                    hint="Say new_columns=add, or name another table.",
                )
            if column.name in fields and types.get(column.name) != column.type:
                raise SinkError(
                    f"The column {column.name} of {self.name} is not of the type {column.type}.",
                    hint="Name another table.",
                )

    def close(self) -> None:
        """Forgets the table."""
        self._table = None

    # -- errors --

    def _taken_error(self) -> TargetTakenError:
        return TargetTakenError(
            f"Another engine writes the results of {self.query} to {self.name}, as the same "
            "checkpoint's.",
            hint="End one of the two, and start the other again: nothing is lost.",
        )

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Turns errors of deltalake into errors for users."""
        try:
            yield
        except UnfitValueError as error:
            raise TargetAwayError(
                f"The results of {self.query} do not fit {self.name}: {error.message}",
                hint="Rewrite the table with another type (string represents all terms), or name "
                "another table.",
            ) from error
        except (TargetAwayError, TargetTakenError):
            raise
        except SinkError as error:
            if not self._begun or type(error) is not SinkError:
                raise
            raise TargetAwayError(error.message, hint=error.hint) from error
        except _FAULTS_OF_CODE:
            raise
        except Exception as error:  # deltalake raises plain exceptions, too
            raise self._translate(error) from error

    def _translate(self, error: Exception) -> SinkError:
        text = " ".join(str(error).split())
        low = text.lower().replace(" ", "")
        if "concurrenttransaction" in low:  # the next attempt finds the other owner
            self._raise_if_taken()
        if any(word.replace(" ", "") in low for word in _FULL):
            return TargetAwayError(
                f"The disk that holds {self.name} is full.",
                hint="Free some space: the output then goes on, and no result is lost.",
            )
        said = f"The results of {self.query} cannot be written to {self.name}"
        if _NO_BUCKET in low:
            return SinkError(f"{said}: there is no such bucket.", hint="Make it and start again.")
        forbidden = any(word.replace(" ", "") in low for word in _FORBIDDEN)
        away = isinstance(error, OSError) or any(w.replace(" ", "") in low for w in _TRANSIENT)
        why = f"{said}: {text[:300].rstrip('.')}."
        if self._begun or (away and not forbidden):
            return TargetAwayError(why)
        return SinkError(why, hint="Mend that and start again: nothing is lost.")

    def _raise_if_taken(self) -> None:
        table = self._load()
        if table is not None and table.transaction_version(f"{self.application}/owner") not in (
            None,
            self._owner,
        ):
            raise self._taken_error()


def library() -> ModuleType:
    """Imports deltalake. Raises a ``SinkError`` that explains how to install it."""
    try:
        import deltalake
        import deltalake.exceptions
    except ImportError as error:
        raise SinkError(
            "Delta tables need the package deltalake.", hint=f"Say {install_command('delta')}."
        ) from error
    module: ModuleType = deltalake
    return module


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

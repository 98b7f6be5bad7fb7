"""A query for each row of a table: the row's values replace the columns in the text.

    SELECT ?x FROM NAMED WINDOW <w> ON <e:s> [RANGE PT1M STEP PT1M]
    WHERE { WINDOW <w> { <http://e/{{sensor}}> <e:temp> ?x FILTER(?x > {{threshold}}) } }

A row's query is exactly that of its text, so results, restarts and errors are those of separate
queries. That they are planned once follows from the texts (``query_templates``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from levada.core.frozen import frozen
from levada.core.names import check_query_name
from levada.engine.query_request import QueryRequest
from levada.engine.templates.parameter_tables import Rows, table_of
from levada.engine.templates.template_columns import (
    parse_name_template,
    parse_text_template,
    places_of,
    without_columns,
)
from levada.errors import LevadaError, UsageError
from levada.language.dialects.detect import dialect_of
from levada.plan.logical.query_options import QueryOptions


@frozen
class RowQueryTemplate:
    """The text and the name of each row's query, with columns in them. With ``name`` "" the
    function ``free`` names the queries.
    """

    text: str
    name: str = ""
    dialect: str | None = None

    def make_requests(
        self, table: Rows, options: QueryOptions, free: Callable[[int], str]
    ) -> list[QueryRequest]:
        """Returns the queries of a table. Raises ``UsageError``, with row and column."""
        there = table_of(table)
        spoken = dialect_of(without_columns(self.text), self.dialect).name
        text, name = (
            parse_text_template(self.text, cql=spoken == "cql"),
            parse_name_template(self.name),
        )
        if not text.columns:
            raise UsageError(
                "The text names no column of the table.",
                hint="A column stands in it as {{column}}, as in FILTER(?v > {{threshold}}).",
            )
        columns = list(dict.fromkeys((*text.columns, *name.columns)))
        if not there.columns and not len(there.held):
            return []  # an empty list has no columns, either
        places_of(columns, there.columns)
        of_text, of_name = (places_of(x.columns, columns) for x in (text, name))
        requests: list[QueryRequest] = []
        for number, row in enumerate(there.rows(columns), 1):
            called = name.fill(row, of_name, number) if self.name else free(number)
            written = text.fill(row, of_text, number)
            requests.append(QueryRequest(written, called, self.dialect, options))
        _check_names(requests)
        return requests


def _check_names(batch: Sequence[QueryRequest]) -> None:
    """Raises ``UsageError`` unless the queries of all rows have different names."""
    rows: dict[str, int] = {}
    for number, asked in enumerate(batch, 1):
        with _of_row(number):
            check_query_name(asked.name)
        first = rows.setdefault(asked.name.casefold(), number)
        if first != number:
            raise UsageError(
                f"Rows {first} and {number} are both called {asked.name}.",
                hint="Say name= with a column that tells them apart, as in hot-{{sensor}}.",
            )


@contextmanager
def _of_row(number: int) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        raise UsageError(f"Row {number}: {error.message}", hint=error.hint) from None


@contextmanager
def name_failing_row(batch: Sequence[QueryRequest]) -> Iterator[None]:
    """Adds the row's number to an error about its query."""
    try:
        yield
    except LevadaError as error:
        notes = {*getattr(error, "__notes__", ())}
        for number, asked in enumerate(batch, 1):
            if asked.name in notes:
                error.add_note(f"row {number} of the table")
        raise

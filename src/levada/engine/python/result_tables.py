"""Results as values of Python's libraries: one table of texts, and its conversions.

A class with results implements ``_table``; the conversions follow from it. Terms are typed by
columns (``connectors.serialization.typed_columns``), or N-Triples texts with ``terms``. Cost: a
copy of the columns; ``to_dicts`` and ``to_rdflib`` make Python objects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from levada.connectors.serialization.columnar_tables import arrow_table
from levada.connectors.serialization.typed_columns import Typed, typed_frame
from levada.core.frozen import frozen
from levada.core.query_model import Form
from levada.engine.python.notebook import frame_html
from levada.engine.python.optional_imports import pandas_module, rdflib_module

if TYPE_CHECKING:
    import pandas as pd
    import rdflib
    import rdflib.query


@frozen
class Table:
    """The results as texts. Columns: ``report`` (ms; absent in the table of one report), a
    relation's ``change``, then the variables (ASK: ``boolean``; CONSTRUCT: ``subject``,
    ``predicate``, ``object``).
    """

    query: str
    form: Form
    texts: pl.DataFrame


class Tabular(ABC):
    """A base class for results, with their conversions."""

    __slots__ = ()

    @abstractmethod
    def _table(self) -> Table:
        """Returns the current results."""

    def to_polars(self, *, terms: bool = False) -> pl.DataFrame:
        """Returns a frame with a row for each solution (CONSTRUCT: triple), and one type for each
        column.

        ``terms``: N-Triples texts in place of values, and ``report`` in ms.
        """
        texts = self._table().texts
        return texts if terms else typed_frame(texts)[0]

    def to_arrow(self, *, terms: bool = False) -> pa.Table:
        """Returns the same as an Arrow table. The metadata of a field describes the type of its
        terms.
        """
        table = self._table()
        column_types: dict[str, Typed] = {}
        frame = table.texts
        if not terms:
            frame, column_types = typed_frame(frame)
        return arrow_table(frame, column_types, table.query)

    def to_pandas(self, *, terms: bool = False) -> pd.DataFrame:
        """Returns the same as a pandas frame, decimals as float64, integers beyond 64 bits as ints.

        Raises ``UsageError`` if pandas is not installed.
        """
        return to_pandas(self.to_arrow(terms=terms))

    def to_dicts(self, *, terms: bool = False) -> list[dict[str, object]]:
        """Returns a mapping for each row, with Python values."""
        return self.to_polars(terms=terms).to_dicts()

    def to_rdflib(self) -> rdflib.Graph | rdflib.query.Result:
        """Returns a ``Graph`` for CONSTRUCT, or for several reports a ``Dataset`` with a graph
        each, named as in files. Returns a ``Result`` with the terms for other queries.

        Raises ``UsageError`` if RDFLib is not installed.
        """
        rdflib_module("to_rdflib")
        from levada.engine.python.rdflib_results import to_rdflib

        table = self._table()
        return to_rdflib(table.query, table.form, table.texts)

    def _repr_html_(self) -> str:
        return frame_html(self.to_polars(), self._caption())

    def _caption(self) -> str:
        return ""


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Converts an Arrow table. Missing values in integer and boolean columns become NA.

    >>> to_pandas(pa.table({"n": pa.array([1, None])})).dtypes["n"]
    Int64Dtype()
    """
    pandas_module("to_pandas")
    frame = table.to_pandas(date_as_object=False)
    for i, field in enumerate(table.schema):
        column = table.column(i)
        if pa.types.is_decimal(field.type):
            values = frame.iloc[:, i]
            if (field.metadata or {}).get(b"levada.kind") == b"integer":
                frame[field.name] = values.map(int, na_action="ignore").astype(object)
            else:
                frame[field.name] = values.astype("float64")
        elif column.null_count and (
            pa.types.is_boolean(field.type) or pa.types.is_integer(field.type)
        ):
            nullable = "boolean" if pa.types.is_boolean(field.type) else "Int64"
            frame[field.name] = column.to_pandas(integer_object_nulls=True).astype(nullable)
    return frame

"""Joins rows with the terms of static tables, as a mapping of RML says.

A table is read once in a process, and must have the content that it had when the stream was
declared: so a repeated epoch makes the same triples. Cost: a hash join of Polars a join and chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl

from levada.connectors.config.rml.mapping_file import digest_of
from levada.connectors.config.row_mapping import RowMapping, TableJoin, Term
from levada.connectors.ingest.rml.source_rows import read_source_rows
from levada.connectors.ingest.tables.row_terms import AT, check_size, term_line, term_rows
from levada.errors import SHARED, SourceError

OBJECT = "object"


def with_joins(texts: pl.Series, frame: pl.DataFrame, joins: Sequence[TableJoin]) -> pl.Series:
    """Returns the lines of rows with those of their joins. Raises ``ValueError`` for too many."""
    columns = [texts.fill_null("")]
    every = pl.DataFrame({AT: np.arange(frame.height)})
    for join in joins:
        lines = joined_lines(frame, join.terms, join.keys, join_table(join))
        of_rows = lines.group_by(AT).agg(pl.col("text").str.join(""))
        column = every.join(of_rows, on=AT, how="left", maintain_order="left")["text"]
        columns.append(column.fill_null(""))
    table = pl.DataFrame({str(i): column for i, column in enumerate(columns)})
    return table.select(text=pl.concat_str(pl.all()))["text"]


def joined_lines(
    frame: pl.DataFrame, terms: Sequence[Term], keys: Sequence[Term], table: pl.DataFrame
) -> pl.DataFrame:
    """Returns the lines of a join (``text``) with the places of their rows (``AT``). ``table``:
    that of ``key_table``. Raises ``ValueError`` for too many.
    """
    names = [_key(i) for i in range(len(keys))]
    rows = term_rows(frame, [*terms, *keys])
    rows.columns = [AT, *map(str, range(len(terms))), *names]
    check_size(float(rows.join(table.group_by(names).len(), on=names)["len"].sum()))
    rows = rows.join(table, on=names, maintain_order="left")
    line = term_line(["0", "1", OBJECT, *(["2"] if len(terms) > 2 else [])])
    return rows.select(pl.col(AT), text=line)


def key_table(frame: pl.DataFrame, term: Term, keys: Sequence[Term]) -> pl.DataFrame:
    """Returns the different objects and keys of the rows of a table."""
    table = term_rows(frame, [term, *keys])
    table.columns = [AT, OBJECT, *(_key(i) for i in range(len(keys)))]
    return table.drop(AT).unique(maintain_order=True)


def _key(number: int) -> str:
    return f"key {number}"


@lru_cache(maxsize=64)
def join_table(join: TableJoin) -> pl.DataFrame:
    """Returns the objects and keys of a table. Raises ``SourceError`` if its file has changed."""
    path = Path(join.path)
    if not path.is_file():
        raise SourceError(f"The table {path} of the mapping does not exist here.", hint=SHARED)
    if digest_of(path) != join.digest:
        raise SourceError(
            f"The table {path} has changed since the stream was declared.",
            hint="Declare the stream again, with a new checkpoint.",
        )
    terms = (join.object, *join.table_keys)
    needed = RowMapping((), (), (), (terms,), is_rml=True).needed_columns
    rows = read_source_rows(join.source, list(needed), path)
    return key_table(rows.table, join.object, join.table_keys)

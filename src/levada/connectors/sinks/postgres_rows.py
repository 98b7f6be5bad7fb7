"""Turns a batch into rows of a table, and the changes of a relation into changes of rows with a
key.

    rows_to_append   every solution a row: report (ms), change (+1, -1: of a relation), values
    change_of        what an epoch makes of a relation: rows go, change, come; what goes and comes
                     again within the epoch is nothing

Values are those of CSV: an IRI, a lexical form, ``_:label``; unbound is null. U+0000, which
PostgreSQL does not support, becomes U+FFFD. Cost: a few copies of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from levada.connectors.serialization.columnar_tables import table
from levada.connectors.serialization.decode_terms import plain_values
from levada.connectors.serialization.serialize import Batch
from levada.errors import UnfitResultError

TIMES = "#"  # the column of multiplicities; no variable has such a name


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
    assert batch.change is not None, "changes have signs"
    texts = {name: batch.columns[name].cast(pl.String) for name in variables}
    signed = pl.DataFrame({**texts, TIMES: batch.change}).cast({TIMES: pl.Int64})
    net = signed.group_by(*variables, maintain_order=True).agg(pl.col(TIMES).sum())
    plain = net.with_columns(_plain(net[name]).alias(name) for name in variables)
    left, new = (
        plain.filter(pl.col(TIMES) * sign > 0).select(*variables, TIMES) for sign in (-1, 1)
    )
    for rows in (left, new):
        twice = rows.filter((pl.col(TIMES).abs() > 1) | pl.struct(*key).is_duplicated())
        if twice.height or rows.select(pl.any_horizontal(pl.col(*key).is_null().any())).item():
            shown = ", ".join(
                f"{k}={v}" for k, v in zip(key, _first_key(twice, rows, key), strict=True)
            )
            raise UnfitResultError(
                f"The relation has no key {', '.join(key)}: of {shown} there are several rows, or "
                "a part is unbound.",
                hint="Name a key that tells all its rows apart.",
            )
    names = list(variables)
    return [
        Change("go", left.join(new, on=list(key), how="anti").select(*key)),
        Change("change", new.join(left, on=list(key), how="semi").select(names)),
        Change("come", new.join(left, on=list(key), how="anti").select(names)),
    ]


def _first_key(twice: pl.DataFrame, rows: pl.DataFrame, key: Sequence[str]) -> tuple[object, ...]:
    candidates = (twice if twice.height else rows).select(*key)
    return tuple(candidates.row(0))


def csv_of(rows: pl.DataFrame) -> bytes:
    """Encodes rows for COPY: an unquoted empty field is null, a quoted one the empty text."""
    return rows.write_csv(include_header=False, quote_style="non_numeric").encode()


def _plain(texts: pl.Series) -> pl.Series:
    return plain_values(texts).str.replace_all("\0", "\N{REPLACEMENT CHARACTER}", literal=True)

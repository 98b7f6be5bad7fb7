"""Computes the net changes of a relation in an epoch, for tables of its present rows by key."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from levada.connectors.serialization.serialize import Batch
from levada.errors import UnfitResultError

TIMES = "#"  # the column of multiplicities; no variable has such a name


def net_changes(variables: Sequence[str], batch: Batch) -> pl.DataFrame:
    """Returns the rows whose number changes, as N-Triples texts, with ``TIMES``: by how much. A row
    that comes and goes within the epoch is not a change.
    """
    assert batch.change is not None, "changes have signs"
    texts = {name: batch.columns[name].cast(pl.String) for name in variables}
    signed = pl.DataFrame({**texts, TIMES: batch.change}).cast({TIMES: pl.Int64})
    net = signed.group_by(*variables, maintain_order=True).agg(pl.col(TIMES).sum())
    return net.filter(pl.col(TIMES) != 0)


def split_by_sign(key: Sequence[str], net: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns the rows that go, and those that come. Raises ``UnfitResultError`` for two rows with
    one key.
    """
    left, new = (net.filter(pl.col(TIMES) * sign > 0) for sign in (-1, 1))
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
    return left, new


def _first_key(twice: pl.DataFrame, rows: pl.DataFrame, key: Sequence[str]) -> tuple[object, ...]:
    candidates = (twice if twice.height else rows).select(*key)
    return tuple(candidates.row(0))


def keys_of(words: object) -> tuple[str, ...]:
    """Parses the option ``key``.

    >>> keys_of("a; ?b")
    ('a', 'b')
    """
    return tuple(k.strip().lstrip("?") for k in str(words or "").split(";") if k.strip())

"""Merges results of several epochs into one batch for each query, which is written in one piece."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import polars as pl

from levada.connectors.serialization.serialize import Batch
from levada.plan.execution.plan import QueryPlan


def merge_epochs(
    batches_of_epochs: Iterable[tuple[int, QueryPlan, Batch]],
) -> Iterator[tuple[int, QueryPlan, Batch]]:
    """Yields batches of epochs, in their order, merged to one for each query under its first epoch;
    a query that has changed begins anew.

    The answers of a query without windows have no time to distinguish them: each begins anew.
    """
    groups: dict[str, list[tuple[int, QueryPlan, list[Batch]]]] = {}
    for epoch, query, batch in batches_of_epochs:
        of_query = groups.setdefault(query.name, [])
        if of_query and query.streams and _is_same_query(of_query[-1][1], query):
            of_query[-1][2].append(batch)
        else:
            of_query.append((epoch, query, [batch]))
    for of_query in groups.values():
        for epoch, query, batches in of_query:
            yield epoch, query, join(batches)


def _is_same_query(a: QueryPlan, b: QueryPlan) -> bool:
    return (a.form, a.output, tuple(a.variables)) == (b.form, b.output, tuple(b.variables))


def join(batches: Sequence[Batch]) -> Batch:
    """Joins batches of one query, each with later reports than the one before.

    >>> a = Batch(np.array([1]), columns={"x": pl.Series(["<a:a>"])})
    >>> b = Batch(np.array([2]), columns={"x": pl.Series([None], dtype=pl.String)})
    >>> join([a, b]).columns["x"].to_list()
    ['<a:a>', None]
    """
    if len(batches) == 1:
        return batches[0]
    first = batches[0]
    return Batch(
        np.concatenate([b.report for b in batches]),
        first.form,
        {
            name: pl.concat([b.columns[name].cast(pl.String) for b in batches])
            for name in first.columns
        },
        None
        if first.change is None
        else np.concatenate([b.change for b in batches if b.change is not None]),
        None
        if first.booleans is None
        else np.concatenate([b.booleans for b in batches if b.booleans is not None]),
        None
        if first.graphs is None
        else pl.concat([b.graphs for b in batches if b.graphs is not None]),
        np.concatenate([b.empty for b in batches]),
    )

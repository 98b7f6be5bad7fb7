"""Fuller files: results of several epochs are held back and published as one file a query
(``sinks.files.Roll``).

What is held back, and what an epoch publishes, is decided once and stands in its manifest:
publishing again after a crash gives the same files, and a file is never changed once it is there. A
file is named by the first of its epochs that has results of its query. The segments of held epochs
stay in the checkpoint until the manifest after the one that publishes them is committed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from levada.emission.serialize import Batch
from levada.plan.sealed.plan import QueryPlan
from levada.runtime.store.manifest import Held, Manifest

Due = Callable[[int, int], bool]


def at_once(size: int, age: int) -> bool:
    """Never holds anything back."""
    return True


def hold(
    manifest: Manifest, before: Sequence[Held], due: Due, wall: int, root: str, *, flush: bool
) -> None:
    """Says in a new manifest what it publishes and holds; ``before``: held by the one before."""
    waiting = list(before)
    if manifest.segments or manifest.shown_reports:
        size = sum(os.stat(Path(root) / name).st_size for name in manifest.segments)
        waiting.append(
            Held(
                manifest.epoch, manifest.plan, manifest.segments, manifest.shown_reports, wall, size
            )
        )
    if waiting and (flush or manifest.ended or is_due(waiting, due, wall)):
        manifest.rolled = waiting
    else:
        manifest.held = waiting


def is_due(held: Sequence[Held], due: Due, wall: int) -> bool:
    """Whether what is held is to be published now."""
    return bool(held) and due(sum(h.size for h in held), wall - held[0].wall)


def oldest(manifest: Manifest) -> int:
    """The first epoch whose segments this manifest, or one after it, may still read."""
    return min([manifest.epoch, *(h.epoch for h in (*manifest.rolled, *manifest.held))])


def together(
    found: Iterable[tuple[int, QueryPlan, Batch]],
) -> Iterator[tuple[int, QueryPlan, Batch]]:
    """Batches of epochs, in their order, as one of each query under its first epoch; a query that
    has changed begins anew.

    The answers of a query without windows have no time that tells them apart: each begins anew.
    """
    groups: dict[str, list[tuple[int, QueryPlan, list[Batch]]]] = {}
    for epoch, query, batch in found:
        of_query = groups.setdefault(query.name, [])
        if of_query and query.streams and _alike(of_query[-1][1], query):
            of_query[-1][2].append(batch)
        else:
            of_query.append((epoch, query, [batch]))
    for of_query in groups.values():
        for epoch, query, batches in of_query:
            yield epoch, query, join(batches)


def _alike(a: QueryPlan, b: QueryPlan) -> bool:
    return (a.form, a.output, tuple(a.variables)) == (b.form, b.output, tuple(b.variables))


def join(batches: Sequence[Batch]) -> Batch:
    """Batches of one query, each of later reports than the one before it, as one.

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

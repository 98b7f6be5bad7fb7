"""Reads the results of an epoch from the segments that its tasks have written."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from levada.checkpoint import state_files
from levada.connectors.serialization.serialize import Batch
from levada.operators.results.result_segments import batches, empty_batch, with_empty
from levada.plan.execution.plan import Plan, QueryPlan


class Results(Protocol):
    """The segments of an epoch, and by query the due reports (ms) that are shown even if empty."""

    @property
    def segments(self) -> Sequence[str]:
        """The names of files below the checkpoint."""

    @property
    def shown_reports(self) -> Mapping[str, list[int]]:
        """The reports of queries that show empty reports."""


def read_epoch(
    root: str, plan: Plan, epoch: Results, query_names: Container[str] | None = None
) -> Iterator[tuple[QueryPlan, Batch]]:
    """Yields the decoded batches of an epoch of this plan, of all queries or of ``query_names``,
    with the empty reports that are shown.
    """
    left = {
        name: times
        for name, times in epoch.shown_reports.items()
        if name in plan.queries and (query_names is None or name in query_names)
    }
    for query, batch in batches(
        plan, epoch.segments, lambda name: state_files.map_(root, name), query_names
    ):
        yield query, with_empty(batch, np.array(left.pop(query.name, []), np.int64))
    for name, times in left.items():
        yield plan.queries[name], empty_batch(plan.queries[name], np.array(times, np.int64))

"""The blank nodes of a CONSTRUCT's template: fresh for each solution (SPARQL 1.1, 16.2.1), and
equal however often they are made.

A node derives from the query, the report, the solution (with its number among solutions that are
equal in the template), and its label in the template (docs/semantics.md#results). Cost: a hash of
each text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.core.array_types import Words
from levada.kernels.keyed.bucket_layout import combine
from levada.kernels.terms.term_ids import identify, identify_one
from levada.operators.expressions.seeded_functions import blank
from levada.operators.rows.solution_seeds import copies, name_seed


def blank_nodes(
    query: str,
    report: npt.NDArray[np.int64],
    columns: Mapping[str, pl.Series],
    labels: Collection[str],
) -> dict[str, pl.Series]:
    """The texts of the nodes of each label, a row per solution; all of a report must be here.

    >>> nodes = blank_nodes("q", np.array([5, 5]), {"x": pl.Series(["<a:b>", "<a:b>"])}, ["n"])["n"]
    >>> nodes.n_unique(), nodes[0][:3]
    (2, '_:g')
    """
    if not labels:
        return {}
    seeds = _seeds(query, report, columns)
    return {
        label: blank(seeds ^ np.uint64(identify_one(label, 0)[0]), 0).texts() for label in labels
    }


def _seeds(query: str, report: npt.NDArray[np.int64], columns: Mapping[str, pl.Series]) -> Words:
    n = len(report)
    none = np.zeros(n, np.uint64)
    k, h = np.full(n, name_seed(query), np.uint64), none
    for texts in columns.values():
        k, h = combine(k, h, *identify(texts, 0))
    k, h = combine(k, h, np.ascontiguousarray(report).view(np.uint64), none)
    seeds: Words = combine(k, h, copies(k, h), none)[0]
    return seeds

"""Partials of groups by number: their keys, the ranks of their terms, and their sums."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.array_types import Ints, Longs, Words
from levada.core.frame import Column, Frame
from levada.kernels.keyed.bucket_layout import combine
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.aggregation import aggregate_functions
from levada.operators.expressions import compare_rank
from levada.operators.rows.term_columns import column
from levada.plan.execution.steps import Aggregate


def group_columns(rows: Frame, keys: Sequence[int], first: Longs) -> dict[str, Column]:
    """The member, the place and the key slots of each group, these renumbered from 0."""
    out = {name: rows[name][first] for name in ("op", col.PLACE) if name in rows}
    for n, i in enumerate(keys):
        for name in ("x", "y", "k", "d", "m", "c"):
            if f"{name}{i}" in rows:
                out[f"{name}{n}"] = rows[f"{name}{i}"][first]
    return out


def lookup(pool: TermLookup) -> aggregate_functions.Lookup:
    """Returns the functions that aggregates need for the terms in a pool."""
    return aggregate_functions.Lookup(partial(_rank, pool), pool)


def _rank(pool: TermLookup, rows: Frame, i: int) -> npt.NDArray[np.float64] | npt.NDArray[np.int64]:
    return compare_rank(column(rows, i, pool))


def sum_partials(
    parts: Frame,
    part: Longs,
    codes: Ints,
    count: int,
    specs: Sequence[Aggregate],
    *,
    pool: TermLookup,
) -> dict[str, Column]:
    """The partials at these places by the number of their sum, added up; one alone is as it is."""
    names = [name for name in parts.columns if name.startswith("a")]
    if count == len(part):
        order = np.empty(count, np.int64)
        order[codes] = part
        return {name: parts[name][order] for name in names}
    sums = aggregate_functions.merge(parts, codes, count, specs, lookup(pool), chosen=part)
    return {name: sums[name] for name in names}


def merge_partials(
    parts: dict[str, Column],
    codes: Ints,
    count: int,
    *,
    specs: Sequence[Aggregate],
    pool: TermLookup,
) -> dict[str, Column]:
    """Partials added up by the number of their sum."""
    return aggregate_functions.merge(Frame(parts, len(codes)), codes, count, specs, lookup(pool))


def mix_words(k: Words, h: Words) -> tuple[Words, Words]:
    """Mixes words so that their sums distinguish sets of them. No mixed word is 0, because zeros
    are mixed, too.
    """
    one = np.ones(len(k), np.uint64)
    return combine(one, one, k, h)


def sum_words(numbers: Longs, count: int, words: Words) -> Words:
    """The sums of words by number."""
    total = np.zeros(count, np.uint64)
    np.add.at(total, numbers, words)
    return total


def number_values(values: Longs, most: int) -> tuple[Ints, Longs]:
    """The number of each value below ``most``, in their order, and the values that there are.

    >>> codes, there = number_values(np.array([7, 3, 7]), 9)
    >>> codes.tolist(), there.tolist()
    ([1, 0, 1], [3, 7])
    """
    if most > 8 * len(values) + 1024:
        there, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.int32), there
    present = np.zeros(most, np.bool_)
    present[values] = True
    return (np.cumsum(present, dtype=np.int32) - np.int32(1))[values], np.flatnonzero(present)

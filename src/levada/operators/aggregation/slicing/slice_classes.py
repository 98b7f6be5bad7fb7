"""Time classes of slices: slices that count for the same members at the same reports are a class,
and a report counts a set of classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Ints, Longs, Words
from levada.core.frame import Frame
from levada.core.row_ranges import starts_segment
from levada.kernels.keyed.bucket_layout import combine
from levada.kernels.keyed.hash_groups import group
from levada.operators.aggregation.slicing import segment_tree
from levada.operators.aggregation.slicing.partial_aggregates import mix_words
from levada.operators.rows.route_rows import zeros


class Classes(NamedTuple):
    """How slices lie in time: of each slice the number of its class, in order of time; a slice of
    each class.
    """

    of: Longs
    first: Longs


def in_time(rows: Frame) -> Classes:
    """The classes of slices."""
    names = [name for name in rows.columns if col.is_time(name)]
    names[:0] = [col.WANTED] if col.WANTED in rows else []
    codes, first = group(*_words(rows, ["op", *names]))
    order = np.lexsort([*(rows[name][first] for name in reversed(names)), rows["op"][first]])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return Classes(rank[codes], first[order])


def _words(rows: Frame, names: Sequence[str]) -> tuple[Words, Words]:
    """Returns words that distinguish rows by these columns: the columns themselves, if one or two
    differ.
    """
    columns = [rows[name].astype(np.int64, copy=False) for name in names]
    varying = [column for column in columns if rows.n and (column != column[0]).any()]
    words = [np.ascontiguousarray(column).view(np.uint64) for column in varying]
    words += [zeros(rows.n)] * (2 - len(words))
    k, h = words[:2]
    for word in words[2:]:
        k, h = combine(k, h, word, zeros(rows.n))
    return k, h


def as_sets(reports: Longs, classes: Longs) -> tuple[segment_tree.Sets, Ints]:
    """The distinct sets of classes, and of each report the number of its set; a report has a class
    once.
    """
    order = np.lexsort((classes, reports))
    reports, classes = reports[order], classes[order]
    first = np.flatnonzero(starts_segment(reports))
    words = mix_words(classes.view(np.uint64), zeros(len(classes)))
    sets, example = group(*(np.add.reduceat(half, first) for half in words))
    chosen = np.full(len(first), -1, np.int64)
    chosen[example] = np.arange(len(example))
    of = chosen[reports]
    is_chosen = of >= 0
    return segment_tree.runs(of[is_chosen], classes[is_chosen]), sets

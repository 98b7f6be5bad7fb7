"""The constants of a pattern by identity, for comparison with rows; kept with the node."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from levada.core.array_types import Words
from levada.core.row_ranges import place_in_segment, starts_segment
from levada.kernels.keyed.hash_groups import group
from levada.kernels.terms.term_ids import identify_one
from levada.plan.execution.plan import PlanNode


def identities(node: PlanNode, seed: int) -> Words:
    """Returns the identities of the members' constants, shape (members, 3, 2); 0 without a
    constant. ``seed`` is the checkpoint's.
    """
    table = np.zeros((len(node.members), 3, 2), np.uint64)
    for i, constants in enumerate(node.members.each_constants()):
        for position, term in enumerate(constants):
            if term is not None:
                table[i, position] = _identity(str(term), seed)
    return table


@lru_cache(maxsize=100_000)
def _identity(text: str, seed: int) -> tuple[int, int]:
    """Returns the identity of one text, cached: plan after plan has the same constants."""
    return identify_one(text, seed)


# Solutions as seeds: RAND, BNODE and the blank nodes of CONSTRUCT derive from them, so that they
# are equal wherever they are made.
#
# A solution is identified by its query, its report, its terms and its number among equal ones
# (docs/semantics.md#results).


@lru_cache(maxsize=10_000)
def name_seed(name: str) -> int:
    """Returns 64 bits that represent a query's name."""
    return int(identify_one(name, 0)[0])


def copies(k: Words, h: Words) -> Words:
    """0, 1, 2, ... among rows of equal keys.

    >>> copies(np.array([7, 8, 7], np.uint64), np.zeros(3, np.uint64)).tolist()
    [0, 0, 1]
    """
    codes, _ = group(k, h)
    order = np.argsort(codes, kind="stable")
    out = np.empty(len(codes), np.uint64)
    out[order] = place_in_segment(starts_segment(codes[order])).astype(np.uint64)
    return out

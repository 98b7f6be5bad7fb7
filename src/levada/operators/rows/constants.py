"""The constants of a pattern by identity, for comparison with rows; kept with the node."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from levada.core.array_types import Words
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

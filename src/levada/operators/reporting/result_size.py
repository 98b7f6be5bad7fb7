"""The size of result rows in bytes as a reader receives them: their texts, or the triples of a
CONSTRUCT's template.

A template writes a solution as often as it has triples: forty triples over a product are forty
products. Triples are counted before equal triples of a report are merged, since all of them exist
until then. Each member has its own template, so a row costs a look-up for each of its texts; rows
of few texts are not looked at (``Written.max_row_bytes``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from levada.core.array_types import Bools, Longs
from levada.core.expressions import Var
from levada.core.frame import Frame
from levada.core.frozen import frozen
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Blank
from levada.kernels.terms.term_dictionary import Terms
from levada.plan.execution.plan import Plan, PlanNode
from levada.plan.execution.row_layout import Facet

VALUE = 16
"""Bytes of a number or an instant, which is in columns and not in a text."""

BLANK = 34
"""Bytes of a blank node that a template makes."""

BETWEEN = len("  .\n") + 1
"""Bytes of a triple beside its terms."""


@frozen
class Written:
    """The row sizes of a node's members: ``fixed`` bytes, and the number of ``times`` that each
    slot is written; by member with rows. ``triples``: whether some member has a template.
    """

    fixed: Longs
    times: Longs
    triples: bool

    def max_row_bytes(self, node: PlanNode, terms: Terms) -> int:
        """The most bytes that a row can have with these texts."""
        longest = max(int(terms.lengths.max(initial=0)), VALUE)
        return int((self.fixed + self.times.sum(axis=1) * longest).max(initial=0))

    def bytes(self, node: PlanNode, rows: Frame, terms: Terms) -> Longs:
        """Returns the bytes of each row."""
        op, texts = rows["op"], _texts(node)
        lengths = np.append(terms.lengths, 0)  # the last one is of what has no text
        sizes: Longs = self.fixed[op]
        for i in range(len(node.layout.slots)):
            slot_sizes = lengths[terms.find(rows[f"x{i}"], rows[f"y{i}"])] if i in texts else VALUE
            sizes = sizes + slot_sizes * self.times[op, i]
        return sizes


def row_layout(node: PlanNode, there: Bools, plan: Plan) -> Written:
    """How the members write their rows that have some (``there``, by member)."""
    slots, members = len(node.layout.slots), len(node.members)
    fixed, times = np.zeros(members, np.int64), np.zeros((members, slots), np.int64)
    triples = False
    for member in there.nonzero()[0].tolist():
        manner = plan.queries[node.members.query_at(member)].manner
        fixed[member], times[member] = _of_template(manner.template, manner.variables, slots)
        triples = triples or bool(manner.template)
    return Written(fixed, times, triples)


def as_solutions(node: PlanNode) -> Written:
    """Returns sizes of rows as their texts, whatever the output form."""
    members = len(node.members)
    ones = np.ones((members, len(node.layout.slots)), np.int64)
    return Written(np.zeros(members, np.int64), ones, False)


@lru_cache(maxsize=4096)
def _of_template(
    template: Sequence[TriplePattern], variables: Sequence[str], slots: int
) -> tuple[int, Longs]:  # fmt: skip
    """Returns the bytes that a template writes for constants, and the number of uses of each
    variable.
    """
    if not template:
        return 0, np.ones(slots, np.int64)
    fixed, times = BETWEEN * len(template), np.zeros(slots, np.int64)
    of = {name: i for i, name in enumerate(variables[:slots])}
    for position in (position for triple in template for position in triple.positions):
        match position:
            case Var(name):
                times[of[name]] += 1
            case Blank():
                fixed += BLANK
            case _:
                fixed += len(str(position).encode())
    return fixed, times


def _texts(node: PlanNode) -> frozenset[int]:
    return frozenset(i for i, facets in enumerate(node.layout.slots) if Facet.TEXT in facets)

"""Constants of one row in a conjunction (VALUES with one row, the graph that GRAPH ?g is at) beside
the rows of another part.

A join with one row that shares no variable pairs it with every row; as a join it would move all
rows to one place. As constants of another part's rows it costs a column. Invariant: the bag of
solutions is that of the join.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from levada.model.expression import Const
from levada.plan.physical import operators as p
from levada.plan.physical.build import extend
from levada.plan.physical.operators import Op


def beside(parts: Sequence[Op]) -> list[Op]:
    """The parts of a conjunction, those of one row as constants of the first other part, wherever
    no other has their variables.
    """
    uses = Counter(v for op in parts for v in op.variables)
    alone = [_one_row(op) and all(uses[v] == 1 for v in op.variables) for op in parts]
    if all(alone):
        alone[:1] = [False] * len(alone[:1])
    kept = [op for op, single in zip(parts, alone, strict=True) if not single]
    for op in (op for op, single in zip(parts, alone, strict=True) if single):
        kept[0] = _with_row(kept[0], op)
    return kept


def _one_row(op: Op) -> bool:
    return isinstance(op.spec, p.Constant) and len(op.spec.rows) == 1 and not op.maybe


def _with_row(op: Op, row: Op) -> Op:
    assert isinstance(row.spec, p.Constant), "one row"
    for name, term in zip(row.variables, row.spec.rows[0], strict=True):
        assert term is not None, "bound"
        op = extend(op, name, Const(term))
    return op

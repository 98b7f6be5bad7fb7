"""The sharing of IStreams of the same rows over windows of different ranges.

    Emit <- Changes <- Pick <- Join    of a relaxed join; queries differ in windows alone

The windows of the queries have the same rows, which begin in all of them at once and end in each at
its own instant. So the rows are combined where queries are distinguished
(``execution/joins.RangedChanges``), if the windows allow it; the query's times decide that.

This applies only to final results: other operators would need each query's rows.
"""

from __future__ import annotations

from dataclasses import replace

from levada.core.query_model import Output
from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op


def share_istream(op: Op) -> Op:
    """Returns the results of an IStream of picked rows in the shared form, or unchanged."""
    if not isinstance(op.spec, p.Emit):
        return op
    (changes,) = op.inputs
    spec = changes.spec
    if not isinstance(spec, p.Changes) or not _is_netted(changes, spec):
        return op
    (below,) = changes.inputs
    windows = below.windows
    while isinstance(below.spec, p.Rename):
        (below,) = below.inputs
    if not isinstance(below.spec, p.Pick) or windows is None or len(windows) != 1:
        return op
    if below.spec.keys or below.spec.tests or below.spec.rest or below.weighted:
        return op
    return replace(op, inputs=(replace(changes, spec=replace(spec, ranged=True)),))


def _is_netted(op: Op, spec: p.Changes) -> bool:
    """Whether it is an IStream that remembers ended rows by their shown columns."""
    return spec.output is Output.ISTREAM and op.weighted and bool(op.variables)

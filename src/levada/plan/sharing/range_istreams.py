"""IStreams of the same rows over windows of other ranges.

    Emit <- Changes <- Pick <- Join    of a relaxed join; queries differ in windows alone

Each query's window is a window of the same rows, which begin in all of them at once and end in each
at its own instant. So they are put together where they are told apart (``plan/sealed/joins``,
``RangedChanges``), if their windows allow it: what these are the query's times say.

Only what is a result as it is: what else reads it would need each query's rows.
"""

from __future__ import annotations

from dataclasses import replace

from levada.core.query_model import Output
from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op


def share_istream(op: Op) -> Op:
    """The results of an IStream of picked rows as those of one of many; else what is given."""
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
    """Whether it is an IStream that remembers what ends, by what it shows."""
    return spec.output is Output.ISTREAM and op.weighted and bool(op.variables)

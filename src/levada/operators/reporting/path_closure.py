"""Property paths of any length (SPARQL 1.1, 18.4): the distinct pairs of terms that one step, taken
again and again, connects.

All rows of a report are at the operator's home. Its terms become dense nodes, its steps edges, with
member and report as parts of a node. So all members and all due reports are one graph, in which
each path stays within its own report; one kernel searches it (``kernels/keyed/path_reachability``).
The search begins at a given start, or backwards from a given end if only the end is given. The
values of the rows with which the pairs will be joined (*seeds*) begin the search in the same way.
Over static data there are no reports: the rows are read once, and the pairs are computed once.

Cost: the pairs that the starts reach. Without a given end or seeds the closure may be as large as
the square of the terms, so the search ends at as many pairs as a query may have rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Bools, Ints, Words
from levada.core.frame import Frame, concat
from levada.kernels.keyed.hash_groups import group
from levada.kernels.keyed.path_reachability import edges_of, reach
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.row_limit import most_rows, too_many
from levada.operators.rows import route_rows as r
from levada.operators.rows.constants import identities
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.row_layout import Facet


def closure(node: PlanNode[s.Closure], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The pairs of all reports; ``inputs`` are the steps, of ``?`` and ``*`` the terms that reach
    themselves, and the seeds. Raises ``ExcessError``.
    """
    step = node.step
    steps = _input(node, inputs, 0)
    last = len(node.input_layouts) - 1
    zeros = _input(node, inputs, 1) if last > (step.seed is not None) else None
    facets = node.input_layouts[0].slots
    ends = [_terms(steps, 0, facets[0]), _terms(steps, 1, facets[1])]
    every = concat([*ends, *([] if zeros is None else [_terms(zeros, 0, facets[0])])])
    if not every.n:
        return None
    codes, first = group(*_key(every))
    terms = every.take(first)
    zero = np.zeros(terms.n, bool)
    zero[codes[2 * steps.n :]] = True
    constants = node.compute_once(identities, env.pool.seed)
    endpoints = [
        _is_endpoint(terms, constants, end) if step.constant_ends[end] else np.ones(terms.n, bool)
        for end in (0, 1)
    ]
    if step.seed is not None:
        endpoints[step.seed] = _is_seed(terms, _input(node, inputs, last))
    sides, most = (codes[: steps.n], codes[steps.n : 2 * steps.n]), most_rows(node, env.limits)
    i, j = _find_connected(step, *sides, zero, endpoints, most=most)
    if len(i) > most:
        raise too_many(node, terms["op"][i], env.limits)
    return _pairs(node, step, terms, i, j) if len(i) else None


def _input(node: PlanNode, inputs: Inputs, at: int) -> Frame:
    frame = inputs[at]
    return r.empty(node.input_layouts[at]) if frame is None else frame


def _terms(frame: Frame, at: int, facets: Facet) -> Frame:
    """A slot's terms with their member and report."""
    columns = {"op": frame["op"], **({"r": frame["r"]} if "r" in frame else {})}
    return Frame({**columns, **r.gather(frame, np.arange(frame.n), at, 0, facets)}, frame.n)


def _key(terms: Frame) -> r.Key:
    key = r.key_of(terms, (0,))
    return r.with_report(key, terms) if "r" in terms else key


def _find_connected(
    step: s.Closure, sources: Ints, targets: Ints, zero: Bools, endpoints: list[Bools], *, most: int
) -> tuple[Ints, Ints]:  # fmt: skip
    """Pairs of nodes: from the given starts, or backwards from the given ends, or from whatever has
    a step; more than ``most`` if there are.
    """
    backwards = (step.constant_ends[1] or step.seed == 1) and not step.constant_ends[0]
    if backwards:
        sources, targets = targets, sources
    begins = zero.copy()
    begins[sources] = True
    starts = np.flatnonzero(begins & endpoints[1 if backwards else 0]).astype(np.int32)
    i, j = reach(*edges_of(sources, targets, len(zero)), starts, zero, many=step.many, most=most)
    if backwards:
        return j, i
    if step.constant_ends[1] and len(i) <= most:
        keep = endpoints[1][j]
        return i[keep], j[keep]
    return i, j


def _is_seed(terms: Frame, seeds: Frame) -> Bools:
    """Flags the terms that are among the seeds of their member and report. Terms are distinct."""
    (k, h), (seed_k, seed_h) = _key(terms), _key(seeds)
    codes, _ = group(np.concatenate([k, seed_k]), np.concatenate([h, seed_h]))
    is_seed = np.zeros(terms.n + seeds.n, bool)
    is_seed[codes[terms.n :]] = True
    return is_seed[: terms.n]


def _is_endpoint(terms: Frame, constants: Words, end: int) -> Bools:
    """Flags the terms that are the end given by their member."""
    endpoint = constants[terms["op"], end]
    same: npt.NDArray[np.bool_] = (terms["x0"] == endpoint[:, 0]) & (terms["y0"] == endpoint[:, 1])
    return same


def _pairs(node: PlanNode, step: s.Closure, terms: Frame, i: Ints, j: Ints) -> Frame:
    columns = {name: terms[name].take(i) for name in ("op", "r") if name in terms}
    for n, at in enumerate(step.kept):
        columns.update(r.gather(terms, (i, j)[at], 0, n, node.layout.slots[n]))
    return Frame(columns, len(i))

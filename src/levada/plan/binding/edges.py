"""Builds the edges and layouts of installed operators: the columns of an operator's rows, and how
the columns of its inputs become them.
"""

from __future__ import annotations

from typing import NamedTuple

from levada.plan.binding.leaves import is_static
from levada.plan.binding.required_facets import Needs, add, facets_of_all_variables, input_needs
from levada.plan.binding.slot_resolution import slots_of
from levada.plan.execution.row_layout import NOTHING, Facet, Layout, Span
from levada.plan.execution.shapes import TO_ALL, Edge, Shape
from levada.plan.physical import operators as p
from levada.plan.physical.operators import HOME, Op
from levada.plan.physical.partitioning import ALL_PARTITIONS
from levada.plan.sharing.per_leaf_times import window_of


class Installed(NamedTuple):
    """An operator in the topology: its shape, its member, and the names of its output slots."""

    shape: Shape
    member: int
    names: tuple[str, ...]


class Read(NamedTuple):
    """The part of an input that an operator reads.

    ``names``: the input's slots, with their ``needs``. ``base``: the operator below projections;
    ``wants``: the needs of its variables. ``source``: the name in ``base`` for each name above.
    """

    names: tuple[str, ...]
    needs: Needs
    base: Op
    source: dict[str, str]
    wants: Needs


def collect_reads(op: Op, needs: Needs) -> list[Read]:
    """Returns the reads of each input of an operator with these ``needs``."""
    side_by_side = op.spec.side_by_side
    wanted = [union_needs(op, needs)] * len(op.inputs) if side_by_side else input_needs(op, needs)
    input_reads = []
    for child, child_needs in zip(op.inputs, wanted, strict=True):
        names = (
            tuple(child_needs)
            if side_by_side
            else tuple([v for v in child.variables if v in child_needs])
        )
        base, source = look_through(child)
        wants: Needs = {}
        for v, f in child_needs.items():
            if v in source and f:
                add(wants, source[v], f)
        input_reads.append(Read(names, child_needs, base, source, wants))
    return input_reads


def base_of(op: Op) -> Op:
    """Returns the operator below projections."""
    while isinstance(op.spec, p.Rename):
        op = op.inputs[0]
    return op


def look_through(op: Op) -> tuple[Op, dict[str, str]]:
    """Returns the operator below projections and, for each name above, its name there."""
    source = {v: v for v in op.variables}
    while isinstance(op.spec, p.Rename):
        child = op.inputs[0]
        inner = dict(zip(op.variables, op.spec.sources, strict=True))
        there = set(child.variables)
        source = {v: inner[n] for v, n in source.items() if inner.get(n) in there}
        op = child
    return op, source


def union_needs(op: Op, needs: Needs) -> Needs:
    """Returns the needs of all inputs of a union: the needs above, and identities of its exchange
    keys.

    With weights it needs all identities: the inputs of a merge are also joined by them, so its
    parts are installed once.
    """
    by = {v for exchange in op.exchange for v in exchange or () if v}
    if op.weighted or facets_of_all_variables(op):  # whole rows are compared
        by = set(op.variables)
    return {
        v: needs.get(v, NOTHING) | (Facet.ID if v in by else NOTHING)
        for v in op.variables
        if v in needs or v in by
    }


def outputs_of(op: Op, needs: Needs, ins: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Returns the names of an operator's output slots; ``ins``: the names of its inputs' slots."""
    if is_static(op.spec):
        # a static graph is a set: its rows are compared by all columns
        return op.variables
    if op.spec.passes_slots:
        return ins[0]  # rows pass unchanged
    return tuple([v for v in op.variables if v in needs])


def layout_of(op: Op, names: tuple[str, ...], needs: Needs, edges: list[Edge]) -> Layout:
    """Returns the columns of an operator's rows."""
    if op.spec.passes_slots:
        facets = list(edges[0].layout.slots)
    elif is_static(op.spec):
        facets = [needs.get(v, NOTHING) | Facet.ID for v in names]
    else:
        facets = [needs.get(v, Facet.ID) for v in names]
    if op.windows is None:
        return Layout(tuple(facets), (), op.weighted, True)
    if isinstance(op.spec, p.Union):
        return Layout(tuple(facets), edges[0].layout.windows, op.weighted, False)
    return Layout(
        tuple(facets), tuple([_span(op, w, edges) for w in op.windows]), op.weighted, False
    )


def _span(op: Op, window: int, edges: list[Edge]) -> Span:
    """Whether a window's rows need ``hi`` and ``prev``."""
    if isinstance(op.spec, p.Numbered):
        return Span(True, not op.spec.bag)
    if isinstance(op.spec, p.Instants | p.Narrow):
        return Span(True, False)
    if isinstance(op.spec, p.ByWindow):
        assert op.windows is not None, "event times"
        places = places_of_windows(op)[op.windows.index(window)]
        spans = [edges[0].layout.windows[at] for at in places]
        return Span(len(spans) > 1 or any(b.hi for b in spans), any(b.prev for b in spans))
    below = []
    for i, (child, edge) in enumerate(zip(op.inputs, edges, strict=True)):
        if child.windows is not None and window in child.windows:
            span = edge.layout.windows[child.windows.index(window)]
            below.append(Span(span.hi, span.prev or op.spec.makes_set(i)))
    if not below:
        return Span(False, False)
    several = isinstance(op.spec, p.Join | p.MultiwayJoin | p.LinkedJoin) and len(below) > 1
    absent = isinstance(op.spec, p.Union) and len(below) < len(op.inputs)
    needs_hi = several or absent or op.spec.has_instants
    return Span(needs_hi or any(b.hi for b in below), any(b.prev for b in below))


def places_of_windows(op: Op) -> tuple[tuple[int, ...], ...]:
    """Returns for each window of an operator the positions of its windows in the input."""
    below = [window_of(w) for w in op.inputs[0].windows or ()]
    return tuple(
        [tuple([i for i, w in enumerate(below) if w == window]) for window in op.windows or ()]
    )


def edge_of(op: Op, i: int, read: Read, installed: Installed) -> Edge:
    """Returns the edge that maps an input's rows to an operator's, by slots and windows."""
    child = op.inputs[i]
    places = {v: n for n, v in enumerate(installed.names)}
    slots = tuple([places.get(read.source.get(v, ""), -1) for v in read.names])
    base = installed.shape.layout
    spans = base.windows
    index: tuple[int, ...] = tuple(range(len(spans)))
    if isinstance(op.spec, p.Union) and op.windows is not None:
        assert child.windows is not None, "both inputs have event times"
        index = tuple([child.windows.index(w) if w in child.windows else -1 for w in op.windows])
        spans = tuple([base.windows[n] if n >= 0 else Span(True, False) for n in index])
    layout = Layout(tuple([read.needs[v] for v in read.names]), spans, base.weighted, base.report)
    exchange = op.exchange[i]
    by = (
        None
        if exchange is None
        else TO_ALL
        if exchange == ALL_PARTITIONS
        else slots_of(filter(None, exchange), read.names)
        if exchange != HOME
        else ()
    )
    return Edge(slots, index, layout, by)


def align_edges(edges: list[Edge]) -> list[Edge]:
    """Gives the edges of a union the same columns."""
    if all(e.layout == edges[0].layout for e in edges):
        return edges
    spans = tuple(
        Span(any(w.hi for w in ws), any(w.prev for w in ws))
        for ws in zip(*(e.layout.windows for e in edges), strict=True)
    )
    weighted = any(e.layout.weighted for e in edges)
    layouts = [Layout(e.layout.slots, spans, weighted, e.layout.report) for e in edges]
    return [
        Edge(e.slots, e.windows, layout, e.exchange)
        for e, layout in zip(edges, layouts, strict=True)
    ]

"""Lowers the RDF merge of windows and static graphs to rows with weights: C-SPARQL's default graph.

A triple pattern binds everything that distinguishes its matching triples. So its rows over one
source have weight 0 or 1 at every instant, and over the merge of two sources a + b - ab. The
product is a join on all variables whose pairs count -1. A third source c is merged in the same way
with the sum so far. So all operators above stay incremental, and weights are netted at the report.

Cost: a row and a probe for each source that has the triple; a triple of one source is one row. The
operators of a pattern follow from its form. So patterns that differ only in names and terms are
``Applied`` to one tree, which is planned once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from levada.core.expressions import Var
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Iri, Term
from levada.plan.logical.nodes import InGraph, InMerge, InWindow, Source
from levada.plan.physical import build
from levada.plan.physical import operators as p
from levada.plan.physical.operators import HOME, Op
from levada.plan.physical.partitioning import place

PLACES = (Iri("..0"), Iri("..1"), Iri("..2"))
"""The placeholders for the terms of a form, in order; ``Applied`` replaces them."""


def parts_of(source: InMerge) -> list[Source]:
    """Returns the merged sources."""
    windows: list[Source] = [InWindow(index) for index in source.windows]
    return [*windows, InGraph(None)] if source.static else windows


def form_of(pattern: TriplePattern) -> tuple[TriplePattern, tuple[str, ...], tuple[Term, ...]]:
    """Returns a pattern with placeholders for names and terms, with its names and its terms.

    >>> form_of(TriplePattern(Var("x"), Iri("e:p"), Var("x")))[1:]
    (('x',), (Iri(value='e:p'),))
    """
    names = tuple(dict.fromkeys(v.name for v in pattern.positions if isinstance(v, Var)))
    terms = tuple(t for t in pattern.positions if not isinstance(t, Var))
    free = iter(range(len(terms)))
    form = (
        Var(f".{names.index(t.name)}") if isinstance(t, Var) else PLACES[next(free)]
        for t in pattern.positions
    )
    return TriplePattern(*form), names, terms


def merge(parts: Sequence[Op]) -> Op:
    """Returns the rows of one triple pattern over the merge of its sources, from its rows over
    each.
    """
    whole, *others = [_make_source_set(part) for part in parts]
    for part in others:
        both = _negative(build.join(whole, part))
        whole = build.union(whole, part, both)
    return whole


def _make_source_set(op: Op) -> Op:
    """Makes the rows of a source a set, partitioned by all variables.

    Equal rows of all sources are then in one partition.
    """
    if op.raw or op.stage > 0:
        return build.occur(op)
    keys = op.variables or HOME
    stage, exchange = place((op,), keys)
    return replace(op, spec=p.Hold(), inputs=(op,), stage=stage, exchange=exchange, placed=keys)


def _negative(op: Op) -> Op:
    assert isinstance(op.spec, p.Join), "a product is a join"
    return replace(op, spec=replace(op.spec, negative=True), weighted=True)

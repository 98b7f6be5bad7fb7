"""Slots of first rows from parsed terms, and from terms of the plan."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from levada.connectors.ingest.parse.ntriples import TermColumn, Triples
from levada.core import column_names as col
from levada.core.event_time import Times
from levada.core.frame import Column
from levada.core.frozen import frozen
from levada.core.rdf_terms import Kind
from levada.kernels.terms.term_dictionary import Terms
from levada.kernels.terms.term_lookup import TermLookup
from levada.plan.execution.row_layout import Facet


@frozen
class Chunk:
    """Parsed triples with the event time (ms) of each, and the pool for their texts.

    ``hits`` receives the number of triples that matched each pattern, by its text; None: not
    counted.
    """

    triples: Triples
    ts: Times
    pool: TermLookup
    hits: Counter[str] | None = None


@frozen
class Resources:
    """IRIs and blank nodes of the plan: their identities with their texts, and their kinds."""

    terms: Terms
    kinds: npt.NDArray[np.uint8]


def term_slot(
    term: TermColumn, rows: npt.NDArray[np.int64], i: int, facets: Facet, chunk: Chunk
) -> dict[str, Column]:
    """Returns the columns of slot i from a position of these triples, and adds wanted texts to the
    pool.
    """
    buffer, pool = chunk.triples.buffer, chunk.pool
    out: dict[str, Column] = {}
    x, y = term.x.take(rows), term.y.take(rows)
    out[col.x(i)], out[col.y(i)] = x, y
    if Facet.NUM in facets:
        kind = term.kind.take(rows)
        out[col.kind(i)] = kind
        n = len(rows)
        out[col.double(i)] = term.dbl.take(rows) if term.dbl is not None else np.zeros(n)
        out[col.mantissa(i)] = (
            term.man.take(rows) if term.man is not None else np.zeros(n, np.int64)
        )
        out[col.scale(i)] = (
            term.scale.take(rows) if term.scale is not None else np.zeros(n, np.uint8)
        )
        if Facet.TEXT not in facets:
            hard = np.flatnonzero((kind == Kind.HARD_NUMBER) | (kind == Kind.HARD_TIME))
            if len(hard):
                at = rows[hard]
                pool.add(
                    Terms.from_texts(term.x[at], term.y[at], term.off[at], term.len[at], buffer)
                )
    if Facet.TEXT in facets:
        pool.add(Terms.from_texts(x, y, term.off.take(rows), term.len.take(rows), buffer))
    if not (Facet.ID in facets or Facet.TEXT in facets):
        del out[col.x(i)], out[col.y(i)]
    return out


def resource_slot(
    resources: Resources, at: npt.NDArray[np.int64], i: int, facets: Facet, pool: TermLookup
) -> dict[str, Column]:
    """The columns of slot i from IRIs, blank nodes of the plan: row ``at[n]`` of their table."""
    out: dict[str, Column] = {}
    x, y = resources.terms.x.take(at), resources.terms.y.take(at)
    if Facet.ID in facets or Facet.TEXT in facets:
        out[col.x(i)], out[col.y(i)] = x, y
    if Facet.NUM in facets:
        n = len(at)
        out[col.kind(i)], out[col.double(i)] = resources.kinds.take(at), np.zeros(n)
        out[col.mantissa(i)], out[col.scale(i)] = np.zeros(n, np.int64), np.zeros(n, np.uint8)
    if Facet.TEXT in facets:
        pool.add(resources.terms.pick(x, y))
    return out

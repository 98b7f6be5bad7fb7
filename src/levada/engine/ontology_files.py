"""The schema triples of an ontology, from files of static RDF (``plan.logical.ontology_schema``
defines them).

They are few among possibly millions, so they are identified by their predicates and only then
become terms. Blank nodes are those of the same file as static data. Cost: that of reading the
files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from levada.connectors.ingest.parse.ntriples import TermColumn, Triples
from levada.connectors.ingest.static_files import StaticFile, chunks
from levada.core.rdf_terms import Iri, Term, parse_term
from levada.kernels.terms.term_ids import identify_one
from levada.plan.logical.ontology_schema import TYPE, Regime, Statement, kinds_of, predicates_of

_SEED = 0  # these identities are not compared with others


def statements(files: Sequence[StaticFile], regime: Regime) -> Iterator[Statement]:
    """Yields the schema triples of all graphs of the files. Raises ``SourceError``."""
    for triples in chain.from_iterable(chunks(file, _SEED) for file in files):
        chosen = np.zeros(triples.n, np.bool_)
        for predicate in predicates_of(regime):
            matches = _is_term(triples.p, predicate)
            if predicate == TYPE:
                matches &= _is_any(triples.o, kinds_of(regime))
            chosen |= matches
        for row in np.flatnonzero(chosen).tolist():
            yield (
                _term(triples, triples.s, row),
                _term(triples, triples.p, row),
                _term(triples, triples.o, row),
            )


def _is_term(column: TermColumn, term: Iri) -> npt.NDArray[np.bool_]:
    x, y = identify_one(str(term), _SEED)
    same: npt.NDArray[np.bool_] = (column.x == np.uint64(x)) & (column.y == np.uint64(y))
    return same


def _is_any(column: TermColumn, terms: Sequence[Iri]) -> npt.NDArray[np.bool_]:
    matches = np.zeros(len(column.x), np.bool_)
    for term in terms:
        matches |= _is_term(column, term)
    return matches


def _term(triples: Triples, column: TermColumn, row: int) -> Term:
    return parse_term(triples.text(column, row))

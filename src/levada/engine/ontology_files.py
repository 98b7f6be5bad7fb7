"""The schema triples of an ontology, from files of static RDF (``plan.logical.ontology_schema``
defines them).

They are few among possibly millions, so they are identified by their predicates and only then
become terms. Blank nodes are those of the same file as static data. Cost: that of reading the
files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from levada.connectors.ingest.parse.ntriples import TermColumn, Triples
from levada.connectors.ingest.static_files import StaticFile, chunks
from levada.core.array_types import Longs
from levada.core.rdf_terms import Iri, Term, parse_term
from levada.kernels.terms.term_ids import identify_one
from levada.plan.logical.ontology_schema import (
    TYPE,
    Regime,
    Statement,
    UnusedAxioms,
    kinds_of,
    predicates_of,
    unused_kinds,
    unused_predicates,
)

_SEED = 0  # these identities are not compared with others


def read_ontology(
    files: Sequence[StaticFile], regime: Regime
) -> tuple[list[Statement], tuple[UnusedAxioms, ...]]:
    """Returns the schema triples of all graphs of the files, and the axioms of each file that
    entail nothing. Raises ``SourceError``.
    """
    statements: list[Statement] = []
    unused = []
    for file in files:
        counts = Counter[Iri]()
        for triples in chunks(file, _SEED):
            statements += _schema_triples(triples, regime)
            counts += _unused_axioms(triples, regime)
        if counts:
            unused.append(UnusedAxioms(file.name, regime, counts))
    return statements, tuple(unused)


def _schema_triples(triples: Triples, regime: Regime) -> Iterator[Statement]:
    predicates = predicates_of(regime)
    number = _numbers(triples.p, predicates)
    chosen = number >= 0
    if TYPE in predicates:
        typed = number == predicates.index(TYPE)
        chosen &= ~typed | (_numbers(triples.o, kinds_of(regime)) >= 0)
    for row in np.flatnonzero(chosen).tolist():
        yield (
            _term(triples, triples.s, row),
            _term(triples, triples.p, row),
            _term(triples, triples.o, row),
        )


def _unused_axioms(triples: Triples, regime: Regime) -> Counter[Iri]:
    predicates, kinds = (TYPE, *unused_predicates(regime)), unused_kinds(regime)
    number = _numbers(triples.p, predicates)
    kind = _numbers(triples.o, kinds)[number == 0]
    counts = _count(number[number > 0], predicates)
    return counts + _count(kind[kind >= 0], kinds)


def _count(number: Longs, terms: Sequence[Iri]) -> Counter[Iri]:
    counts = np.bincount(number, minlength=len(terms)).tolist()
    return Counter({term: n for term, n in zip(terms, counts, strict=True) if n})


def _numbers(column: TermColumn, terms: Sequence[Iri]) -> Longs:
    """Returns the number of each row's term among ``terms``, -1 for another term."""
    if not terms:
        return np.full(len(column.x), -1, np.int64)
    ids = np.array([identify_one(str(term), _SEED) for term in terms], np.uint64)
    order = np.argsort(ids[:, 0])
    at = order[np.minimum(np.searchsorted(ids[order, 0], column.x), len(terms) - 1)]
    is_same = (ids[at, 0] == column.x) & (ids[at, 1] == column.y)
    return np.where(is_same, at, -1)


def _term(triples: Triples, column: TermColumn, row: int) -> Term:
    return parse_term(triples.text(column, row))

"""Words of cases with an ontology."""

from __future__ import annotations

from dataclasses import replace

from levada.testing.reference_model import ReferenceQuery
from support.generators import CaseQuery
from support.query_dsl import triples

RDFS, OWL = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2002/07/owl#"
SUB, SUBP = f"<{RDFS}subClassOf>", f"<{RDFS}subPropertyOf>"


def under(regime: str, schema: str, asked: CaseQuery) -> CaseQuery:
    """A query under a regime, with the triples of an ontology as its schema."""
    assert isinstance(asked.reference, ReferenceQuery)
    judged = replace(asked.reference, entailment=regime, ontology=triples(schema))
    return replace(asked, options={**asked.options, "entailment": regime}, reference=judged)

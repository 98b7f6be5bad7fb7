"""W3C's tests of the entailment regimes: which are in scope, under which of Levada's regimes, and
why others are not.

A test names the regimes under which its answer holds. In scope are those of RDF, RDFS and D under
``rdfs``, and else of OWL 2 with the RDF-based semantics under ``owl``. The regimes of SPARQL let an
implementation offer those that it chooses (SPARQL 1.1 Entailment Regimes, section 1.3); Levada's
are lists of rules (docs/semantics.md), and a test that needs another rule is skipped with that
rule.
"""

from __future__ import annotations

import re
from functools import cache

from w3c_suite import SUITE, W3cTest, tests_of

MANIFEST = SUITE / "sparql11" / "entailment" / "manifest.ttl"
_ENTRY = re.compile(r"\n:([\w-]+)\s+rdf:type\s+mf:QueryEvaluationTest(.*?)mf:result", re.DOTALL)

SKIPPED = {
    "rdf01": (
        "rdfD2, that every predicate is a rdf:Property, "
        "is left out: the test is of the regime RDF, which Levada does not offer"
    ),
    "paper-sparqldl-Q1": (
        "owl:Nothing below every class is a rule on OWL's own vocabulary (scm-cls), "
        "of which Levada's owl has none"
    ),
    "sparqldl-10": "it needs eq-ref, that everything is the same as itself, which is left out",
    "sparqldl-11": (
        "it needs scm rules, which say of properties what follows from their inverses and "
        "from owl:Thing"
    ),
    "sparqldl-12": "it needs owl:Thing as everybody's class, a rule on OWL's own vocabulary",
}
"""Tests of the regimes in scope that need a rule which is not among Levada's."""
SCHEMA = ("rdfs:subClassOf", "rdfs:subPropertyOf", "owl:sameAs")
"""Predicates about which a stream entails nothing, since the schema is static data: such tests are
asked over static data only.
"""


@cache
def entailment_tests() -> tuple[tuple[W3cTest, str, str], ...]:
    """Each test with its regime, and why it is out of scope ("": it is in scope); none where the
    suite is absent.
    """
    if not MANIFEST.exists():
        return ()
    named = {
        name: set(re.findall(r"ent:([\w-]+)", body))
        for name, body in _ENTRY.findall(MANIFEST.read_text())
    }
    found = []
    for test in sorted(tests_of(MANIFEST), key=lambda test: test.name):
        name = test.name.rpartition("/")[2]
        regime, why = _regime(named[name])
        found.append((test, regime, SKIPPED.get(name, why)))
    return tuple(found)


def _regime(regimes: set[str]) -> tuple[str, str]:
    if regimes & {"RDFS", "RDF", "D"}:
        return "rdfs", ""
    if "OWL-RDF-Based" in regimes:
        return "owl", ""
    if "RIF" in regimes:
        return "none", "the regime RIF is a rule language of its own, which Levada does not offer"
    return (
        "none",
        "OWL 2 with the direct semantics asks for class expressions and undistinguished "
        "variables, not for rules",
    )

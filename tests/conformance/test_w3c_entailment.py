"""W3C's entailment tests in scope (``w3c_entailment``): over static data that are the ontology,
too, and over a window.

Every fourth runs in ``make test``; the others are long.
"""

from __future__ import annotations

import pytest
from w3c_entailment import SCHEMA, SKIPPED, entailment_tests
from w3c_results import difference, expected
from w3c_runs import RUNS, form_of
from w3c_suite import MISSING, W3cTest

from levada.language import parse

TESTS = [
    pytest.param(*case, id=case[0].name.rpartition("/")[2], marks=[pytest.mark.long] * (i % 4 > 0))
    for i, case in enumerate(entailment_tests())
]
needs_suite = pytest.mark.skipif(not TESTS, reason=MISSING)


@needs_suite
def test_most_tests_of_rdfs_are_in_scope() -> None:
    in_scope = [
        test.name for test, regime, why in entailment_tests() if regime == "rdfs" and not why
    ]
    assert len(in_scope) == 39
    assert {test.name.rpartition("/")[2] for test, _, _ in entailment_tests()} >= set(SKIPPED)


@needs_suite
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(("test", "regime", "why"), TESTS)
def test_w3c_entailment(test: W3cTest, regime: str, why: str, run: str) -> None:
    if why:
        pytest.skip(why)
    if run == "stream" and any(word in test.text for word in SCHEMA):
        pytest.skip(
            "it asks for schema triples, by which streams entail nothing: the schema is static data"
        )
    found = RUNS[run](test, regime)
    wrong = difference(
        expected(test.result, form_of(parse(test.text))), found, ordered=False, lax=test.lax
    )
    assert wrong is None, f"{test.text}\n{wrong}"

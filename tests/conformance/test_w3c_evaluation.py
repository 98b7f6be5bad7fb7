"""The W3C evaluation tests of SPARQL 1.0 and 1.1 on the engine, each as a static query and as a
stream.

Every eighth test runs in ``make test``, and all that ever failed; the others are long. What is
refused by name is skipped with the engine's own words: it must say so at registration, and never
answer wrongly.
"""

from __future__ import annotations

import pytest
from w3c_results import difference, expected
from w3c_runs import RUNS, form_of
from w3c_suite import MISSING, SKIPPED, W3cTest, suite

from levada.language import parse

ONCE_FAILED = {
    "sparql10/algebra/join-combo-1",  # a union of static patterns had no place
    "sparql10/distinct/distinct-star-1",
    "sparql10/graph/graph-not-exist",  # GRAPH <g> without such a graph was an error
    "sparql10/open-world/date-2",  # a date with a zone and one without were unequal
    "sparql10/optional/dawg-optional-complex-1",
    "sparql10/reduced/reduced-1",
    "sparql11/bind/bind07",
}
TESTS = [
    pytest.param(
        test, id=test.name, marks=[pytest.mark.long] * (i % 8 > 0 and test.name not in ONCE_FAILED)
    )
    for i, test in enumerate(suite())
]
needs_suite = pytest.mark.skipif(not TESTS, reason=MISSING)


@needs_suite
def test_the_suite_is_whole() -> None:
    assert len(suite()) > 500


@pytest.mark.long
@needs_suite
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("test", TESTS)
def test_w3c_evaluation(test: W3cTest, run: str) -> None:
    if test.name in SKIPPED:
        pytest.skip(SKIPPED[test.name])
    unit = parse(test.text)
    found = RUNS[run](test)
    want = expected(test.result, form_of(unit))
    wrong = difference(want, found, ordered=bool(unit.modifiers.order_by), lax=test.lax)
    assert wrong is None, f"{test.text}\n{wrong}"

"""The reference says what CSRBench expects, and our spelling of its queries means what the suite's
own does.
"""

from __future__ import annotations

import csrbench
import pytest

from levada.testing.compare import same
from levada.testing.reference import evaluate, report_times
from levada.testing.window_membership import occurrences, stays

pytestmark = pytest.mark.skipif(not csrbench.available(), reason=csrbench.MISSING)


def approximately(relation: csrbench.Relation) -> list[object]:
    """A relation whose numbers are compared to 1e-9."""
    return [
        (
            time,
            [
                {
                    k: pytest.approx(v, rel=1e-9) if isinstance(v, float) else v
                    for k, v in row.items()
                }
                for row in rows
            ],
        )
        for time, rows in relation
    ]


def filled_closes(case: csrbench.Benchmark) -> list[int]:
    """The closes at which the window holds something."""
    ((_, window),) = case.reference.windows.values()
    held = stays(window, occurrences(csrbench.elements()))
    times = report_times({"w": window}, {"w": held})
    return [t for t in times if any(s.enter <= t < s.leave for s in held)]


def test_the_stream() -> None:
    assert [e.ts for e in csrbench.elements()] == [1000 * second for second in range(34)]


@pytest.mark.long
@pytest.mark.parametrize("policy", csrbench.POLICIES)
@pytest.mark.parametrize("number", [1, 2, 4])
def test_reference_equals_the_expected_relations(number: int, policy: str) -> None:
    case = csrbench.benchmark(number, policy)
    reports = evaluate(case.reference, {csrbench.STREAM: csrbench.elements()})
    closes = [] if policy == "change" else filled_closes(case)
    expected = csrbench.expected(number, policy)
    assert expected
    assert csrbench.listed(reports, policy, closes) == approximately(expected)


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "policy"), [(n, csrbench.POLICIES[n % 2]) for n in csrbench.QUERIES]
)
def test_our_spelling_means_what_the_suite_says(number: int, policy: str) -> None:
    streams = {csrbench.STREAM: csrbench.elements()}
    found = evaluate(csrbench.benchmark(number, policy).reference, streams)
    assert any(r.solutions for r in found)
    assert same(evaluate(csrbench.oracle(number, policy), streams), found) is None


def test_config_is_what_the_text_says() -> None:
    case = csrbench.benchmark(5, "change")
    assert "REGISTER ISTREAM" in case.text
    assert "[RANGE PT5S STEP PT1S]" in case.text
    assert case.options == {"t0": 0, "report": "change"}

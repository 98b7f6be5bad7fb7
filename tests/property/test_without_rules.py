"""The unoptimised plan as an oracle: with the optimizer's rules switched off, all or one of them, a
query says what the reference says.

``LEVADA_CASES`` is the number of examples for each test, as in ``test_random_cases``.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.plan.optimizer.pipeline import OPTIONAL, disable_rules
from levada.testing.compare import same_queries
from support.example_counts import PATIENCE, examples
from support.generators import Case, cases, cql_cases, cql_view_cases, entailment_cases
from support.stepped_runs import run_case

pytestmark = pytest.mark.timeout(PATIENCE)
rdf, tuples, views = cases(most=4), cql_cases(most=4), cql_view_cases(most=2)
entailment = entailment_cases(most=3)
rows = st.sampled_from((1, 3, 1000))


@examples(20)
@given(rdf, rows)
def test_rsp_queries_say_the_same_unoptimised(case: Case, epoch_rows: int) -> None:
    with disable_rules(*OPTIONAL):
        got = run_case(case, epoch_rows=epoch_rows)
    assert same_queries(case.expected(), got) is None


@examples(8)
@given(tuples | views, rows)
def test_cql_queries_say_the_same_unoptimised(case: Case, epoch_rows: int) -> None:
    with disable_rules(*OPTIONAL):
        got = run_case(case, epoch_rows=epoch_rows)
    assert same_queries(case.expected(), got) is None


@examples(6)
@given(entailment, rows)
def test_entailed_queries_say_the_same_unoptimised(case: Case, epoch_rows: int) -> None:
    with disable_rules(*OPTIONAL):
        got = run_case(case, epoch_rows=epoch_rows)
    assert same_queries(case.expected(), got) is None


@examples(20)
@given(rdf | rdf | tuples | entailment, st.sampled_from(sorted(OPTIONAL)), rows)
def test_no_rule_shows_in_what_queries_say(case: Case, rule: str, epoch_rows: int) -> None:
    with disable_rules(rule):
        got = run_case(case, epoch_rows=epoch_rows)
    assert same_queries(case.expected(), got) is None

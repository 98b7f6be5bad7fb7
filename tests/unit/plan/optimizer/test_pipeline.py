"""The wrapper: rules in their order, switched off, checked, traced."""

from __future__ import annotations

from dataclasses import replace
from itertools import count, pairwise

import pytest
from pairs import asked

from levada.language.translate.cql.translate import translate_cql
from levada.plan.logical import nodes as a
from levada.plan.optimizer import pipeline
from levada.plan.optimizer.pipeline import OPTIONAL, RULES, disable_rules, optimize, trace_rules
from levada.plan.optimizer.rule import Context, Rule, is_well_formed, verify

GROUP = """WINDOW :w { ?s :p ?v . ?s :q ?x } WINDOW :x { ?s :r ?y } VALUES ?a { 1 } MINUS { }
{ SELECT ?v { ?v :a ?b } ORDER BY ?b LIMIT 3 } FILTER(?v > 1 && ?x > 2)"""


def of_tuples() -> a.Query:
    """What that of triples cannot have: rows of now with the last ones."""
    text = "Rstream(Select a.v From S [Now] As a, S [Rows 2] As b Where a.v > 1)"
    return translate_cql(text, {"S": {"v": "integer"}})


def of_two_tables() -> a.Query:
    text = "Select v, w From T [Range 5 s] As B, S [Range 3 s] As A Where A.k = B.k"
    return translate_cql(
        text, {"S": {"k": "integer", "v": "integer"}, "T": {"k": "integer", "w": "integer"}}
    )


OTHERS = {"recent_rows": of_tuples, "order_windows": of_two_tables}
"""Queries that rules change which leave the first one as it is."""


def test_entailment_comes_first_and_is_no_choice() -> None:
    assert RULES[0].name == "entail_patterns" and RULES[0].needed
    assert {rule.name for rule in RULES[1:]} == OPTIONAL


def test_with_all_rules_off_the_query_is_what_was_translated() -> None:
    query = asked(GROUP)
    with disable_rules(*OPTIONAL):
        assert optimize(query) is query
    assert optimize(query) != query


@pytest.mark.parametrize("rule", sorted(OPTIONAL))
def test_each_rule_changes_this_query_and_does_not_run_where_it_is_off(rule: str) -> None:
    query = OTHERS[rule]() if rule in OTHERS else asked(GROUP)
    with trace_rules(lambda: 0.0) as steps, disable_rules(rule):
        off = optimize(query)
    assert [s.rule for s in steps] == [r.name for r in RULES if r.name != rule]
    assert off != optimize(query)


def test_steps_have_times_and_what_was_before_and_after() -> None:
    query = asked(GROUP)
    clock = count()
    with trace_rules(lambda: float(next(clock))) as steps:
        found = optimize(query)
    assert [s.rule for s in steps] == [rule.name for rule in RULES]
    assert {s.seconds for s in steps} == {1.0}
    assert steps[0].before is query and steps[-1].after is found
    assert all(one.after is other.before for one, other in pairwise(steps))
    optimize(query)
    assert len(steps) == len(RULES), "outside nothing is kept"


def _hides(query: a.Query, context: Context) -> a.Query:
    return replace(query, pattern=a.Project(query.pattern, ("s",)))


def _reads_more(query: a.Query, context: Context) -> a.Query:
    more = a.Bgp(a.InWindow(7), ())
    return replace(query, pattern=a.Minus(query.pattern, more))


def _counts_twice(query: a.Query, context: Context) -> a.Query:
    return replace(query, output=a.Output.DSTREAM)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (_hides, "_hides changed the variables"),
        (_reads_more, "_reads_more reads other sources"),
        (_counts_twice, "_counts_twice changed more than the pattern"),
    ],
)
def test_a_wrong_rule_is_found_where_it_runs(
    rule: object, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "RULES", (Rule(rule),))  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match=message):
        optimize(asked(GROUP))


def test_what_cannot_be_lowered_is_not_well_formed() -> None:
    leaf = a.Bgp(a.InWindow(0), ())
    assert not is_well_formed(a.Conjunction((a.Unit(), leaf)))
    assert not is_well_formed(a.Static(a.Distinct(leaf)))
    assert is_well_formed(a.Static(a.Distinct(a.Bgp(a.InGraph(None), ()))))
    query = asked(GROUP)
    with pytest.raises(AssertionError, match="made Static of what cannot be one"):
        verify("rule", query, replace(query, pattern=a.Static(query.pattern)))

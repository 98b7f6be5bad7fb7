"""``one_row_values``: single rows beside other parts."""

from __future__ import annotations

import pytest
from pairs import asked, check, check_same

from levada.core.stream_facts import StreamFacts
from levada.plan.lowering.lower import lower
from levada.plan.lowering.print_physical import operator_lines
from levada.plan.optimizer.pipeline import disable_rules, optimize
from levada.plan.optimizer.rules.flatten_joins import flatten_joins
from levada.plan.optimizer.rules.inline_single_row_values import one_row_values

FLAT = (flatten_joins,)


def test_one_row_of_new_variables_extends() -> None:
    before = """
    (project (?s ?v ?a ?b)
      (conjunction
        (bgp (window 0)
          (?s <p> ?v))
        (values (?a ?b)
          ("1" "2"))))
    """
    after = """
    (project (?s ?v ?a ?b)
      (extend ?b = "2"
        (extend ?a = "1"
          (bgp (window 0)
            (?s <p> ?v)))))
    """
    query = asked("WINDOW :w { ?s :p ?v } VALUES (?a ?b) { (1 2) }", before=FLAT)
    check(query, one_row_values, before, after)


def test_the_name_of_each_window_is_a_constant() -> None:
    before = """
    (project (?w ?s ?v)
      (union
        (conjunction
          (bgp (window 0)
            (?s <p> ?v))
          (values (?w)
            (<w>)))
        (conjunction
          (bgp (window 1)
            (?s <p> ?v))
          (values (?w)
            (<x>)))))
    """
    after = """
    (project (?w ?s ?v)
      (union
        (extend ?w = <w>
          (bgp (window 0)
            (?s <p> ?v)))
        (extend ?w = <x>
          (bgp (window 1)
            (?s <p> ?v)))))
    """
    check(asked("WINDOW ?w { ?s :p ?v }", before=FLAT), one_row_values, before, after)


def test_of_single_rows_alone_the_first_one_stays() -> None:
    before = """
    (project (?a ?b)
      (conjunction
        (values (?a)
          ("1"))
        (values (?b)
          ("2"))))
    """
    after = """
    (project (?a ?b)
      (extend ?b = "2"
        (values (?a)
          ("1"))))
    """
    query = asked("VALUES ?a { 1 } VALUES ?b { 2 }", before=FLAT)
    check(query, one_row_values, before, after)


@pytest.mark.parametrize(
    "values", ["?v { 1 }", "?a { 1 2 }", "(?a ?b) { (1 UNDEF) }", "?a { }", "?a { UNDEF }"]
)
def test_rows_that_join_or_are_a_choice_stay(values: str) -> None:
    check_same(asked(f"WINDOW :w {{ ?s :p ?v }} VALUES {values}", before=FLAT), one_row_values)


def operators(group: str) -> list[str]:
    """The operators of a query with this group, by their first words."""
    lines = operator_lines(lower(optimize(asked(group)), {"http://e/s": StreamFacts()}).root)
    return [line.split()[0].strip("()") for line in lines]


@pytest.mark.parametrize(
    "group",
    ["WINDOW :w { ?s :p ?o } VALUES (?a ?b) { (1 2) }", "WINDOW :w { ?s :p ?o } GRAPH ?g { }"],
)
def test_a_row_without_shared_variables_is_no_join_but_without_the_rule(group: str) -> None:
    found = operators(group)
    assert "extend" in found and "join" not in found
    with disable_rules("one_row_values"):
        assert "join" in operators(group)


def test_a_graph_variable_used_once_costs_no_join() -> None:
    assert operators("GRAPH ?g { ?s :p ?o }").count("join") == 0

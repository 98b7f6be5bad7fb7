"""``merge_slices``: ORDER BY with OFFSET and LIMIT."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pairs import NOTHING, asked, check, check_same

from levada.core.expressions import Var
from levada.core.query_model import Output
from levada.plan.lowering.lower import find_shown_order
from levada.plan.optimizer.rules.top_n import merge_slices

GROUP = "WINDOW :w { ?s :p ?v }"


def test_order_and_limit_are_one_below_what_is_shown() -> None:
    before = """
    (slice offset 0 limit 3
      (project (?s)
        (order asc ?v
          (bgp (window 0)
            (?s <p> ?v)))))
    """
    after = """
    (project (?s)
      (top offset 0 limit 3 asc ?v then (?s)
        (bgp (window 0)
          (?s <p> ?v))))
    """
    query = asked(GROUP, "ORDER BY ?v LIMIT 3", head="SELECT ?s")
    check(query, merge_slices, before, after)


def test_an_order_that_constructs_is_one_with_its_offset() -> None:
    before = """
    (slice offset 2
      (project (?v ?s)
        (order desc ?v asc ?s
          (bgp (window 0)
            (?s <p> ?v)))))
    """
    after = """
    (project (?v ?s)
      (top offset 2 desc ?v asc ?s then (?v ?s)
        (bgp (window 0)
          (?s <p> ?v))))
    """
    query = asked(GROUP, "ORDER BY DESC(?v) ?s OFFSET 2", head="CONSTRUCT { ?v :of ?s }")
    check(query, merge_slices, before, after)


def test_differences_come_in_the_order_that_was_asked_for_with_the_rule_and_without() -> None:
    query = asked(GROUP, "ORDER BY ?v LIMIT 3", head="SELECT ?s ?v")
    query = replace(query, output=Output.ISTREAM)
    assert find_shown_order(query.pattern, ["s", "v"]) == ((Var("v"), False),)
    assert find_shown_order(merge_slices(query, NOTHING).pattern, ["s", "v"]) == (
        (Var("v"), False),
    )


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        ("SELECT ?s", "LIMIT 3"),
        ("SELECT ?s", "ORDER BY ?v"),
        ("SELECT DISTINCT ?s", "ORDER BY ?v LIMIT 3"),  # first made distinct, then cut
    ],
)
def test_other_modifiers_stay(head: str, tail: str) -> None:
    check_same(asked(GROUP, tail, head=head), merge_slices)

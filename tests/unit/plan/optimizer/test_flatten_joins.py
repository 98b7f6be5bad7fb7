"""``flatten_joins``: trees of joins as conjunctions."""

from __future__ import annotations

import pytest
from pairs import asked, check, check_same

from levada.plan.optimizer.rules.flatten_joins import flatten_joins


def test_a_tree_of_joins_is_one_conjunction_whose_filtered_parts_stay() -> None:
    before = """
    (project (?s ?v ?b ?x)
      (join
        (join
          (bgp (window 0)
            (?s <p> ?v))
          (bgp (default graph)
            (?v <a> ?b)))
        (filter (> ?x "1")
          (bgp (window 1)
            (?s <q> ?x)))))
    """
    after = """
    (project (?s ?v ?b ?x)
      (conjunction
        (bgp (window 0)
          (?s <p> ?v))
        (bgp (default graph)
          (?v <a> ?b))
        (filter (> ?x "1")
          (bgp (window 1)
            (?s <q> ?x)))))
    """
    group = "WINDOW :w { ?s :p ?v } ?v :a ?b { WINDOW :x { ?s :q ?x } FILTER(?x > 1) }"
    check(asked(group), flatten_joins, before, after)


def test_joins_on_the_right_are_parts_of_the_same_conjunction() -> None:
    before = """
    (project (?s ?v ?x ?b)
      (join
        (bgp (window 0)
          (?s <p> ?v))
        (join
          (bgp (window 1)
            (?s <q> ?x))
          (bgp (default graph)
            (?x <a> ?b)))))
    """
    after = """
    (project (?s ?v ?x ?b)
      (conjunction
        (bgp (window 0)
          (?s <p> ?v))
        (bgp (window 1)
          (?s <q> ?x))
        (bgp (default graph)
          (?x <a> ?b))))
    """
    group = "WINDOW :w { ?s :p ?v } { WINDOW :x { ?s :q ?x } ?x :a ?b }"
    check(asked(group), flatten_joins, before, after)


@pytest.mark.parametrize(
    "group",
    [
        "WINDOW :w { ?s :p ?v . ?s :q ?z }",  # a basic graph pattern is flat
        "WINDOW :w { ?s :p ?v } OPTIONAL { ?v :a ?b }",
        "{ WINDOW :w { ?s :p ?v } } UNION { ?s :a ?v }",
    ],
)
def test_what_is_no_join_stays(group: str) -> None:
    check_same(asked(group), flatten_joins)

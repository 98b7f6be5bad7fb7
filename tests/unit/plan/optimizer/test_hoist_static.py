"""``hoist_static``: parts that static data alone answer."""

from __future__ import annotations

from textwrap import dedent

import pytest
from pairs import NOTHING, asked, check_same, pattern

from levada.plan.optimizer.rules.flatten_joins import flatten_joins
from levada.plan.optimizer.rules.hoist_static import hoist_static
from levada.plan.optimizer.rules.top_n import merge_slices

FLAT = (flatten_joins, merge_slices)


def test_an_optional_over_graphs_is_evaluated_once() -> None:
    before = """
    (project (?s ?v ?b ?d)
      (conjunction
        (bgp (window 0)
          (?s <p> ?v))
        (left-join
          (bgp (default graph)
            (?v <a> ?b))
          (bgp (default graph)
            (?b <c> ?d)))))
    """
    after = """
    (project (?s ?v ?b ?d)
      (conjunction
        (bgp (window 0)
          (?s <p> ?v))
        (static
          (left-join
            (bgp (default graph)
              (?v <a> ?b))
            (bgp (default graph)
              (?b <c> ?d))))))
    """
    query = asked("WINDOW :w { ?s :p ?v } { ?v :a ?b OPTIONAL { ?b :c ?d } }", before=FLAT)
    changed = hoist_static(query, NOTHING)
    assert pattern(query) == dedent(before).strip()
    assert pattern(changed) == dedent(after).strip()


def test_what_an_order_hides_is_not_kept() -> None:
    query = asked(
        "WINDOW :w { ?s :p ?v } { SELECT ?v { ?v :a ?b } ORDER BY ?b LIMIT 3 }", before=FLAT
    )
    after = """
    (project (?s ?v)
      (conjunction
        (bgp (window 0)
          (?s <p> ?v))
        (static
          (project (?v)
            (top offset 0 limit 3 asc ?b then (?v)
              (bgp (default graph)
                (?v <a> ?b)))))))
    """
    assert pattern(hoist_static(query, NOTHING)) == dedent(after).strip()


def test_paths_are_marked_and_so_is_what_is_in_them() -> None:
    query = asked("WINDOW :w { ?s :p ?v } ?v (:a|:b)+ ?b", before=FLAT)
    found = pattern(hoist_static(query, NOTHING))
    assert "(static\n      (closure ?v ?b 1.." in found


@pytest.mark.parametrize(
    "group",
    [
        "?v :a ?b OPTIONAL { ?b :c ?d }",  # all of it is static: there is one answer
        "WINDOW :w { ?s :p ?v } ?v :a ?b",  # joined as it is
        "WINDOW :w { ?s :p ?v } OPTIONAL { ?v :a ?b }",
        "WINDOW :w { ?s :p ?v } { ?v :a ?b OPTIONAL { ?b :c ?d FILTER(NOW() > ?d) } }",
        "WINDOW :w { ?s :p ?v } { SELECT ?v (RAND() AS ?r) { ?v :a ?b } LIMIT 3 }",
    ],
)
def test_what_a_report_decides_on_stays(group: str) -> None:
    check_same(asked(group, before=FLAT), hoist_static)

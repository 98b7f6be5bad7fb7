"""``push_filters``: where filters go, and what they do not pass."""

from __future__ import annotations

from textwrap import dedent

import pytest
from pairs import NOTHING, asked, check, check_same, pattern

from levada.plan.optimizer.rules.filter_pushdown import push_filters
from levada.plan.optimizer.rules.flatten_joins import flatten_joins
from levada.plan.optimizer.rules.inline_single_row_values import one_row_values

FLAT = (flatten_joins, one_row_values)
LEAF = "WINDOW :w { ?s :p ?v }"


def pushed(group: str) -> str:
    """The pattern with its filters where they go."""
    return pattern(push_filters(asked(group, before=FLAT), NOTHING))


def text(tree: str) -> str:
    return dedent(tree).strip()


def test_each_part_of_a_filter_is_a_condition_of_the_conjunction() -> None:
    before = """
    (project (?s ?v ?x)
      (filter (&& (> ?v "1") (< ?x ?v))
        (bgp (window 0)
          (?s <p> ?v)
          (?s <q> ?x))))
    """
    after = """
    (project (?s ?v ?x)
      (conjunction (> ?v "1") (< ?x ?v)
        (bgp (window 0)
          (?s <p> ?v)
          (?s <q> ?x))))
    """
    query = asked("WINDOW :w { ?s :p ?v . ?s :q ?x FILTER(?v > 1 && ?x < ?v) }")
    check(query, push_filters, before, after)


def test_a_filter_goes_to_the_left_of_optional_if_the_right_does_not_bind_its_variable() -> None:
    assert pushed(f"{LEAF} OPTIONAL {{ ?s :a ?b }} FILTER(?v > 1 && ?b > 1)") == text(
        """
        (project (?s ?v ?b)
          (filter (> ?b "1")
            (left-join
              (filter (> ?v "1")
                (bgp (window 0)
                  (?s <p> ?v)))
              (bgp (default graph)
                (?s <a> ?b)))))
        """
    )


@pytest.mark.parametrize(
    ("group", "operator"),
    [
        (f"{LEAF} MINUS {{ ?s :a ?b }} FILTER(?v > 1)", "minus"),
        (f"{{ {LEAF} FILTER EXISTS {{ ?s :a ?b }} }} FILTER(?v > 1)", "exists"),
    ],
)
def test_a_filter_goes_to_the_left_of_what_the_right_decides_on(group: str, operator: str) -> None:
    assert pushed(group) == text(
        f"""
        (project (?s ?v)
          ({operator}
            (filter (> ?v "1")
              (bgp (window 0)
                (?s <p> ?v)))
            (bgp (default graph)
              (?s <a> ?b))))
        """
    )


def test_a_filter_passes_a_mark_that_it_does_not_read() -> None:
    assert pushed(f"{LEAF} FILTER(EXISTS {{ ?s :a ?b }} || ?v > 1) FILTER(?v > 2)") == text(
        """
        (project (?s ?v)
          (filter (|| ?.e0 (> ?v "1"))
            (mark ?.e0
              (filter (> ?v "2")
                (bgp (window 0)
                  (?s <p> ?v)))
              (bgp (default graph)
                (?s <a> ?b)))))
        """
    )


def test_a_filter_goes_into_both_sides_of_a_union() -> None:
    group = f"{{ {LEAF} }} UNION {{ WINDOW :x {{ ?s :q ?v . ?v :r ?z }} }} FILTER(?v > 1)"
    assert pushed(group) == text(
        """
        (project (?s ?v ?z)
          (union
            (filter (> ?v "1")
              (bgp (window 0)
                (?s <p> ?v)))
            (conjunction (> ?v "1")
              (bgp (window 1)
                (?s <q> ?v)
                (?v <r> ?z)))))
        """
    )


def test_a_filter_passes_bind_if_it_does_not_read_its_variable() -> None:
    assert pushed(f"{LEAF} BIND(?v + 1 AS ?x) FILTER(?x > 2 && ?v > 1)") == text(
        """
        (project (?s ?v ?x)
          (filter (> ?x "2")
            (extend ?x = (+ ?v "1")
              (filter (> ?v "1")
                (bgp (window 0)
                  (?s <p> ?v))))))
        """
    )


def test_a_constant_stands_for_its_variable_but_in_bound() -> None:
    assert pushed(f"{LEAF} VALUES ?a {{ 7 }} FILTER(?v > ?a && BOUND(?a))") == text(
        """
        (project (?s ?v ?a)
          (filter (BOUND ?a)
            (extend ?a = "7"
              (filter (> ?v "7")
                (bgp (window 0)
                  (?s <p> ?v))))))
        """
    )


def test_a_filter_passes_what_a_sub_select_shows_and_not_what_it_hides() -> None:
    group = "{ SELECT DISTINCT ?s ?v { WINDOW :w { ?s :p ?v . ?v :q ?z } } }"
    assert pushed(f"{group} FILTER(?v > 1 && !BOUND(?z))") == text(
        """
        (project (?s ?v)
          (distinct
            (filter (! (BOUND ?z))
              (project (?s ?v)
                (conjunction (> ?v "1")
                  (bgp (window 0)
                    (?s <p> ?v)
                    (?v <q> ?z)))))))
        """
    )


def test_a_filter_on_a_key_passes_its_group() -> None:
    group = f"{{ SELECT ?s (COUNT(*) AS ?n) {{ {LEAF} }} GROUP BY ?s }}"
    assert pushed(f"{group} FILTER(?n > 1 && ?s != :a)") == text(
        """
        (project (?s ?n)
          (project (?s ?n)
            (filter (> ?n "1")
              (extend ?n = ?.a0
                (group (?s) ?.a0 = (COUNT *)
                  (filter (!= ?s <a>)
                    (bgp (window 0)
                      (?s <p> ?v))))))))
        """
    )


def test_a_filter_without_variables_does_not_pass_the_one_group_of_all() -> None:
    found = pushed(f"{{ SELECT (COUNT(*) AS ?n) {{ {LEAF} }} }} FILTER(1 > 2)")
    assert found.index("(filter") < found.index("(group"), "it would count nothing, and say 0"


def test_a_filter_goes_into_the_part_that_binds_its_variables() -> None:
    group = f"{LEAF} {{ SELECT ?x {{ WINDOW :x {{ ?x :q ?z }} }} }} FILTER(?x != ?s && ?x != :a)"
    assert pushed(group) == text(
        """
        (project (?s ?v ?x)
          (conjunction (!= ?x ?s)
            (bgp (window 0)
              (?s <p> ?v))
            (project (?x)
              (filter (!= ?x <a>)
                (bgp (window 1)
                  (?x <q> ?z))))))
        """
    )


def test_paths_stay_what_is_searched_last() -> None:
    assert pushed("WINDOW :w { ?s :p+ ?v } ?v :a ?b FILTER(?s != :a)") == text(
        """
        (project (?s ?v ?b)
          (conjunction (!= ?s <a>)
            (closure ?s ?v 1..
              (bgp (window 0)
                (?s <p> ?v)))
            (bgp (default graph)
              (?v <a> ?b))))
        """
    )


def test_what_depends_on_the_report_stays_above_what_does_not() -> None:
    assert pushed(f"{LEAF} FILTER(RAND() < 1 && ?v > 1)") == text(
        """
        (project (?s ?v)
          (filter (< (RAND) "1")
            (filter (> ?v "1")
              (bgp (window 0)
                (?s <p> ?v)))))
        """
    )


def test_filters_keep_their_order() -> None:
    found = pushed(f"{LEAF} FILTER(?v > 1 && ?v < 5 && ?v != 3)")
    assert found.index("!=") < found.index("(<") < found.index("(>")


@pytest.mark.parametrize(
    "group",
    [
        f"{LEAF} FILTER(?v > 1 || ?v < 5)",
        f"{LEAF} FILTER(NOW() > ?v)",
        f"{LEAF} BIND(RAND() AS ?r) FILTER(?v > 1)",
        f"{{ SELECT ?s ?v {{ {LEAF} }} LIMIT 3 }} FILTER(?v > 1)",
        f"{LEAF} OPTIONAL {{ ?s :a ?b }} FILTER(!BOUND(?b))",
        # what may be unbound on the left may be bound by the right
        "{ OPTIONAL { ?s :a ?b } } OPTIONAL { ?b :c ?d } FILTER(?b > 1)",
    ],
)
def test_what_must_stay_stays(group: str) -> None:
    check_same(asked(group, before=FLAT), push_filters)

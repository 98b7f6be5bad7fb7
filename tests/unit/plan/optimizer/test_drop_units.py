"""``drop_units``: the empty group beside another pattern."""

from __future__ import annotations

import pytest
from pairs import asked, check, check_same

from levada.plan.optimizer.rules.remove_empty_groups import drop_units

LEFT = """
(project (?s ?v)
  (bgp (window 0)
    (?s <p> ?v)))
"""


def test_a_join_with_the_one_empty_row_is_the_other_side() -> None:
    before = """
    (project (?s ?v)
      (join
        (values ()
          ())
        (bgp (window 0)
          (?s <p> ?v))))
    """
    check(asked("VALUES () { () } WINDOW :w { ?s :p ?v }"), drop_units, before, LEFT)


@pytest.mark.parametrize(
    ("group", "operator", "unit"),
    [
        ("FILTER EXISTS { }", "exists", "unit"),
        ("MINUS { }", "minus", "unit"),
        ("OPTIONAL { VALUES () { () } }", "left-join", "values ()\n      ()"),
    ],
)
def test_what_the_empty_group_decides_on_is_the_left_side(
    group: str, operator: str, unit: str
) -> None:
    before = (
        f"(project (?s ?v)\n  ({operator}\n    (bgp (window 0)\n      (?s <p> ?v))\n    ({unit})))"
    )
    check(asked(f"WINDOW :w {{ ?s :p ?v }} {group}"), drop_units, before, LEFT)


@pytest.mark.parametrize(
    "group",
    [
        "WINDOW :w { ?s :p ?v } FILTER NOT EXISTS { }",  # has no solutions
        "OPTIONAL { WINDOW :w { ?s :p ?v } }",  # the empty group has a solution, too
        "{ } UNION { WINDOW :w { ?s :p ?v } }",
        "WINDOW :w { ?s :p ?v } VALUES () { () () }",  # each solution twice
        "WINDOW :w { ?s :p ?v } VALUES () { }",
    ],
)
def test_other_empty_groups_stay(group: str) -> None:
    check_same(asked(group), drop_units)

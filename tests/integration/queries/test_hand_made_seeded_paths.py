"""Paths that are joined with what binds one of their ends: searched from there, and the same as if
all were; the reference judges.
"""

from __future__ import annotations

import pytest
from test_hand_made_paths import ELEMENTS, STATIC

from support.query_dsl import check_everywhere

PATHS = {
    "from a pattern": "WINDOW :w { :a :p ?x . ?x :q+ ?y }",
    "from a pattern, of no step": "WINDOW :w { ?z :p ?x . ?x :q* ?y }",
    "to a pattern": "WINDOW :w { ?y :r ?z . ?x :q+ ?y }",
    "to a pattern, at most one": "WINDOW :w { ?y :r ?z . ?x (:q|:p)? ?y }",
    "both ends": "WINDOW :w { ?x :p ?v . ?y :r ?z . ?x :q+ ?y }",
    "one after the other": "WINDOW :w { ?x :p ?v . ?x :q+ ?y . ?y :q+ ?z . ?z :r ?u }",
    "paths alone": "WINDOW :w { ?x :q+ ?y . ?y :p* ?z }",
    "a filter before": "WINDOW :w { ?x :p ?v . ?x :q+ ?y } FILTER(?v = 1 || ?x = :c)",
    "filters before and behind": (
        "WINDOW :w { ?x :p ?v . ?x :q+ ?y } FILTER(?v > 0) FILTER(?y != :a && ?v < 2) "
        "FILTER(?x != ?y)"
    ),
    "VALUES": "VALUES ?x { :a :d :none } WINDOW :w { ?x :q+ ?y }",
    "VALUES of one row": "VALUES ?x { :a } WINDOW :w { ?x :q* ?y }",
    "VALUES with UNDEF": "VALUES ?x { :a UNDEF } WINDOW :w { ?x :q+ ?y }",
    "beside static data": "?x :k ?z WINDOW :w { ?x :q+ ?y }",
    "beside an OPTIONAL": "WINDOW :w { ?x :p ?v OPTIONAL { ?x :r ?u } } WINDOW :w { ?u :q* ?y }",
    "beside a group": (
        "{ SELECT ?x (COUNT(*) AS ?n) WHERE { WINDOW :w { ?x :p ?v } } GROUP BY ?x } "
        "WINDOW :w { ?x :q+ ?y }"
    ),
    "beside nothing that it knows": "WINDOW :w { ?u :r ?v . ?x :q+ ?y }",
    # found by chance: such a condition was lost where paths alone have rows
    "no variables in a condition": (
        "{ WINDOW :w { ?x :q* ?y . ?y :p* ?z } FILTER(:a = :b) } UNION { WINDOW :w { ?x :r ?z } }"
    ),
    "a condition on the window": (
        "{ WINDOW :w { ?x :q* ?y } WINDOW ?in { ?y :p* ?z } FILTER(?in = :a) } "
        "UNION { WINDOW :w { ?x :r ?z } }"
    ),
    "no variables in a condition on groups": (
        "{ { SELECT ?x (COUNT(*) AS ?n) WHERE { WINDOW :w { ?x :p ?v } } GROUP BY ?x } "
        "WINDOW :w { ?x :q* ?y } FILTER(1 = 2) } UNION { WINDOW :w { ?x :r ?z } }"
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", PATHS)
def test_a_path_from_what_others_bind(name: str) -> None:
    check_everywhere("SELECT *", PATHS[name], static=STATIC, outputs=("RSTREAM",), s=ELEMENTS)

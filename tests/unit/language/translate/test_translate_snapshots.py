"""The translation as snapshots that a person can read: each shows one rule of SPARQL 1.1, section
18.2, or of the design.
"""

from __future__ import annotations

import pytest

from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.logical.print_logical import show

WINDOWS = {
    "@W": "FROM NAMED WINDOW <w> ON <s> [RANGE PT4S STEP PT2S] ",
    "@V": "FROM NAMED WINDOW <v> ON <r> [RANGE PT6S] ",
}

SNAPSHOTS = {
    "one_pattern": (
        "SELECT ?s @W{ WINDOW <w> { ?s <p> ?o } }",
        """
SELECT (?s) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?s)
    (bgp (window 0)
      (?s <p> ?o)))
""",
    ),
    "paths": (
        "SELECT ?x @W{ WINDOW <w> { ?x ^<p>/(<q>|!<r>) ?y . <a> <p>+ ?x } }",
        """
SELECT (?x) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?x)
    (join
      (join
        (bgp (window 0)
          (?.p0 <p> ?x))
        (union
          (bgp (window 0)
            (?.p0 <q> ?y))
          (filter (! (sameTerm ?.p1 <r>))
            (bgp (window 0)
              (?.p0 ?.p1 ?y)))))
      (closure ?.p2=<a> ?x 1..
        (bgp (window 0)
          (?.p2 <p> ?x)))))
""",
    ),
    "minus_and_exists": (
        "SELECT * @W{ WINDOW <w> { ?s <p> ?o MINUS { ?s <q> ?x } "
        "FILTER(?o > 1 && !EXISTS { ?s <q> ?y FILTER(?y > ?o && ?y < 9) }) } }",
        """
SELECT (?s ?o) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?s ?o)
    (not-exists (> ?y ?o)
      (filter (> ?o "1"^^<http://www.w3.org/2001/XMLSchema#integer>)
        (minus
          (bgp (window 0)
            (?s <p> ?o))
          (bgp (window 0)
            (?s <q> ?x))))
      (filter (< ?y "9"^^<http://www.w3.org/2001/XMLSchema#integer>)
        (bgp (window 0)
          (?s <q> ?y)))))
""",
    ),
    "group_concat": (
        "SELECT (GROUP_CONCAT(DISTINCT ?o; SEPARATOR=', ') AS ?c) @W{ WINDOW <w> { ?s <p> ?o } }",
        """
SELECT (?c) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?c)
    (extend ?c = ?.a0
      (group () ?.a0 = (GROUP_CONCAT DISTINCT ?o ", ")
        (bgp (window 0)
          (?s <p> ?o)))))
""",
    ),
    "two_windows_and_static_data": (
        "SELECT * @W@V{ WINDOW <w> { ?s <p> ?o } ?s a ?t . GRAPH <g> { ?t <q> 'x' } "
        "WINDOW <v> { ?u <r> ?s } }",
        """
SELECT (?s ?o ?t ?u) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  window 1 <v> on <r> [RANGE PT6S]
  (project (?s ?o ?t ?u)
    (join
      (join
        (join
          (bgp (window 0)
            (?s <p> ?o))
          (bgp (default graph)
            (?s <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> ?t)))
        (bgp (graph <g>)
          (?t <q> "x")))
      (bgp (window 1)
        (?u <r> ?s))))
""",
    ),
    "triples_of_one_source_are_one_bgp_across_filters": (
        "SELECT * @W{ WINDOW <w> { ?s <p> ?o FILTER(?o > ?s) ?s <q> ?r } "
        "WINDOW <w> { ?r <p> 'x' } }",
        """
SELECT (?s ?o ?r) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?s ?o ?r)
    (join
      (filter (> ?o ?s)
        (bgp (window 0)
          (?s <p> ?o)
          (?s <q> ?r)))
      (bgp (window 0)
        (?r <p> "x"))))
""",
    ),
    "filters_hold_for_their_whole_group": (
        "SELECT * @W{ FILTER(?o = ?r && BOUND(?s)) { FILTER(?x != 'a') "
        "WINDOW <w> { ?s <p> ?x } } WINDOW <w> { ?s <q> ?o } FILTER(!?r) }",
        """
SELECT (?s ?x ?o) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?s ?x ?o)
    (filter (&& (&& (= ?o ?r) (BOUND ?s)) (! ?r))
      (join
        (filter (!= ?x "a")
          (bgp (window 0)
            (?s <p> ?x)))
        (bgp (window 0)
          (?s <q> ?o)))))
""",
    ),
    "bind_ends_a_bgp": (
        "SELECT * @W{ WINDOW <w> { ?s <p> ?o BIND(CONCAT(?o, 'x') AS ?z) ?s <q> ?z } }",
        """
SELECT (?s ?o ?z) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?s ?o ?z)
    (join
      (extend ?z = (CONCAT ?o "x")
        (bgp (window 0)
          (?s <p> ?o)))
      (bgp (window 0)
        (?s <q> ?z))))
""",
    ),
    "optional_takes_the_filter_of_its_group": (
        "SELECT * @W{ WINDOW <w> { ?s <p> ?o } OPTIONAL { ?s <q> ?r FILTER(?r < ?o) } "
        "OPTIONAL { { ?s <t> ?u FILTER(?u < ?o) } } }",
        """
SELECT (?s ?o ?r ?u) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?s ?o ?r ?u)
    (left-join
      (left-join (< ?r ?o)
        (bgp (window 0)
          (?s <p> ?o))
        (bgp (default graph)
          (?s <q> ?r)))
      (filter (< ?u ?o)
        (bgp (default graph)
          (?s <t> ?u)))))
""",
    ),
    "optional_of_nothing_is_nothing": (
        "SELECT * @W{ WINDOW <w> { ?s <p> ?o } OPTIONAL { FILTER(?o > ?s) } OPTIONAL { } "
        "WINDOW <w> { } }",
        """
SELECT (?s ?o) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?s ?o)
    (bgp (window 0)
      (?s <p> ?o)))
""",
    ),
    "optional_first": (
        "SELECT * @W{ OPTIONAL { WINDOW <w> { ?s <p> ?o } } }",
        """
SELECT (?s ?o) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?s ?o)
    (left-join
      (unit)
      (bgp (window 0)
        (?s <p> ?o))))
""",
    ),
    "union_from_the_left": (
        "SELECT * @W@V{ { WINDOW <w> { ?s <p> ?o } } UNION { WINDOW <v> { ?s <p> ?o } } "
        "UNION { GRAPH <g> { ?s <p> ?o } } }",
        """
SELECT (?s ?o) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  window 1 <v> on <r> [RANGE PT6S]
  (project (?s ?o)
    (union
      (union
        (bgp (window 0)
          (?s <p> ?o))
        (bgp (window 1)
          (?s <p> ?o)))
      (bgp (graph <g>)
        (?s <p> ?o))))
""",
    ),
    "values_inside_and_behind": (
        "SELECT * @W{ WINDOW <w> { ?s <p> ?o } "
        "VALUES (?o ?x) { ('a' UNDEF) (UNDEF <b>) } } VALUES ?s { <a> }",
        """
SELECT (?s ?o ?x) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?s ?o ?x)
    (join
      (join
        (bgp (window 0)
          (?s <p> ?o))
        (values (?o ?x)
          ("a" UNDEF)
          (UNDEF <b>)))
      (values (?s)
        (<a>))))
""",
    ),
    "nested_sources_the_innermost_names_it": (
        "SELECT * @W{ GRAPH <g> { ?a <p> ?b WINDOW <w> { ?b <q> ?c { ?c <r> ?d } } "
        "GRAPH <h> { ?d <s> ?e } } }",
        """
SELECT (?a ?b ?c ?d ?e) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?a ?b ?c ?d ?e)
    (join
      (join
        (bgp (graph <g>)
          (?a <p> ?b))
        (bgp (window 0)
          (?b <q> ?c)
          (?c <r> ?d)))
      (bgp (graph <h>)
        (?d <s> ?e))))
""",
    ),
    "sub_select_reads_its_window_and_hides_the_rest": (
        "SELECT * @W{ WINDOW <w> { { SELECT DISTINCT ?s { ?s <p> ?o } "
        "ORDER BY ?o LIMIT 3 } ?s <q> ?o } }",
        """
SELECT (?s ?o) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?s ?o)
    (join
      (slice offset 0 limit 3
        (distinct
          (project (?s)
            (order asc ?o
              (bgp (window 0)
                (?s <p> ?o))))))
      (bgp (window 0)
        (?s <q> ?o))))
""",
    ),
    "blank_nodes_and_lists_are_variables_that_star_hides": (
        "SELECT * @W{ WINDOW <w> { _:b <p> [ <q> ?o ] ; <r> (?x) } }",
        """
SELECT (?o ?x) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?o ?x)
    (bgp (window 0)
      (?_:b <p> ?_:.1)
      (?_:.1 <q> ?o)
      (?_:b <r> ?_:.2)
      (?_:.2 <http://www.w3.org/1999/02/22-rdf-syntax-ns#first> ?x)
      (?_:.2 <http://www.w3.org/1999/02/22-rdf-syntax-ns#rest> <http://www.w3.org/1999/02/22-rdf-syntax-ns#nil>)))
""",
    ),
    "star_in_the_order_of_the_text": (
        "SELECT * @W{ BIND('x' AS ?z) WINDOW <w> { ?b ?a ?z } OPTIONAL { ?d <p> ?c "
        "FILTER(?n > ?m) } { SELECT ?k ?j { ?j <p> ?k } } VALUES ?y { 'q' } }",
        """
SELECT (?z ?b ?a ?d ?c ?k ?j ?y) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?z ?b ?a ?d ?c ?k ?j ?y)
    (join
      (join
        (left-join (> ?n ?m)
          (join
            (extend ?z = "x"
              (unit))
            (bgp (window 0)
              (?b ?a ?z)))
          (bgp (default graph)
            (?d <p> ?c)))
        (project (?k ?j)
          (bgp (default graph)
            (?j <p> ?k))))
      (values (?y)
        ("q"))))
""",
    ),
    "select_expressions_and_modifiers": (
        "SELECT DISTINCT (?o / 2 AS ?h) (-?h AS ?n) ?s @W{ WINDOW <w> { ?s <p> ?o } } "
        "ORDER BY ?s DESC(?o + 1) LIMIT 10 OFFSET 5",
        """
SELECT (?h ?n ?s) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (slice offset 5 limit 10
    (distinct
      (project (?h ?n ?s)
        (order asc ?s desc (+ ?o "1"^^<http://www.w3.org/2001/XMLSchema#integer>)
          (extend ?n = (unary - ?h)
            (extend ?h = (/ ?o "2"^^<http://www.w3.org/2001/XMLSchema#integer>)
              (bgp (window 0)
                (?s <p> ?o))))))))
""",
    ),
    "reduced_is_distinct_and_offset_alone": (
        "SELECT REDUCED ?s @W{ WINDOW <w> { ?s <p> ?o } } OFFSET 2",
        """
SELECT (?s) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (slice offset 2
    (distinct
      (project (?s)
        (bgp (window 0)
          (?s <p> ?o)))))
""",
    ),
    "group_by_a_variable": (
        "SELECT ?s (AVG(?o) AS ?m) @W{ WINDOW <w> { ?s <p> ?o } } GROUP BY ?s",
        """
SELECT (?s ?m) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?s ?m)
    (extend ?m = ?.a0
      (group (?s) ?.a0 = (AVG ?o)
        (bgp (window 0)
          (?s <p> ?o)))))
""",
    ),
    "group_by_expressions": (
        "SELECT ?k (COUNT(DISTINCT ?o) AS ?n) @W{ WINDOW <w> { ?s <p> ?o } } "
        "GROUP BY (STR(?s) AS ?k) STRLEN(?o) (?o * 2)",
        """
SELECT (?k ?n) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?k ?n)
    (extend ?n = ?.a0
      (group (?k ?.g0 ?.g1) ?.a0 = (COUNT DISTINCT ?o)
        (extend ?.g1 = (* ?o "2"^^<http://www.w3.org/2001/XMLSchema#integer>)
          (extend ?.g0 = (STRLEN ?o)
            (extend ?k = (STR ?s)
              (bgp (window 0)
                (?s <p> ?o))))))))
""",
    ),
    "aggregates_in_expressions_are_computed_once": (
        "SELECT ?s (MAX(?o) - MIN(?o) AS ?d) (?d / COUNT(*) AS ?q) @W{ "
        "WINDOW <w> { ?s <p> ?o } } GROUP BY ?s HAVING (MAX(?o) > 5) (COUNT(*) > 1) "
        "ORDER BY DESC(SUM(?o + 1)) ?d",
        """
SELECT (?s ?d ?q) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?s ?d ?q)
    (order desc ?.a3 asc ?d
      (extend ?q = (/ ?d ?.a2)
        (extend ?d = (- ?.a0 ?.a1)
          (filter (&& (> ?.a0 "5"^^<http://www.w3.org/2001/XMLSchema#integer>) (> ?.a2 "1"^^<http://www.w3.org/2001/XMLSchema#integer>))
            (group (?s) ?.a0 = (MAX ?o) ?.a1 = (MIN ?o) ?.a2 = (COUNT *) ?.a3 = (SUM (+ ?o "1"^^<http://www.w3.org/2001/XMLSchema#integer>))
              (bgp (window 0)
                (?s <p> ?o))))))))
""",
    ),
    "count_of_distinct_solutions_leaves_out_blank_nodes": (
        "SELECT ?s (COUNT(DISTINCT *) AS ?n) @W{ WINDOW <w> { ?s <p> _:b, ?o } } GROUP BY ?s",
        """
SELECT (?s ?n) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?s ?n)
    (extend ?n = ?.a0
      (group (?s) ?.a0 = (COUNT DISTINCT *)
        (project (?s ?o)
          (bgp (window 0)
            (?s <p> ?_:b)
            (?s <p> ?o))))))
""",
    ),
    "one_group_without_keys": (
        "SELECT (COUNT(*) AS ?n) @W{ WINDOW <w> { ?s <p> ?o } }",
        """
SELECT (?n) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?n)
    (extend ?n = ?.a0
      (group () ?.a0 = (COUNT *)
        (bgp (window 0)
          (?s <p> ?o)))))
""",
    ),
    "an_ungrouped_variable_above_the_group_is_a_sample": (
        "SELECT ?s @W{ WINDOW <w> { ?s <p> ?o } } GROUP BY ?s HAVING (?o > COUNT(*)) ORDER BY ?o",
        """
SELECT (?s) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?s)
    (order asc ?.a0
      (filter (> ?.a0 ?.a1)
        (group (?s) ?.a0 = (SAMPLE ?o) ?.a1 = (COUNT *)
          (bgp (window 0)
            (?s <p> ?o))))))
""",
    ),
    "having_without_a_group_is_a_filter": (
        "SELECT ?s @W{ WINDOW <w> { ?s <p> ?o } } HAVING (?o > 5)",
        """
SELECT (?s) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?s)
    (filter (> ?o "5"^^<http://www.w3.org/2001/XMLSchema#integer>)
      (bgp (window 0)
        (?s <p> ?o))))
""",
    ),
    "functions_by_their_names": (
        "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT * @W{ WINDOW <w> { ?s <p> ?o } "
        "FILTER(xsd:double(?o) NOT IN (1.5, ?s) || isURI(?s) || sameTerm(?s, ?o) || "
        "regex(?o, 'a', 'i') || IF(?s, NOW(), +?o) = COALESCE()) }",
        """
SELECT (?s ?o) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (project (?s ?o)
    (filter (|| (|| (|| (NOT IN (CAST <http://www.w3.org/2001/XMLSchema#double> ?o) \
"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal> ?s) (isIRI ?s)) (sameTerm ?s ?o)) \
(|| (REGEX ?o "a" "i") (= (IF ?s (NOW) (unary + ?o)) (COALESCE))))
      (bgp (window 0)
        (?s <p> ?o))))
""",
    ),
    "iri_under_base": (
        "BASE <http://e/a/> SELECT (IRI('x') AS ?i) (URI(<y>) AS ?j) @W{ "
        "WINDOW <w> { ?s <p> ?o } }",
        """
SELECT (?i ?j) RSTREAM
  window 0 <http://e/a/w> on <http://e/a/s> [RANGE PT4S STEP PT2S close [)]
  (project (?i ?j)
    (extend ?j = (IRI <http://e/a/y>)
      (extend ?i = <http://e/a/x>
        (bgp (window 0)
          (?s <http://e/a/p> ?o)))))
""",
    ),
    "ask": (
        "REGISTER ISTREAM <o> AS ASK @W{ WINDOW <w> { ?s <p> ?o } }",
        """
ASK ISTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  (bgp (window 0)
    (?s <p> ?o))
""",
    ),
    "construct": (
        "REGISTER DSTREAM <o> AS CONSTRUCT { ?o <q> ?s . ?s <n> ?z } @W{ "
        "WINDOW <w> { ?s <p> ?o } BIND(?o * 2 AS ?z) } ORDER BY ?o LIMIT 1",
        """
CONSTRUCT DSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  template (?o <q> ?s)
  template (?s <n> ?z)
  (slice offset 0 limit 1
    (project (?o ?s ?z)
      (order asc ?o
        (extend ?z = (* ?o "2"^^<http://www.w3.org/2001/XMLSchema#integer>)
          (bgp (window 0)
            (?s <p> ?o))))))
""",
    ),
    "construct_where": (
        "CONSTRUCT @WWHERE { ?s <p> ?o . ?o <q> ?x }",
        """
CONSTRUCT RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  template (?s <p> ?o)
  template (?o <q> ?x)
  (project (?s ?o ?x)
    (bgp (default graph)
      (?s <p> ?o)
      (?o <q> ?x)))
""",
    ),
    "from_names_the_static_graphs": (
        "SELECT ?s @WFROM <g> FROM <h> FROM <g> FROM NAMED <n> { "
        "WINDOW <w> { ?s <p> ?o } GRAPH <n> { ?s <q> 'x' } ?o <r> ?n }",
        """
SELECT (?s) RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  from <g> <h>
  (project (?s)
    (join
      (join
        (bgp (window 0)
          (?s <p> ?o))
        (bgp (graph <n>)
          (?s <q> "x")))
      (bgp (default graph)
        (?o <r> ?n))))
""",
    ),
    "from_named_alone_leaves_no_default_graph": (
        "ASK @WFROM NAMED <n> { WINDOW <w> { ?s <p> ?o } GRAPH <n> { ?s <q> 'x' } }",
        """
ASK RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  from no graph
  (join
    (bgp (window 0)
      (?s <p> ?o))
    (bgp (graph <n>)
      (?s <q> "x")))
""",
    ),
    "all_kinds_of_windows": (
        "ASK @W@VFROM NAMED WINDOW <n> ON <s> [NOW] FROM NAMED WINDOW <a> ON <s> [ALL] "
        "FROM NAMED WINDOW <c> ON <s> [TRIPLES 3] { WINDOW <w> { ?s <p> ?o } }",
        """
ASK RSTREAM
  window 0 <w> on <s> [RANGE PT4S STEP PT2S close [)]
  window 1 <v> on <r> [RANGE PT6S]
  window 2 <n> on <s> [NOW]
  window 3 <a> on <s> [ALL]
  window 4 <c> on <s> [ROWS 3]
  (bgp (window 0)
    (?s <p> ?o))
""",
    ),
}


def query(text: str) -> str:
    """A text with its windows declared."""
    for short, clause in WINDOWS.items():
        text = text.replace(short, clause)
    return text


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_translation(name: str) -> None:
    text, snapshot = SNAPSHOTS[name]
    translated = translate(parse(query(text)), text=query(text))
    assert show(translated) == snapshot.strip()
    assert translated.text == query(text)


def test_a_long_condition_is_a_shallow_tree() -> None:
    condition = " || ".join(f"?o = {n}" for n in range(3000))
    text = query(f"SELECT * @W{{ WINDOW <w> {{ ?s <p> ?o FILTER({condition}) }} }}")
    assert show(translate(parse(text))).count("(= ?o") == 3000

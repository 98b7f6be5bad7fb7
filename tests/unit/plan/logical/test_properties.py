"""What is true of parts of queries, by their texts."""

from __future__ import annotations

from dataclasses import fields

import pytest

from levada.language import parse
from levada.language.translate.cql.translate import translate_cql
from levada.language.translate.sparql.translate import translate
from levada.plan.logical import nodes as a
from levada.plan.logical.properties import Analysis, Properties, is_answered_once
from levada.plan.logical.traversal import children
from levada.plan.optimizer.pipeline import OPTIONAL, disable_rules, optimize

WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S]"
LEAF = "WINDOW :w { ?s :p ?v }"
COUNTED = f"SELECT ?s (COUNT(?v) AS ?n) {{ {LEAF} }} GROUP BY ?s"


def sparql(group: str, tail: str = "", head: str = "SELECT *") -> a.Query:
    return translate(parse(f"PREFIX : <http://e/> {head} {WINDOW} WHERE {{ {group} }} {tail}"))


def cql(text: str) -> a.Query:
    return translate_cql(text, {"S": {"k": "integer", "v": "integer"}, "T": {"k": "integer"}})


def true_of(query: a.Query) -> set[str]:
    """The names of what is true of a query's pattern."""
    found = Analysis.with_windows(query.windows).properties_of(query.pattern)
    return {f.name for f in fields(Properties) if getattr(found, f.name)}


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (LEAF, "reads_window monotone timed"),
        (f"{LEAF} ?v :a ?b", "reads_window monotone timeless timed"),
        ("?v :a ?b", "monotone timeless free timed"),
        (f"{{ {LEAF} }} UNION {{ ?s :a ?v }}", "reads_window monotone timeless free timed"),
        (f"{LEAF} FILTER(?v > 1)", "reads_window monotone timed"),
        (f"{LEAF} FILTER(NOW() > ?v)", "reads_window monotone per_report snapshot reason"),
        (f"{LEAF} BIND(RAND() AS ?r)", "reads_window monotone per_report snapshot reason"),
        (f"{LEAF} OPTIONAL {{ ?s :a ?b }}", "reads_window monotone snapshot timeless reason"),
        (f"?s :a ?b OPTIONAL {{ {LEAF} }}", "reads_window monotone snapshot timeless free reason"),
        ("WINDOW :w { ?s :p+ ?v }", "reads_window monotone snapshot"),
        (f"{LEAF} ?v :a+ ?b", "reads_window monotone timeless"),
        (
            f"{{ SELECT (COUNT(*) AS ?n) {{ {LEAF} }} }}",
            "reads_window snapshot matchless kept_by_changes",
        ),
        (f"{{ SELECT DISTINCT ?s {{ {LEAF} }} }}", "reads_window snapshot kept_by_changes"),
        (f"{{ {COUNTED} }}", "reads_window snapshot kept_by_changes"),
        (f"{{ {COUNTED} HAVING(?n > NOW()) }}", "reads_window snapshot per_report reason"),
        (f"{{ {COUNTED} HAVING(?n > 1) }}", "reads_window snapshot kept_by_changes"),
        (f"{{ {COUNTED} }} {LEAF}", "reads_window snapshot"),
        (f"{{ {COUNTED} }} UNION {{ {LEAF} }}", "reads_window snapshot kept_by_changes"),
        (
            f"{{ SELECT ?s (GROUP_CONCAT(?v) AS ?n) {{ {LEAF} }} GROUP BY ?s }}",
            "reads_window snapshot reason",
        ),
    ],
)
def test_patterns_over_rdf_with_rules_and_without(group: str, expected: str) -> None:
    query = sparql(group)
    assert true_of(query) == set(expected.split())
    assert true_of(optimize(query)) == set(expected.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Select k From S [Range 9 s]", "reads_window tuples over_tuples monotone timed"),
        ("Select k From S [Now]", "reads_window tuples over_tuples monotone momentary timed"),
        (
            "Select S.k From S [Now], T [Range 9 s] Where S.k = T.k",
            "reads_window tuples over_tuples monotone momentary timed",
        ),
        (
            "Select k, Count(*) From S [Now] Group By k",
            "reads_window tuples over_tuples snapshot momentary kept_by_changes",
        ),
        (
            "Select Count(*) From S [Now]",
            "reads_window tuples over_tuples snapshot matchless kept_by_changes",
        ),
        ("Select Distinct k From S", "reads_window tuples over_tuples snapshot kept_by_changes"),
        (
            "Select k From (Istream(Select k From S [Range 9 s])) [Range 5 s] As A",
            "reads_window tuples over_tuples monotone derived",
        ),
    ],
)
def test_queries_over_tuples(text: str, expected: str) -> None:
    assert true_of(cql(text)) == set(expected.split())


def test_what_is_not_by_changes_is_said_in_words() -> None:
    said = Analysis().properties_of(
        cql("Select k, Count(Distinct v) From S [Range 9 s] Group By k").pattern
    )
    assert said.not_by_changes == ""
    assert Analysis().properties_of(sparql(LEAF).pattern).not_by_changes == "a pattern over RDF"


def test_a_part_is_looked_at_once() -> None:
    query, analysis = sparql(f"{LEAF} OPTIONAL {{ ?s :a ?b }}"), Analysis()
    found = analysis.properties_of(query.pattern)
    assert analysis.properties_of(query.pattern) is found
    (child,) = children(query.pattern)
    assert (
        analysis.properties_of(child) is analysis.properties_of(child)
        and analysis.properties_of(child) == found
    )


@pytest.mark.parametrize(
    ("group", "once"),
    [
        ("?s :a ?b OPTIONAL { ?b :c ?d }", True),
        ("?s :a+ ?b", True),
        ("?s :a ?b", False),
        (f"{LEAF} OPTIONAL {{ ?s :a ?b }}", False),
        ("?s :a ?b OPTIONAL { ?b :c ?d FILTER(NOW() > ?d) }", False),
    ],
)
def test_what_is_answered_once(group: str, once: bool) -> None:
    with disable_rules(*OPTIONAL):
        (part,) = children(optimize(sparql(group)).pattern)
    assert is_answered_once(part, Analysis().properties_of(part)) is once

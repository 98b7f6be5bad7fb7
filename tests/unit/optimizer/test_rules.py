"""Each rule: pairs of algebra before and after."""

from levada.algebra.show import show_node
from levada.optimizer.pipeline import RULES, optimize
from levada.syntax import parse
from levada.translation.sparql.translate import translate

HEAD = "PREFIX : <http://e/> SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S] WHERE "


def optimized(pattern: str, *, only: str) -> str:
    query = translate(parse(HEAD + pattern))
    disabled = frozenset(r.__name__ for r in RULES if r.__name__ != only)
    return show_node(optimize(query, disabled=disabled).pattern)


def plain(pattern: str) -> str:
    return show_node(translate(parse(HEAD + pattern)).pattern)


def test_a_conjunction_becomes_a_chain_of_filters() -> None:
    text = optimized(
        "{ WINDOW :w { ?s :p ?v } FILTER(?v > 1 && ?v < 5 && ?v != 3) }", only="split_filters"
    )
    assert text.count("filter") == 3
    assert "&&" not in text


def test_a_disjunction_stays_one_filter() -> None:
    pattern = "{ WINDOW :w { ?s :p ?v } FILTER(?v > 1 || ?v < 5) }"
    assert optimized(pattern, only="split_filters") == plain(pattern)


def test_joins_with_the_empty_group_vanish() -> None:
    text = optimized("{ {} WINDOW :w { ?s :p ?v } }", only="drop_units")
    assert "unit" not in text


def test_distinct_of_distinct_is_distinct() -> None:
    pattern = "{ { SELECT DISTINCT ?s { { SELECT DISTINCT ?s { WINDOW :w { ?s :p ?v } } } } } }"
    assert optimized(pattern, only="merge_slices").count("distinct") <= plain(pattern).count(
        "distinct"
    )


def test_a_disabled_rule_does_nothing() -> None:
    query = translate(parse(HEAD + "{ WINDOW :w { ?s :p ?v } FILTER(?v > 1 && ?v < 5) }"))
    assert optimize(query, disabled=frozenset(r.__name__ for r in RULES)) == query


def test_one_row_of_new_variables_extends() -> None:
    text = optimized(
        "{ WINDOW ?w { ?s :p ?v } VALUES (?a ?b) { (1 2) } FILTER(?v > 1) }",
        only="extend_by_values",
    )
    assert text.count("extend") == 3
    assert text.index("extend ?b") < text.index("filter"), "the filter goes on to its pattern"
    assert "values" not in text


def test_rows_that_are_a_choice_stay_a_join() -> None:
    for values in ("?v { 1 }", "?a { 1 2 }", "?a { UNDEF }", "?a { }"):
        pattern = f"{{ WINDOW :w {{ ?s :p ?v }} VALUES {values} }}"
        assert optimized(pattern, only="extend_by_values") == plain(pattern)

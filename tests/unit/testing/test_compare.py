"""What counts as the same result, and what does not."""

from __future__ import annotations

from collections import Counter

import pytest

from levada.core.event_time import Window, WindowKind
from levada.core.rdf_terms import XSD
from levada.testing.compare import equal_terms, read_ndjson, same, same_queries
from levada.testing.reference import evaluate
from levada.testing.reference_model import Bag, Element, ReferenceQuery, Report


def typed(lexical: str, datatype: str) -> str:
    return f'"{lexical}"^^<{XSD}{datatype}>'


def bag(*texts: str) -> Bag:
    return Counter(frozenset({("x", text)}) for text in texts)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (typed("1.0", "decimal"), typed("1", "decimal")),
        (typed("01", "integer"), typed("1", "integer")),
        (typed("1E0", "double"), typed("1", "double")),
        (typed("NaN", "double"), typed("NaN", "double")),
        (typed("0.30000000000000004", "double"), typed("0.3", "double")),
        (typed("0.333333333333333333", "decimal"), typed("0.333333333333333334", "decimal")),
        ("<a:b>", "<a:b>"),
    ],
)
def test_equal_terms(a: str, b: str) -> None:
    assert equal_terms(a, b)
    assert equal_terms(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (typed("1", "decimal"), typed("1", "integer")),
        (typed("1", "integer"), typed("2", "integer")),
        (typed("0.33", "decimal"), typed("0.34", "decimal")),
        (typed("1", "double"), typed("1.0001", "double")),
        (typed("x", "integer"), typed("1", "integer")),
        ('"1"', '"1.0"'),
        ('"a"@en', '"a"'),
        ("<a:b>", '"a:b"'),
    ],
)
def test_different_terms(a: str, b: str) -> None:
    assert not equal_terms(a, b)
    assert not equal_terms(b, a)


def test_bags_count() -> None:
    assert same([Report(1, bag("<a:x>", "<a:x>"))], [Report(1, bag("<a:x>", "<a:x>"))]) is None
    difference = same([Report(1, bag("<a:x>", "<a:x>"))], [Report(1, bag("<a:x>"))])
    assert difference == "report 1: expected 2 solutions, got 1\n  missing ?x=<a:x>"


def test_numbers_are_matched_by_value_within_a_bag() -> None:
    mine = bag(typed("0.1", "double"), typed("0.10000000000000001", "double"), "<a:x>")
    assert (
        same([Report(1, mine)], [Report(1, bag("<a:x>", *[typed("1E-1", "double")] * 2))]) is None
    )
    assert (
        same([Report(1, mine)], [Report(1, bag("<a:x>", *[typed("1E-2", "double")] * 2))])
        is not None
    )


def test_unbound_is_not_bound() -> None:
    assert same([Report(1, Counter([frozenset()]))], [Report(1, bag("<a:x>"))]) is not None


def test_missing_surplus_and_disordered_reports() -> None:
    one, two = Report(1, bag("<a:x>")), Report(2, bag("<a:x>"))
    assert (same([one, two], [one]) or "").startswith("report 2: expected, not there")
    assert (same([one], [one, two]) or "").startswith("report 2: not expected")
    assert (same([one, two], [two, one]) or "").startswith("the reports are not in order")
    assert (same([one], [one, one]) or "") == "report 1: 1 expected, 2 there"


def test_changes_are_told_apart() -> None:
    insert, delete = (
        Report(1, bag("<a:x>"), change="insert"),
        Report(1, bag("<a:y>"), change="delete"),
    )
    assert same([delete, insert], [insert, delete]) is None
    assert (same([insert], [delete]) or "").startswith("report 1 (delete)")


def test_booleans() -> None:
    assert same([Report(1, boolean=True)], [Report(1, boolean=True)]) is None
    assert (
        same([Report(1, boolean=True)], [Report(1, boolean=False)])
        == "report 1: expected True, got False"
    )
    assert same([Report(1, boolean=True)], [Report(1, bag())]) is not None


def test_graphs_are_equal_up_to_blank_nodes() -> None:
    a = frozenset({"_:a <a:p> _:b", "_:b <a:p> <a:x>"})
    b = frozenset({"_:v <a:p> <a:x>", "_:w <a:p> _:v"})
    c = frozenset({"_:v <a:p> <a:x>", "_:v <a:p> _:w"})
    assert same([Report(1, graph=a)], [Report(1, graph=b)]) is None
    assert same([Report(1, graph=a)], [Report(1, graph=c)]) is not None
    assert same([Report(1, graph=a)], [Report(1, bag())]) is not None


def test_numbers_in_graphs_are_equal_by_value() -> None:
    a, b = ({f"<a:s> <a:p> {typed(x, 'double')}"} for x in ("0.3", "0.30000000000000004"))
    assert same([Report(1, graph=frozenset(a))], [Report(1, graph=frozenset(b))]) is None


def test_limit_without_total_order_takes_any_part_of_the_right_size() -> None:
    expected = [Report(1, bag("<a:x>", "<a:y>", "<a:z>"), size=2)]
    assert same(expected, [Report(1, bag("<a:x>", "<a:z>"))]) is None
    assert same(expected, [Report(1, bag("<a:x>"))]) == "report 1: expected 2 of 3 solutions, got 1"
    assert same(expected, [Report(1, bag("<a:x>", "<a:x>"))]) is not None


SAMPLED = ReferenceQuery(
    "SELECT (SAMPLE(?s) AS ?x) { GRAPH <a:w> { ?s ?p ?o } } GROUP BY ?o",
    {"a:w": ("s", Window(WindowKind.NOW))},
)


def test_sample_may_be_any_member() -> None:
    triples = ("<a:x> <a:p> <a:1>", "<a:y> <a:p> <a:1>", "<a:z> <a:p> <a:2>")
    expected = evaluate(SAMPLED, {"s": [Element(1, triples)]})
    assert same(expected, [Report(1, bag("<a:x>", "<a:z>"))]) is None
    assert same(expected, [Report(1, bag("<a:z>", "<a:y>"))]) is None
    assert same(expected, [Report(1, bag("<a:x>", "<a:y>"))]) is not None


def test_sample_of_nothing_is_unbound() -> None:
    text = SAMPLED.sparql.replace("?s)", "?none)")
    expected = evaluate(
        ReferenceQuery(text, SAMPLED.windows), {"s": [Element(1, ("<a:x> <a:p> <a:1>",))]}
    )
    assert same(expected, [Report(1, Counter([frozenset()]))]) is None


def test_limit_of_the_reference_says_its_size() -> None:
    query = ReferenceQuery(
        "SELECT ?s { GRAPH <a:w> { ?s ?p ?o } }", SAMPLED.windows, limit=2, offset=2
    )
    report = evaluate(
        query, {"s": [Element(1, ("<a:x> <a:p> <a:1>", "<a:y> <a:p> <a:1>", "<a:z> <a:p> <a:2>"))]}
    )[0]
    assert (report.size, report.solutions.total()) == (1, 3)


def test_same_queries() -> None:
    one = Report(1, bag("<a:x>"))
    assert same_queries({"q": [one], "r": []}, {"q": [one]}) is None
    assert (same_queries({"q": [one]}, {"q": [one], "r": [one]}) or "").startswith(
        "query r, report 1: not expected"
    )


BINDINGS = """[
    {"x": {"type": "uri", "value": "a:b"},
     "y": {"type": "literal", "value": "1", "datatype": "http://www.w3.org/2001/XMLSchema#integer"}},
    {"x": {"type": "bnode", "value": "n"}},
    {"y": {"type": "literal", "value": "a\\"b", "xml:lang": "en"}}
]""".replace("\n", " ")
LINES = (
    f'{{"query": "q", "report": 7, "head": {{"vars": ["x", "y"]}}, '
    f'"results": {{"bindings": {BINDINGS}}}}}',
    '{"query": "r", "report": 7, "change": "insert", "head": {"vars": ["x"]}, '
    '"results": {"bindings": []}}',
    "",
    r'{"query": "c", "report": 8, "graph": "<a:s> <a:p> \"x\" .\n"}',
    b'{"query": "q", "report": 9, "head": {}, "boolean": false}',
)


def test_read_ndjson() -> None:
    found = read_ndjson(LINES)
    assert found["q"] == [
        Report(
            7,
            Counter(
                [
                    frozenset({("x", "<a:b>"), ("y", typed("1", "integer"))}),
                    frozenset({("x", "_:n")}),
                    frozenset({("y", '"a\\"b"@en')}),
                ]
            ),
        ),
        Report(9, boolean=False),
    ]
    assert found["r"] == [Report(7, Counter(), change="insert")]
    assert found["c"] == [Report(8, graph=frozenset({'<a:s> <a:p> "x"'}))]

"""The order of a difference is what ORDER BY says of variables that are shown."""

import pytest

from levada.core.expressions import Call, Var
from levada.core.query_model import Output
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.logical import nodes as a
from levada.plan.lowering.lower import find_shown_order

CLAUSE = "FROM NAMED WINDOW <w> ON <http://e/s> [RANGE PT2S STEP PT1S]"


def order(head: str, tail: str) -> list[str]:
    """The conditions that are kept, as text; a minus for descending ones."""
    text = f"{head} {CLAUSE} {{ WINDOW <w> {{ ?s <http://e/p> ?o }} }} {tail}"
    query = translate(parse(text), text=text)
    assert query.output is Output.RSTREAM
    found = find_shown_order(query.pattern, query.variables)
    return [("-" if descending else "") + show(condition) for condition, descending in found]


def show(expression: object) -> str:
    match expression:
        case Var(name):
            return name
        case Call(function, args):
            return f"{function.name}({', '.join(map(show, args))})"
        case _:
            return str(expression)


@pytest.mark.parametrize(
    ("head", "tail", "kept"),
    [
        ("SELECT ?s ?o", "ORDER BY ?s DESC(?o)", ["s", "-o"]),
        ("SELECT ?s", "ORDER BY ?s ?o", ["s"]),
        ("SELECT ?s", "ORDER BY ?o ?s", []),
        ("SELECT ?s ?o", "", []),
        ("SELECT ?s ?o", "ORDER BY STR(?s) ?o", ["STR(s)", "o"]),
        ("SELECT ?s ?o", "ORDER BY ?s RAND() ?o", ["s"]),
        ("SELECT ?s ?o", "ORDER BY ?s LIMIT 3", ["s"]),
        ("SELECT DISTINCT ?s", "ORDER BY ?s", ["s"]),
    ],
)
def test_the_order_ends_at_the_first_condition_that_is_hidden(
    head: str, tail: str, kept: list[str]
) -> None:
    assert order(head, tail) == kept


def test_what_select_gives_another_name_is_shown_by_it() -> None:
    assert order("SELECT ?s (COUNT(*) AS ?n)", "GROUP BY ?s ORDER BY DESC(COUNT(*)) ?s") == [
        "-n",
        "s",
    ]


def test_a_pattern_without_order_has_none() -> None:
    assert find_shown_order(a.Unit(), ["x"]) == ()

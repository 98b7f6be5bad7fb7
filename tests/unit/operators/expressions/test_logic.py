"""Three-valued logic, effective boolean values, IN, IF, COALESCE, BOUND (SPARQL 1.1, 17.2 and
17.4.1).
"""

import cProfile
import random
from typing import Any

import numpy as np
import pytest
from shorthand import (
    IDENTIFY,
    call,
    column,
    const,
    expected,
    of_columns,
    of_constants,
    scope,
    split,
    texts,
)

from levada.core.expressions import Function as Fn
from levada.core.expressions import Var
from levada.operators.expressions import Column, evaluate, from_texts, logic, truth
from levada.operators.expressions.comparison import compare
from levada.operators.expressions.logic import MAX_STACKED_ROWS

TRUE, FALSE, ERROR = "true", "false", '"x"^^<http://u>'
AND = {
    (TRUE, TRUE): "true",
    (TRUE, FALSE): "false",
    (FALSE, FALSE): "false",
    (TRUE, ERROR): "-",
    (FALSE, ERROR): "false",
    (ERROR, ERROR): "-",
}
OR = {
    (TRUE, TRUE): "true",
    (TRUE, FALSE): "true",
    (FALSE, FALSE): "false",
    (TRUE, ERROR): "true",
    (FALSE, ERROR): "-",
    (ERROR, ERROR): "-",
}
EBV = [
    ("true", "true"),
    ('"0"^^xsd:boolean', "false"),
    ('"maybe"^^xsd:boolean', "false"),
    ("0", "false"),
    ("-3", "true"),
    ("0.00", "false"),
    ("0.01", "true"),
    ("0e0", "false"),
    ('"-0"^^xsd:float', "false"),
    ('"NaN"^^xsd:double', "false"),
    ('"INF"^^xsd:double', "true"),
    ("123456789012345678901", "true"),
    ('"abc"^^xsd:integer', "false"),
    ('"300"^^xsd:byte', "false"),
    ('""', "false"),
    ('"0"', "true"),
    ('""@en', "false"),
    ('"a"@en', "true"),
    ("<http://a>", "-"),
    ("_:a", "-"),
    ('"2020-01-01T00:00:00Z"^^xsd:dateTime', "-"),
    ('"2020-01-01T00:00:00"^^xsd:dateTime', "-"),
    ('"2020-01-01"^^xsd:date', "-"),
    ('"a"^^<http://u>', "-"),
    ("-", "-"),
]
FORMS = [
    (Fn.IN, "1 2 1 -", "true"),
    (Fn.IN, "1 - 1", "true"),
    (Fn.IN, "1 2 -", "-"),
    (Fn.IN, "1 2 3", "false"),
    (Fn.IN, "1", "false"),
    (Fn.IN, "1 1.0", "true"),
    (Fn.NOT_IN, "1 2 -", "-"),
    (Fn.NOT_IN, "1 2 1", "false"),
    (Fn.NOT_IN, "1", "true"),
    (Fn.IF, 'true "a" 2', '"a"'),
    (Fn.IF, '"" - 2', "2"),
    (Fn.IF, "- 1 2", "-"),
    (Fn.IF, "<http://a> 1 2", "-"),
    (Fn.IF, "true - 2", "-"),
    (Fn.COALESCE, '- - "a"@en 3', '"a"@en'),
    (Fn.COALESCE, "- -", "-"),
    (Fn.COALESCE, "", "-"),
]


@pytest.mark.parametrize(("function", "table"), [(Fn.AND, AND), (Fn.OR, OR)])
def test_truth_tables(function: Any, table: Any) -> None:
    for (a, b), result in table.items():
        for pair in ((a, b), (b, a)):
            assert of_constants(function, *pair) == expected(result)
            assert of_columns(function, *pair) == expected(result)


@pytest.mark.parametrize(("short", "result"), EBV)
def test_effective_boolean_value(short: Any, result: Any) -> None:
    assert of_columns(Fn.AND, short, "true") == expected(result)
    assert of_columns(Fn.NOT, short) == expected(
        {"true": "false", "false": "true", "-": "-"}[result]
    )
    assert truth(Var("v"), scope(2, v=column(short, short))).tolist() == [result == "true"] * 2


@pytest.mark.parametrize(("function", "args", "result"), FORMS)
def test_functional_forms(function: Any, args: Any, result: Any) -> None:
    assert of_constants(function, *split(args)) == expected(result)
    assert of_columns(function, *split(args)) == expected(result)


def test_bound_is_never_an_error() -> None:
    v = column("1", "-", '"x"^^<http://u>')
    assert truth(call(Fn.BOUND, Var("v")), scope(3, v=v)).tolist() == [True, False, True]
    assert truth(call(Fn.NOT, call(Fn.BOUND, Var("nowhere"))), scope(3, v=v)).tolist() == [True] * 3


def test_if_and_coalesce_choose_row_by_row() -> None:
    v, w = column("1", "-", "0", '"a"'), column("<http://a>", "2.50", "_:b", '"b"@en')
    chosen = evaluate(call(Fn.COALESCE, Var("v"), Var("w")), scope(4, v=v, w=w))
    assert chosen.texts().to_list() == texts("1", "2.50", "0", '"a"').to_list()
    branch = evaluate(call(Fn.IF, Var("v"), Var("w"), Var("v")), scope(4, v=v, w=w))
    assert branch.texts().to_list() == texts("<http://a>", "-", "0", '"b"@en').to_list()
    assert (branch.x[0], branch.y[0]) == (w.x[0], w.y[0]), "identities are passed on"


def test_no_rows() -> None:
    empty = scope(0, v=column())
    for expression in (Var("v"), call(Fn.ADD, Var("v"), const("1")), call(Fn.STR, Var("v"))):
        assert evaluate(expression, empty).texts().to_list() == []
    assert truth(call(Fn.LESS, Var("v"), const("1")), empty).tolist() == []


VALUES = "1 2.0 1e0 true <http://a> _:a 'x' 'x'@en - 123456789012345678901".replace("'", '"')
OTHERS = f'{VALUES} "a"^^<http://u> "2020-01-01T00:00:00"^^xsd:dateTime "2"^^xsd:byte <http://b>'


@pytest.mark.parametrize("rows", [1, 7, MAX_STACKED_ROWS])
@pytest.mark.parametrize("identify", [IDENTIFY, None], ids=["identities", "texts"])
@pytest.mark.parametrize("shape", ["constants", "columns", "both"])
def test_in_equals_a_comparison_with_each_member(rows: int, identify: Any, shape: str) -> None:
    chosen = random.Random(7)
    shorts = split(OTHERS)

    def some(n: int) -> Column:
        picked = [*dict.fromkeys(shorts), *chosen.choices(shorts, k=n)][-n:]
        return column(*picked) if identify else from_texts(texts(*picked))

    value = some(rows)
    for count in (0, 1, 2, 40):
        members = [
            some(1 if shape == "constants" or (shape == "both" and i % 2) else rows)
            for i in range(count)
        ]
        each = np.where(value.bound(), 0, 2).astype(np.uint8)
        for member in members:
            each = logic.logical_or(each, compare(Fn.EQUAL, value, member, identify))
        assert logic.is_in(value, members, identify).tolist() == each.tolist()


@pytest.mark.parametrize("form", ["{}", "<http://e/{}>", '"{}"@en'])
def test_in_of_many_constants_is_few_comparisons_and_one_look_up(form: str) -> None:
    profile, looked = cProfile.Profile(), list[int]()

    def identify(found: Any) -> Any:
        looked.append(len(found))
        return IDENTIFY(found)

    members = [from_texts(texts(form.format(i))) for i in range(2000)]
    value = column(form.format(5), form.format(-5))
    assert profile.runcall(logic.is_in, value, members, identify).tolist() == [1, 0]
    again = profile.runcall(logic.is_in, value, members, identify)
    assert again.tolist() == [1, 0] and sum(looked) == (0 if form == "{}" else 2000)
    calls = {each.code: each.callcount for each in profile.getstats()}
    assert calls[compare.__code__] == 2

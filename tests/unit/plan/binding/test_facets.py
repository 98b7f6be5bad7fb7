"""What travels: texts and values only where something reads them."""

import pytest

from levada.core.expressions import Call, Const, Expression, Function, Var
from levada.core.rdf_terms import XSD, Literal
from levada.plan.binding.required_facets import expression_needs, lift, merge
from levada.plan.execution.row_layout import Facet

F = Function
A, B = Var("a"), Var("b")
ALL = Facet.ID | Facet.NUM | Facet.TEXT
ONE = Const(Literal("1", XSD + "integer"))
DAY = Const(Literal("2020-01-01", XSD + "date"))
WORD = Const(Literal("word", XSD + "string"))


@pytest.mark.parametrize(
    ("expression", "needs"),
    [
        (Call(F.LESS, (A, ONE)), {"a": Facet.NUM}),
        (Call(F.LESS, (A, B)), {"a": ALL, "b": ALL}),
        (Call(F.EQUAL, (A, WORD)), {"a": ALL}),
        (Call(F.LESS, (A, DAY)), {"a": ALL}),
        (Call(F.MULTIPLY, (A, B)), {"a": Facet.NUM, "b": Facet.NUM}),
        (Call(F.ADD, (A, B)), {"a": ALL, "b": ALL}),
        (Call(F.ADD, (A, ONE)), {"a": Facet.NUM}),
        (Call(F.LESS, (Call(F.ADD, (A, B)), ONE)), {"a": Facet.NUM, "b": Facet.NUM}),
        (Call(F.BOUND, (A,)), {"a": Facet.NUM}),
        (Call(F.IS_IRI, (Call(F.STR, (A,)),)), {"a": ALL}),
        (Call(F.NOT, (A,)), {"a": ALL}),
        (Call(F.AND, (Call(F.LESS, (A, ONE)), Call(F.STRLEN, (B,)))), {"a": Facet.NUM, "b": ALL}),
        (Call(F.OR, (Call(F.LESS, (A, ONE)), Call(F.STRLEN, (A,)))), {"a": ALL}),
        (ONE, {}),
        (A, {"a": ALL}),
    ],
    ids=str,
)
def test_what_an_expression_reads(expression: Expression, needs: dict[str, Facet]) -> None:
    assert expression_needs(expression) == needs


def test_needs_add_up() -> None:
    one, other = {"a": Facet.ID, "b": Facet.TEXT}, {"a": Facet.NUM}
    assert merge(one, other) == {"a": Facet.ID | Facet.NUM, "b": Facet.TEXT}
    assert (merge(), merge(one)) == ({}, one)
    assert one == {"a": Facet.ID, "b": Facet.TEXT}, "what is merged is not changed"


def test_expressions_that_differ_in_constants_are_lifted_to_one() -> None:
    two = Const(Literal("2", XSD + "integer"))
    constants: list[Const] = []
    lifted = [lift(Call(F.LESS, (A, c)), constants) for c in (ONE, two)]
    assert constants == [ONE, two]
    others: list[Const] = []
    assert lift(Call(F.LESS, (A, two)), others) == lifted[0]
    assert others == [two]

"""Names become slots; constants become parameters."""

from levada.core.expressions import Call, Const, Function, Param, Var
from levada.core.rdf_terms import XSD, Literal
from levada.plan.binding.slot_resolution import (
    draw_slots,
    key_sides,
    parameterize_expression,
    resolve_slots,
)
from levada.plan.physical.operators import Draw

A, B = Var("a"), Var("b")
ONE, TWO = (Literal(n, XSD + "integer") for n in "12")


def test_a_variable_that_the_input_lacks_is_unbound() -> None:
    expression = Call(Function.COALESCE, (A, Call(Function.STR, (B,))))
    assert resolve_slots(expression, ("b",)) == Call(
        Function.COALESCE, (Var(""), Call(Function.STR, (Var("0"),)))
    )


def test_constants_are_taken_out_in_order() -> None:
    found = [
        parameterize_expression(Call(Function.IN, (A, Const(x), Const(y))), ("b", "a"))
        for x, y in ((ONE, TWO), (TWO, ONE))
    ]
    assert found[0][0] == found[1][0], "queries that differ in constants have one shape"
    assert [terms for _, terms in found] == [(ONE, TWO), (TWO, ONE)]
    shape = found[0][0]
    assert isinstance(shape, Call) and shape.args[0] == Var("1")
    assert all(isinstance(arg, Param) for arg in shape.args[1:])


def test_both_sides_of_a_join_by_slots() -> None:
    sides, out, fills = key_sides(("k",), ("v", "k", "w", "s"), [("k", "v", "s"), ("s", "k", "w")])
    assert sides == ((0,), (1,))
    assert out == ((0, 1), (0, 0), (1, 2), (0, 2)), "what both have comes from the left"
    assert fills == ((2, 0),), "a shared variable that is no key may be filled from the right"


def test_a_product_has_no_keys() -> None:
    assert key_sides((), ("a", "b"), [("a",), ("b",)]) == (
        ((), ()),
        ((0, 0), (1, 0)),
        (),
    )


def test_what_random_values_derive_from() -> None:
    assert draw_slots(None, ("a",)) is None
    assert draw_slots(Draw(("b", "a"), 3), ("a", "b")) == ((1, 0), 3)

"""What an expression reads: only that is shipped."""

from shorthand import call, term

from levada.algebra.expression import Const, Param, Var
from levada.algebra.expression import Function as Fn
from levada.operators.expressions import needs

V, W = Var("v"), Var("w")
FIVE, NODE, NAME, DAY = (Const(term(s)) for s in ("5", "<http://a>", '"n"', '"2020-01-01"^^xsd:date'))
NUM, KIND = frozenset({"num"}), frozenset({"kind"})
ALL = frozenset({"id", "num", "text"})


def of(expression, *, want=("truth",), params=()):
    return needs(expression, want, params)


def test_comparing_with_a_number_needs_numbers_only():
    for function in (Fn.LESS, Fn.GREATER_EQUAL, Fn.EQUAL, Fn.NOT_EQUAL):
        assert of(call(function, V, FIVE)) == {"v": NUM}
        assert of(call(function, FIVE, V)) == {"v": NUM}
        assert of(call(function, V, Param(0)), params=[FIVE.term]) == {"v": NUM}
        assert of(call(function, call(Fn.MULTIPLY, V, W), FIVE)) == {"v": NUM, "w": NUM}
    assert of(call(Fn.IN, V, FIVE, FIVE)) == {"v": NUM}
    both = call(Fn.AND, call(Fn.GREATER, V, FIVE), call(Fn.LESS, V, FIVE))
    assert of(both) == {"v": NUM}


def test_equality_with_a_node_needs_identity():
    assert of(call(Fn.EQUAL, V, NODE)) == {"v": frozenset({"id", "kind"})}
    assert of(call(Fn.SAME_TERM, V, W)) == dict.fromkeys("vw", frozenset({"id", "kind"}))


def test_what_may_meet_dates_and_unknown_datatypes_needs_texts():
    assert of(call(Fn.EQUAL, V, W)) == {"v": ALL, "w": ALL}
    assert of(call(Fn.EQUAL, V, NAME)) == {"v": ALL}
    assert of(call(Fn.LESS, V, W)) == dict.fromkeys("vw", frozenset({"num", "text"}))
    assert of(call(Fn.EQUAL, V, Param(0))) == {"v": ALL}
    assert of(call(Fn.LESS, V, DAY)) == {"v": frozenset({"num", "text"})}


def test_tests_of_kinds_need_kinds():
    for function in (Fn.BOUND, Fn.IS_IRI, Fn.IS_NUMERIC):
        assert of(call(function, V)) == {"v": KIND}


def test_functions_on_terms_need_texts():
    assert of(call(Fn.REGEX, call(Fn.STR, V), NAME)) == {"v": frozenset({"text"})}


def test_a_variable_is_passed_on_as_it_is_wanted():
    assert of(V, want={"id"}) == {"v": frozenset({"id"})}
    assert of(V) == {"v": frozenset({"num", "text"})}
    assert of(call(Fn.IF, call(Fn.BOUND, W), V, FIVE), want={"id"}) == {"w": KIND, "v": frozenset({"id", "num"})}
    assert of(call(Fn.ADD, V, FIVE), want={"id"}) == {"v": NUM}

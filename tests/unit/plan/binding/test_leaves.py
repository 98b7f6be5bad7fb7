"""First operators by slots: what is read of a pattern, and where its terms stand."""

from levada.core.expressions import Var
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Iri
from levada.plan.binding.leaves import is_static, leaf, positions
from levada.plan.execution import steps as s
from levada.plan.physical import operators as p

P = Iri("http://e/p")
X, Y = Var("x"), Var("y")
PATTERN = TriplePattern(X, P, Y)


def test_positions_have_slots_and_terms() -> None:
    assert positions((X, P, Y), ("x", "y"), ()) == ((0, -1, 1), (None, P, None))
    assert positions((Y, X, Y), ("x", "y"), ()) == ((1, 0, 1), (None, None, None))


def test_patterns_that_differ_in_terms_have_one_step() -> None:
    one, member = leaf(p.Match(PATTERN, "http://e/s"), ("x", "y"), ("y",), 3, ())
    other, another = leaf(
        p.Match(TriplePattern(X, Iri("http://e/q"), Y), "http://e/s"), ("x", "y"), ("y",), 4, ()
    )
    assert one == other == s.Match((0, -1, 1), (1,), False)
    assert (member.constants, member.streams) == ((None, P, None), ("http://e/s",))
    assert (member.since, another.since) == (0, 0), "a stream is read whatever the plan's version"


def test_static_patterns_are_of_the_plan_that_reads_them() -> None:
    spec = p.Match(PATTERN, None, ("http://e/g",))
    step, member = leaf(spec, ("x", "y"), ("x", "y"), 3, ("http://e/g",))
    assert is_static(spec) and not is_static(p.Match(PATTERN, "http://e/s"))
    assert step == s.Match((0, -1, 1), (0, 1), True)
    assert (member.since, member.reread_graphs, member.graphs) == (
        3,
        ("http://e/g",),
        ("http://e/g",),
    )


def test_only_the_columns_that_are_read_are_scanned() -> None:
    spec = p.Scan("S", ("k", "v", "w"), ("integer", "double", "string"), "sign")
    step, _ = leaf(spec, ("a", "b", "c"), ("c", "a"), 0, ())
    assert step == s.Scan(("w", "k"), ("string", "integer"), "sign")


def test_rows_of_values_keep_the_read_columns() -> None:
    step, member = leaf(p.Constant(((P, None), (None, P))), ("x", "y"), ("y",), 2, (None,))
    assert step == s.Constant(1)
    assert (member.rows, member.since, member.reread_graphs) == (((None,), (P,)), 2, (None,))


def test_a_star_has_the_terms_of_its_legs_one_after_the_other() -> None:
    legs = (PATTERN, TriplePattern(X, P, P))
    step, member = leaf(p.Star(legs, "http://e/s"), ("x", "y"), ("x",), 0, ())
    assert step == s.Star(((0, -1, 1), (0, -1, -1)), (0,))
    assert member.constants == (None, P, None, None, P, P)

"""Merges of windows and static graphs: a row and a product for each further source."""

import pytest

from levada.core.expressions import Var
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Iri
from levada.plan.logical.nodes import InGraph, InMerge, InWindow, Source
from levada.plan.logical.properties import reads_static
from levada.plan.lowering.rdf_merge import PLACES, form_of, merge, parts_of
from levada.plan.physical import build
from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op

P, Q = Iri("http://e/p"), Iri("http://e/q")


def part(window: int, *, raw: bool = True, pattern: TriplePattern | None = None) -> Op:
    pattern = pattern or TriplePattern(Var("x"), P, Var("y"))
    return build.match(pattern, f"http://e/{window}", (), window, raw=raw)


def specs(op: Op) -> list[str]:
    """The operators of a tree, each once, by name."""
    seen: dict[int, str] = {}
    waiting = [op]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen[id(one)] = type(one.spec).__name__
            waiting += one.inputs
    return sorted(seen.values())


@pytest.mark.parametrize(
    ("source", "parts", "static"),
    [
        (InMerge((0, 2), False), [InWindow(0), InWindow(2)], False),
        (InMerge((1,), True), [InWindow(1), InGraph(None)], True),
        (InMerge((), True), [InGraph(None)], True),
    ],
)
def test_the_parts_of_a_merge(source: InMerge, parts: list[Source], static: bool) -> None:
    assert parts_of(source) == parts
    assert reads_static(source) is static


def test_only_graphs_and_merges_with_them_are_answered_by_static_data() -> None:
    assert reads_static(InGraph("http://e/g"))
    assert not reads_static(InWindow(0))


def test_patterns_that_differ_in_names_and_terms_have_one_form() -> None:
    one, names, terms = form_of(TriplePattern(Var("a"), P, Var("b")))
    other, others, constants = form_of(TriplePattern(Var("s"), Q, Var("o")))
    assert one == other == TriplePattern(Var(".0"), PLACES[0], Var(".1"))
    assert (names, terms, others, constants) == (("a", "b"), (P,), ("s", "o"), (Q,))


@pytest.mark.parametrize(
    "pattern",
    [
        TriplePattern(Var("a"), P, Var("a")),
        TriplePattern(Var("a"), Var("p"), Var("b")),
        TriplePattern(P, P, Var("b")),
        TriplePattern(P, Q, P),
    ],
    ids=str,
)
def test_a_form_with_its_names_and_terms_is_the_pattern(pattern: TriplePattern) -> None:
    form, names, terms = form_of(pattern)
    back = [
        Var(names[int(t.name[1:])]) if isinstance(t, Var) else terms[PLACES.index(t)]
        for t in form.positions
    ]
    assert tuple(back) == pattern.positions


def test_variables_that_repeat_and_variables_that_do_not_are_two_forms() -> None:
    same, other = (form_of(TriplePattern(Var("a"), P, Var(o)))[0] for o in "ab")
    assert same != other


def test_one_source_is_a_set_and_no_join() -> None:
    assert specs(merge([part(0)])) == ["Match", "Occur"]
    assert specs(merge([part(0, raw=False)])) == ["Hold", "Match"]


def test_each_further_source_costs_a_union_and_a_product() -> None:
    two, three = merge([part(0), part(1)]), merge([part(i) for i in range(3)])
    assert specs(two) == ["Join", "Match", "Match", "Occur", "Occur", "Union"]
    assert sorted(set(specs(three))) == ["Join", "Match", "Occur", "Union"]
    assert specs(three).count("Join") == specs(three).count("Union") == 2


def test_the_product_takes_back_what_both_have() -> None:
    union = merge([part(0), part(1)])
    products = [i for i in union.inputs if isinstance(i.spec, p.Join)]
    assert [i.spec.negative for i in products if isinstance(i.spec, p.Join)] == [True]
    assert union.weighted and products[0].weighted
    assert products[0].windows == (0, 1)


def test_equal_rows_of_all_sources_are_together() -> None:
    union = merge([part(0), part(1, raw=False)])
    assert {tuple(sorted(i.placed)) for i in union.inputs} == {("x", "y")}
    ground = TriplePattern(P, P, P)
    assert merge([part(0, pattern=ground), part(1, pattern=ground)]).variables == ()

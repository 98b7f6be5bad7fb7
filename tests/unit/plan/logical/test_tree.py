"""Children of nodes, and nodes with others."""

from __future__ import annotations

import pytest

from levada.core.expressions import Var
from levada.plan.logical import nodes as a
from levada.plan.logical.traversal import children, level, with_children

X, Y = a.Bgp(a.InWindow(0), ()), a.Values(("v",), ())
NODES = (
    (a.Join(X, Y), (X, Y)),
    (a.LeftJoin(X, Y, None), (X, Y)),
    (a.Minus(X, Y), (X, Y)),
    (a.Exists(X, Y, None, True), (X, Y)),
    (a.Mark(X, Y, None, "m"), (X, Y)),
    (a.Union(X, Y), (X, Y)),
    (a.Recent(X, Y), (X, Y)),
    (a.Except(X, Y), (X, Y)),
    (a.Conjunction((X, Y, X), (Var("v"),)), (X, Y, X)),
    (a.Closure(X, None, "a", "b", True, (None, None)), (X,)),
    (a.Closure(X, Y, "a", "b", True, (None, None)), (X, Y)),
    (a.SubQuery(a.InWindow(1), X, (0,), a.Output.RELATION, ()), (X,)),
    (a.Filter(X, Var("v")), (X,)),
    (a.Extend(X, "z", Var("v")), (X,)),
    (a.Group(X, ("v",), ()), (X,)),
    (a.Project(X, ("v",)), (X,)),
    (a.Distinct(X), (X,)),
    (a.OrderBy(X, ()), (X,)),
    (a.Slice(X, 1, 2), (X,)),
    (a.Number(X, "n", "rank", ("v",), ()), (X,)),
    (a.Top(X, (), 1, 2, ("v",)), (X,)),
    (a.Static(X), (X,)),
    (a.Unit(), ()),
    (X, ()),
    (Y, ()),
    (a.TripleArrivals(a.InWindow(0), None, "t"), ()),  # type: ignore[arg-type]
    (a.Scan(a.InWindow(0), ()), ()),
    (a.Entailed(a.InWindow(0), None, ()), ()),  # type: ignore[arg-type]
)


def test_each_kind_of_node_is_here() -> None:
    assert {type(node) for node, _ in NODES} == set(a.Node.__args__)


@pytest.mark.parametrize(("node", "below"), NODES)
def test_children_are_taken_out_and_put_in(node: a.Node, below: tuple[a.Node, ...]) -> None:
    assert children(node) == below
    assert with_children(node, below) is node
    others = [a.Distinct(child) for child in below]
    changed = with_children(node, others)
    assert list(children(changed)) == others
    assert with_children(changed, below) == node, "all but the children stays"


def test_a_level_ends_at_a_query_within_the_query() -> None:
    inner = a.SubQuery(a.InWindow(1), a.Distinct(X), (0,), a.Output.RELATION, ())
    assert list(level(a.Filter(inner, Var("v")))) == [a.Filter(inner, Var("v")), inner]

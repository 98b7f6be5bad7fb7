"""Defines a rule: a function from algebra to algebra with the same solutions.

A rule is a function in a file of its own in ``rules/``, and its name is the function's. It returns
the query itself, the same object, if it changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from levada.core.frozen import frozen
from levada.plan.logical import nodes as a
from levada.plan.logical.nodes import Query
from levada.plan.logical.ontology_schema import Schema
from levada.plan.logical.traversal import children, with_children
from levada.plan.logical.variables import possible_variables


@frozen
class Context:
    """The input of rules beside the query: ``schema`` defines entailment (None: no entailment)."""

    schema: Schema | None = None


@frozen
class Rule:
    """A rule. ``needed``: it decides the meaning of the query, so it cannot be switched off."""

    run: Callable[[Query, Context], Query]
    needed: bool = False

    @property
    def name(self) -> str:
        """The name that switches the rule off and that ``explain --steps`` shows."""
        return self.run.__name__


# Walks the algebra for rules: a rule names only the nodes that it changes.


Change = Callable[[a.Node], a.Node]


def bottom_up(node: a.Node, change: Change) -> a.Node:
    """Returns the tree with ``change`` applied to every node, inputs first.

    >>> bottom_up(a.Distinct(a.Unit()), lambda n: n.child if isinstance(n, a.Distinct) else n)
    Unit()
    """
    if below := children(node):
        node = with_children(node, [bottom_up(child, change) for child in below])
    return change(node)


def rewrite_query(query: a.Query, change: Change) -> a.Query:
    """Returns the query with ``change`` applied to every node of its pattern, inputs first."""
    pattern = bottom_up(query.pattern, change)
    return query if pattern is query.pattern else replace(query, pattern=pattern)


# Checks the invariants of rules: a rule may change only the pattern and the order of windows.
#
# The variables that the pattern shows and the sources that it reads stay, and the tree is
# well-formed. A violation is a mistake in a rule, not in a query. Cost: linear in the tree, for a
# rule that changed it.


def verify(rule: str, before: a.Query, after: a.Query) -> None:
    """Asserts that a rule can make ``after`` from ``before``."""
    if after is before:
        return
    unchanged = replace(after, pattern=before.pattern, windows=before.windows)
    assert unchanged == before, f"{rule} changed more than the pattern and the order of windows"
    assert Counter(after.windows) == Counter(before.windows), f"{rule} has other windows"
    nodes = list(_nodes(after.pattern))
    assert _show(after.pattern) == _show(before.pattern), f"{rule} changed the variables"
    assert _read(before).issuperset(_read(after)), f"{rule} reads other sources"
    for node in nodes:
        assert is_well_formed(node), f"{rule} made {type(node).__name__} of what cannot be one"


def is_well_formed(node: a.Node) -> bool:
    """Whether a node by itself can be lowered.

    >>> is_well_formed(a.Conjunction(()))
    False
    """
    match node:
        case a.Conjunction(parts, _):
            return len(parts) > 0 and not any(isinstance(p, (a.Unit, a.Join)) for p in parts)
        case (
            a.Extend(child, variable, _) | a.Mark(child, _, _, variable) | a.Number(child, variable)
        ):
            return variable not in possible_variables(child)
        case a.Except(left, right):
            return possible_variables(left) == possible_variables(right)
        case a.Static(child):
            return not any(isinstance(n, _OVER_WINDOWS) for n in _nodes(child)) and not any(
                isinstance(n, (a.Bgp, a.Entailed)) and not isinstance(n.source, a.InGraph)
                for n in _nodes(child)
            )
        case _:
            return True


_READING = (a.Bgp, a.Entailed, a.TripleArrivals, a.Scan, a.SubQuery)
_OVER_WINDOWS = (a.TripleArrivals, a.Scan, a.SubQuery)


def _read(query: a.Query) -> frozenset[object]:
    """Returns the sources that are read, regardless of window numbers."""
    sources = [n.source for n in _nodes(query.pattern) if isinstance(n, _READING)]
    return frozenset(
        query.windows[s.index :][:1] if isinstance(s, a.InWindow) else s for s in sources
    )


def _nodes(node: a.Node) -> Iterator[a.Node]:
    yield node
    for child in children(node):
        yield from _nodes(child)


def _show(node: a.Node) -> frozenset[str]:
    """Returns the variables that a pattern shows; those with a dot are internal."""
    return frozenset(name for name in possible_variables(node) if not name.startswith("."))

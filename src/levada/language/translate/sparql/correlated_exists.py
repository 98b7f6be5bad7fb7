"""Outer values early: the inner pattern of an EXISTS that looks at a variable of the outer group
before it has bound it.

Substitution (SPARQL 1.1, 18.6) gives the inner pattern the outer values at once. The same comes of
joining the *domain*, the distinct values that the outer solutions have, where they are looked at:
below the filter, on the left of the OPTIONAL, under the BIND, among the terms that a path of no
step connects with themselves. A variable that some outer solution leaves unbound would not be
substituted there, so only variables that are always bound can be joined in. Of a sub-select only
what it shows can be an outer variable: what it hides and binds is another one by the scope of
variables (18.2.1), as SPARQL 1.2's draft has it; of what it hides and only looks at, engines
differ. Of a MINUS the sides meet in some variable of the inner group. LIMIT counts the rows of one
outer solution. Where that is not so, ``TooEarlyError`` names what it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from levada.core.expressions import Var, variables
from levada.core.frozen import frozen
from levada.plan.logical.nodes import (
    Closure,
    Distinct,
    Exists,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    Mark,
    Minus,
    Node,
    OrderBy,
    Project,
    Slice,
    Union,
)
from levada.plan.logical.traversal import children, memoized
from levada.plan.logical.variables import (
    certain_variables,
    expressions,
    mentioned_variables,
    possible_variables,
)

_WORDS: dict[type[Node], str] = {
    LeftJoin: "An OPTIONAL",
    Minus: "A MINUS",
    Exists: "An EXISTS",
    Mark: "An EXISTS",
    Filter: "A FILTER in a nested group",
    Extend: "BIND or AS",
    Group: "GROUP BY or an aggregate",
    Project: "A sub-SELECT",
    OrderBy: "ORDER BY",
    Slice: "LIMIT or OFFSET",
    Closure: "A path that may have no step",
}


class TooEarlyError(Exception):
    """What makes substitution differ from a join: the construct's word, its variable."""

    def __init__(self, node: Node, name: str) -> None:
        super().__init__(name)
        self.word, self.name = _WORDS[type(node)], name


def domain(left: Node, names: frozenset[str]) -> Node:
    """The distinct values of these variables in the solutions of ``left``."""
    return Distinct(Project(left, tuple(sorted(names))))


@frozen
class Early:
    """Binds what an inner pattern looks at.

    ``left`` has the outer solutions, ``every`` are their variables, ``outer`` those that the
    pattern sees, ``known`` those of them that are always bound.
    """

    left: Node
    outer: frozenset[str]
    known: frozenset[str]
    every: frozenset[str]

    def bind(self, node: Node) -> Node:
        """An inner pattern whose join with the outer solutions is what substitution means. Raises
        ``TooEarlyError``.
        """
        if isinstance(node, Slice) and (unbound_names := unbound_outer_variables(node, self.outer)):
            raise TooEarlyError(node, min(unbound_names))
        if isinstance(node, Project):
            return replace(node, child=self._visible_values(node).bind(node.child))
        inner: dict[str, Any] = {
            name: self.bind(child)
            for name in _CHILDREN
            if (child := getattr(node, name, None)) is not None
        }
        same = all(getattr(node, name) is child for name, child in inner.items())
        bound = node if same else replace(node, **inner)
        match node, bound:
            case (Slice(), _):
                return bound
            case (Group(_, keys, _), Group(child, _, _)):
                return self._bind_all(
                    bound,
                    (self.outer & mentioned_variables(node))
                    - (certain_variables(child) & frozenset(keys)),
                )
            case (Minus(), Minus(left, _)):
                return replace(
                    bound,
                    left=self._with_values(left, unbound_outer_variables(node, self.outer), node),
                )
            case (OrderBy(), OrderBy(child, _)) if unbound_outer_variables(node, self.outer):
                return child  # without LIMIT an order changes nothing
            case _:
                return self._bind_early(bound)

    def _visible_values(self, node: Project) -> Early:
        """The outer values as a sub-select sees them: those that it shows. What it hides must be
        bound by its own patterns.
        """
        shown = frozenset(node.variables)
        if strange := self.every & mentioned_variables(node.child) - shown - _bind(node.child):
            raise TooEarlyError(node, min(strange))
        return replace(self, outer=self.outer & shown, known=self.known & shown)

    def _bind_all(self, node: Node, names: frozenset[str]) -> Node:
        if names:
            raise TooEarlyError(node, min(names))
        return node

    def _with_values(self, left: Node, names: frozenset[str], minus: Minus) -> Node:
        """The left side of a MINUS with what the right one looks at: so both bind it, as both have
        its value by substitution.

        By substitution a variable of the outer group is none any more; so another one must make the
        sides meet.
        """
        if not names:
            return left
        if (
            not (certain_variables(minus.left) & certain_variables(minus.right)) - self.outer
            or not names <= self.known
        ):
            raise TooEarlyError(minus, min(names - self.known or names))
        return Join(domain(self.left, names), left)

    def _bind_early(self, node: Node) -> Node:
        """A node with what it looks at, where it is joined in."""
        names = unbound_outer_variables(node, self.outer)
        if not names:
            return node
        if names <= self.known:
            node = self._join_domain(node, domain(self.left, names), names)
        if (
            left_over := unbound_outer_variables(node, self.outer)
            if not isinstance(node, Closure)
            else names - self.known
        ):
            raise TooEarlyError(node, min(left_over - self.known or left_over))
        return node

    def _join_domain(self, node: Node, values: Node, names: frozenset[str]) -> Node:
        match node:
            case LeftJoin() | Exists() | Mark():
                return replace(node, left=Join(values, node.left))
            case Filter() | Extend():
                return replace(node, child=Join(values, node.child))
            case Closure():
                assert node.zero is not None, "a path of a step or more looks at nothing"
                return replace(node, zero=Union(node.zero, self._starts(node, values, names)))
            case _:
                return node

    def _starts(self, node: Closure, values: Node, names: frozenset[str]) -> Node:
        """The outer values of the ends of a path, as its start: it connects each with itself."""
        ends = [
            Project(Extend(Project(values, (node.end,)), node.start, Var(node.end)), (node.start,))
        ]
        starts = [Project(values, (node.start,))]
        return (
            Union(*starts, *ends)
            if len(names) == 2
            else (starts if node.start in names else ends)[0]
        )


@memoized
def _bind(node: Node) -> frozenset[str]:
    """The variables that some part of a pattern binds, also where nothing outside can see it, but
    not what a sub-select hides.
    """
    below = () if isinstance(node, Project) else children(node)
    return possible_variables(node).union(*map(_bind, below))


_CHILDREN = ("left", "right", "child", "zero")


def unbound_outer_variables(node: Node, outer: frozenset[str]) -> frozenset[str]:
    """The outer variables that a node looks at where its solutions might not bind them yet."""
    seen = outer & {name for e in expressions(node) for name in variables(e)}
    match node:
        case LeftJoin(left, right, _) | Exists(left, right, _, _):
            return (seen | outer & mentioned_variables(right)) - certain_variables(left)
        case Mark(left, right, _, variable):
            return (seen | outer & mentioned_variables(right)) - certain_variables(left) | (
                outer & {variable}
            )
        case Minus(left, right):
            both = certain_variables(left) & certain_variables(right)
            return (
                outer & mentioned_variables(right) - both
                if both - outer
                else outer & mentioned_variables(right)
            )
        case Filter(child, _):
            return seen - certain_variables(child)
        case Extend(child, variable, _):
            return (seen - certain_variables(child)) | (outer & {variable})
        case Closure(_, zero, start, end, _, ends):
            return (
                outer & {start, end} if zero is not None and ends == (None, None) else frozenset()
            )
        case Group(child, keys, _):
            return (outer & mentioned_variables(node)) - (
                certain_variables(child) & frozenset(keys)
            )
        case OrderBy():
            return seen
        case Slice():
            return outer & mentioned_variables(node)
        case _:
            return frozenset()

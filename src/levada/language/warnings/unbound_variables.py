"""Warns about variables that nothing binds (SPARQL 1.1, section 18.2.1): they have no value in any
solution, whatever the data are.

The scope of a FILTER is its group. In an OPTIONAL the patterns before it belong to the scope, and
in an EXISTS the outer group. The scope of BIND is the patterns before it. A variable that SELECT
computes is in the scope of later expressions in SELECT and of ORDER BY, not of aggregates (18.2.4).
Cost: linear in the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from levada.errors import near
from levada.language.sparql import ast
from levada.language.sparql.scope import aggregates, operands, variables_in_scope, visible_names
from levada.language.warnings.warning import MAX_SHOWN, QueryWarning

_LATER = "SELECT computes ?{0} after "
_ADVICE = {
    "GROUP BY": "GROUP BY: compute it in a sub-query.",
    "HAVING": "HAVING: write its expression there in place of ?{0}.",
    "SELECT": "that: put (.. AS ?{0}) first, or into a sub-query.",
    "ORDER BY": "the aggregates: compute it in a sub-query.",
}
_ADVICE_IN_EXISTS = "HAVING: compute it in a sub-query."
_ADVICE_IN_WHERE = "WHERE: write BIND(.. AS ?{0}) in WHERE, and SELECT ?{0}."
_ADVICE_ON_AGGREGATE = (
    "WHERE: write HAVING with its expression in place of ?{0} behind WHERE and GROUP BY, or "
    "compute it in a sub-query."
)
Names = frozenset[str]
_NONE: Names = frozenset()


def unbound_variable_warnings(unit: ast.QueryUnit) -> list[QueryWarning]:
    """Yields a warning for each such variable, at its first place."""
    walk = _Walk()
    where = unit.where or ast.Group((), unit.form.span)
    scope = walk.level(unit.form, where, unit.modifiers, unit.values)
    if isinstance(unit.form, ast.Construct):
        for triple in unit.form.template:
            parts = (triple.subject, triple.predicate, triple.object)
            walk.ask((p for p in parts if isinstance(p, ast.Var)), scope, "the template")
    elif isinstance(unit.form, ast.Describe):
        described = (n for n in unit.form.names or () if isinstance(n, ast.Var))
        walk.ask(described, scope, "DESCRIBE")
    names = sorted(walk.asked, key=walk.place)
    hinted = names[:MAX_SHOWN]  # near misses cost the number of names, for each
    return [walk.warning(name, hinted=name in hinted) for name in names] + walk.rebound


class _Walk:
    """The walk through a query. ``asked``: the variables without a value.

    Each has its places, its clauses, the variables in scope there, and a hint if SELECT computes
    the variable later. ``rebound``: warnings about variables of SELECT that an EXISTS binds anew.
    """

    def __init__(self) -> None:
        self.asked: dict[str, tuple[ast.Var, str, Names, str]] = {}
        self.rebound: list[QueryWarning] = []
        self._bound: set[str] = set()  # variables that are bound anywhere in the query
        self._aliases: dict[
            str, ast.Expression
        ] = {}  # the variables that SELECT computes at this level
        self._rows = _NONE  # the scope of this level's aggregates
        self._exists = ""  # the clause with the outermost EXISTS of this level

    def place(self, name: str) -> tuple[int, int]:
        """Returns the first place of one of ``asked``."""
        span = self.asked[name][0].span
        return span.line, span.column

    def warning(self, name: str, *, hinted: bool) -> QueryWarning:
        """Returns the warning for one of ``asked`` after the walk; ``hinted``: with near misses."""
        variable, clause, scope, hint = self.asked[name]
        if not hint and name in self._bound:
            hint = f"?{name} is bound elsewhere, which is not to be seen from here."
        elif not hint and hinted:
            close = near(f"?{name}", (f"?{other}" for other in scope))
            hint = close if close.startswith("Did") else ""
        return QueryWarning(
            f"?{name} stands in {clause}, and nothing binds it there.", variable.span, hint
        )

    def ask(self, variables: Iterable[ast.Var], scope: Names, clause: str) -> None:
        """Records the variables that are not in scope."""
        for variable in variables:
            if (name := variable.name) not in scope:
                self.asked.setdefault(name, (variable, clause, scope, self._hint(name, clause)))

    def _hint(self, name: str, clause: str) -> str:
        """Returns the text to write in place of a variable that SELECT computes later."""
        expression = self._aliases.get(name)
        if expression is None:
            return ""
        computes_groups = any(aggregates([expression]))
        in_where = _ADVICE_ON_AGGREGATE if computes_groups else _ADVICE_IN_WHERE
        advice = _ADVICE.get(self._exists or clause, in_where)
        if self._exists == "HAVING":
            advice = _ADVICE_IN_EXISTS
        return (_LATER + advice).format(name)

    def level(
        self,
        form: ast.Form,
        where: ast.Group,
        modifiers: ast.Modifiers,
        values: ast.InlineData | None,
        outer: Names = _NONE,
    ) -> Names:
        """Walks a query or sub-query and returns the variables in its scope."""
        items = (form.projection or ()) if isinstance(form, ast.Select) else ()
        outside = self._aliases, self._rows, self._exists
        self._exists = ""
        self._aliases = {i.variable.name: i.expression for i in items if i.expression is not None}
        self.group(where, outer)
        self._rows = scope = outer.union(variables_in_scope(where, modifiers, values))
        self._bound |= scope | self._aliases.keys()
        for key in modifiers.group_by:
            self._expression(key.expression, scope, "GROUP BY")
        for having in modifiers.having:
            self._expression(having, scope, "HAVING")
        for item in items:
            self._expression(item.expression or item.variable, scope, "SELECT")
            scope |= {item.variable.name}
        for order in modifiers.order_by:
            self._expression(order.expression, scope, "ORDER BY")
        self._aliases, self._rows, self._exists = outside
        return scope

    def group(self, group: ast.Group, outer: Names, left: Names = _NONE) -> None:
        """Walks a group; ``left``: the variables before it, if it is optional."""
        inside = outer.union(visible_names(group))
        self._bound |= inside
        before = outer
        for element in group.elements:
            match element:
                case ast.Filter(condition):
                    self._expression(condition, inside | left, "FILTER")
                case ast.Bind(expression):
                    self._expression(expression, before, "BIND")
                case ast.Optional(inner):
                    self.group(inner, outer, before)
                case ast.SubSelect(select, where, modifiers, values):
                    self.level(select, where, modifiers, values, outer)
                case _:
                    for inner in groups_of(element):
                        self.group(inner, outer)
            before = before.union(visible_names(element))

    def _expression(self, expression: ast.Expression, scope: Names, clause: str) -> None:
        match expression:
            case ast.Var():
                self.ask([expression], scope, clause)
            case ast.Exists(pattern):
                outermost, self._exists = self._exists, self._exists or clause
                if self._exists == "HAVING":
                    self._warn_of_rebound(expression, scope)
                self.group(pattern, scope)
                self._exists = outermost
            case ast.Aggregate(_, arg) if arg is not None:
                self._expression(arg, self._rows, clause)
            case _:
                for part in operands(expression):
                    self._expression(part, scope, clause)

    def _warn_of_rebound(self, exists: ast.Exists, scope: Names) -> None:
        """Warns about variables of SELECT that the pattern of an EXISTS binds anew."""
        for name in dict.fromkeys(visible_names(exists.pattern)):
            if name in self._aliases and name not in scope:
                message = f"?{name} in this EXISTS is not the ?{name} that SELECT computes."
                hint = (_LATER + _ADVICE_IN_EXISTS).format(name)
                self.rebound.append(QueryWarning(message, exists.span, hint))


def groups_of(element: ast.Element) -> Iterator[ast.Group]:
    """Returns the groups directly within an element of a group."""
    match element:
        case ast.Group():
            yield element
        case ast.Union(branches):
            yield from branches
        case ast.Optional(group) | ast.Minus(group):
            yield group
        case ast.Graph(group=group) | ast.Window(_, group) | ast.Service(_, _, group):
            yield group
        case _:
            return

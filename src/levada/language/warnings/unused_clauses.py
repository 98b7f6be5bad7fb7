"""Warns about clauses of a SPARQL query that have no effect, whatever the data are.

    TICK                                   results do not depend on it
    REPORT, COMPUTED EVERY, T0             without a window; or another one replaces it
    ORDER BY                               of triples, of ASK, of a sub-query without LIMIT
    LIMIT                                  of ASK
    MINUS                                  without a variable of the patterns before it

The readings of FROM and of windows are in ``levada.language.warnings.sparql``. Cost: linear in the
tree.
"""

from __future__ import annotations

from collections.abc import Iterator

from levada.errors import Span
from levada.language.sparql import ast
from levada.language.sparql.scope import operands, visible_names
from levada.language.warnings.unbound_variables import groups_of
from levada.language.warnings.warning import QueryWarning

_OUT = "Leave it out."


def unused_clause_warnings(unit: ast.QueryUnit) -> Iterator[QueryWarning]:
    """Yields a warning for each clause without an effect."""
    yield from _report_clauses(unit)
    yield from _modifiers(unit)
    if unit.where is not None:
        yield from _in_group(unit.where)
    tops = [*unit.modifiers.having, *(key.expression for key in unit.modifiers.order_by)]
    if isinstance(unit.form, ast.Select):
        tops += [item.expression for item in unit.form.projection or () if item.expression]
    for expression in tops:
        yield from _in_expression(expression)


def _report_clauses(unit: ast.QueryUnit) -> Iterator[QueryWarning]:
    effective = _effective_clauses(unit)
    for clause in unit.report_clauses:
        if clause.kind == "tick":
            why = "results do not depend on when the engine reads its input"
        elif not unit.windows:
            why = "the query has no window, so it reports once"
        elif clause is not effective[clause.kind]:
            why = f"{effective[clause.kind].words} replaces it"
        else:
            continue
        yield QueryWarning(f"{clause.words} has no effect: {why}.", clause.span, _OUT)


def _effective_clauses(unit: ast.QueryUnit) -> dict[str, ast.ReportClause]:
    """Returns the clause of each kind that counts: the last one, but a period before others."""
    last = {clause.kind: clause for clause in unit.report_clauses}
    if unit.reporting.every is not None:
        periods = ("PERIODIC", "COMPUTED EVERY")
        last["policy"] = [c for c in unit.report_clauses if c.words in periods][-1]
    return {str(kind): clause for kind, clause in last.items()}


def _modifiers(unit: ast.QueryUnit) -> Iterator[QueryWarning]:
    """Yields warnings for ORDER BY and LIMIT of a query that is not a SELECT."""
    modifiers, form = unit.modifiers, unit.form
    if isinstance(form, ast.Select):
        return
    is_ask = isinstance(form, ast.Ask)
    if modifiers.order_by and (is_ask or (modifiers.limit is None and not modifiers.offset)):
        why = "ASK only says whether there is a solution" if is_ask else "triples have no order"
        span = _place(modifiers.order_by[0].expression) or form.span
        yield QueryWarning(f"ORDER BY has no effect: {why}.", span, _OUT)
    if is_ask and modifiers.limit and not modifiers.offset:
        why = "ASK only says whether there is a solution"
        yield QueryWarning(f"LIMIT has no effect: {why}.", form.span, _OUT)


def _in_group(group: ast.Group) -> Iterator[QueryWarning]:
    bound: set[str] = set()
    for element in group.elements:
        match element:
            case ast.Minus(inner, span) if bound.isdisjoint(visible_names(inner)):
                yield QueryWarning(
                    "MINUS has no effect: it has no variable of the patterns before it.",
                    span,
                    "Use one of their variables, or FILTER NOT EXISTS.",
                )
            case ast.Filter(expression) | ast.Bind(expression):
                yield from _in_expression(expression)
            case ast.SubSelect(select, where, modifiers):
                if modifiers.order_by and modifiers.limit is None and not modifiers.offset:
                    yield QueryWarning(
                        "ORDER BY has no effect in a sub-query without LIMIT or OFFSET.",
                        _place(modifiers.order_by[0].expression) or select.span,
                        "Write it behind the whole query, or leave it out.",
                    )
                yield from _in_group(where)
        for inner in groups_of(element):
            yield from _in_group(inner)
        bound.update(visible_names(element))


def _place(expression: ast.Expression) -> Span | None:
    """Returns the place of an expression, or of the first of its parts that has one."""
    if not isinstance(expression, ast.Operation):
        return expression.span
    return next(filter(None, map(_place, expression.operands)), None)


def _in_expression(expression: ast.Expression) -> Iterator[QueryWarning]:
    if isinstance(expression, ast.Exists):
        yield from _in_group(expression.pattern)
    for part in operands(expression):
        yield from _in_expression(part)

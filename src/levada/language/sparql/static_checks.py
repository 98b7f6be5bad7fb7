"""Checks the rules of SPARQL beyond its grammar: the notes of section 19.8 and the rules of
sections 10, 11, 16 and 19.6.

- BIND and AS introduce a variable that is not in scope yet.
- A query with groups shows only its keys and aggregates, and no ``*``.
- Aggregates are allowed in SELECT, HAVING and ORDER BY only, and not in each other.
- A blank node's label belongs to one basic graph pattern.
- The template of CONSTRUCT has no property paths.

Each broken rule is a ``QuerySyntaxError`` at the place of the violation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from levada.errors import QuerySyntaxError, Span
from levada.language.dialects.detect import DIALECTS, evidence
from levada.language.dialects.dialect import Dialect
from levada.language.sparql import ast
from levada.language.sparql.scope import (
    aggregates,
    is_grouped,
    operands,
    outside_aggregates,
    variables_in_scope,
    visible_names,
)


def check(unit: ast.QueryUnit, text: str) -> None:
    """Raises the first broken rule of a query."""
    checker = _Checker(text)
    if isinstance(unit.form, ast.Construct):
        checker.template(unit.form.template)
    checker.level(unit.form, unit.where, unit.modifiers, unit.values)


class _Checker:
    """One pass over a tree; ``_labels`` has the basic graph pattern of each blank node label."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._labels: dict[str, int] = {}
        self._patterns = 0

    def _fail(self, message: str, span: Span, hint: str = "") -> None:
        raise QuerySyntaxError(message, span=span, text=self._text, hint=hint)

    # --- one query level

    def level(
        self,
        form: ast.Form,
        where: ast.Group | None,
        modifiers: ast.Modifiers,
        values: ast.InlineData | None,
    ) -> None:
        """Checks a query or sub-query: its pattern, then its clauses."""
        if where is not None:
            self._group(where)
        taken = set(() if where is None else visible_names(where))
        for key in modifiers.group_by:
            self._no_aggregate([key.expression], "GROUP BY")
            if key.variable is not None:
                self._introduce(key.variable, taken)
        for expression in (*modifiers.having, *(key.expression for key in modifiers.order_by)):
            self._expression(expression)
        if isinstance(form, ast.Select):
            grouped = is_grouped(form, modifiers)
            if form.projection is None and grouped:
                self._fail(
                    "SELECT * cannot stand in a query with groups; name the keys and aggregates.",
                    form.span,
                )
            self._projection(
                form.projection or (), set(variables_in_scope(where, modifiers, values))
            )
            if grouped:
                self._check_grouping(form.projection or (), modifiers)

    def _projection(self, projection: Iterable[ast.Projected], taken: set[str]) -> None:
        for item in projection:
            if item.expression is None:
                taken.add(item.variable.name)
            else:
                self._expression(item.expression)
                self._introduce(item.variable, taken)

    def _introduce(self, variable: ast.Var, taken: set[str]) -> None:
        if variable.name in taken:
            self._fail(
                f"The variable ?{variable.name} is already in scope; AS needs a new one.",
                variable.span,
            )
        taken.add(variable.name)

    def _check_grouping(
        self, projection: Iterable[ast.Projected], modifiers: ast.Modifiers
    ) -> None:
        known = {key.variable.name for key in modifiers.group_by if key.variable is not None}
        known |= {
            key.expression.name for key in modifiers.group_by if isinstance(key.expression, ast.Var)
        }
        for item in projection:
            for variable in outside_aggregates(item.expression or item.variable):
                if variable.name not in known:
                    message = (
                        f"The variable ?{variable.name} is neither a key of "
                        "GROUP BY nor within an aggregate."
                    )
                    named = item.variable.name if item.expression is not None else ""
                    hint = f"Write GROUP BY (.. AS ?{named}), and SELECT ?{named}."
                    self._fail(message, variable.span, hint if named in known else "")
            known.add(item.variable.name)

    # --- patterns

    def _group(self, group: ast.Group) -> None:
        taken: set[str] = set()
        pattern = None
        for element in group.elements:
            if isinstance(element, ast.Triples):
                pattern = self._new_pattern() if pattern is None else pattern
                self._labels_of(element.triples, pattern)
            elif not isinstance(element, ast.Filter):
                pattern = None
            if isinstance(element, ast.Bind) and element.variable.name in taken:
                self._fail(
                    f"The variable ?{element.variable.name} is already in scope; "
                    "BIND needs a new one.",
                    element.variable.span,
                )
            taken.update(visible_names(element))
            self._element(element)

    def _element(self, element: ast.Element) -> None:
        match element:
            case ast.Group():
                self._group(element)
            case ast.Union(branches):
                for branch in branches:
                    self._group(branch)
            case ast.Optional(group) | ast.Minus(group):
                self._group(group)
            case ast.Graph(group=group) | ast.Window(_, group) | ast.Service(_, _, group):
                self._group(group)
            case ast.Filter(condition):
                self._no_aggregate([condition], "FILTER")
            case ast.Bind(expression):
                self._no_aggregate([expression], "BIND")
            case ast.SubSelect(select, where, modifiers, values):
                self.level(select, where, modifiers, values)
            case _:
                return

    def _new_pattern(self) -> int:
        self._patterns += 1
        return self._patterns

    def _labels_of(self, triples: Iterable[ast.Triple], pattern: int) -> None:
        for triple in triples:
            for node in (triple.subject, triple.object):
                if (
                    isinstance(node, ast.BlankNode)
                    and self._labels.setdefault(node.label, pattern) != pattern
                ):
                    message = (
                        f"The label _:{node.label} is used in two basic graph patterns; "
                        "use a variable."
                    )
                    self._fail(message, node.span)

    def template(self, triples: Iterable[ast.Triple]) -> None:
        """Checks the template of CONSTRUCT."""
        for triple in triples:
            if not isinstance(triple.predicate, ast.Var | ast.Constant):
                self._fail("A property path cannot stand in a template.", triple.predicate.span)

    # --- expressions

    def _no_aggregate(self, expressions: Iterable[ast.Expression], clause: str) -> None:
        for expression in expressions:
            for aggregate in aggregates([expression]):
                having = "Write HAVING behind WHERE and GROUP BY, or compute"
                words = having if clause == "FILTER" else "Compute"
                self._fail(
                    f"The aggregate {aggregate.name} cannot stand in {clause}.",
                    aggregate.span,
                    f"{words} it by SELECT in a sub-query.",
                )
            self._expression(expression)

    def _expression(self, expression: ast.Expression) -> None:
        """Checks aggregates in aggregates, and the patterns of EXISTS."""
        match expression:
            case ast.Exists(pattern):
                self._group(pattern)
            case ast.Aggregate(name, arg) if arg is not None:
                for inner in aggregates([arg]):
                    self._fail(f"The aggregate {inner.name} cannot stand in {name}.", inner.span)
                self._expression(arg)
            case _:
                for part in operands(expression):
                    self._expression(part)


# Explains a clause of another dialect than the one in which a text is read.
#
# A text with clauses of two dialects is read in one of them, and fails at a clause of the other.


# what people call a clause, what it looks like, and the file of clauses that has it
_CLAUSES = (
    ("REGISTER QUERY", r"REGISTER\s+QUERY\b", "register_query.lark"),
    ("COMPUTED EVERY", r"COMPUTED\b", "register_query.lark"),
    ("FROM NAMED WINDOW", r"FROM\s+NAMED\s+WINDOW\b", "named_window.lark"),
    ("FROM NAMED STREAM", r"FROM\s+NAMED\s+STREAM\b", "from_stream.lark"),
    ("FROM STREAM", r"FROM\s+STREAM\b", "from_stream.lark"),
    ("WINDOW .. {}", r"\bWINDOW\b(?=\s+[^\s{]+\s*\{)", "named_window.lark"),
    ("STREAM .. [..] {}", r"\bSTREAM\b(?=\s+[^\s\[{]+\s*\[[^\]]*\]\s*\{)", "stream.lark"),
    ("STREAM .. {}", r"\bSTREAM\b(?=\s+[^\s\[{]+\s*\{)", "cqels2.lark"),
    ("REPORT", r"\bREPORT\b", "reporting.lark"),
    ("TICK", r"\bTICK\b", "reporting.lark"),
    ("T0", r"\bT0\b", "reporting.lark"),
    ("An operator beside the query's form", r"\b[RID]STREAM\b", "output.lark"),
)


def explain_foreign_clause(text: str, place: Span, spoken: Dialect, *, asked: bool) -> str:
    """Returns the dialects of a clause at which ``spoken`` cannot go on; "": it is not a foreign
    clause.

    ``asked``: the dialect was requested, not recognized.

    >>> text = "SELECT ?s FROM STREAM <s> [NOW] { WINDOW <w> { ?s ?p ?o } }"
    >>> explain_foreign_clause(text, Span(1, 16), DIALECTS["rspql"], asked=False)[:48]
    'FROM STREAM belongs to CQELS-QL 2, C-SPARQL and '
    """
    lines = text.split("\n")
    offset = sum(len(line) + 1 for line in lines[: place.line - 1]) + place.column - 1
    for name, pattern, file in _CLAUSES:
        if file in spoken.grammar:
            continue
        for match in re.finditer(pattern, text, re.IGNORECASE):
            if match.start() <= offset < match.end():
                owners = [d.title for d in DIALECTS.values() if file in d.grammar]
                dialect = _explain_dialect(text, spoken, asked=asked)
                return f"{name} belongs to {_join_names(owners)}; {dialect}"
    return ""


def _explain_dialect(text: str, spoken: Dialect, *, asked: bool) -> str:
    """Returns the dialect in which a text was read, and the reason."""
    if asked:
        return f"the dialect that was asked for is {spoken.title}."
    why = evidence(text)
    return f"the text was read as {spoken.title}" + (f", because of its {why}." if why else ".")


def _join_names(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)

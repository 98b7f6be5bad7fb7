"""Builds a query's ``QueryUnit`` from the parse tree of its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lark import Token

from levada.language.sparql import ast
from levada.language.sparql.build.windows import Windows


class Builder(Windows):
    """Builds a query; one builder per text."""

    def unit(self, *parts: Any) -> ast.QueryUnit:
        """Builds the query from its clauses, which come flat and in any order that the grammar
        allows.
        """
        clauses: dict[str, Any] = {"register": None, "values": None, "where": None}
        datasets: list[ast.From] = []
        windows: list[ast.WindowClause] = []
        modifiers: dict[str, Any] = {}
        for part in _flat(parts):
            match part:
                case ast.Register():
                    clauses["register"] = part
                case ast.From():
                    datasets.append(part)
                case ast.WindowClause():
                    windows.append(part)
                case ast.Group():
                    clauses["where"] = part
                case ast.InlineData():
                    clauses["values"] = part
                case (str(name), value):
                    modifiers[name] = value
                case _:
                    clauses["form"] = part
        if clauses["register"] is not None:  # the output may stand behind it
            clauses["register"] = replace(clauses["register"], operator=self._output)
        if self._dialect.named_beside and all(clause.named for clause in datasets):
            datasets = []
        if self._dialect.tumbling_range:
            clauses["where"] = self._implicit(clauses["where"], windows, datasets)
        return ast.QueryUnit(
            **clauses,
            datasets=tuple(datasets),
            windows=(*windows, *self._windows),
            modifiers=ast.Modifiers(**modifiers),
            base=self._base,
            output=self._output,
            reporting=self._reporting,
            report_clauses=tuple(self._report_clauses),
            entailment=self._entailment,
        )

    def _implicit(
        self,
        where: ast.Group | None,
        windows: Sequence[ast.WindowClause],
        datasets: Sequence[ast.From],
    ) -> ast.Group | None:
        """Applies CQELS-QL 2: with one FROM STREAM, no graph, and no window name, all patterns read
        it.
        """
        if where is None or self._named or datasets or len(windows) != 1:
            return where
        return ast.Group((ast.Window(windows[0].name, where, where.span),), where.span)

    def sub_select(self, select: ast.Select, where: ast.Group, *rest: Any) -> ast.SubSelect:
        """Builds a query in braces: its modifiers are pairs, its VALUES comes last."""
        *modifiers, values = rest
        return ast.SubSelect(select, where, ast.Modifiers(**dict(modifiers)), values)

    # --- forms

    def select(
        self, token: Token, duplicates: Token | None, *projected: ast.Projected
    ) -> ast.Select:
        """Builds SELECT; ``*`` has no items."""
        kind = ast.Duplicates.ALL if duplicates is None else ast.Duplicates(duplicates.upper())
        return ast.Select(kind, projected or None, self._span(token))

    def select_item(self, first: Any, variable: ast.Var | None = None) -> ast.Projected:
        """An item of SELECT."""
        return ast.Projected(first, None) if variable is None else ast.Projected(variable, first)

    def select_stream(
        self, token: Token, operator: Token, duplicates: Token | None, *projected: ast.Projected
    ) -> ast.Select:
        """``SELECT RSTREAM``."""
        self._say_output(operator)
        return self.select(token, duplicates, *projected)

    def construct_stream(
        self, token: Token, operator: Token, template: ast.Triples | None
    ) -> ast.Construct:
        """``CONSTRUCT RSTREAM {}``."""
        self._say_output(operator)
        return self.construct(token, template)

    def construct(self, token: Token, template: ast.Triples | None) -> ast.Construct:
        """CONSTRUCT with a template."""
        return ast.Construct(() if template is None else template.triples, self._span(token))

    def construct_where(self, token: Token, *rest: Any) -> tuple[Any, ...]:
        """``CONSTRUCT WHERE {}``: the pattern is the template."""
        opening = next(i for i, part in enumerate(rest) if isinstance(part, Token))
        pattern: ast.Triples | None = rest[opening + 1]
        group = ast.Group(() if pattern is None else (pattern,), self._span(rest[opening]))
        return (self.construct(token, pattern), *rest[:opening], group, *rest[opening + 2 :])

    def template(self, triples: ast.Triples) -> ast.Triples:
        """A template's triples."""
        return triples

    def describe(self, token: Token, *names: ast.Name) -> ast.Describe:
        """Builds DESCRIBE; ``*`` has no names."""
        return ast.Describe(names or None, self._span(token))

    def ask(self, token: Token) -> ast.Ask:
        """ASK."""
        return ast.Ask(self._span(token))

    # --- modifiers, as pairs of their name in ast.Modifiers and their value

    def group_by(self, *keys: ast.GroupKey) -> tuple[str, tuple[ast.GroupKey, ...]]:
        """GROUP BY."""
        return ("group_by", keys)

    def group_key(
        self, expression: ast.Expression, variable: ast.Var | None = None
    ) -> ast.GroupKey:
        """A key of GROUP BY."""
        return ast.GroupKey(expression, variable)

    def having(self, *conditions: ast.Expression) -> tuple[str, tuple[ast.Expression, ...]]:
        """HAVING."""
        return ("having", conditions)

    def order_by(self, *keys: ast.OrderKey) -> tuple[str, tuple[ast.OrderKey, ...]]:
        """ORDER BY."""
        return ("order_by", keys)

    def ascending(self, expression: ast.Expression) -> ast.OrderKey:
        """``ASC(a)`` or ``a``."""
        return ast.OrderKey(expression, False)

    def descending(self, expression: ast.Expression) -> ast.OrderKey:
        """``DESC(a)``."""
        return ast.OrderKey(expression, True)

    def limit(self, token: Token) -> tuple[str, int]:
        """LIMIT."""
        return ("limit", self._count(token))

    def offset(self, token: Token) -> tuple[str, int]:
        """OFFSET."""
        return ("offset", self._count(token))

    # --- the dataset

    def from_graph(self, token: Token, graph: ast.Constant) -> ast.From:
        """FROM."""
        return ast.From(graph, False, self._span(token))

    def from_named(self, token: Token, graph: ast.Constant) -> ast.From:
        """FROM NAMED."""
        return ast.From(graph, True, self._span(token))


def _flat(parts: tuple[Any, ...]) -> list[Any]:
    """Yields the clauses without empty places, those of CONSTRUCT WHERE unpacked."""
    out: list[Any] = []
    for part in parts:
        if isinstance(part, tuple) and part and isinstance(part[0], ast.Construct):
            out += _flat(part)
        elif part is not None:
            out.append(part)
    return out

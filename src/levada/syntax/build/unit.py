"""The builder's whole: from the parse tree of a text to its ``QueryUnit``, with RSP-QL's clauses."""

from __future__ import annotations

from typing import Any

from lark import Token

from levada.errors import Span
from levada.model.time import MAX
from levada.syntax import ast
from levada.syntax.build.patterns import Patterns
from levada.syntax.duration import milliseconds


class Builder(Patterns):
    """Builds a query; one builder per text."""

    def unit(self, *parts: Any) -> ast.QueryUnit:
        """The query from its clauses, which come flat and in any order that the grammar allows."""
        found: dict[str, Any] = {"register": None, "values": None, "where": None}
        datasets: list[ast.From] = []
        windows: list[ast.WindowClause] = []
        modifiers: dict[str, Any] = {}
        for part in _flat(parts):
            match part:
                case ast.Register():
                    found["register"] = part
                case ast.From():
                    datasets.append(part)
                case ast.WindowClause():
                    windows.append(part)
                case ast.Group():
                    found["where"] = part
                case ast.InlineData():
                    found["values"] = part
                case (str(name), value):
                    modifiers[name] = value
                case _:
                    found["form"] = part
        return ast.QueryUnit(
            **found,
            datasets=tuple(datasets),
            windows=tuple(windows),
            modifiers=ast.Modifiers(**modifiers),
            base=self._base,
        )

    def sub_select(self, select: ast.Select, where: ast.Group, *rest: Any) -> ast.SubSelect:
        """A query in braces: its modifiers are pairs, its VALUES comes last."""
        *modifiers, values = rest
        return ast.SubSelect(select, where, ast.Modifiers(**dict(modifiers)), values)

    # --- forms

    def select(self, token: Token, duplicates: Token | None, *projected: ast.Projected) -> ast.Select:
        """SELECT; no item is left of ``*``."""
        kind = ast.Duplicates.ALL if duplicates is None else ast.Duplicates(duplicates.upper())
        return ast.Select(kind, projected or None, self._span(token))

    def projected(self, first: Any, variable: ast.Var | None = None) -> ast.Projected:
        """An item of SELECT."""
        return ast.Projected(first, None) if variable is None else ast.Projected(variable, first)

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
        """DESCRIBE; no name is left of ``*``."""
        return ast.Describe(names or None, self._span(token))

    def ask(self, token: Token) -> ast.Ask:
        """ASK."""
        return ast.Ask(self._span(token))

    # --- modifiers, as pairs of their name in ast.Modifiers and their value

    def group_by(self, *keys: ast.GroupKey) -> tuple[str, tuple[ast.GroupKey, ...]]:
        """GROUP BY."""
        return ("group_by", keys)

    def group_key(self, expression: ast.Expression, variable: ast.Var | None = None) -> ast.GroupKey:
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

    # --- RSP-QL

    def register(self, token: Token, operator: Token, name: ast.Constant) -> ast.Register:
        """``REGISTER RSTREAM name AS``."""
        return ast.Register(operator.upper(), name, self._span(token))

    def from_graph(self, token: Token, graph: ast.Constant) -> ast.From:
        """FROM."""
        return ast.From(graph, False, self._span(token))

    def from_named(self, token: Token, graph: ast.Constant) -> ast.From:
        """FROM NAMED."""
        return ast.From(graph, True, self._span(token))

    def from_window(
        self, token: Token, name: ast.Constant, stream: ast.Constant, spec: ast.WindowSpec
    ) -> ast.WindowClause:
        """``FROM NAMED WINDOW name ON stream [...]``."""
        return ast.WindowClause(name, stream, spec, self._span(token))

    def range_spec(self, duration: Token, step: Token | None) -> ast.Range:
        """``RANGE d STEP d``."""
        return ast.Range(self._duration(duration), None if step is None else self._duration(step))

    def past_spec(self, token: Token, since: int, to: int, step: Token | None) -> ast.Range:
        """``FROM NOW-d TO NOW-e STEP d``."""
        if to >= since:
            raise self._error(
                "A window in the past ends after it starts: FROM is longer ago than TO.", self._span(token)
            )
        return ast.Range(since, None if step is None else self._duration(step), to)

    def past(self, *ago: Token | None) -> int:
        """``NOW`` or ``NOW-d``: how long ago, in ms."""
        duration = ago[-1]
        if duration is None:
            return 0
        if len(ago) > 1:
            return self._duration(duration)
        if duration[0] != "-":
            raise self._error("A window does not reach into the future: NOW-PT5M.", self._span(duration))
        return self._duration(duration.update(value=duration[1:]))

    def triples_spec(self, count: Token) -> ast.LastTriples:
        """``TRIPLES n``."""
        return ast.LastTriples(self._some(count))

    def elements_spec(self, count: Token, step: Token | None) -> ast.LastTriples:
        """``ELEMENTS n STEP m``."""
        return ast.LastTriples(self._some(count), 1 if step is None else self._some(step))

    def session_spec(self, gap: Token) -> ast.Session:
        """``SESSION d``."""
        return ast.Session(self._duration(gap))

    def now_spec(self) -> ast.Instant:
        """``NOW``."""
        return ast.Instant.NOW

    def all_spec(self) -> ast.Instant:
        """``ALL``."""
        return ast.Instant.ALL

    def _duration(self, token: Token) -> int:
        try:
            return milliseconds(token)
        except ValueError as error:
            raise self._error(str(error), self._span(token)) from None

    def _some(self, token: Token) -> int:
        """A number of triples of a window."""
        number = self._count(token)
        if number == 0:
            raise self._error("A window of the last triples holds at least one.", self._span(token))
        return number

    def _count(self, token: Token) -> int:
        span: Span = self._span(token)
        if len(token) > len(str(MAX)) or int(token) >= MAX:
            raise self._error(f"The number {token[:30]} is too large here.", span)
        return int(token)


def _flat(parts: tuple[Any, ...]) -> list[Any]:
    """The clauses without empty places, those of CONSTRUCT WHERE unpacked."""
    out: list[Any] = []
    for part in parts:
        if isinstance(part, tuple) and part and isinstance(part[0], ast.Construct):
            out += _flat(part)
        elif part is not None:
            out.append(part)
    return out

"""CQL -> algebra: one Select block over windowed tuple streams (Arasu, Babu, Widom 2006; design, sections 1 and 8).

    Select k, Sum(v) As s From A [Range 60 s], B [Now] Where A.k = B.k And A.v > 5 Group By k

    Project [k s]
      Group [k] [s = SUM(A.v)]
        Filter (> ?A.v 5)
          Join
            Scan window 0 [k -> k, v -> A.v]
            Scan window 1 [k -> k]

A CQL relation is a bag: nothing is made distinct but by ``Select Distinct``. Equi-joins between columns of one type are
shared variables; every other conjunct of Where is a Filter of its own above the joins. Joins are left-deep in the order of
From, except that a table that shares a variable with those before it comes first. A row whose join column is NULL joins
with nothing: operators never match two unbound columns of scans. Names are ``cql_scope``'s idea, types and the meaning of
operators ``cql_expression``'s. Cost: linear in the text.
"""

from __future__ import annotations

from collections.abc import Mapping

from levada.algebra import nodes
from levada.algebra.cql_expression import Translator, above_group, aggregates_in
from levada.algebra.cql_scope import (
    Classes,
    ColumnRef,
    Scope,
    columns_in,
    conjuncts,
    equi_join,
    output_names,
    variable_names,
)
from levada.algebra.expression import Aggregate, Expression, Var
from levada.algebra.options import QueryOptions
from levada.algebra.translate_windows import reporting
from levada.errors import QueryError, Span
from levada.model.time import Window, WindowKind
from levada.syntax.cql import parse_cql
from levada.syntax.cql_ast import Column, Every, Select, Statement, WindowSpec, WindowWord
from levada.syntax.cql_ast import Expression as Syntax

Streams = Mapping[str, Mapping[str, str]]


def translate_cql(text: str, streams: Streams, options: QueryOptions = QueryOptions()) -> nodes.Query:  # noqa: B008 a frozen value
    """The algebra of a CQL text.

    ``streams`` maps each tuple stream's word to its columns and their types (integer, double, string, boolean), in order;
    the event time is a further column ``ts`` (integer, ms) unless the schema has one. Raises ``QueryError``.

    >>> query = translate_cql("Istream(Select k From A [Range 5 s] Where v > 1)", {"A": {"k": "integer", "v": "double"}})
    >>> query.output.value, query.variables, query.windows[0].window.range
    ('ISTREAM', ('k',), 5000)
    """
    statement = parse_cql(text)
    translation = _Translation(statement, streams)
    return nodes.Query(
        form=nodes.Form.SELECT,
        pattern=translation.pattern(),
        variables=tuple(translation.outputs),
        windows=_windows(statement, options),
        output=nodes.Output[(statement.output or "relation").upper()],
        text=text,
        reports=reporting(options),
    )


def _windows(statement: Statement, options: QueryOptions) -> tuple[nodes.WindowOn, ...]:
    tables = statement.select.tables
    if options.report == "close" and not any(table.window.slide for table in tables):
        message = "report=close needs a window with Slide."
        raise QueryError(message, span=tables[0].window.span, text=statement.text)
    return tuple(nodes.WindowOn(table.alias, table.stream, _window(table.window, options)) for table in tables)


def _window(spec: WindowSpec, options: QueryOptions) -> Window:
    """The window that a specification means (the table is in ``syntax/dialects/cql.py``)."""
    t0, given = options.t0 or 0, options.t0 is not None
    match spec.word:
        case WindowWord.UNBOUNDED:
            return Window(WindowKind.ALL, t0=t0, t0_given=given)
        case WindowWord.NOW:
            return Window(WindowKind.NOW, t0=t0, t0_given=given)
        case WindowWord.ROWS:
            return Window(WindowKind.COUNT, t0=t0, t0_given=given, count=spec.rows)
        case WindowWord.RANGE if not spec.slide:
            return Window(WindowKind.RANGE, range=spec.range, t0=t0, t0_given=given)
        case WindowWord.RANGE:
            closing = WindowKind.CLOSE_OPEN if options.bounds == "[)" else WindowKind.CLOSE_CLOSED
            kind = WindowKind.CHANGE if options.report == "change" else closing
            return Window(kind, range=spec.range, step=spec.slide, t0=t0, t0_given=given)


class _Translation:
    """The translation of one statement; ``pattern`` reads as the order of its steps."""

    def __init__(self, statement: Statement, streams: Streams) -> None:
        self.select: Select = statement.select
        self.text = statement.text
        self.scope = Scope(self.select.tables, streams, statement.text)
        self.items = self.scope.expand(self.select.items)
        self.outputs = output_names(self.scope, self.items)
        self.classes, self.conditions = self._split_where()
        self.names = variable_names(self.scope, self.classes, self.items, self.outputs)
        self.translator = Translator(self.scope, self._variable, bool(self.select.group))

    def pattern(self) -> nodes.Node:
        node = self._joined()
        for condition in self.conditions:
            node = nodes.Filter(node, self.translator.condition(condition, "Where"))
        values = [self.translator.value(item.expression).expression for item in self.items]
        having = None if self.select.having is None else self.translator.condition(self.select.having)
        if self.select.group or having is not None or any(map(aggregates_in, values)):
            node, values = self._grouped(node, values, having)
        for output, value in zip(self.outputs, values, strict=True):
            if value != Var(output):
                node = nodes.Extend(node, output, value)
        node = nodes.Project(node, tuple(self.outputs))
        return nodes.Distinct(node) if self.select.distinct else node

    def _variable(self, column: Column) -> str:
        return self.names[self.scope.resolve(column)]

    def _split_where(self) -> tuple[Classes, list[Syntax]]:
        """The equi-joins as classes of columns, and the conditions that stay filters."""
        classes, rest = Classes(), []
        for condition in conjuncts(self.select.where):
            pair = equi_join(self.scope, condition)
            if pair is None or not classes.merge(*pair):
                rest.append(condition)
        return classes, rest

    def _joined(self) -> nodes.Node:
        """The scans, joined left-deep."""
        used = self._used()
        scans: list[nodes.Scan] = [
            nodes.Scan(nodes.InWindow(i), tuple((c, self.names[ColumnRef(i, c)]) for c in columns))
            for i, columns in enumerate(used)
        ]
        order = [scans.pop(0)]
        while scans:
            bound = {variable for scan in order for _, variable in scan.columns}
            linked = (scan for scan in scans if bound & {variable for _, variable in scan.columns})
            following = next(linked, scans[0])
            scans.remove(following)
            order.append(following)
        node: nodes.Node = order[0]
        for scan in order[1:]:
            node = nodes.Join(node, scan)
        return node

    def _used(self) -> list[list[str]]:
        """Per table the columns that the query needs, in the order of the schema."""
        select = self.select
        expressions = [*(item.expression for item in self.items), *select.group]
        expressions += [part for part in (select.where, select.having) if part is not None]
        refs = {self.scope.resolve(column) for expression in expressions for column in columns_in(expression)}
        return [[c for c in self.scope.columns(i) if ColumnRef(i, c) in refs] for i in range(len(select.tables))]

    def _grouped(
        self, node: nodes.Node, values: list[Expression], having: Expression | None
    ) -> tuple[nodes.Node, list[Expression]]:
        """Group By over ``node``, Having above it, and the select list in terms of the group."""
        if any(isinstance(item, Every) for item in self.select.items):
            raise QueryError("* cannot stand in a query that groups.", span=self.items[0].span, text=self.text)
        keys: dict[Expression, str] = {}
        for syntax in self.select.group:
            key = self.translator.value(syntax, "Group By").expression
            keys.setdefault(key, key.name if isinstance(key, Var) else f".g{len(keys)}")
        for key, name in keys.items():
            if key != Var(name):
                node = nodes.Extend(node, name, key)
        aggregates = self._aggregates(values, having)
        node = nodes.Group(node, tuple(keys.values()), tuple((name, a) for a, name in aggregates.items()))
        lifted = [
            self._lifted(value, keys, aggregates, item.span) for value, item in zip(values, self.items, strict=True)
        ]
        if having is not None:
            node = nodes.Filter(node, self._lifted(having, keys, aggregates, self._having_span()))
        return node, lifted

    def _aggregates(self, values: list[Expression], having: Expression | None) -> dict[Aggregate, str]:
        """Each aggregate once, under the output name of the column that is nothing else, or ``.a0``, ``.a1`` ..."""
        names: dict[Aggregate, str] = {}
        for value, output in zip(values, self.outputs, strict=True):
            if isinstance(value, Aggregate):
                names.setdefault(value, output)
        for value in [*values, *([] if having is None else [having])]:
            for aggregate in aggregates_in(value):
                names.setdefault(aggregate, f".a{len(names)}")
        return names

    def _having_span(self) -> Span | None:
        return None if self.select.having is None else self.select.having.span

    def _lifted(
        self, value: Expression, keys: dict[Expression, str], aggregates: dict[Aggregate, str], span: Span | None
    ) -> Expression:
        try:
            return above_group(value, keys, aggregates)
        except KeyError as error:
            column = next(
                f"{self.scope.aliases[r.table]}.{r.name}" for r, n in self.names.items() if n == error.args[0]
            )
            message = f"The column {column} is neither in Group By nor inside an aggregate."
            raise QueryError(message, span=span, text=self.text) from None

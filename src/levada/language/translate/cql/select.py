"""Translates a CQL Select block to algebra (Arasu, Babu, Widom 2006; docs/semantics.md).

    Select k, Sum(v) As s From A [Range 60 s], B [Now] Where A.k = B.k And A.v > 5 Group By k

    Project [k s]
      Group [k] [s = SUM(A.v)]
        Filter (> ?A.v 5)
          Join
            Scan window 0 [k -> k, v -> A.v]
            Scan window 1 [k -> k]

A CQL relation is a bag: only ``Select Distinct`` makes rows distinct. Equi-joins between columns of
one type are shared variables. Every other conjunct of Where is a Filter of its own above the joins.
Joins are left-deep in the order of From, but a table that shares a variable with earlier ones comes
first. A row whose join column is NULL joins with nothing: operators never match two unbound columns
of tables. ``scope`` resolves names, ``expressions`` handles types and operators, and
``from_clause`` tables. Cost: linear in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from levada.core.expressions import Aggregate, Expression, Var
from levada.core.frozen import frozen
from levada.errors import QueryError, Span
from levada.language.cql.ast import (
    Call,
    Column,
    Combination,
    Every,
    Item,
    Operation,
    Select,
    Table,
    show_expression,
    show_name,
)
from levada.language.cql.ast import Expression as Syntax
from levada.language.translate.cql.expressions import Translator, above_group, aggregates_in
from levada.language.translate.cql.scope import (
    Classes,
    ColumnRef,
    Columns,
    Scope,
    columns_in,
    conjuncts,
    equi_join,
    output_names,
    variable_names,
)
from levada.plan.logical import nodes

Named = tuple[tuple[str, str], ...]


@frozen
class Leaf:
    """A table of From: its columns, and the algebra of its used (column, variable) pairs."""

    columns: Columns
    node: Callable[[Named], nodes.Node]


class SelectBlock:
    """The translation of one Select block; ``pattern`` shows the order of its steps, ``types`` are
    those of the outputs.
    """

    def __init__(self, select: Select, tables: Sequence[Leaf], text: str) -> None:
        self.select = select
        self.text = text
        self.tables = tables
        named = [item.alias for item in select.items if isinstance(item, Item) and item.alias]
        self.scope = Scope([table.columns for table in tables], text, named)
        self.items = self.scope.expand(self.select.items)
        self.outputs = output_names(self.scope, self.items)
        self.classes, self.conditions = self._split_where()
        self.names = variable_names(self.scope, self.classes, self.items, self.outputs)
        self.translator = Translator(self.scope, self._variable, bool(self.select.group))

    def pattern(self) -> nodes.Node:
        """Returns the algebra of the block."""
        node = self._join_tables()
        for condition in self.conditions:
            node = nodes.Filter(node, self.translator.condition(condition, "Where"))
        typed = [self.translator.value(item.expression) for item in self.items]
        self.types = [value.type for value in typed]
        values = [value.expression for value in typed]
        having = (
            None if self.select.having is None else self.translator.condition(self.select.having)
        )
        if self.select.group or having is not None or any(map(aggregates_in, values)):
            node, values = self._group_rows(node, values, having)
        for output, value in zip(self.outputs, values, strict=True):
            if value != Var(output):
                node = nodes.Extend(node, output, value)
        node = nodes.Project(node, tuple(self.outputs))
        return nodes.Distinct(node) if self.select.distinct else node

    def _variable(self, column: Column) -> str:
        return self.names[self.scope.resolve(column)]

    def _split_where(self) -> tuple[Classes, list[Syntax]]:
        """Splits Where into classes of columns (equi-joins) and filters."""
        classes, rest = Classes(), []
        for condition in conjuncts(self.select.where):
            pair = equi_join(self.scope, condition)
            if pair is None or not classes.merge(*pair):
                rest.append(condition)
        return classes, rest

    def _join_tables(self) -> nodes.Node:
        """Joins the scans, left-deep."""
        named = [
            tuple((c, self.names[ColumnRef(i, c)]) for c in used)
            for i, used in enumerate(self._used_columns())
        ]
        waiting = list(range(len(named)))
        order = [waiting.pop(0)]
        while waiting:
            bound = {variable for i in order for _, variable in named[i]}
            linked = (i for i in waiting if bound & {variable for _, variable in named[i]})
            following = next(linked, waiting[0])
            waiting.remove(following)
            order.append(following)
        first, *others = (self.tables[i].node(named[i]) for i in order)
        for other in others:
            first = nodes.Join(first, other)
        return first

    def _used_columns(self) -> list[list[str]]:
        """Returns the columns of each table that the query needs, in the order of the schema."""
        select = self.select
        expressions = [*(item.expression for item in self.items), *select.group]
        expressions += [part for part in (select.where, select.having) if part is not None]
        refs = {
            self.scope.resolve(column)
            for expression in expressions
            for column in columns_in(expression)
        }
        return [
            [c for c in self.scope.columns(i) if ColumnRef(i, c) in refs]
            for i in range(len(select.tables))
        ]

    def _group_rows(
        self, node: nodes.Node, values: list[Expression], having: Expression | None
    ) -> tuple[nodes.Node, list[Expression]]:
        """Translates Group By over ``node``, Having above it, and the select list in terms of the
        group.
        """
        if any(isinstance(item, Every) for item in self.select.items):
            raise QueryError(
                "* cannot stand in a query that groups.", span=self.items[0].span, text=self.text
            )
        keys: dict[Expression, str] = {}
        for syntax in self.select.group:
            key = self.translator.value(syntax, "Group By").expression
            keys.setdefault(key, key.name if isinstance(key, Var) else f".g{len(keys)}")
        for key, name in keys.items():
            if key != Var(name):
                node = nodes.Extend(node, name, key)
        aggregates = self._aggregates(values, having)
        node = nodes.Group(
            node, tuple(keys.values()), tuple((name, a) for a, name in aggregates.items())
        )
        lifted = [
            self._lift(value, keys, aggregates, item.span)
            for value, item in zip(values, self.items, strict=True)
        ]
        if having is not None:
            node = nodes.Filter(node, self._lift(having, keys, aggregates, self._having_span()))
        return node, lifted

    def _aggregates(
        self, values: list[Expression], having: Expression | None
    ) -> dict[Aggregate, str]:
        """Names each aggregate once, by the output column that equals it, or ``.a0``,
        ``.a1`` ...
        """
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

    def _lift(
        self,
        value: Expression,
        keys: dict[Expression, str],
        aggregates: dict[Aggregate, str],
        span: Span | None,
    ) -> Expression:
        try:
            return above_group(value, keys, aggregates)
        except KeyError as error:
            column = next(
                f"{show_name(self.scope.aliases[r.table])}.{show_name(r.name)}"
                for r, n in self.names.items()
                if n == error.args[0]
            )
            message = f"The column {column} is neither in Group By nor inside an aggregate."
            grouped = ", ".join([*map(show_expression, self.select.group), column])
            hint = f"Say Group By {grouped}, or an aggregate such as Max({column})."
            raise QueryError(message, span=span, text=self.text, hint=hint) from None


def one_group(body: Select | Combination | Table) -> bool:
    """Whether a query, or a side of its Union or Except, aggregates without Group By."""
    match body:
        case Combination(_, left, right):
            return one_group(left) or one_group(right)
        case Table(query=query):  # a side with an output of its own is read by its reports only
            return query is not None and query.output is None and one_group(query.body)
        case Select():
            items = (item.expression for item in body.items if isinstance(item, Item))
            return not body.group and (body.having is not None or any(map(_aggregates, items)))


def _aggregates(expression: Syntax) -> bool:
    match expression:
        case Operation(_, operands):
            return any(map(_aggregates, operands))
        case _:
            return isinstance(expression, Call)

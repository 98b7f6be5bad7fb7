"""Rewrites a query as a value that uses columns of the query around it as a group and a join.

    Select v - (Select Avg(t.w) From T [..] t Where t.k = s.k And t.w > 0) From S [..] s

    Select v - x.value From S [..] s Left Join
      (Select k As key, Avg(w) As value From T [..] t Where t.w > 0 Group By k) x On s.k = x.key

This needs conditions ``inner = outer``. For all others, the inner query is joined to the distinct
outer values, and grouped by them:

    (Select d.key, Avg(t.w) As value From (Select Distinct ts As key From S [..] s) d, T [..] t
     Where t.ts < d.key Group By d.key) x

Rows without a match have no group: an aggregate is NULL then, and Count is 0 (Kim 1982; Ganski and
Wong 1987, the COUNT bug). Values that are NULL are one group there. They match themselves in the
join, which costs a product unless a comparison in the condition excludes NULL anyway.

Cost: linear in the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from levada.errors import QueryError, UnknownNameError
from levada.language.cql.ast import (
    Call,
    Column,
    Constant,
    Expression,
    Item,
    Joined,
    LiteralType,
    Nested,
    Operation,
    Select,
    Statement,
    Table,
    WindowSpec,
    WindowWord,
    operands,
    with_operands,
)
from levada.language.translate.cql.expressions import is_aggregate, user_aggregate
from levada.language.translate.cql.scope import Scope, columns_in, conjuncts

_COMPARISONS = ("=", "<>", "<", ">", "<=", ">=")
_ARITHMETIC = ("+", "-", "*", "/", "%")
_ZERO = Constant(LiteralType.INTEGER, "0")
_NO_WINDOW = WindowSpec(WindowWord.NONE)


@dataclass
class Correlation:
    """A query as a value, its ``body``, within a block with the names ``outer``; ``around``: that
    block. ``alias`` names the table that replaces the query.
    """

    node: Nested
    body: Select
    inner: Scope
    outer: Scope
    around: Select
    alias: str

    def __post_init__(self) -> None:
        parts = conjuncts(self.body.where)
        self.own = [part for part in parts if not any(self._outer_columns(part))]
        self.both = [part for part in parts if part not in self.own]
        self.having = [] if self.body.having is None else [self.body.having]
        self.item = self.body.items[0]
        self.aggregates: dict[Expression, Column] = {}

    @property
    def exists(self) -> bool:
        """Whether the query uses columns of the block around it."""
        value = self.item.expression if isinstance(self.item, Item) else _ZERO
        return any(
            c for part in (*self.both, value, *self.having) for c in self._outer_columns(part)
        )

    def _is_outer(self, column: Column) -> bool:
        try:
            self.inner.resolve(column)
        except UnknownNameError:
            return column.table not in self.inner.aliases and self.outer.knows(column)
        except QueryError:
            return False
        return False

    def _outer_columns(self, part: Expression) -> Iterator[Column]:
        return (column for column in columns_in(part) if self._is_outer(column))

    def rewrite(self) -> tuple[Statement, list[Expression], Expression]:
        """Returns the table in place of the query, the conditions of its join, and the value."""
        if len(self.body.items) != 1 or not isinstance(self.item, Item):
            message = f"This query has {len(self.body.items)} columns, one is needed."
            raise self._error(message, "")
        value = self._above(self.item.expression)
        if self.having:
            value = Operation("case", (self._above(self.having[0]), value), self.node.span)
        pairs = [self._pair(part) for part in self.both]
        within = any(c for call in self.aggregates for c in self._outer_columns(call))
        if within or None in pairs:
            table, conditions = self._by_outer_values()
        else:
            table, conditions = self._by_inner_values([pair for pair in pairs if pair is not None])
        return table, conditions, value

    def _above(self, part: Expression) -> Expression:
        """Returns an expression over the group, with columns in place of aggregates."""
        if isinstance(part, Call) and is_aggregate(part):
            return self._aggregate(part)
        if isinstance(part, Nested):
            message = "A query as a value that uses outer columns has no query in its Select."
            hint = "Write the two next to each other, not one within the other."
            raise QueryError(message, span=part.span, text=self.inner.text, hint=hint)
        if isinstance(part, Column) and not self._is_outer(part):
            message = f"The column {part.name} is not inside an aggregate."
            raise QueryError(message, span=part.span, text=self.inner.text,
                             hint=f"Write an aggregate such as Max({part.name}).")  # fmt: skip
        return with_operands(part, self._above)

    def _aggregate(self, call: Call) -> Expression:
        name = call.function.capitalize()
        if user_aggregate(name) is not None:
            message = f"{name} cannot stand in a query as a value that uses outer columns."
            hint = "Put it with Group By into a query in brackets in From, and join that."
            raise self._error(message, hint)
        names = self.aggregates
        column = names.setdefault(call, Column(self.alias, f".value{len(names)}", call.span))
        return Call("coalesce", (column, _ZERO), span=call.span) if name == "Count" else column

    # -- the two forms --

    def _pair(self, part: Expression) -> tuple[Expression, Expression] | None:
        """Returns the inner and the outer side of ``inner = outer``."""
        if not isinstance(part, Operation) or part.operator != "=" or _has_query(part):
            return None
        sides = [[self._is_outer(column) for column in columns_in(p)] for p in part.operands]
        for one, other in ((0, 1), (1, 0)):
            if all(sides[other]) and sides[one] and not any(sides[one]):
                return part.operands[one], part.operands[other]
        return None

    def _by_inner_values(
        self, pairs: Sequence[tuple[Expression, Expression]]
    ) -> tuple[Statement, list[Expression]]:
        keys = tuple(dict.fromkeys(inner for inner, _ in pairs))
        conditions: list[Expression] = [
            Operation("=", (outer, self._key(keys.index(inner))), self.node.span)
            for inner, outer in pairs
        ]
        return self._group_by(self.body.tables, self.own, keys), conditions

    def _by_outer_values(self) -> tuple[Statement, list[Expression]]:
        """Joins the query to the distinct outer values. Where the query around is restricted, so
        are they.
        """
        parts = (*self.both, *self.aggregates)
        outer = list(dict.fromkeys(c for part in parts for c in self._outer_columns(part)))
        name = f"{self.alias}.outer"

        def with_keys(part: Expression) -> Expression:
            if isinstance(part, Column) and part in outer:
                return Column(name, _key(outer.index(part)), part.span)
            return with_operands(part, with_keys)

        items = tuple(Item(c, _key(i), "", c.span) for i, c in enumerate(outer))
        plain = [part for part in conjuncts(self.around.where) if not _has_query(part)]
        distinct = Select(True, items, self.around.tables, _all(plain))
        values = Table("", _NO_WINDOW, name, self._statement(distinct), self.node.span)
        keys = tuple(Column(name, _key(i)) for i in range(len(outer)))
        self.aggregates = {with_operands(a, with_keys): c for a, c in self.aggregates.items()}
        where = [*self.own, *map(with_keys, self.both)]
        table = self._group_by((values, *self.body.tables), where, keys)
        strict = {column for part in self.both for column in _never_null(part)}
        return table, [self._same(c, i, c in strict) for i, c in enumerate(outer)]

    def _same(self, outer: Column, place: int, strict: bool) -> Expression:
        """Returns the condition that an outer value is that of the group, both NULL or equal."""
        key, at = self._key(place), self.node.span
        equal = Operation("=", (outer, key), at)
        if strict:
            return equal
        missing = tuple(Operation("is null", (each,), at) for each in (outer, key))
        return Operation("or", (equal, Operation("and", missing, at)), at)

    def _key(self, place: int) -> Column:
        return Column(self.alias, _key(place), self.node.span)

    def _group_by(
        self,
        tables: tuple[Table | Joined, ...],
        where: Sequence[Expression],
        keys: tuple[Expression, ...],
    ) -> Statement:
        items = [Item(key, _key(i), "", self.node.span) for i, key in enumerate(keys)]
        items += [Item(part, c.name, "", part.span) for part, c in self.aggregates.items()]
        return self._statement(Select(False, tuple(items), tables, _all(where), keys))

    def _statement(self, body: Select) -> Statement:
        return Statement(None, body, self.inner.text, self.node.span)

    def _error(self, message: str, hint: str) -> QueryError:
        return QueryError(message, span=self.node.span, text=self.inner.text, hint=hint)


def _key(place: int) -> str:
    return f".key{place}"


def _all(parts: Sequence[Expression]) -> Expression | None:
    return reduce(lambda a, b: Operation("and", (a, b), a.span), parts) if parts else None


def _has_query(part: Expression) -> bool:
    return isinstance(part, Nested) or any(map(_has_query, operands(part)))


def _never_null(part: Expression) -> Iterator[Column]:
    """Yields the columns without whose value a comparison is not true."""
    if isinstance(part, Operation) and part.operator in _COMPARISONS:
        for operand in part.operands:
            yield from _arithmetic_columns(operand)


def _arithmetic_columns(part: Expression) -> Iterator[Column]:
    if isinstance(part, Column):
        yield part
    elif isinstance(part, Operation) and part.operator in _ARITHMETIC:
        for operand in part.operands:
            yield from _arithmetic_columns(operand)

"""Translates From and Where of a CQL Select block: joins of all kinds, and queries in conditions.

Tables that a comma, Join or Cross Join puts together are a *region*: their conditions are those of
Where. Equi-joins between columns of one type are shared variables, every other condition is a
Filter of its own above the joins. Joins are left-deep in the order of From, but a table that shares
a variable with earlier ones comes first. A row whose join column is NULL joins with nothing:
operators never match two unbound columns of tables.

All other joins follow from the matches ``M`` of two sides by bag difference. ``M`` contains each
row of the left side, projected to the left columns, as often as it has matches. Equal rows have
equal matches. So ``L - M`` is exactly the rows without a match:

    L Left Join R           M + (L - M)          Where Exists (R)        L - (L - M)
    L Right Join R          M + (R - M)          Where Not Exists (R)    L - M
    L Full Join R           M + (L - M) + (R - M)

``x In (Select y ..)`` is Exists with ``x = y``. ``Not In`` takes off the rows, too, for which this
is unknown: x is NULL, or some y is. A query as a value is the right side of a Left Join. Exists and
In within an expression are a column, the *mark*: true, false, or NULL where In is unknown.

A difference in a further join is a level of its own (``derive``), as a query in brackets is. Cost:
linear in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from levada.core.expressions import Call as Operate
from levada.core.expressions import Const, Expression, Function, Var
from levada.core.frozen import frozen
from levada.core.rdf_terms import Iri
from levada.errors import QueryError, UnknownNameError, UnsupportedError
from levada.language.cql.ast import (
    Call,
    Column,
    Constant,
    Item,
    Joined,
    LiteralType,
    Nested,
    Operation,
    Select,
    Sort,
    Table,
    WindowSpec,
    WindowWord,
    operands,
    tables_of,
    with_operands,
)
from levada.language.cql.ast import Expression as Syntax
from levada.language.translate.cql.correlation import Correlation
from levada.language.translate.cql.expressions import Translator, is_aggregate
from levada.language.translate.cql.functions import NO_VALUE, is_null, truth
from levada.language.translate.cql.scope import (
    Classes,
    ColumnRef,
    Columns,
    Scope,
    columns_in,
    conjuncts,
    equi_join,
    variable_names,
)
from levada.plan.logical import nodes

Named = tuple[tuple[str, str], ...]
_MARK = ".mark"
_NO_VALUE = Const(Iri("urn:levada:null"))  # equals no value of a column
_PRESENT = ".present"  # a column that has a value in each row
_NULL = Constant(LiteralType.NULL, "null")
_OF_NULL = ("coalesce", "ifnull", "nvl", "nullif", "greatest", "least")  # may have a value


@frozen
class Leaf:
    """A table of From: its columns, the algebra of its used (column, variable) pairs, its windows
    in this level.
    """

    columns: Columns
    node: Callable[[Named], nodes.Node]
    windows: frozenset[int]


@dataclass
class Region:
    """Tables by number, and joins of another kind, with the conditions on their rows; ``filters``:
    those of them that are no shared variables.
    """

    items: list[int | Outer]
    conditions: list[Syntax] = field(default_factory=list)
    filters: list[Syntax] = field(default_factory=list)

    def tables(self) -> Iterator[int]:
        """Yields the numbers of all tables, from left to right."""
        for item in self.items:
            if isinstance(item, int):
                yield item
            else:
                yield from item.tables()

    @property
    def is_plain(self) -> bool:
        """Whether more rows below only mean more rows here."""
        return all(isinstance(item, int) for item in self.items)


@dataclass
class Outer:
    """A join by difference. ``kind``: ``left``, ``right``, ``full``, ``semi`` (Exists), ``anti``
    (Not Exists) or ``mark``. ``unknown``: the two sides of an In that may be NULL. ``mark``: the
    number of the table that the mark is the column of.
    """

    kind: str
    left: Region
    right: Region
    conditions: list[Syntax]
    unknown: tuple[Syntax, Syntax] | None = None
    mark: int = -1

    def tables(self) -> Iterator[int]:
        """Yields the numbers of the tables whose columns it has."""
        yield from self.left.tables()
        if self.kind in ("left", "right", "full"):
            yield from self.right.tables()
        if self.kind == "mark":
            yield self.mark


@frozen
class Rows:
    """Algebra, the variables that it binds, its windows in this level."""

    node: nodes.Node
    variables: tuple[str, ...]
    windows: frozenset[int]


@frozen
class Reader:
    """Reads tables of From: ``leaf`` with their algebra, ``columns`` their columns alone.
    ``derive`` makes rows a level of their own.
    """

    leaf: Callable[[Table], Leaf]
    columns: Callable[[Table], Columns]
    derive: Callable[[Rows], Rows]


class From:
    """From and Where of a Select block. ``scope`` resolves its names; ``name_variables`` comes
    before ``node``.
    """

    def __init__(
        self,
        select: Select,
        order: Sequence[Sort],
        reader: Reader,
        text: str,
    ) -> None:
        self.text = text
        self.leaves: list[Leaf] = []
        self._tables: list[Table] = []
        self._inner_tables: list[Table] = []  # of queries that are groups by outer columns
        self.windows: frozenset[int] = frozenset()
        self._select, self._reader = select, reader
        self._using: dict[str, Syntax] = {}
        self._values: dict[Nested, tuple[Outer, Syntax]] = {}  # queries in expressions
        region = self._region(select.tables)
        named = [item.alias for item in select.items if isinstance(item, Item) and item.alias]
        self.scope = Scope([leaf.columns for leaf in self.leaves], text, named, self._using)
        self._region_of_where(region, select, order)

    # -- regions --

    def _region(self, tables: Iterable[Table | Joined]) -> Region:
        region = Region([])
        for table in tables:
            self._add(table, region)
        return region

    def _add(self, table: Table | Joined, region: Region) -> None:
        if isinstance(table, Table):
            region.items.append(len(self.leaves))
            self.leaves.append(self._reader.leaf(table))
            self._tables.append(table)
            return
        if table.kind in ("inner", "cross"):
            first = len(self.leaves)
            self._add(table.left, region)
            self._add(table.right, region)
            region.conditions += self._on(table, range(first, len(self.leaves) - 1))
            return
        left = self._region((table.left,))
        right = self._region((table.right,))
        conditions = self._on(table, list(left.tables()))
        region.items.append(Outer(table.kind, left, right, conditions))

    def _on(self, join: Joined, left: Iterable[int]) -> list[Syntax]:
        """Returns the conditions of a join. A column of Using has one meaning without a table."""
        conditions = conjuncts(join.on)
        right = self.leaves[-1].columns
        for name in join.using:
            there = (self.leaves[i].columns for i in left)
            owner = next((c.alias for c in there if name in c.names()), None)
            if owner is None or name not in right.names():
                side = "left" if owner is None else "right"
                message = f"The {side} side of this Join has no column {name}."
                raise UnknownNameError(message, span=join.span, text=self.text)
            one = self._using.get(name) or Column(owner, name, join.span)
            other = Column(right.alias, name, join.span)
            conditions.append(Operation("=", (one, other), join.span))
            self._using[name] = one
            if join.kind == "right":
                self._using[name] = other
            elif join.kind == "full":
                self._using[name] = Call("coalesce", (one, other), span=join.span)
        return conditions

    def _region_of_where(self, region: Region, select: Select, order: Sequence[Sort]) -> None:
        """Puts the conditions of Where, and the queries in all expressions, above the region."""
        plain: list[Syntax] = []
        above: list[Syntax] = []
        nested: list[Outer] = []
        for condition in (*region.conditions, *map(_compare_with_value, conjuncts(select.where))):
            query, negated = _condition_of_query(condition)
            if query is not None:
                nested.append(self._semi_join(query, "anti" if negated else "semi"))
            else:
                (above if has_query(condition) else plain).append(self.rewrite(condition))
        for expression in (*_other_expressions(select), *(sort.expression for sort in order)):
            self.rewrite(expression)
        region.conditions = plain
        for join, _ in self._values.values():
            join.left = region
            region = Region([join])
        region.conditions += above
        for join in nested:
            join.left = region
            region = Region([join])
        self.top = region

    def rewrite(self, node: Syntax | Select) -> Syntax:
        """Returns an expression without queries as values, and with the columns of Using."""
        match node:
            case Column(None, name) if name in self._using:
                return self._using[name]
            case Nested() if (compared := _compare_with_value(node)) != node:
                return self.rewrite(compared)
            case Nested():
                if node not in self._values:
                    added = self._value_of(node) if node.kind == "scalar" else self._mark_of(node)
                    self._values[node] = added
                return self._values[node][1]
            case Select():
                return node  # type: ignore[return-value]
            case _:
                return with_operands(node, self.rewrite)

    def _value_of(self, node: Nested) -> tuple[Outer, Syntax]:
        """Translates a query as a value: the join that adds it, and the value."""
        body = node.query.body
        if not isinstance(body, Select) or body.group or body.sets or not _is_one_row(body):
            message = "A query as a value has one row and one column."
            hint = "Take an aggregate without Group By, such as (Select Max(v) From S [..])."
            raise QueryError(message, span=node.span, text=self.text, hint=hint)
        tables = [one for table in body.tables for one in tables_of(table)]
        inner = Scope([self._reader.columns(table) for table in tables], self.text)
        alias = f".sub{len(self.leaves)}"
        correlation = Correlation(node, body, inner, self.scope, self._select, alias)
        conditions: list[Syntax] = []
        if correlation.exists:
            if _cuts(node):
                message = (
                    "A query as a value that uses outer columns takes no Limit and no Istream."
                )
                hint = "Leave them out: an aggregate without Group By has one row."
                raise QueryError(message, span=node.span, text=self.text, hint=hint)
            self._inner_tables += tables
            query, conditions, value = correlation.rewrite()
            number = self._hidden_leaf(replace(node, query=query))
            conditions, value = list(map(self.rewrite, conditions)), self.rewrite(value)
        else:
            number, value = self._value_without_outer_columns(node, body)
        return Outer("left", Region([]), Region([number]), conditions), value

    def _value_without_outer_columns(self, node: Nested, body: Select) -> tuple[int, Syntax]:
        """Returns the table of a query as a value, and the value. Its row is missing while its
        windows are empty: then the value is that of aggregates over no rows, such as 0 for Count.
        """
        without = _over_no_rows(body)
        read = node.query if without is None else replace(node.query, body=_with_presence(body))
        number = self._hidden_leaf(replace(node, query=read))
        columns = self.leaves[number].columns
        value: Syntax = Column(columns.alias, self._only_column(number, node))
        if without is not None:
            missing = Operation("is null", (Column(columns.alias, _PRESENT),))
            value = Operation("case", (missing, self.rewrite(without), value), node.span)
        return number, value

    def _mark_of(self, node: Nested) -> tuple[Outer, Syntax]:
        """Translates Exists or In within an expression: the join that adds its mark, and it."""
        if node.value is not None and _aggregates(node.value):
            message = "In (Select ..) takes no aggregate here."
            hint = "Put the query with the aggregate into brackets, and the condition around it."
            raise QueryError(message, span=node.span, text=self.text, hint=hint)
        join = self._semi_join(node, "mark")
        join.mark = len(self.leaves)
        alias = f".sub{join.mark}"
        columns = Columns(alias, {_MARK: LiteralType.BOOLEAN}, False, node.span)
        self._hide(Leaf(columns, _no_rows, frozenset()))
        return join, Column(alias, _MARK, node.span)

    def _hidden_leaf(self, node: Nested) -> int:
        """Adds a query within an expression as a table that no other name reaches."""
        number = len(self.leaves)
        spec = WindowSpec(WindowWord.NONE, span=node.span)
        try:
            leaf = self._reader.leaf(Table("", spec, f".sub{number}", node.query, node.span))
        except UnknownNameError as error:
            shown = [f"There is no table {alias} in From." for alias in self.scope.aliases]
            if error.message not in shown:
                raise
            message = f"This query cannot use columns of {error.message.split()[4]}."
            hint = "A query uses columns of the one directly around it, in Where, without Group By."
            raise UnsupportedError(message, span=error.span, text=self.text, hint=hint) from None
        self._hide(leaf)
        return number

    def _hide(self, leaf: Leaf) -> None:
        self.leaves.append(leaf)
        self.scope.hide(leaf.columns)

    def _only_column(self, number: int, node: Nested) -> str:
        columns = [name for name in self.leaves[number].columns.declared if name != _PRESENT]
        if len(columns) != 1:
            message = f"This query has {len(columns)} columns, one is needed."
            raise QueryError(message, span=node.span, text=self.text)
        return columns[0]

    def _semi_join(self, node: Nested, kind: str) -> Outer:
        """Translates Exists or In: by the tables of the query if it only selects, else by the query
        as a table. The left side comes later.
        """
        value = None if node.value is None else self.rewrite(node.value)
        body = node.query.body
        simple = isinstance(body, Select) and _only_selects(body) and not _cuts(node)
        if not simple or not isinstance(body, Select):
            number = self._hidden_leaf(node)
            right = Region([number])
            conditions: list[Syntax] = []
            only: Syntax | None = None
            if value is not None:
                only = Column(self.leaves[number].columns.alias, self._only_column(number, node))
        else:
            right, conditions, only = self._tables_of(body, node)
        join = Outer(kind, Region([]), right, conditions)
        if value is not None and only is not None:
            if kind == "semi":
                join.conditions = [Operation("=", (value, only), node.span), *conditions]
            else:
                join.unknown = (value, only)
        return join

    def _tables_of(self, body: Select, node: Nested) -> tuple[Region, list[Syntax], Syntax | None]:
        """Returns the tables of a query that only selects, the conditions on both sides, and its
        column. A name is one of its own columns if there is such, else of the query around it.
        """
        leaves = [self._reader.leaf(table) for table in body.tables if isinstance(table, Table)]
        inner = Scope([leaf.columns for leaf in leaves], self.text)
        first = len(self.leaves)
        for leaf in leaves:
            self._hide(
                replace(leaf, columns=replace(leaf.columns, alias=f".sub{len(self.leaves)}"))
            )

        def qualify(part: Syntax) -> Syntax:
            if isinstance(part, Column):
                try:
                    ref = inner.resolve(part)
                except UnknownNameError:
                    if part.table in inner.aliases or not self.scope.knows(part):
                        raise
                    return self.rewrite(part)
                return Column(f".sub{first + ref.table}", ref.name, part.span)
            return with_operands(part, qualify)

        right = Region(list(range(first, len(self.leaves))))
        both: list[Syntax] = []
        for condition in map(qualify, conjuncts(body.where)):
            tables = {self.scope.resolve(column).table for column in columns_in(condition)}
            (right.conditions if tables <= set(right.items) else both).append(condition)
        if node.value is None:
            return right, both, None
        items = inner.expand(body.items)
        if len(items) != 1:
            message = f"This query has {len(items)} columns, one is needed."
            raise QueryError(message, span=node.span, text=self.text)
        return right, both, qualify(items[0].expression)

    # -- variables --

    def name_variables(
        self, items: Sequence[Item], outputs: Sequence[str], expressions: Sequence[Syntax]
    ) -> Mapping[ColumnRef, str]:
        """Returns the variable of each column. ``expressions``: those of the block that use
        columns, beside From and Where.
        """
        classes = Classes()
        used: list[Syntax] = list(expressions)
        self._merge(self.top, classes, used)
        self.names = variable_names(self.scope, classes, list(items), list(outputs))
        refs = {self.scope.resolve(column) for each in used for column in columns_in(each)}
        differs = not self.top.is_plain  # a difference needs columns to tell rows apart by
        self._used: list[list[str]] = []
        for i in range(len(self.leaves)):
            there = list(self.scope.columns(i))
            needed = [c for c in there if ColumnRef(i, c) in refs]
            self._used.append(needed or (there[:1] if differs else []))
        return self.names

    def _merge(self, region: Region, classes: Classes, used: list[Syntax]) -> None:
        """Splits the conditions of a region into shared variables and filters."""
        owners: dict[int, int] = {}
        for number, item in enumerate(region.items):
            if isinstance(item, Outer):
                self._merge(item.left, classes, used)
                self._merge(item.right, classes, used)
                used += [*item.conditions, *(item.unknown or ())]
                owners.update(dict.fromkeys(item.tables(), number))
            else:
                owners[item] = number
        used += region.conditions
        region.filters = []
        for condition in region.conditions:
            pair = equi_join(self.scope, condition)
            if pair is None or not classes.merge(*pair, owners):
                region.filters.append(condition)

    def single_values(self, keys: Iterable[str]) -> set[str]:
        """Returns the variables of queries in expressions that have one value in each group of
        these keys.
        """
        single: set[str] = set()
        groups = set(keys)
        for join, value in self._values.values():
            tables = set(join.right.tables())
            sides = [*join.conditions, *(join.unknown or ())]
            refs = {self.scope.resolve(column) for each in sides for column in columns_in(each)}
            if {self.names[ref] for ref in refs if ref.table not in tables} <= groups | single:
                added = map(self.scope.resolve, columns_in(value))
                single |= {self.names[ref] for ref in added if ref.table >= self.scope.visible}
        return single

    # -- algebra --

    def node(self, translator: Translator, *, counts_content: bool) -> nodes.Node:
        """Returns the algebra of From and Where; ``windows`` are then those that it reads.

        ``counts_content``: it matters whether tables are non-empty, also those of derived levels.
        """
        rows = self._rows(self.top, {}, translator)
        if counts_content:
            derived = [table for table, leaf in zip(self._tables, self.leaves, strict=False)
                       if leaf.windows - rows.windows]  # fmt: skip
            rows = reduce(self._with_content, [*derived, *self._inner_tables], rows)
        self.windows = rows.windows
        return rows.node

    def _with_content(self, rows: Rows, table: Table) -> Rows:
        """Returns rows whose level also reads a table, without a row of it."""
        leaf = self._reader.leaf(table)
        if not leaf.windows:
            return rows
        column = next(iter(leaf.columns.names()))
        content = leaf.node(((column, f"{leaf.columns.alias}.content"),))
        content = nodes.Filter(content, truth(False))
        for name in rows.variables:
            content = nodes.Extend(content, name, NO_VALUE)
        node = nodes.Union(rows.node, nodes.Project(content, rows.variables))
        return Rows(node, rows.variables, rows.windows | leaf.windows)

    def _rows(self, region: Region, renamed: Mapping[str, str], translator: Translator) -> Rows:
        """Returns the rows of a region; ``renamed``: variables that are others here."""
        parts = []
        for item in region.items:
            if isinstance(item, int):
                parts.append(self._table(item, renamed))
                continue
            rows = self._outer(item, translator)
            is_level = len(region.items) > 1 and not self._is_lookup(item)
            parts.append(self._reader.derive(rows) if is_level else rows)
        joined = _join_linked(parts)
        node = joined.node
        here = self._translator(translator, renamed)
        for condition in region.filters:
            node = nodes.Filter(node, here.condition(condition, "Where"))
        return replace(joined, node=node)

    def _table(self, number: int, renamed: Mapping[str, str]) -> Rows:
        names = [self.names[ColumnRef(number, c)] for c in self._used[number]]
        named = [renamed.get(name, name) for name in names]
        leaf = self.leaves[number]
        node = leaf.node(tuple(zip(self._used[number], named, strict=True)))
        return Rows(node, tuple(named), leaf.windows)

    def _translator(self, translator: Translator, renamed: Mapping[str, str]) -> Translator:
        def variable(column: Column) -> str:
            name = self.names[self.scope.resolve(column)]
            return renamed.get(name, name)

        return replace(translator, variable=variable)

    def _outer(self, join: Outer, translator: Translator) -> Rows:
        """Returns the rows of a join by difference."""
        left = self._rows(join.left, {}, translator)
        if self._is_lookup(join):
            return self._lookup(left, join, translator)
        left = left if join.left.is_plain else self._reader.derive(left)
        if join.kind == "mark":
            return self._rows_with_mark(left, join, translator)
        kept = join.kind in ("left", "right", "full")
        if join.unknown is not None:
            matches = self._matches_of_not_in(left, join, translator)
        else:
            matches = self._matches(left, join, join.conditions, translator, kept=kept)
        windows = left.windows | matches.windows
        of_left = nodes.Project(left.node, left.variables)
        without = nodes.Except(of_left, nodes.Project(matches.node, left.variables))
        if join.kind == "anti":
            return Rows(without, left.variables, windows)
        if join.kind == "semi":
            return Rows(nodes.Except(of_left, without), left.variables, windows)
        whole = matches.node
        if join.kind != "right":
            whole = nodes.Union(whole, without)
        if join.kind != "left":
            right = self._rows(join.right, {}, translator)
            of_right = nodes.Project(right.node, right.variables)
            matched = nodes.Project(matches.node, right.variables)
            whole = nodes.Union(whole, nodes.Except(of_right, matched))
        return Rows(whole, matches.variables, windows)

    def _rows_with_mark(self, left: Rows, join: Outer, translator: Translator) -> Rows:
        """Returns the left rows with the mark of Exists or In."""
        of_left = nodes.Project(left.node, left.variables)
        conditions = join.conditions
        if join.unknown is not None:
            conditions = [Operation("=", join.unknown), *conditions]
        matches = self._matches(left, join, conditions, translator, kept=False)
        others = nodes.Except(of_left, nodes.Project(matches.node, left.variables))
        marked: list[tuple[nodes.Node, Expression]] = [(nodes.Except(of_left, others), truth(True))]
        if join.unknown is None:
            marked.append((others, truth(False)))
        else:
            matches = self._matches_of_not_in(left, join, translator)
            false = nodes.Except(of_left, nodes.Project(matches.node, left.variables))
            marked += [(false, truth(False)), (nodes.Except(others, false), NO_VALUE)]
        name = self.names[ColumnRef(join.mark, _MARK)]
        parts: list[nodes.Node] = [nodes.Extend(node, name, value) for node, value in marked]
        windows = left.windows | matches.windows
        return Rows(reduce(nodes.Union, parts), (*left.variables, name), windows)

    def _is_lookup(self, item: int | Outer) -> bool:
        """Whether this is a Left Join whose right side are static tables."""
        return (
            isinstance(item, Outer)
            and item.kind == "left"
            and item.right.is_plain
            and not any(self.leaves[table].windows for table in item.right.tables())
            and all(isinstance(one, int) or self._is_lookup(one) for one in item.left.items)
        )

    def _lookup(self, left: Rows, join: Outer, translator: Translator) -> Rows:
        """Returns the rows of a Left Join with static tables: static rows do not come and go, so no
        difference is needed. NULL, for which no static row has a value, equals nothing.
        """
        right = self._rows(join.right, {}, translator)
        one, other = left.node, right.node
        rest: list[Expression] = []
        for condition in join.conditions:
            pair = self._pair(condition, left, join.right)
            if pair is None:
                rest.append(self._translator(translator, {}).condition(condition, "On"))
                continue
            key = f".{pair[0]}={pair[1]}"
            one = nodes.Extend(one, key, Operate(Function.COALESCE, (Var(pair[0]), _NO_VALUE)))
            has_value = Operate(Function.BOUND, (Var(pair[1]),))
            other = nodes.Extend(nodes.Filter(other, has_value), key, Var(pair[1]))
        on = reduce(lambda a, b: Operate(Function.AND, (a, b)), rest) if rest else None
        variables = (*left.variables, *right.variables)
        node = nodes.Project(nodes.LeftJoin(one, other, on), variables)
        return Rows(node, variables, left.windows | right.windows)

    def _matches(
        self,
        left: Rows,
        join: Outer,
        conditions: Sequence[Syntax],
        translator: Translator,
        *,
        kept: bool,
    ) -> Rows:
        """Returns the pairs of rows that meet all conditions; ``kept``: with the columns of both
        sides.
        """
        renamed: dict[str, str] = {}
        rest = []
        for condition in conditions:
            pair = self._pair(condition, left, join.right)
            if pair is None or pair[1] in renamed or pair[0] in renamed.values():
                rest.append(condition)
            else:
                renamed[pair[1]] = pair[0]
        right = self._rows(join.right, renamed, translator)
        node: nodes.Node = nodes.Join(left.node, right.node)
        here = self._translator(translator, renamed)
        for condition in rest:
            node = nodes.Filter(node, here.condition(condition, "On"))
        variables = tuple(dict.fromkeys((*left.variables, *right.variables)))
        if kept:
            for name, other in renamed.items():
                node = nodes.Extend(node, name, Var(other))
            variables = (*variables, *renamed)
        return Rows(node, variables, left.windows | right.windows)

    def _pair(self, condition: Syntax, left: Rows, right: Region) -> tuple[str, str] | None:
        """Returns the variables of ``left column = right column``, else None."""
        pair = equi_join(self.scope, condition)
        if pair is None:
            return None
        tables = set(right.tables())
        a, b = pair if pair[1].table in tables else (pair[1], pair[0])
        if b.table not in tables or a.table in tables or self.names[a] not in left.variables:
            return None
        return self.names[a], self.names[b]

    def _matches_of_not_in(self, left: Rows, join: Outer, translator: Translator) -> Rows:
        """Returns the left rows for which ``x = y`` is true or unknown for some row of the right
        side, which meets the other conditions.
        """
        assert join.unknown is not None, "a Not In"
        value, other = join.unknown
        equal = Operation("=", (value, other))
        missing = Operation("is null", (other,))
        here = self._translator(translator, {})
        unknown = nodes.Filter(left.node, is_null(here.value(value, "Where").expression))
        cases = [
            self._matches(left, join, [equal, *join.conditions], translator, kept=False),
            self._matches(left, join, [missing, *join.conditions], translator, kept=False),
            self._matches(
                replace(left, node=unknown), join, join.conditions, translator, kept=False
            ),
        ]
        node: nodes.Node = nodes.Project(cases[0].node, left.variables)
        for case in cases[1:]:
            node = nodes.Union(node, nodes.Project(case.node, left.variables))
        return Rows(node, left.variables, cases[0].windows)


def _join_linked(parts: Sequence[Rows]) -> Rows:
    """Joins rows left-deep, each with others that share a variable first, if there are such."""
    waiting = list(parts)
    whole = waiting.pop(0)
    while waiting:
        bound = set(whole.variables)
        following = next((p for p in waiting if bound & set(p.variables)), waiting[0])
        waiting = [part for part in waiting if part is not following]
        variables = tuple(dict.fromkeys((*whole.variables, *following.variables)))
        node = nodes.Join(whole.node, following.node)
        whole = Rows(node, variables, whole.windows | following.windows)
    return whole


def _condition_of_query(condition: Syntax) -> tuple[Nested | None, bool]:
    """Returns the query of Exists or In, if this is such a condition, and whether it is negated."""
    match condition:
        case Nested("exists" | "in"):
            return condition, False
        case Operation("not", (Nested("exists" | "in") as query,)):
            return query, True
        case Operation("not", (Operation("not", (inner,)),)):
            return _condition_of_query(inner)
        case _:
            return None, False


def _compare_with_value(condition: Syntax) -> Syntax:
    """Returns ``x In`` a query with one row as a comparison with its value."""
    query, negated = _condition_of_query(condition)
    if query is None or query.value is None or _cuts(query):
        return condition
    body = query.query.body
    if not isinstance(body, Select) or body.group or body.having or not _is_one_row(body):
        return condition
    value = replace(query, kind="scalar", value=None)
    return Operation("<>" if negated else "=", (query.value, value), query.span)


def _with_presence(body: Select) -> Select:
    mark = Item(Constant(LiteralType.BOOLEAN, "true"), _PRESENT, "")
    return replace(body, items=(*body.items, mark))


def _over_no_rows(body: Select) -> Syntax | None:
    """Returns the value of a query with one row whose tables are empty; None: it is NULL."""
    if body.having is not None or not isinstance(body.items[0], Item):
        return None
    value = _without_rows(body.items[0].expression)
    return None if value == _NULL else value


def _without_rows(node: Syntax) -> Syntax:
    if is_aggregate(node):
        assert isinstance(node, Call)
        is_count = node.function.capitalize() == "Count"
        return Constant(LiteralType.INTEGER, "0") if is_count else _NULL
    node = with_operands(node, _without_rows)
    match node:
        case Operation("and" | "or" | "case" | "is null" | "is distinct" | "in"):
            return node
        case Call(name) if name.lower() in _OF_NULL:
            return node
        case _:
            return _NULL if _NULL in operands(node) else node


def _no_rows(named: Named) -> nodes.Node:
    raise AssertionError("a mark is no table")


def _other_expressions(select: Select) -> Collection[Syntax]:
    items = [item.expression for item in select.items if isinstance(item, Item)]
    return [*items, *select.group, *([] if select.having is None else [select.having])]


def _is_one_row(body: Select) -> bool:
    return any(isinstance(i, Item) and _aggregates(i.expression) for i in body.items)


def _aggregates(node: Syntax) -> bool:
    return is_aggregate(node) or any(map(_aggregates, operands(node)))


def _only_selects(body: Select) -> bool:
    """Whether a query is a selection from a join: the rows of its tables decide."""
    others = [*_other_expressions(body), *conjuncts(body.where)]
    grouped = body.group or body.having is not None or _is_one_row(body)
    joined = any(isinstance(table, Joined) for table in body.tables)
    return not (grouped or joined or any(map(has_query, others)))


def has_query(node: Syntax) -> bool:
    """Whether a query stands in an expression."""
    return isinstance(node, Nested) or any(map(has_query, operands(node)))


def _cuts(node: Nested) -> bool:
    query = node.query
    return query.output is not None or query.limit is not None or query.offset > 0

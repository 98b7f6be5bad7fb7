"""Resolves names in a CQL query: the column of a word, the names of result columns, the variable of
a column.

There are three mappings, computed once for each query:

    Scope     word -> ColumnRef (table number, column) and its type; an external stream has the
              column ``ts``, its event time in ms, unless its schema has one of that name;
              ``a.b`` is the column ``b`` of the table ``a`` if there is such a table, else the
              nested column ``a.b``
    classes   ColumnRef -> representative: columns of equal type that an equi-join makes equal are
              one variable
    names     ColumnRef -> variable name: the output name if the column is selected as it is, else
              ``alias.column``; so a plain select list costs no renaming in the plan

Columns of different types (integer = double) are never one variable: variables join by identity,
numbers compare by value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from levada.core.frozen import frozen
from levada.errors import QueryError, Span, UnknownNameError, near
from levada.language.cql.ast import (
    Column,
    Every,
    Expression,
    Item,
    LiteralType,
    Operation,
    operands,
    show_name,
)

EVENT_TIME = "ts"
_TIMELIKE = re.compile(r"time|stamp|date|when|^ts", re.IGNORECASE)


@frozen
class ColumnRef:
    """A column of the query's i-th table."""

    table: int
    name: str


@frozen
class Columns:
    """The columns of a table of From: its alias, its columns with their types, and whether it has
    the event time.
    """

    alias: str
    declared: Mapping[str, LiteralType]
    timed: bool
    span: Span

    def names(self) -> Collection[str]:
        """Returns all columns in order, the implicit ``ts`` last."""
        extra = [EVENT_TIME] if self.timed else []
        return dict.fromkeys([*self.declared, *extra]).keys()


def suggest_column(name: str, columns: Iterable[str]) -> str:
    """Returns a hint with similar names as CQL writes them.

    >>> suggest_column("spora", ["spora-id", "spore"]), suggest_column("sporo", ["spore"])
    ('Write "spora-id".', 'Did you mean spore?')
    """
    there = list(columns)
    for odd in there:
        if show_name(odd) != odd and re.split(r"\W", odd, maxsplit=1)[0] == name:
            return f"Write {show_name(odd)}."
    return near(name, map(show_name, there))


class Scope:
    """The tables of a Select block with their columns and types; ``results``: the names of its own
    columns; ``using``: what a column of Join .. Using is without a table.
    """

    def __init__(
        self,
        tables: Sequence[Columns],
        text: str,
        results: Collection[str] = (),
        using: Mapping[str, Expression] | None = None,
    ) -> None:
        self.text = text
        self.results = results
        self.using = using or {}
        self.visible = len(tables)
        self.tables = tuple(tables)
        self.aliases: list[str] = []
        for table in tables:
            if table.alias in self.aliases:
                hint = "Give one of them another name with As."
                raise QueryError(
                    f"Two tables are called {table.alias}.", span=table.span, text=text, hint=hint
                )
            self.aliases.append(table.alias)
        self._columns = [table.names() for table in tables]

    def hide(self, table: Columns) -> None:
        """Adds a table that is reached by its alias alone, and not by ``*``."""
        self.tables = (*self.tables, table)
        self.aliases.append(table.alias)
        self._columns.append(table.names())

    def knows(self, column: Column) -> bool:
        """Whether a word is a column of some table."""
        try:
            self.resolve(column)
        except UnknownNameError:
            return column.table is None and column.name in self.using
        except QueryError:
            return True
        return True

    def type_of(self, ref: ColumnRef) -> LiteralType:
        """Returns the type of a column; an undeclared ``ts`` is the event time, an integer."""
        return self.tables[ref.table].declared.get(ref.name, LiteralType.INTEGER)

    def columns(self, table: int) -> Collection[str]:
        """Returns all columns of a table in order, the implicit ``ts`` last."""
        return self._columns[table]

    def resolve(self, column: Column) -> ColumnRef:
        """Returns the column of a word. Raises ``UnknownNameError``; ``QueryError`` if there are
        several.
        """
        column = self.resolve_path(column)
        tables = (
            range(self.visible) if column.table is None else [self.table(column.table, column.span)]
        )
        matches = [ColumnRef(i, column.name) for i in tables if column.name in self.columns(i)]
        if not matches:
            where = f"{column.table} has no column" if column.table else "There is no column"
            if not column.table and column.name in self.results:
                hint = f"{column.name} is a name of the result only: write what it stands for."
                raise UnknownNameError(
                    f"{where} {column.name}.", span=column.span, text=self.text, hint=hint
                )
            if column.quoted:
                raise self._not_a_column(column, tables)
            known = [name for i in tables for name in self.columns(i)]
            hint = suggest_column(column.name, known)
            if _TIMELIKE.search(column.name) and any(self.tables[i].timed for i in tables):
                hint = f"The event time is called {EVENT_TIME} here. {hint}"
            raise UnknownNameError(
                f"{where} {column.name}.", span=column.span, text=self.text, hint=hint
            )
        if len(matches) > 1:
            several = " or ".join(
                f"{show_name(self.aliases[ref.table])}.{show_name(ref.name)}" for ref in matches
            )
            message = f"The column {column.name} is in several tables."
            raise QueryError(message, span=column.span, text=self.text, hint=f"Say {several}.")
        return matches[0]

    def _not_a_column(self, column: Column, tables: Iterable[int]) -> UnknownNameError:
        """Returns the error for a name in double quotes that no column has: perhaps it is meant as
        a text.
        """
        text = column.name.replace("'", "''")
        quoted = '"' + column.name.replace('"', '""') + '"'
        known = [name for i in tables for name in self.columns(i)]
        return UnknownNameError(
            f"There is no column {quoted}: double quotes are for names.",
            span=column.span,
            text=self.text,
            hint=f"For a text write '{text}', or say --dialect stream. As a column: "
            + suggest_column(column.name, known),
        )

    def resolve_path(self, column: Column) -> Column:
        """Returns a column with the nested name that its dots mean if no table has that alias.
        Raises ``UnknownNameError`` if there is neither.
        """
        if column.table is None or column.table in self.aliases:
            return column
        name = f"{column.table}.{column.name}"
        known = [each for i in range(len(self.aliases)) for each in self.columns(i)]
        paths = [each for each in known if "." in each]
        if name in paths:
            return Column(None, name, column.span)
        if paths:
            message = f"There is neither a table {column.table} in From nor a column {name}."
            hint = suggest_column(name, [*paths, *self.aliases])
            raise UnknownNameError(message, span=column.span, text=self.text, hint=hint)
        return column

    def table(self, alias: str, span: Span) -> int:
        """Returns the number of the table with this alias."""
        if alias not in self.aliases:
            message = f"There is no table {alias} in From."
            raise UnknownNameError(
                message, span=span, text=self.text, hint=near(alias, self.aliases)
            )
        return self.aliases.index(alias)

    def expand(self, items: Iterable[Item | Every]) -> list[Item]:
        """Returns the select list with ``*`` and ``A.*`` expanded: declared columns, not ``ts``."""
        out: list[Item] = []
        for item in items:
            if isinstance(item, Item):
                out.append(item)
                continue
            tables = (
                range(self.visible) if item.table is None else [self.table(item.table, item.span)]
            )
            span = item.span
            shared = self.using if item.table is None else {}
            out += [Item(value, None, name, span) for name, value in shared.items()]
            for i in tables:
                out += [
                    Item(Column(self.aliases[i], name, span), None, name, span)
                    for name in self.tables[i].declared
                    if name not in shared
                ]
        return out


def conjuncts(condition: Expression | None) -> list[Expression]:
    """Returns the parts of a conjunction, in order.

    >>> conjuncts(Operation("and", (Column(None, "a"), Column(None, "b"))))
    [Column(table=None, name='a'), Column(table=None, name='b')]
    """
    if condition is None:
        return []
    if isinstance(condition, Operation) and condition.operator == "and":
        return [part for operand in condition.operands for part in conjuncts(operand)]
    return [condition]


class Classes:
    """The classes of columns that are one variable: a union-find; no class has two columns of one
    table.
    """

    def __init__(self) -> None:
        self._members: dict[ColumnRef, tuple[ColumnRef, ...]] = {}

    def class_of(self, ref: ColumnRef) -> tuple[ColumnRef, ...]:
        """Returns the class of a column, sorted by table; its first member represents it."""
        return self._members.get(ref, (ref,))

    def merge(self, a: ColumnRef, b: ColumnRef, owners: Mapping[int, int]) -> bool:
        """Makes two columns one variable; False if a part of the join has both (then a filter
        must). ``owners``: the part of each table in it.
        """
        if b in self.class_of(a):
            return True
        sides = [{owners.get(ref.table) for ref in self.class_of(ref)} for ref in (a, b)]
        if sides[0] & sides[1] or None in sides[0] | sides[1]:
            return False
        both = sorted((*self.class_of(a), *self.class_of(b)), key=lambda ref: ref.table)
        self._members.update(dict.fromkeys(both, tuple(both)))
        return True


def equi_join(scope: Scope, condition: Expression) -> tuple[ColumnRef, ColumnRef] | None:
    """Returns the two columns of ``A.k = B.k``, if they are of different tables and of one type."""
    match condition:
        case Operation("=", (Column() as left, Column() as right)):
            a, b = scope.resolve(left), scope.resolve(right)
            return (a, b) if a.table != b.table and scope.type_of(a) == scope.type_of(b) else None
        case _:
            return None


def output_names(scope: Scope, items: list[Item]) -> list[str]:
    """Returns the names of the result's columns.

    They are the alias, else the column (``A.k`` if ``k`` is taken), else the item's text.
    """
    aliases: set[str] = set()
    for item in items:
        if item.alias and item.alias in aliases:
            raise QueryError(
                f"Two columns of the result are called {item.alias}.",
                span=item.span,
                text=scope.text,
            )
        aliases.update([item.alias] if item.alias else [])
    plain = Counter(
        scope.resolve(item.expression).name
        for item in items
        if isinstance(item.expression, Column) and not item.alias
    )
    names: dict[str, None] = {}
    for item in items:
        name = item.alias or item.text
        if isinstance(item.expression, Column) and not item.alias:
            ref = scope.resolve(item.expression)
            short = plain[ref.name] == 1 and ref.name not in aliases
            name = ref.name if short else f"{scope.aliases[ref.table]}.{ref.name}"
        names[_fresh(name, names)] = None
    return list(names)


def _fresh(name: str, taken: Collection[str]) -> str:
    number = 2
    fresh = name
    while fresh in taken:
        fresh, number = f"{name} {number}", number + 1
    return fresh


def variable_names(
    scope: Scope, classes: Classes, items: list[Item], outputs: list[str]
) -> dict[ColumnRef, str]:
    """Returns the variable of each column: its first output name, else ``alias.column`` of its
    class.
    """
    names: dict[ColumnRef, str] = {}
    for item, output in zip(items, outputs, strict=True):
        if isinstance(item.expression, Column):
            for ref in classes.class_of(scope.resolve(item.expression)):
                names.setdefault(ref, output)
    taken = set(outputs)  # "a.b" and "c", "a" and "b.c" are different columns of one name
    for i, alias in enumerate(scope.aliases):
        for column in scope.columns(i):
            members = classes.class_of(ColumnRef(i, column))
            if members[0] not in names:
                name = _fresh(f"{alias}.{column}", taken)
                taken.add(name)
                names.update(dict.fromkeys(members, name))
    return names


def columns_in(expression: Expression) -> Iterable[Column]:
    """Yields every column in an expression, not those of a query within it."""
    if isinstance(expression, Column):
        yield expression
    for operand in operands(expression):
        yield from columns_in(operand)

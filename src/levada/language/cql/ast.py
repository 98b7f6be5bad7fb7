"""The syntax tree of a CQL query: frozen values with their positions, and their printed form.

Positions (``span``) do not take part in comparison, so equal texts have equal trees. Names are as
written; ``language/translate/cql/translate.py`` resolves them. Cost: linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field, replace
from enum import StrEnum

from levada.core.frozen import frozen
from levada.errors import Span
from levada.language.dialects.cql import RESERVED

_NOWHERE = Span(1, 1)
_PLAIN = re.compile(r"[^\W\d]\w*")


def show_name(name: str) -> str:
    """Returns a name as CQL writes it: in double quotes unless it is a plain word.

    >>> show_name("speed"), show_name("sensor id"), show_name("order")
    ('speed', '"sensor id"', '"order"')
    """
    if _PLAIN.fullmatch(name) and name.lower() not in RESERVED:
        return name
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


@frozen
class Column:
    """A column by its name. ``table`` is the word before the first dot or None: the alias of a
    table, or the beginning of a nested column (``payload.temp``). ``quoted``: the text has the name
    in double quotes.
    """

    table: str | None
    name: str
    span: Span = field(default=_NOWHERE, compare=False, repr=False)
    quoted: bool = field(default=False, compare=False, repr=False)


class LiteralType(StrEnum):
    """The type of a constant."""

    INTEGER = "integer"
    DOUBLE = "double"
    STRING = "string"
    BOOLEAN = "boolean"
    NULL = "null"


@frozen
class Constant:
    """A constant: its type and its text (a string's without quotes; booleans in lower case)."""

    type: LiteralType
    text: str
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@frozen
class Operation:
    """An operator on its operands.

    ``or and not = <> < > <= >= + - * / % ||`` have one or two, ``in`` a value and its possible
    values. ``case`` has pairs of condition and value, then perhaps the value of Else. ``is null``
    has one, ``is distinct`` two; ``like`` and ``ilike`` have a text, a pattern and perhaps the
    character that escapes.
    """

    operator: str
    operands: tuple[Expression, ...]
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@frozen
class Cast:
    """``Cast(x As type)``; ``kind``: the type's name in the text, in lower case."""

    operand: Expression
    kind: str
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@frozen
class Sort:
    """An expression of Order By; ``nulls_last`` None: the text does not say it."""

    expression: Expression
    descending: bool = False
    nulls_last: bool | None = None


@frozen
class OverClause:
    """``Over (Partition By .. Order By .. frame)``; ``frame``: the words of a frame, and its two
    bounds (rows or ms, None: unbounded), or None.
    """

    partition: tuple[Expression, ...] = ()
    order: tuple[Sort, ...] = ()
    frame: tuple[str, int | None, int | None] | None = None


@frozen
class Call:
    """A function call; ``arguments`` None is ``*``. ``where`` is the condition of Filter (..)."""

    function: str
    arguments: tuple[Expression, ...] | None
    distinct: bool = False
    span: Span = field(default=_NOWHERE, compare=False, repr=False)
    where: Expression | None = None
    over: OverClause | None = None


@frozen
class Nested:
    """A query within an expression. ``kind``: ``exists``, ``in`` (of ``value``) or ``scalar``."""

    kind: str
    query: Statement
    value: Expression | None = None
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


Expression = Column | Constant | Operation | Cast | Call | Nested


def operands(node: Expression) -> tuple[Expression, ...]:
    """Returns the expressions directly below one, without those of a nested query.

    >>> operands(Operation("-", (Column(None, "a"),)))
    (Column(table=None, name='a'),)
    """
    match node:
        case Operation():
            return node.operands
        case Cast():
            return (node.operand,)
        case Call():
            over = node.over or OverClause()
            inner = (*(node.arguments or ()), *over.partition, *(s.expression for s in over.order))
            return inner if node.where is None else (*inner, node.where)
        case Nested():
            return () if node.value is None else (node.value,)
        case _:
            return ()


def with_operands(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Returns an expression with each of those directly below it changed."""
    match node:
        case Operation():
            return replace(node, operands=tuple(map(change, node.operands)))
        case Cast():
            return replace(node, operand=change(node.operand))
        case Call():
            arguments = None if node.arguments is None else tuple(map(change, node.arguments))
            where = None if node.where is None else change(node.where)
            over = None if node.over is None else _with_over(node.over, change)
            return replace(node, arguments=arguments, where=where, over=over)
        case Nested():
            return node if node.value is None else replace(node, value=change(node.value))
        case _:
            return node


def _with_over(over: OverClause, change: Callable[[Expression], Expression]) -> OverClause:
    order = tuple(replace(sort, expression=change(sort.expression)) for sort in over.order)
    return replace(over, partition=tuple(map(change, over.partition)), order=order)


@frozen
class Every:
    """``*`` or ``A.*`` in a select list."""

    table: str | None
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@frozen
class Item:
    """A column of the result: an expression, its alias or None, and its text in the query."""

    expression: Expression
    alias: str | None
    text: str = field(compare=False)
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


class WindowWord(StrEnum):
    """The kind of a window specification."""

    UNBOUNDED = "Unbounded"
    NOW = "Now"
    TUMBLE = "Tumble"
    HOP = "Hop"
    CUMULATE = "Cumulate"
    SESSION = "Session"
    RANGE = "Range"
    ROWS = "Rows"
    NONE = ""


@frozen
class WindowSpec:
    """A window: ``range`` and ``slide`` in ms (slide 0: none), ``rows`` for each value of
    ``partition``. A window of a table function has ``column``, the name of its times.

    NONE: the text has no window. A stream is then unbounded, and a relation has no window.
    """

    word: WindowWord
    range: int = 0
    slide: int = 0
    rows: int = 0
    partition: tuple[Column, ...] = ()
    span: Span = field(default=_NOWHERE, compare=False, repr=False)
    column: str = ""

    def __str__(self) -> str:
        match self.word:
            case WindowWord.NONE:
                return ""
            case WindowWord.RANGE:
                return f"[Range {self.range} ms" + (
                    f" Slide {self.slide} ms]" if self.slide else "]"
                )
            case WindowWord.ROWS:
                by = ", ".join(map(show_expression, self.partition))
                return f"[Partition By {by} Rows {self.rows}]" if by else f"[Rows {self.rows}]"
            case WindowWord.NOW:
                return "[Now]"
            case WindowWord.UNBOUNDED:
                return "[Range Unbounded]"
            case _:
                raise AssertionError("a table function is printed with its table")


@frozen
class OperatorCall:
    """A call of an operator of the user, by its keys."""

    name: str
    keys: tuple[Column, ...]
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@frozen
class Table:
    """A table of From under its alias (the name, if none is given): a stream, relation or view, or
    a query in brackets. ``calls``: the user's operators over the stream, the first one first.
    """

    stream: str
    window: WindowSpec
    alias: str
    query: Statement | None = None
    span: Span = field(default=_NOWHERE, compare=False, repr=False)
    calls: tuple[OperatorCall, ...] = ()


@frozen
class Joined:
    """``left Join right``. ``kind``: ``inner``, ``left``, ``right``, ``full`` or ``cross``."""

    kind: str
    left: Table | Joined
    right: Table
    on: Expression | None = None
    using: tuple[str, ...] = ()
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@frozen
class Select:
    """One Select block. ``sets``: the grouping sets of Group By, where it has them; ``group`` then
    has their expressions, each once.
    """

    distinct: bool
    items: tuple[Item | Every, ...]
    tables: tuple[Table | Joined, ...]
    where: Expression | None = None
    group: tuple[Expression, ...] = ()
    having: Expression | None = None
    sets: tuple[tuple[Expression, ...], ...] = ()


def tables_of(table: Table | Joined) -> tuple[Table, ...]:
    """Returns the tables of a join, from left to right."""
    if isinstance(table, Joined):
        return (*tables_of(table.left), table.right)
    return (table,)


class Operator(StrEnum):
    """An operator that combines two relations, as bags."""

    UNION = "Union"
    EXCEPT = "Except"
    INTERSECT = "Intersect"


@frozen
class Combination:
    """Two relations, of tables and queries, combined by position of their columns.

    ``distinct``: equal rows of the result are one.
    """

    operator: Operator
    left: Table | Combination
    right: Table | Combination
    span: Span = field(default=_NOWHERE, compare=False, repr=False)
    distinct: bool = False


@frozen
class Statement:
    """A whole query: ``output`` is "Istream", "Dstream", "Rstream" or None for a plain relation.

    ``order``, ``limit`` (None: no limit) and ``offset`` are those of each report.
    """

    output: str | None
    body: Select | Combination
    text: str = field(compare=False, repr=False)
    span: Span = field(default=_NOWHERE, compare=False, repr=False)
    order: tuple[Sort, ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def select(self) -> Select:
        """The Select block of a query that is one."""
        assert isinstance(self.body, Select), "a query with one Select block"
        return self.body


@frozen
class Schema:
    """``Register Stream S (k Integer)``: a name, what it names, its columns with their types."""

    name: str
    relation: bool
    columns: tuple[tuple[str, LiteralType], ...]
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@frozen
class View:
    """A named query, which other queries read under the columns of its schema."""

    schema: Schema
    query: Statement


@frozen
class Declared:
    """A stream or relation that a script declares; ``source``: the path that STREAM would read, or
    "".
    """

    schema: Schema
    source: str = ""


@frozen
class ScriptQuery:
    """A query of a script, which can use the first ``views`` views; ``dest``: the path that STREAM
    would write to, or "".

    ``places``: the offsets of the statement and of its dest line in the text.
    """

    query: Statement
    dest: str = ""
    views: int = 0
    places: tuple[tuple[int, int], ...] = field(default=(), compare=False, repr=False)


@frozen
class Script:
    """Several statements: declarations, the views in order, the queries in order."""

    declared: tuple[Declared, ...]
    views: tuple[View, ...]
    queries: tuple[ScriptQuery, ...]


_CALLS = {"is null": "({} Is Null)", "is distinct": "({} Is Distinct From {})"}


def show_expression(node: Expression) -> str:
    """Returns an expression as CQL, fully parenthesized.

    >>> show_expression(Operation("<", (Column("A", "v"), Constant(LiteralType.INTEGER, "5"))))
    '(A.v < 5)'
    """
    match node:
        case Column(table, name):
            return f"{show_name(table)}.{show_name(name)}" if table else show_name(name)
        case Constant(LiteralType.STRING, text):
            return "'" + text.replace("'", "''") + "'"
        case Constant(_, text):
            return text
        case Cast(operand, kind):
            return f"Cast({show_expression(operand)} As {kind})"
        case Call():
            return _call(node)
        case Nested(kind, query, value):
            before = {"exists": "Exists ", "scalar": ""}.get(kind, "")
            if value is not None:
                before = f"{show_expression(value)} In "
            return f"({before}(\n{show(query)}\n))" if before else f"(\n{show(query)}\n)"
        case Operation():
            return _operation(node)


def _operation(node: Operation) -> str:
    shown = [show_expression(operand) for operand in node.operands]
    match node.operator:
        case "case":
            pairs = zip(shown[::2], shown[1::2], strict=False)
            branches = "".join(f" When {condition} Then {value}" for condition, value in pairs)
            other = f" Else {shown[-1]}" if len(shown) % 2 else ""
            return f"Case{branches}{other} End"
        case "in":
            return f"({shown[0]} in ({', '.join(shown[1:])}))"
        case "like" | "ilike" if len(shown) > 2:
            return f"({shown[0]} {node.operator} {shown[1]} Escape {shown[2]})"
        case "is null" | "is distinct":
            return _CALLS[node.operator].format(*shown)
        case operator if len(shown) == 1:
            return f"({operator} {shown[0]})"
        case operator:
            return "(" + f" {operator} ".join(shown) + ")"


def _call(node: Call) -> str:
    inner = "*" if node.arguments is None else ", ".join(map(show_expression, node.arguments))
    shown = f"{node.function}({'Distinct ' if node.distinct else ''}{inner})"
    if node.where is not None:
        shown += f" Filter (Where {show_expression(node.where)})"
    return shown if node.over is None else f"{shown} Over ({_show_over(node.over)})"


def _show_over(over: OverClause) -> str:
    parts = []
    if over.partition:
        parts.append("Partition By " + ", ".join(map(show_expression, over.partition)))
    if over.order:
        parts.append(_order(over.order))
    if over.frame is not None:
        word, low, high = over.frame
        parts.append(f"{word} Between {_bound(word, low, -1)} And {_bound(word, high, 1)}")
    return " ".join(parts)


def _bound(word: str, bound: int | None, side: int) -> str:
    if bound is None:
        return "Unbounded " + ("Preceding" if side < 0 else "Following")
    if bound == 0:
        return "Current Row"
    size = str(abs(bound)) if word == "Rows" else f"Interval {abs(bound)} ms"
    return f"{size} {'Preceding' if bound < 0 else 'Following'}"


def _order(keys: tuple[Sort, ...]) -> str:
    return "Order By " + ", ".join(map(_sort, keys))


def _sort(key: Sort) -> str:
    nulls = {None: "", True: " Nulls Last", False: " Nulls First"}[key.nulls_last]
    return show_expression(key.expression) + (" Desc" if key.descending else "") + nulls


def _item(item: Item | Every) -> str:
    if isinstance(item, Every):
        return f"{show_name(item.table)}.*" if item.table else "*"
    alias = f" As {show_name(item.alias)}" if item.alias else ""
    return show_expression(item.expression) + alias


def _table(table: Table | Joined) -> str:
    if isinstance(table, Joined):
        return _show_join(table)
    alias = f" As {show_name(table.alias)}" if table.alias != table.stream else ""
    if table.window.column:
        return _window_call(table) + alias
    name = show_name(table.stream) if table.query is None else f"({show(table.query)})"
    for i, call in enumerate(table.calls):
        by = ", ".join(map(show_expression, call.keys))
        inner = name if i else f" {name}"
        name = f"({call.name}(Table{inner}{f' Partition By {by}' if by else ''}))"
    name = f"Table{name}" if table.calls else name
    window = f" {table.window}" if table.window.word is not WindowWord.NONE else ""
    return name + window + alias


def _window_call(table: Table) -> str:
    window = table.window
    pair = window.word in (WindowWord.HOP, WindowWord.CUMULATE)
    sizes = (window.slide, window.range) if pair else (window.range,)
    durations = "".join(f", Interval {size} ms" for size in sizes)
    by = ", ".join(map(show_expression, window.partition))
    part = f" Partition By {by}" if by else ""
    times = show_name(window.column)
    stream = show_name(table.stream)
    return f"Table({window.word}(Table {stream}{part}, Descriptor({times}){durations}))"


def _show_join(joined: Joined) -> str:
    words = f"{_table(joined.left)} {joined.kind.capitalize()} Join {_table(joined.right)}"
    if joined.using:
        return f"{words} Using ({', '.join(map(show_name, joined.using))})"
    return words if joined.on is None else f"{words} On {show_expression(joined.on)}"


def _combination(body: Table | Combination) -> str:
    match body:
        case Combination(operator, left, right):
            word = f"{operator} Distinct" if body.distinct else f"{operator} All"
            word = word if body.distinct or operator is Operator.INTERSECT else str(operator)
            return f"{_combination(left)} {word} {_combination(right)}"
        case Table(name, _, _, None):
            return show_name(name)
        case Table(_, _, _, query):
            assert query is not None, "a table without a name is a query"
            simple = isinstance(query.body, Select) and query.output is None and not _tail(query)
            return show(query) if simple else f"({show(query)})"


def _select(select: Select) -> str:
    lines = [
        "Select " + ("Distinct " if select.distinct else "") + ", ".join(map(_item, select.items))
    ]
    lines.append("From " + ", ".join(map(_table, select.tables)))
    if select.where is not None:
        lines.append("Where " + show_expression(select.where))
    if select.sets:
        sets = (", ".join(map(show_expression, each)) for each in select.sets)
        lines.append("Group By Grouping Sets (" + ", ".join(f"({each})" for each in sets) + ")")
    elif select.group:
        lines.append("Group By " + ", ".join(map(show_expression, select.group)))
    if select.having is not None:
        lines.append("Having " + show_expression(select.having))
    return "\n".join(lines)


def _tail(statement: Statement) -> list[str]:
    lines = [_order(statement.order)] if statement.order else []
    lines += [f"Limit {statement.limit}"] if statement.limit is not None else []
    if statement.offset:
        lines.append(f"Offset {statement.offset}")
    return lines


def show(statement: Statement) -> str:
    """Returns the stable text form of a query: CQL with one clause for each line, durations in ms.

    It parses to an equal tree.
    """
    body = (
        _select(statement.body)
        if isinstance(statement.body, Select)
        else _combination(statement.body)
    )
    body = "\n".join([body, *_tail(statement)])
    return f"{statement.output}(\n{body}\n)" if statement.output else body


def show_script(script: Script) -> str:
    """Returns the stable text form of a script: declarations, views, queries.

    It parses to an equal script, except for positions.
    """
    parts = [_schema(declared.schema) for declared in script.declared]
    parts += [f"{_schema(view.schema)} As\n{show(view.query)}" for view in script.views]
    parts += [show(asked.query) for asked in script.queries]
    return ";\n".join(parts)


def _schema(schema: Schema) -> str:
    columns = ", ".join(f"{show_name(name)} {kind.capitalize()}" for name, kind in schema.columns)
    kind = "Relation" if schema.relation else "Stream"
    return f"Register {kind} {show_name(schema.name)} ({columns})"

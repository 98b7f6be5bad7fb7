"""The syntax tree of a CQL query: frozen values with their positions, and their printed form.

Positions (``span``) do not take part in comparison, so equal texts have equal trees. Names are as
written; ``language/translate/cql/translate.py`` resolves them. Cost: linear in the text.
"""

from __future__ import annotations

import re
from dataclasses import field
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


@frozen
class Constant:
    """A constant: its type and its text (a string's without quotes; booleans in lower case)."""

    type: LiteralType
    text: str
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@frozen
class Operation:
    """An operator (``or and not = <> < > <= >= + - * /``) on one or two operands, or ``in`` on a
    value and its possible values.
    """

    operator: str
    operands: tuple[Expression, ...]
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@frozen
class Call:
    """A function call; ``argument`` None is ``*``."""

    function: str
    argument: Expression | None
    distinct: bool = False
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


Expression = Column | Constant | Operation | Call


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
    RANGE = "Range"
    ROWS = "Rows"
    NONE = ""


@frozen
class WindowSpec:
    """A window: ``range`` and ``slide`` in ms (slide 0: none), ``rows`` for each value of
    ``partition``.

    NONE: the text has no window. A stream is then unbounded, and a relation has no window.
    """

    word: WindowWord
    range: int = 0
    slide: int = 0
    rows: int = 0
    partition: tuple[Column, ...] = ()
    span: Span = field(default=_NOWHERE, compare=False, repr=False)

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


@frozen
class Table:
    """A table of From under its alias (the name, if none is given): a stream, relation or view, or
    a query in brackets.
    """

    stream: str
    window: WindowSpec
    alias: str
    query: Statement | None = None
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@frozen
class Select:
    """One Select block."""

    distinct: bool
    items: tuple[Item | Every, ...]
    tables: tuple[Table, ...]
    where: Expression | None = None
    group: tuple[Expression, ...] = ()
    having: Expression | None = None


class Operator(StrEnum):
    """An operator that combines two relations, as bags."""

    UNION = "Union"
    EXCEPT = "Except"


@frozen
class Combination:
    """Union or Except of two tables, column by column; the left one names the columns."""

    operator: Operator
    left: Table | Combination
    right: Table
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@frozen
class Statement:
    """A whole query: ``output`` is "Istream", "Dstream", "Rstream" or None for a plain relation."""

    output: str | None
    body: Select | Combination
    text: str = field(compare=False, repr=False)
    span: Span = field(default=_NOWHERE, compare=False, repr=False)

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
        case Operation(operator, (operand,)):
            return f"({operator} {show_expression(operand)})"
        case Operation("in", (value, *others)):
            return f"({show_expression(value)} in ({', '.join(map(show_expression, others))}))"
        case Operation(operator, operands):
            return "(" + f" {operator} ".join(map(show_expression, operands)) + ")"
        case Call(function, argument, distinct):
            inner = "*" if argument is None else show_expression(argument)
            return f"{function}({'Distinct ' if distinct else ''}{inner})"


def _item(item: Item | Every) -> str:
    if isinstance(item, Every):
        return f"{show_name(item.table)}.*" if item.table else "*"
    alias = f" As {show_name(item.alias)}" if item.alias else ""
    return show_expression(item.expression) + alias


def _table(table: Table) -> str:
    name = show_name(table.stream) if table.query is None else f"({show(table.query)})"
    window = f" {table.window}" if table.window.word is not WindowWord.NONE else ""
    alias = f" As {show_name(table.alias)}" if table.alias != table.stream else ""
    return name + window + alias


def _combination(body: Table | Combination) -> str:
    match body:
        case Combination(operator, left, right):
            return f"{_combination(left)} {operator} {_combination(right)}"
        case Table(name, _, _, None):
            return show_name(name)
        case Table(_, _, _, query):
            assert query is not None, "a table without a name is a query"
            return f"({show(query)})"


def _select(select: Select) -> str:
    lines = [
        "Select " + ("Distinct " if select.distinct else "") + ", ".join(map(_item, select.items))
    ]
    lines.append("From " + ", ".join(map(_table, select.tables)))
    if select.where is not None:
        lines.append("Where " + show_expression(select.where))
    if select.group:
        lines.append("Group By " + ", ".join(map(show_expression, select.group)))
    if select.having is not None:
        lines.append("Having " + show_expression(select.having))
    return "\n".join(lines)


def show(statement: Statement) -> str:
    """Returns the stable text form of a query: CQL with one clause for each line, durations in ms.

    It parses to an equal tree.
    """
    body = (
        _select(statement.body)
        if isinstance(statement.body, Select)
        else _combination(statement.body)
    )
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

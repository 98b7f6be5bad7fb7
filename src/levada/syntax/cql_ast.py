"""The syntax tree of a CQL query: frozen values with their positions, and their printed form.

Positions (``span``) do not take part in comparison: two texts that say the same have equal trees. Names are as written;
nothing is resolved here (``algebra/cql.py`` does that). Cost: linear in the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from levada.errors import Span

_NOWHERE = Span(1, 1)


@dataclass(frozen=True, slots=True)
class Column:
    """A column by its name, ``table`` is the alias before the dot or None."""

    table: str | None
    name: str
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


class LiteralType(StrEnum):
    """The type of a constant."""

    INTEGER = "integer"
    DOUBLE = "double"
    STRING = "string"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant: its type and its text (a string's without quotes; true or false in lower case)."""

    type: LiteralType
    text: str
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator (``or and not = <> < > <= >= + - * /``) on one or two operands."""

    operator: str
    operands: tuple[Expression, ...]
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function call; ``argument`` None is ``*``."""

    function: str
    argument: Expression | None
    distinct: bool = False
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


Expression = Column | Constant | Operation | Call


@dataclass(frozen=True, slots=True)
class Every:
    """``*`` or ``A.*`` in a select list."""

    table: str | None
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """A window: ``range`` and ``slide`` in ms (slide 0: none), ``rows`` a count."""

    word: WindowWord
    range: int = 0
    slide: int = 0
    rows: int = 0
    span: Span = field(default=_NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        match self.word:
            case WindowWord.RANGE:
                return f"[Range {self.range} ms" + (f" Slide {self.slide} ms]" if self.slide else "]")
            case WindowWord.ROWS:
                return f"[Rows {self.rows}]"
            case WindowWord.NOW:
                return "[Now]"
            case WindowWord.UNBOUNDED:
                return "[Range Unbounded]"


@dataclass(frozen=True, slots=True)
class Table:
    """A windowed stream in From, under its alias (the stream's name, if none is given)."""

    stream: str
    window: WindowSpec
    alias: str
    span: Span = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Select:
    """One Select block."""

    distinct: bool
    items: tuple[Item | Every, ...]
    tables: tuple[Table, ...]
    where: Expression | None = None
    group: tuple[Expression, ...] = ()
    having: Expression | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """A whole query: ``output`` is "Istream", "Dstream", "Rstream" or None for a plain relation."""

    output: str | None
    select: Select
    text: str = field(compare=False, repr=False)


def show_expression(node: Expression) -> str:
    """An expression as CQL, fully parenthesised.

    >>> show_expression(Operation("<", (Column("A", "v"), Constant(LiteralType.INTEGER, "5"))))
    '(A.v < 5)'
    """
    match node:
        case Column(table, name):
            return f"{table}.{name}" if table else name
        case Constant(LiteralType.STRING, text):
            return "'" + text.replace("'", "''") + "'"
        case Constant(_, text):
            return text
        case Operation(operator, (operand,)):
            return f"({operator} {show_expression(operand)})"
        case Operation(operator, operands):
            return "(" + f" {operator} ".join(map(show_expression, operands)) + ")"
        case Call(function, argument, distinct):
            inner = "*" if argument is None else show_expression(argument)
            return f"{function}({'Distinct ' if distinct else ''}{inner})"


def _item(item: Item | Every) -> str:
    if isinstance(item, Every):
        return f"{item.table}.*" if item.table else "*"
    return show_expression(item.expression) + (f" As {item.alias}" if item.alias else "")


def _table(table: Table) -> str:
    return f"{table.stream} {table.window}" + (f" As {table.alias}" if table.alias != table.stream else "")


def show(statement: Statement) -> str:
    """The stable text form of a query: CQL again, one clause per line, durations in ms; it parses to an equal tree."""
    select = statement.select
    lines = ["Select " + ("Distinct " if select.distinct else "") + ", ".join(map(_item, select.items))]
    lines.append("From " + ", ".join(map(_table, select.tables)))
    if select.where is not None:
        lines.append("Where " + show_expression(select.where))
    if select.group:
        lines.append("Group By " + ", ".join(map(show_expression, select.group)))
    if select.having is not None:
        lines.append("Having " + show_expression(select.having))
    body = "\n".join(lines)
    return f"{statement.output}(\n{body}\n)" if statement.output else body

"""Parses CQL text into a syntax tree.

``parse_cql`` parses one query, ``parse_script`` a text of several statements. The grammar
(``cql.lark``) is LALR(1) and is built once, at the first query (tens of ms). A query then costs
about a millisecond. CQL features that Levada does not evaluate are refused here if one word decides
(Order By, Like, sub-queries in a condition ...), with name and position (``common_mistakes``).
``script`` assigns the lines around statements in STREAM's scripts.

A word in double quotes is a name, as in SQL. STREAM writes texts so: with ``quoted_texts``, and in
a script that has STREAM's labels, it is a text where a value may stand.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import lark
from lark import Token, v_args
from lark.tree import Meta

from levada.errors import QuerySyntaxError, Span, near
from levada.language.cql.ast import (
    Call,
    Column,
    Combination,
    Constant,
    Every,
    Expression,
    Item,
    LiteralType,
    Operation,
    Operator,
    Schema,
    Script,
    Select,
    Statement,
    Table,
    WindowSpec,
    WindowWord,
)
from levada.language.cql.common_mistakes import explain_mistake
from levada.language.cql.script import Part, script_of
from levada.language.dialects.cql import DEFAULT_UNIT, TYPES, UNITS
from levada.language.sparql.source_text import check_characters
from levada.language.syntax_errors import words_of

_LABELS = ("QUERY_LABEL", "TABLE_LABEL", "VQUERY_LABEL", "VTABLE_LABEL", "SOURCE_LINE", "DEST_LINE")


def parse_cql(text: str, *, quoted_texts: bool = False) -> Statement:
    """Returns the tree of one CQL query; ``quoted_texts``: a word in double quotes is a text.

    Raises ``QuerySyntaxError`` (with position and expected words) and ``UnsupportedError`` (with
    the name of the feature).

    >>> parse_cql("Istream(Select k From A [Range 1 Minute])").select.tables[0].window.range
    60000
    """
    return _parse(text, "start", quoted_texts)  # type: ignore[no-any-return]


def parse_script(text: str, *, quoted_texts: bool = False) -> Script:
    """Returns the statements of a text: declarations, views, queries (``script`` joins them).

    Raises as ``parse_cql`` does.

    >>> text = "Register Stream V (n Integer) As Select k From A; Select n From V [Rows 2];"
    >>> script = parse_script(text)
    >>> [view.schema.name for view in script.views], len(script.queries)
    (['V'], 1)
    """
    return script_of(_parse(text, "script", quoted_texts), text)


def words() -> set[str]:
    """Returns the keywords of CQL, in upper case.

    >>> {"SELECT", "RANGE", "SLIDE"} <= words()
    True
    """
    names = ("NAME", "MEMBER")
    return words_of(terminal for terminal in _parser().terminals if terminal.name not in names)


def _parse(text: str, start: str, quoted_texts: bool) -> Any:
    check_characters(text)
    try:
        tree = _parser().parse(text, start=start)
        quoted_texts = quoted_texts or ('"' in text and _has_labels(tree))
        return _Build(text, quoted_texts).transform(tree)
    except lark.exceptions.VisitError as error:
        raise error.orig_exc from None
    except lark.UnexpectedInput as error:
        _refuse(error, text, start)


def _has_labels(tree: lark.Tree[Token]) -> bool:
    """Whether a script has the labels of STREAM (``query :``)."""
    labels = tree.scan_values(lambda token: isinstance(token, Token) and token.type in _LABELS)
    return any(True for _ in labels)


@cache
def _parser() -> lark.Lark:
    grammar = Path(__file__).with_name("cql.lark").read_text(encoding="utf-8")
    return lark.Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        start=["start", "script"],
        propagate_positions=True,
        maybe_placeholders=True,
    )


def _refuse(error: lark.UnexpectedInput, text: str, rule: str) -> NoReturn:
    """Turns Lark's error into Levada's."""
    start = len(text.rstrip()) if _at_end(error) else (error.pos_in_stream or 0)
    raise explain_mistake(text, start, lambda prefix: _acceptable(prefix, rule))


def _at_end(error: lark.UnexpectedInput) -> bool:
    return isinstance(error, lark.UnexpectedToken) and error.token.type == "$END"


def _acceptable(prefix: str, rule: str) -> set[str]:
    """Returns the terminals that can follow a prefix that parses so far."""
    state = _parser().parse_interactive(prefix, start=rule)
    state.exhaust_lexer()
    return set(state.accepts())  # type: ignore[no-untyped-call]


@v_args(meta=True)
class _Build(lark.Transformer[Token, Any]):
    """Builds the syntax tree from the grammar's tree, bottom up; one method for each rule."""

    def __init__(self, text: str, quoted_texts: bool) -> None:
        super().__init__()
        self.text = text
        self.quoted_texts = quoted_texts

    def start(self, meta: Meta, parts: list[Statement]) -> Statement:
        return parts[0]

    def script(self, meta: Meta, parts: list[Part | None]) -> list[Part]:
        return [part for part in parts if part is not None]

    def query_statement(self, meta: Meta, parts: list[Any]) -> Part:
        return Part("query", _at(meta), (meta.start_pos, meta.end_pos), query=parts[1])

    def table_statement(self, meta: Meta, parts: list[Any]) -> Part:
        return Part("table", _at(meta), schema=parts[1], query=parts[3])

    def vquery(self, meta: Meta, parts: list[Any]) -> Part:
        return Part("vquery", _at(meta), query=parts[1])

    def vtable(self, meta: Meta, parts: list[Any]) -> Part:
        return Part("vtable", _at(meta), schema=parts[1])

    def source(self, meta: Meta, parts: list[Token]) -> Part:
        return Part("source", _at(meta), path=_path(parts[0]))

    def dest(self, meta: Meta, parts: list[Token]) -> Part:
        return Part("dest", _at(meta), (meta.start_pos, meta.end_pos), path=_path(parts[0]))

    def register(self, meta: Meta, parts: list[Any]) -> Schema:
        _, relation, name, *columns = parts
        names = [column for column, _ in columns]
        if twice := next((n for n in names if names.count(n) > 1), None):
            raise QuerySyntaxError(
                f"{name} has two columns {twice}.", span=_at(name), text=self.text
            )
        return Schema(str(name), relation, tuple(columns), _at(name))

    def stream_kind(self, meta: Meta, parts: list[Token]) -> bool:
        return False

    def relation_kind(self, meta: Meta, parts: list[Token]) -> bool:
        return True

    def column_type(self, meta: Meta, parts: list[Any]) -> tuple[str, LiteralType]:
        return self._column_name(parts[0]), LiteralType(TYPES[parts[1].lower()])

    def stream_query(self, meta: Meta, parts: list[Any]) -> Statement:
        return Statement(str(parts[0]).capitalize(), parts[1], self.text, _at(meta))

    def relation(self, meta: Meta, parts: list[Any]) -> Statement:
        return Statement(None, parts[0], self.text, _at(meta))

    def combine(self, meta: Meta, parts: list[Any]) -> Combination:
        return Combination(Operator(str(parts[1]).capitalize()), parts[0], parts[2], _at(parts[1]))

    def name_operand(self, meta: Meta, parts: list[Token]) -> Table:
        return Table(str(parts[0]), WindowSpec(WindowWord.NONE), str(parts[0]), None, _at(meta))

    def select_operand(self, meta: Meta, parts: list[Select]) -> Table:
        return self._table_of_query(Statement(None, parts[0], self.text, _at(meta)), meta)

    def query_operand(self, meta: Meta, parts: list[Statement]) -> Table:
        return self._table_of_query(parts[0], meta)

    def _table_of_query(self, query: Statement, meta: Meta) -> Table:
        return Table("", WindowSpec(WindowWord.NONE), "", query, _at(meta))

    def select(self, meta: Meta, parts: list[Any]) -> Select:
        _, distinct, items, _, tables, where, group, having = parts
        return Select(distinct is not None, items, tables, where, group or (), having)

    def items(self, meta: Meta, parts: list[Item | Every]) -> tuple[Item | Every, ...]:
        return tuple(parts)

    def every_column(self, meta: Meta, parts: list[Token]) -> Every:
        return Every(None, _at(meta))

    def every_column_of(self, meta: Meta, parts: list[Token]) -> Every:
        return Every(str(parts[0]), _at(meta))

    def column_item(self, meta: Meta, parts: list[Any]) -> Item:
        expression, as_, alias = parts
        end = as_.start_pos if as_ else meta.end_pos
        text = " ".join(self.text[meta.start_pos : end].split())
        name = self._column_name(alias) if as_ else None
        return Item(expression, name or None, text, _at(meta))

    def tables(self, meta: Meta, parts: list[Table]) -> tuple[Table, ...]:
        return tuple(parts)

    def table(self, meta: Meta, parts: list[Any]) -> Table:
        stream, window, _, alias = parts
        window = window or WindowSpec(WindowWord.NONE, span=_at(meta))
        return Table(str(stream), window, str(alias or stream), None, _at(meta))

    def query_table(self, meta: Meta, parts: list[Any]) -> Table:
        query, window, _, alias = parts
        return Table(
            "", window or WindowSpec(WindowWord.NONE, span=_at(meta)), str(alias), query, _at(meta)
        )

    def range(self, meta: Meta, parts: list[Any]) -> WindowSpec:
        return WindowSpec(WindowWord.RANGE, range=parts[1], slide=parts[3] or 0, span=_at(meta))

    def unbounded_window(self, meta: Meta, parts: list[Token]) -> WindowSpec:
        return WindowSpec(WindowWord.UNBOUNDED, span=_at(meta))

    def now(self, meta: Meta, parts: list[Token]) -> WindowSpec:
        return WindowSpec(WindowWord.NOW, span=_at(meta))

    def rows(self, meta: Meta, parts: list[Token]) -> WindowSpec:
        return WindowSpec(WindowWord.ROWS, rows=self._count(parts[1]), span=_at(meta))

    def partition_window(self, meta: Meta, parts: list[Any]) -> WindowSpec:
        columns = tuple(part for part in parts if isinstance(part, Column))
        return WindowSpec(
            WindowWord.ROWS, rows=self._count(parts[-1]), partition=columns, span=_at(meta)
        )

    def _count(self, number: Token) -> int:
        if int(number) == 0:
            raise QuerySyntaxError(
                "A window holds at least one row.", span=_at(number), text=self.text
            )
        return int(number)

    def duration(self, meta: Meta, parts: list[Any]) -> int:
        number, unit = parts
        scale = UNITS.get(str(unit or DEFAULT_UNIT).lower())
        if scale is None:
            hint = near(str(unit).lower(), ["ms", "seconds", "minutes", "hours", "days"])
            raise QuerySyntaxError(
                f"{str(unit)!r} is not a unit of time.", span=_at(unit), text=self.text, hint=hint
            )
        ms = Decimal(str(number)) * scale
        if ms <= 0 or ms != int(ms):
            problem = (
                "A duration is positive."
                if ms <= 0
                else "A duration is a whole number of milliseconds."
            )
            raise QuerySyntaxError(problem, span=_at(meta), text=self.text)
        return int(ms)

    def where(self, meta: Meta, parts: list[Any]) -> Expression:
        return parts[1]  # type: ignore[no-any-return]

    def having(self, meta: Meta, parts: list[Any]) -> Expression:
        return parts[1]  # type: ignore[no-any-return]

    def group(self, meta: Meta, parts: list[Any]) -> tuple[Expression, ...]:
        return tuple(parts[2:])

    def either(self, meta: Meta, parts: list[Any]) -> Operation:
        return Operation("or", (parts[0], parts[2]), _at(meta))

    def both(self, meta: Meta, parts: list[Any]) -> Operation:
        return Operation("and", (parts[0], parts[2]), _at(meta))

    def not_condition(self, meta: Meta, parts: list[Any]) -> Operation:
        return Operation("not", (parts[1],), _at(meta))

    def compare(self, meta: Meta, parts: list[Any]) -> Operation:
        operator = "<>" if parts[1] == "!=" else str(parts[1])
        return Operation(operator, (parts[0], parts[2]), _at(meta))

    def in_list(self, meta: Meta, parts: list[Any]) -> Operation:
        value, negated, _, *others = parts
        return self._perhaps(negated, Operation("in", (value, *others), _at(meta)), meta)

    def between(self, meta: Meta, parts: list[Any]) -> Operation:
        """Builds two comparisons, which have the same meaning."""
        value, negated, _, low, _, high = parts
        least = Operation(">=", (value, low), _at(meta))
        most = Operation("<=", (value, high), _at(meta))
        return self._perhaps(negated, Operation("and", (least, most), _at(meta)), meta)

    def _perhaps(self, negated: Token | None, condition: Operation, meta: Meta) -> Operation:
        return Operation("not", (condition,), _at(meta)) if negated else condition

    def arithmetic(self, meta: Meta, parts: list[Any]) -> Operation:
        return Operation(str(parts[1]), (parts[0], parts[2]), _at(meta))

    def signed_operand(self, meta: Meta, parts: list[Any]) -> Operation:
        return Operation(str(parts[0]), (parts[1],), _at(meta))

    def name(self, meta: Meta, parts: list[Token]) -> Token:
        """Returns a name without its quotes."""
        if parts[0].type != "QUOTED":
            return parts[0]
        return Token.new_borrow_pos("QUOTED", parts[0][1:-1].replace('""', '"'), parts[0])

    member = name

    def _column_name(self, name: Token) -> str:
        """Returns the name of a column. Names with a dot at the beginning are those that
        translation makes up.
        """
        if name.startswith("."):
            raise QuerySyntaxError(
                "A column's name cannot begin with a dot.",
                span=_at(name),
                text=self.text,
                hint="Choose another one.",
            )
        return str(name)

    def column(self, meta: Meta, parts: list[Token]) -> Column | Constant:
        if parts[0].type == "QUOTED" and self.quoted_texts:
            return Constant(LiteralType.STRING, str(parts[0]), _at(meta))
        return self.key_column(meta, parts)

    def key_column(self, meta: Meta, parts: list[Token]) -> Column:
        return Column(None, self._column_name(parts[0]), _at(meta), parts[0].type == "QUOTED")

    def column_of(self, meta: Meta, parts: list[Token]) -> Column:
        names = [self._column_name(parts[1]), *map(str, parts[2:])]
        return Column(str(parts[0]), ".".join(names), _at(meta))

    def integer(self, meta: Meta, parts: list[Token]) -> Constant:
        return Constant(LiteralType.INTEGER, str(parts[0]), _at(meta))

    def decimal(self, meta: Meta, parts: list[Token]) -> Constant:
        return Constant(LiteralType.DOUBLE, str(parts[0]), _at(meta))

    def string(self, meta: Meta, parts: list[Token]) -> Constant:
        return Constant(LiteralType.STRING, parts[0][1:-1].replace("''", "'"), _at(meta))

    def boolean(self, meta: Meta, parts: list[Token]) -> Constant:
        return Constant(LiteralType.BOOLEAN, str(parts[0]).lower(), _at(meta))

    def call_star(self, meta: Meta, parts: list[Token]) -> Call:
        return Call(str(parts[0]), None, False, _at(meta))

    def call(self, meta: Meta, parts: list[Any]) -> Call:
        return Call(str(parts[0]), parts[2], parts[1] is not None, _at(meta))

    def brackets(self, meta: Meta, parts: list[Expression]) -> Expression:
        return parts[0]


def _path(line: Token) -> str:
    """Returns the text after the colon of a line."""
    return line.partition(":")[2].strip()


def _at(place: Meta | Token) -> Span:
    assert place.line is not None and place.column is not None, "a parsed thing has a position"
    return Span(place.line, place.column)

"""Parses CQL text into a syntax tree.

``parse_cql`` parses one query, ``parse_script`` a text of several statements. The grammar
(``cql.lark``) is LALR(1). Its tables are built once for a machine (half a second of CPU) and kept
in the cache folder. A query then costs about a millisecond. CQL features that Levada does not
evaluate are refused here if one word decides (Order By, Like, sub-queries in a condition ...), with
name and position (``common_mistakes``). ``script`` assigns the lines around statements in STREAM's
scripts.

A word in double quotes is a name, as in SQL. STREAM writes texts so: with ``quoted_texts``, and in
a script that has STREAM's labels, it is a text where a value may stand.
"""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal, InvalidOperation, Overflow
from functools import cache
from itertools import combinations, product
from math import prod
from pathlib import Path
from typing import Any, NoReturn

import lark
from lark import Token, v_args
from lark.tree import Meta

from levada.core.cache_folder import parser_file
from levada.core.event_time import MAX
from levada.core.user_functions import HOW_TO_DECLARE, UserOperator, declared_for_cql
from levada.errors import QuerySyntaxError, Span, near
from levada.language.cql.ast import (
    Call,
    Cast,
    Column,
    Combination,
    Constant,
    Every,
    Expression,
    Item,
    Joined,
    LiteralType,
    Nested,
    Operation,
    Operator,
    OperatorCall,
    OverClause,
    Schema,
    Script,
    Select,
    Sort,
    Statement,
    Table,
    WindowSpec,
    WindowWord,
    operands,
)
from levada.language.cql.common_mistakes import explain_mistake
from levada.language.cql.script import Part, script_of
from levada.language.cql.window_functions import (
    is_window_function,
    milliseconds_of,
    window_of_call,
)
from levada.language.cql.with_clause import check_size, named_columns, with_views
from levada.language.dialects.cql import DEFAULT_UNIT, TYPES, UNITS
from levada.language.sparql.source_text import check_characters
from levada.language.syntax_errors import words_of

_MOST_SETS = 64
_MOST_REPEATED = 2000  # parts of an operand, each as often as it is repeated
_GREATEST = 2**63 - 1  # its negative and one less is written as a difference, as in SQL
_LONG_NUMBER = re.compile(r"\d{19}")
_MOST_IN_CUBE = 6
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
        _check_integers(tree, text)
        quoted_texts = quoted_texts or ('"' in text and _has_labels(tree))
        return _Build(text, quoted_texts).transform(tree)
    except (RecursionError, lark.exceptions.VisitError) as error:
        cause = getattr(error, "orig_exc", error)
        if isinstance(cause, RecursionError):
            cause = QuerySyntaxError("The query is nested too deeply.", text=text)
        raise cause from None
    except lark.UnexpectedInput as error:
        _refuse(error, text, start)


def _check_integers(tree: lark.Tree[Token], text: str) -> None:
    """Raises ``QuerySyntaxError`` for an integer of more than 64 bits."""
    for number in (_LONG_NUMBER.search(text) and tree.scan_values(_is_integer)) or ():
        if len(number) > 40 or int(number) > _GREATEST:
            shown = number if len(number) <= 40 else f"{number[:40]}.."
            message = f"An integer has 64 bits, so {shown} is none: write {shown}.0 for a double."
            raise QuerySyntaxError(message, span=_at(number), text=text)


def _is_integer(token: Any) -> bool:
    return isinstance(token, Token) and token.type == "INTEGER"


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
        cache=parser_file(grammar) or False,
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
        query: Statement = parts[1]
        return replace(query, output=str(parts[0]).capitalize(), span=_at(meta))

    def stream_select(self, meta: Meta, parts: list[Any]) -> Statement:
        """``Select Istream(k) From ..``, as papers print ``Istream(Select k From ..)``."""
        views, word, mark, output, items, *clauses, order, limit = parts
        select = self.select(meta, [word, mark, items, *clauses])
        statement = self.full(meta, [views, select, order, limit])
        return replace(statement, output=str(output).capitalize())

    def relation(self, meta: Meta, parts: list[Any]) -> Statement:
        return parts[0]  # type: ignore[no-any-return]

    def full(self, meta: Meta, parts: list[Any]) -> Statement:
        views, body, order, limit = parts
        count, offset = limit or (None, 0)
        statement = Statement(None, body, self.text, _at(meta), order or (), count, offset)
        if not views:
            return statement
        expanded: Statement = with_views(statement, views)
        check_size(expanded)
        return expanded

    nested_query = full

    def views(self, meta: Meta, parts: list[Any]) -> dict[str, Statement]:
        views: dict[str, Statement] = {}
        for name, query in parts[1:]:
            if name in views:
                raise QuerySyntaxError(
                    f"With defines {name} twice.", span=_at(name), text=self.text
                )
            views[str(name)] = with_views(query, views)
            check_size(views[str(name)])
        return views

    def view(self, meta: Meta, parts: list[Any]) -> tuple[Token, Statement]:
        name, *columns, _, query = parts
        names = [self._column_name(column) for column in columns if column is not None]
        return name, named_columns(query, names, name) if names else query

    def combine(self, meta: Meta, parts: list[Any]) -> Combination:
        left, word, mark, right = parts
        operator = Operator(str(word).capitalize())
        is_set = _is_word(mark, "DISTINCT") or (operator is Operator.INTERSECT and mark is None)
        closer = operator is Operator.INTERSECT and isinstance(left, Combination)
        if closer and left.operator is not Operator.INTERSECT:  # as in SQL
            inner = Combination(operator, left.right, right, _at(word), is_set)
            closer_one: Combination = replace(left, right=inner)
            return closer_one
        return Combination(operator, left, right, _at(word), is_set)

    def name_operand(self, meta: Meta, parts: list[Token]) -> Table:
        return Table(str(parts[0]), WindowSpec(WindowWord.NONE), str(parts[0]), None, _at(meta))

    def select_operand(self, meta: Meta, parts: list[Select]) -> Table:
        return self._table_of_query(Statement(None, parts[0], self.text, _at(meta)), meta)

    def query_operand(self, meta: Meta, parts: list[Statement]) -> Table:
        return self._table_of_query(parts[0], meta)

    def _table_of_query(self, query: Statement, meta: Meta) -> Table:
        return Table("", WindowSpec(WindowWord.NONE), "", query, _at(meta))

    def select(self, meta: Meta, parts: list[Any]) -> Select:
        _, mark, items, _, tables, where, group, having = parts
        keys, sets = group or ((), ())
        return Select(_is_word(mark, "DISTINCT"), items, tables, where, keys, having, sets)

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

    def short_item(self, meta: Meta, parts: list[Any]) -> Item:
        return self.column_item(meta, [parts[0], parts[1], parts[1]])

    def tables(self, meta: Meta, parts: list[Table | Joined]) -> tuple[Table | Joined, ...]:
        return tuple(parts)

    def alias(self, meta: Meta, parts: list[Token]) -> Token:
        return parts[-1]

    def inner_join(self, meta: Meta, parts: list[Any]) -> Joined:
        return self._join_tables("inner", parts, meta)

    def outer_join(self, meta: Meta, parts: list[Any]) -> Joined:
        return self._join_tables(str(parts[1]).lower(), parts, meta)

    def cross_join(self, meta: Meta, parts: list[Any]) -> Joined:
        return Joined("cross", parts[0], parts[-1], span=_at(meta))

    def _join_tables(self, kind: str, parts: list[Any], meta: Meta) -> Joined:
        left, *_, right, (on, using) = parts
        return Joined(kind, left, right, on, using, _at(meta))

    def on(self, meta: Meta, parts: list[Any]) -> tuple[Expression, tuple[str, ...]]:
        return parts[1], ()

    def using(self, meta: Meta, parts: list[Any]) -> tuple[None, tuple[str, ...]]:
        return None, tuple(self._column_name(name) for name in parts[1:])

    def table(self, meta: Meta, parts: list[Any]) -> Table:
        stream, window, alias = parts
        window = window or WindowSpec(WindowWord.NONE, span=_at(meta))
        return Table(str(stream), window, str(alias or stream), None, _at(meta))

    def query_table(self, meta: Meta, parts: list[Any]) -> Table:
        query, window, alias = parts
        window = window or WindowSpec(WindowWord.NONE, span=_at(meta))
        alias = alias or f"query {meta.line}:{meta.column}"
        return Table("", window, str(alias), query, _at(meta))

    def window_table(self, meta: Meta, parts: list[Any]) -> Table:
        call = next(part for part in parts if isinstance(part, Table))
        return replace(call, alias=str(parts[-1] if parts[-1] is not None else call.stream))

    def window_call(self, meta: Meta, parts: list[Any]) -> Table:
        word, _, stream = parts[:3]
        by = tuple(part for part in parts if isinstance(part, Column))
        at = next(i for i, part in enumerate(parts) if _is_word(part, "DESCRIPTOR"))
        spec = window_of_call(str(word), str(parts[at + 1]), parts[at + 2 :], by, _at(word))
        if isinstance(spec, str):
            raise QuerySyntaxError(spec, span=_at(word), text=self.text)
        return Table(str(stream), spec, str(stream), None, _at(meta))

    def operator_table(self, meta: Meta, parts: list[Any]) -> Table:
        call = next(part for part in parts if isinstance(part, Table))
        window, alias = parts[-2:]
        alias = str(call.stream if alias is None else alias)
        return replace(call, alias=alias, window=window or call.window, span=_at(meta))

    def operator_call(self, meta: Meta, parts: list[Any]) -> Table:
        word, _, inner, *_ = parts
        if not isinstance(declared_for_cql(str(word)), UserOperator):
            self._refuse_window_call(meta, parts)
        if any(isinstance(part, WindowSpec) for part in parts):
            hint = f"Write Table({word}(Table {inner})) [Range ..]."
            message = "The window of an operator stands behind its brackets."
            raise QuerySyntaxError(message, span=_at(meta), text=self.text, hint=hint)
        if not isinstance(inner, Table):
            none = WindowSpec(WindowWord.NONE, span=_at(meta))
            inner = Table(str(inner), none, str(inner), None)
        by = tuple(part for part in parts if isinstance(part, Column))
        call = OperatorCall(str(word), by, _at(word))
        return replace(inner, calls=(*inner.calls, call), span=_at(meta))

    def _refuse_window_call(self, meta: Meta, parts: list[Any]) -> NoReturn:
        message = f"{parts[0]} lacks its column of times and its durations."
        hint = f"Write Table({parts[0]}(Table S, Descriptor(ts), Interval '10' Minutes))."
        if not is_window_function(str(parts[0])):
            message, hint = f"There is no operator {parts[0]}.", HOW_TO_DECLARE
        raise QuerySyntaxError(message, span=_at(meta), text=self.text, hint=hint)

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
        return self._milliseconds(str(number), unit, meta)

    def interval(self, meta: Meta, parts: list[Any]) -> int:
        _, number, unit = parts
        digits = number[1:-1].strip() if number.startswith("'") else str(number)
        try:
            return self._milliseconds(digits, unit, meta)
        except InvalidOperation:
            message = f"{number[:40]} is not a number."
            hint = "Write Interval '10' Minutes."
            raise QuerySyntaxError(message, span=_at(number), text=self.text, hint=hint) from None

    def _milliseconds(self, number: str, unit: Token | None, meta: Meta) -> int:
        scale = UNITS.get(str(unit or DEFAULT_UNIT).lower())
        if scale is None:
            assert unit is not None, "the unit that is meant without one is known"
            hint = near(str(unit).lower(), ["ms", "seconds", "minutes", "hours", "days"])
            raise QuerySyntaxError(
                f"{str(unit)!r} is not a unit of time.", span=_at(unit), text=self.text, hint=hint
            )
        try:
            ms = Decimal(number) * scale
        except Overflow:
            ms = Decimal(MAX)
        if not 0 < ms < MAX or ms != int(ms):
            problem = "A duration is a whole number of milliseconds."
            if not 0 < ms < MAX:
                problem = "A duration is positive." if ms <= 0 else "The duration is too long."
            raise QuerySyntaxError(problem, span=_at(meta), text=self.text)
        return int(ms)

    def where(self, meta: Meta, parts: list[Any]) -> Expression:
        return parts[1]  # type: ignore[no-any-return]

    def having(self, meta: Meta, parts: list[Any]) -> Expression:
        return parts[1]  # type: ignore[no-any-return]

    def group(
        self, meta: Meta, parts: list[Any]
    ) -> tuple[tuple[Expression, ...], tuple[tuple[Expression, ...], ...]]:
        """Returns the expressions of Group By, and its grouping sets: all combinations of one set
        of each part.
        """
        if not any(isinstance(part, list) for part in parts[2:]):
            return tuple(parts[2:]), ()
        choices = [part if isinstance(part, list) else [(part,)] for part in parts[2:]]
        self._check_sets(meta, prod(map(len, choices)))
        sets = tuple(
            tuple(dict.fromkeys(each for one in chosen for each in one))
            for chosen in product(*choices)
        )
        return tuple(dict.fromkeys(each for one in sets for each in one)), sets

    def set(self, meta: Meta, parts: list[Any]) -> tuple[Expression, ...]:
        return tuple(parts)

    def _check_sets(self, meta: Meta, count: int) -> None:
        """Raises ``QuerySyntaxError`` for too many grouping sets, before any is made."""
        if count > _MOST_SETS:
            many = count if count < 10**6 else "millions of"
            message = f"These are {many} grouping sets; {_MOST_SETS} are possible."
            raise QuerySyntaxError(message, span=_at(meta), text=self.text)

    def rollup(self, meta: Meta, parts: list[Any]) -> list[tuple[Expression, ...]]:
        columns = parts[1:]
        self._check_sets(meta, len(columns) + 1)
        ends = range(len(columns), -1, -1)
        return [tuple(each for one in columns[:end] for each in one) for end in ends]

    def cube(self, meta: Meta, parts: list[Any]) -> list[tuple[Expression, ...]]:
        columns = parts[1:]
        if len(columns) > _MOST_IN_CUBE:
            message = f"Cube takes {_MOST_IN_CUBE} expressions at most."
            raise QuerySyntaxError(message, span=_at(meta), text=self.text)
        chosen = (c for n in range(len(columns), -1, -1) for c in combinations(columns, n))
        return [tuple(each for one in sets for each in one) for sets in chosen]

    def grouping_sets(self, meta: Meta, parts: list[Any]) -> list[tuple[Expression, ...]]:
        return list(parts[2:])

    def order(self, meta: Meta, parts: list[Any]) -> tuple[Sort, ...]:
        return tuple(parts[2:])

    def sort(self, meta: Meta, parts: list[Any]) -> Sort:
        expression, direction, _, place = parts
        last = None if place is None else _is_word(place, "LAST")
        return Sort(expression, _is_word(direction, "DESC"), last)

    def limit(self, meta: Meta, parts: list[Any]) -> tuple[int, int]:
        return int(parts[1]), int(parts[3] or 0)

    def offset(self, meta: Meta, parts: list[Any]) -> tuple[int | None, int]:
        return parts[-1], int(parts[1])

    def fetch_limit(self, meta: Meta, parts: list[Any]) -> tuple[int, int]:
        return parts[0], 0

    def fetch(self, meta: Meta, parts: list[Any]) -> int:
        return int(next((part for part in parts if _is_word(part, "INTEGER")), "1"))

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
        self._check_repeated(value, 2, meta)
        least = Operation(">=", (value, low), _at(meta))
        most = Operation("<=", (value, high), _at(meta))
        return self._perhaps(negated, Operation("and", (least, most), _at(meta)), meta)

    def _check_repeated(self, operand: Expression | None, times: int, meta: Meta) -> None:
        """Raises ``QuerySyntaxError`` for an operand with too many parts to be repeated."""
        waiting, count = [operand] if operand is not None else [], 0
        while waiting and count * times <= _MOST_REPEATED:
            part = waiting.pop()
            count += 1
            waiting += operands(part)
        if times > 1 and count * times > _MOST_REPEATED:
            message = "The operand has too many parts for Between, or for Case with its conditions."
            hint = "Compute it in a query in brackets, which gives it a name."
            raise QuerySyntaxError(message, span=_at(meta), text=self.text, hint=hint)

    def _perhaps(self, negated: Token | None, condition: Operation, meta: Meta) -> Operation:
        return Operation("not", (condition,), _at(meta)) if negated else condition

    def in_query(self, meta: Meta, parts: list[Any]) -> Operation | Nested:
        value, negated, _, query = parts
        nested = Nested("in", query, value, _at(meta))
        return Operation("not", (nested,), _at(meta)) if negated else nested

    def exists(self, meta: Meta, parts: list[Any]) -> Nested:
        return Nested("exists", parts[1], None, _at(meta))

    def scalar_query(self, meta: Meta, parts: list[Any]) -> Nested:
        return Nested("scalar", parts[0], None, _at(meta))

    def like(self, meta: Meta, parts: list[Any]) -> Operation:
        value, negated, word, pattern, _, escape = parts
        operands = (value, pattern, *([] if escape is None else [self.string(meta, [escape])]))
        return self._perhaps(negated, Operation(word.lower(), operands, _at(meta)), meta)

    def is_word(self, meta: Meta, parts: list[Any]) -> Operation:
        """Builds a condition that is true or false of each row, as SQL's tests by Is are."""
        value, _, negated = parts[:3]
        word = next(part.type for part in parts[3:] if part is not None)
        condition = Operation("is null", (value,), _at(meta))
        if word in ("TRUE", "FALSE"):
            wanted = Operation("not", (value,), _at(meta)) if word == "FALSE" else value
            no = Constant(LiteralType.BOOLEAN, "false", _at(meta))
            yes = Constant(LiteralType.BOOLEAN, "true", _at(meta))
            condition = Operation("case", (wanted, yes, no), _at(meta))
        return self._perhaps(negated, condition, meta)

    def is_distinct(self, meta: Meta, parts: list[Any]) -> Operation:
        value, _, negated, _, _, other = parts
        return self._perhaps(negated, Operation("is distinct", (value, other), _at(meta)), meta)

    def case(self, meta: Meta, parts: list[Any]) -> Operation:
        """Builds a case of conditions: ``Case x When a`` is ``Case When x = a``."""
        _, subject, *rest, _, other, _ = parts
        built: list[Expression] = []
        self._check_repeated(subject, len(rest), meta)
        for condition, value in rest:
            if subject is not None:
                condition = Operation("=", (subject, condition), _at(meta))
            built += [condition, value]
        return Operation("case", (*built, *([other] if other is not None else [])), _at(meta))

    def when(self, meta: Meta, parts: list[Any]) -> tuple[Expression, Expression]:
        return parts[1], parts[3]

    def cast(self, meta: Meta, parts: list[Any]) -> Cast:
        return Cast(parts[1], str(parts[3]).lower(), _at(meta))

    def extract(self, meta: Meta, parts: list[Any]) -> Call:
        unit = Constant(LiteralType.STRING, str(parts[1]).lower(), _at(parts[1]))
        return Call("date_part", (unit, parts[3]), span=_at(meta))

    def substring(self, meta: Meta, parts: list[Any]) -> Call:
        arguments = (part for part in parts if part is not None and not isinstance(part, Token))
        return Call("substring", tuple(arguments), span=_at(meta))

    def word_call(self, meta: Meta, parts: list[Any]) -> Call:
        return Call(str(parts[0]), tuple(parts[1:]), span=_at(meta))

    def trim(self, meta: Meta, parts: list[Any]) -> Call:
        _, side, first, _, text = parts
        name = {"leading": "ltrim", "trailing": "rtrim"}.get(str(side).lower(), "trim")
        return Call(name, (first,) if text is None else (text, first), span=_at(meta))

    def trim_side(self, meta: Meta, parts: list[Any]) -> Call:
        return self.trim(meta, [parts[0], parts[1], parts[3], None, None])

    def position(self, meta: Meta, parts: list[Any]) -> Call:
        return Call("position", (parts[1], parts[3]), span=_at(meta))

    def arithmetic(self, meta: Meta, parts: list[Any]) -> Operation:
        return Operation(str(parts[1]), (parts[0], parts[2]), _at(meta))

    def signed_operand(self, meta: Meta, parts: list[Any]) -> Operation:
        return Operation(str(parts[0]), (parts[1],), _at(meta))

    def filter(self, meta: Meta, parts: list[Any]) -> Expression:
        return parts[2]  # type: ignore[no-any-return]

    def over_clause(self, meta: Meta, parts: list[Any]) -> OverClause:
        frame, order = parts[-1], parts[-2]
        partition = tuple(p for p in parts[:-2] if p is not None and not isinstance(p, Token))
        return OverClause(partition, order or (), frame)

    def frame_from(self, meta: Meta, parts: list[Any]) -> tuple[str, int | None, int | None]:
        return self._frame(parts, parts[-1], (1, 0))

    def frame_between(self, meta: Meta, parts: list[Any]) -> tuple[str, int | None, int | None]:
        return self._frame(parts, parts[-3], parts[-1])

    def _frame(self, parts: list[Any], low: Any, high: Any) -> tuple[str, int | None, int | None]:
        word = next(str(part).capitalize() for part in parts if _is_word(part, "RANGE", "ROWS"))
        return word, low[1], high[1]

    def unbounded_bound(self, meta: Meta, parts: list[Any]) -> tuple[int, None]:
        return 0, None

    def current_row(self, meta: Meta, parts: list[Any]) -> tuple[int, int]:
        return 0, 0

    def rows_bound(self, meta: Meta, parts: list[Any]) -> tuple[int, int]:
        return 0, -int(parts[0]) if parts[1].type == "PRECEDING" else int(parts[0])

    interval_bound = rows_bound

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

    def null(self, meta: Meta, parts: list[Token]) -> Constant:
        return Constant(LiteralType.NULL, "null", _at(meta))

    def interval_value(self, meta: Meta, parts: list[int]) -> Constant:
        return Constant(LiteralType.INTEGER, str(parts[0]), _at(meta))

    def instant(self, meta: Meta, parts: list[Token]) -> Constant:
        try:
            ms = milliseconds_of(parts[1][1:-1])
        except ValueError:
            message = f"{parts[1]} is not an instant."
            hint = "Write Timestamp '2026-01-31 12:00:00' or Date '2026-01-31'."
            raise QuerySyntaxError(message, span=_at(meta), text=self.text, hint=hint) from None
        return Constant(LiteralType.INTEGER, str(ms), _at(meta))

    def arguments(self, meta: Meta, parts: list[Expression]) -> tuple[Expression, ...]:
        return tuple(parts)

    def call_star(self, meta: Meta, parts: list[Any]) -> Call:
        return Call(str(parts[0]), None, False, _at(meta), parts[-2], parts[-1])

    def call(self, meta: Meta, parts: list[Any]) -> Call:
        name, distinct, arguments, where, over = parts
        return Call(str(name), arguments or (), distinct is not None, _at(meta), where, over)

    def brackets(self, meta: Meta, parts: list[Expression]) -> Expression:
        return parts[0]


def _is_word(part: object, *kinds: str) -> bool:
    """Whether a part of a rule is a word of one of these kinds."""
    return isinstance(part, Token) and part.type in kinds


def _path(line: Token) -> str:
    """Returns the text after the colon of a line."""
    return line.partition(":")[2].strip()


def _at(place: Meta | Token) -> Span:
    assert place.line is not None and place.column is not None, "a parsed thing has a position"
    return Span(place.line, place.column)

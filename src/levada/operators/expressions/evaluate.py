"""Evaluation of expressions over columns (SPARQL 1.1, section 17).

``evaluate`` returns a column, ``truth`` the rows on which a condition is true. Constants and
expressions of constants are computed once (columns of length 1). Conditions stay three-valued truth
between operators and become columns only where a value is needed. An error is an unbound row, or
the third truth value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from levada.core.array_types import Bools, Bytes, Longs, Words
from levada.core.expression_budget import Account, unlimited_account
from levada.core.expressions import Aggregate, Call, Const, Expression, Function, Param, Var
from levada.core.rdf_terms import SPECIAL, Iri, Kind, Term
from levada.operators.expressions import arithmetic, logic, seeded_functions
from levada.operators.expressions.comparison import OPERATORS, compare, negate, same_term
from levada.operators.expressions.row_blocks import TRUE, Result, combinations, strict
from levada.operators.expressions.scalar import regex
from levada.operators.expressions.scalar.function_table import SCALAR
from levada.operators.expressions.scalar.literals import Text, literal_of, term_of
from levada.operators.expressions.scalar.numbers import ExpressionError
from levada.operators.expressions.scalar.strings import simple_text, text
from levada.operators.expressions.sql_functions import SQL_FUNCTIONS, SQL_TEXTS, sql_function
from levada.operators.expressions.strings import (
    STRINGS,
    argument_frame,
    bind,
    is_plain_row,
    string_function,
)
from levada.operators.expressions.term_values import Column, Identify, broadcast, constant, length
from levada.operators.expressions.user_functions import user_function

# REGEX and REPLACE over whole columns.
#
# One call of the engine for all texts that meet the same pattern. Where the pattern and its flags
# are constants and the texts plain (``strings``), that is all; other rows are put together by their
# distinct arguments first. Cost: 50 ns a row and some 50 us a pattern.


PATTERNS = frozenset({Function.REGEX, Function.REPLACE})


def pattern_function(
    function: Function, columns: Sequence[Column], account: Account | None = None
) -> Column:
    """The value of one of ``PATTERNS`` in each row; an error is unbound."""
    charged = account or unlimited_account()
    result = Result(length(columns))
    rows = np.flatnonzero(bind(columns))
    if len(rows) and all(c.n == 1 for c in columns[1:]) and columns[0].n == result.n:
        rows = _evaluate_plain_texts(function, columns, rows, result, charged)
    if len(rows):
        _by_pattern(function, columns, rows, result, charged)
    return result.column()


def _evaluate_plain_texts(
    function: Function, columns: Sequence[Column], rows: Longs, result: Result, account: Account
) -> Longs:  # fmt: skip
    """Writes the values of one pattern where texts and values are plain; gives the other rows."""
    texts = argument_frame(columns[:1])
    suited = is_plain_row(texts, function)
    suited_rows = np.flatnonzero(suited)
    arguments = tuple(term_of(c.texts()[0]) for c in columns[1:])
    some = (
        texts.to_series()
        if len(suited_rows) == texts.height
        else texts.to_series().gather(suited_rows)
    )
    done = _run(
        function, some.str.slice(1).str.head(-1), arguments, account.select_rows(suited_rows)
    )
    if done is None:
        return rows[:0]
    known = done.is_not_null()
    if function is Function.REGEX:
        at = known.to_numpy()
        result.put(suited_rows[at], Kind.BOOLEAN, man=done.drop_nulls().cast(pl.Int64).to_numpy())
        return rows[~suited[rows]]
    at = (known & ~done.str.contains(SPECIAL).fill_null(False)).to_numpy()
    literals = pl.select(pl.lit('"') + pl.lit(done.filter(at)) + pl.lit('"')).to_series()
    result.put_texts(suited_rows[at], Kind.STRING, literals)
    suited[suited_rows[~at & known.to_numpy()]] = False
    return rows[~suited[rows]]


def _by_pattern(
    function: Function, columns: Sequence[Column], rows: Longs, result: Result, account: Account
) -> None:
    """Writes the values at these rows: evaluates distinct arguments, pattern by pattern."""
    codes, distinct = combinations(columns, rows)
    values: list[Term | None] = [None] * len(distinct)
    by_pattern: dict[tuple[Term | None, ...], list[int]] = {}
    for i, arguments in enumerate(distinct):
        by_pattern.setdefault(arguments[1:], []).append(i)
    for pattern, at in by_pattern.items():
        read = {i: value for i in at if (value := _text(distinct[i][0])) is not None}
        texts = pl.Series([v.lexical for v in read.values()], dtype=pl.String)
        pattern_rows = rows if len(by_pattern) == 1 else rows[np.isin(codes, at)]
        done = _run(function, texts, pattern, account.select_rows(pattern_rows))
        if done is None:
            continue
        for (i, value), value_texts in zip(read.items(), done.to_list(), strict=True):
            if value_texts is not None:
                new = (
                    value_texts if function is Function.REGEX else Text(value_texts, value.language)
                )
                values[i] = literal_of(new)
    result.put_terms(rows, codes, values)


def _text(term: Term | None) -> Text | None:
    try:
        return None if term is None else text(term)
    except ExpressionError:
        return None


def _run(
    function: Function, texts: pl.Series, arguments: tuple[Term | None, ...], account: Account
) -> pl.Series | None:
    """Returns the engine's values of these texts (null: an error), with all arguments after the
    first. Returns None if one of these arguments is an error.
    """
    try:
        plain_texts = [simple_text(t) for t in arguments if t is not None]
        if function is Function.REGEX:
            return regex.compile_(*plain_texts, *[""] * (2 - len(plain_texts))).search(
                texts, account
            )
        pattern, replacement, *flags = plain_texts
        return regex.compile_(pattern, *(flags or [""])).replace_all(texts, replacement, account)
    except ExpressionError:
        return None


@dataclass(frozen=True)
class Scope:
    """The inputs of an expression, for ``n`` rows.

    ``columns``: the variables by name (a missing one is unbound). ``params``: the lifted constants,
    gathered to the rows (or of length 1). ``now``: the report time of each row or of all (ms).
    ``seeds``: one for each row, derived from query, report and solution; needed by RAND, UUID,
    STRUUID and BNODE. ``identify``: the hash of texts with the checkpoint's seed. ``place``: the
    place of the expression in its query, so that two expressions draw different values. ``times``:
    the event time of each row (ms), where rows are of one triple. ``tuples``: whether rows are of
    tuple streams, whose integers have 64 bits. ``account``: the resource use of the operator.
    """

    n: int
    columns: Mapping[str, Column]
    params: Sequence[Column] = ()
    now: Longs | int = 0
    seeds: Words | None = None
    identify: Identify | None = None
    place: int = 0
    times: Longs | int = 0
    tuples: bool = False
    account: Account = field(default_factory=unlimited_account)


def evaluate(expression: Expression, scope: Scope) -> Column:
    """The value of the expression in each row, unbound where it is an error.

    >>> scope = Scope(2, {"v": Column(2, man=np.array([1, 5]), kind=np.array([10, 10], np.uint8),
    ...                               dbl=np.zeros(2), scale=np.zeros(2, np.uint8))})
    >>> evaluate(Call(Function.ADD, (Var("v"), Var("v"))), scope).man.tolist()
    [2, 10]
    """
    scope.account.start()
    column = broadcast(_Evaluation(scope).column(expression), scope.n)
    scope.account.look(least=0.0)
    return column


def truth(expression: Expression, scope: Scope) -> Bools:
    """Where the effective boolean value of the expression is true (an error is not)."""
    scope.account.start()
    is_true = _Evaluation(scope).truth(expression) == TRUE
    scope.account.look(least=0.0)
    return np.broadcast_to(is_true, scope.n).copy()


@dataclass
class _Evaluation:
    """One walk over an expression; ``calls`` counts the calls that derive from seeds, in the order
    of the text.
    """

    scope: Scope
    calls: int = field(default=0)

    def column(self, expression: Expression) -> Column:
        """The value of a subexpression: n rows, or one for all."""
        match expression:
            case Var(name):
                return self.scope.columns[name] if name in self.scope.columns else constant(None)
            case Const(term):
                return constant(term)
            case Param(index):
                return self.scope.params[index]
            case Call(function, args):
                return self._call(function, args)
            case Aggregate():
                raise AssertionError("aggregates are variables when their expression is evaluated")

    def truth(self, expression: Expression) -> Bytes:
        """The effective boolean value of a subexpression, three-valued."""
        if isinstance(expression, Call) and expression.function in _CONDITIONS:
            return _CONDITIONS[expression.function](self, expression.function, expression.args)
        return logic.effective(self.column(expression))

    def columns(self, expressions: Sequence[Expression]) -> list[Column]:
        """The values of several subexpressions."""
        return [self.column(e) for e in expressions]

    def _call(self, function: Function, args: tuple[Expression, ...]) -> Column:
        if function in _CONDITIONS:
            return logic.column_of(_CONDITIONS[function](self, function, args))
        if function in _VALUES:
            return self._bound_integers(_VALUES[function](self, function, args))
        if function in STRINGS:
            return string_function(function, self.columns(args), self.scope.account)
        if function in PATTERNS:
            return pattern_function(function, self.columns(args), self.scope.account)
        if function in SQL_FUNCTIONS:
            return sql_function(function, self.columns(args), self.scope.account)
        return self._bound_integers(strict(SCALAR[function], self.columns(args)))

    def _bound_integers(self, column: Column) -> Column:
        return arithmetic.bound_integers(column) if self.scope.tuples else column

    def seeds(self) -> tuple[Words, int]:
        """The seeds of the rows and the place of the next call that needs them."""
        assert self.scope.seeds is not None, "RAND, UUID, STRUUID and BNODE need seeds"
        self.calls += 1
        return self.scope.seeds, self.scope.place * 1024 + self.calls


_Args = tuple[Expression, ...]


def _compare(e: _Evaluation, function: Function, args: _Args) -> Bytes:
    a, b = e.columns(args)
    return compare(function, a, b, e.scope.identify)


def _logical(e: _Evaluation, function: Function, args: _Args) -> Bytes:
    join = logic.logical_and if function is Function.AND else logic.logical_or
    truths = e.truth(args[0])
    for arg in args[1:]:
        truths = join(truths, e.truth(arg))
    return truths


def _evaluate_in(e: _Evaluation, function: Function, args: _Args) -> Bytes:
    value, *members = e.columns(args)
    truths = logic.is_in(value, members, e.scope.identify)
    return truths if function is Function.IN else negate(truths)


def _same_term(e: _Evaluation, function: Function, args: _Args) -> Bytes:
    a, b = e.columns(args)
    return same_term(a, b, e.scope.identify)


_Condition = Callable[[_Evaluation, Function, _Args], Bytes]
_CONDITIONS: dict[Function, _Condition] = {
    **dict.fromkeys(OPERATORS, _compare),
    **dict.fromkeys((Function.AND, Function.OR), _logical),
    **dict.fromkeys((Function.IN, Function.NOT_IN), _evaluate_in),
    **dict.fromkeys(logic.TESTS, lambda e, f, a: logic.test(f, e.column(a[0]))),
    Function.NOT: lambda e, f, a: negate(e.truth(a[0])),
    Function.BOUND: lambda e, f, a: logic.bind(e.column(a[0])),
    Function.SAME_TERM: _same_term,
}


def _blank(e: _Evaluation, function: Function, args: _Args) -> Column:
    if not args:
        return seeded_functions.blank(*e.seeds())
    names = e.column(args[0])
    seeds, identify = e.scope.seeds, e.scope.identify
    assert seeds is not None, "BNODE needs seeds"
    assert identify is not None, "BNODE of a string needs the hash of texts"
    return seeded_functions.blank_of(seeds, names, *names.identify(identify))


def _user_function(e: _Evaluation, function: Function, args: _Args) -> Column:
    name, *values = args
    assert isinstance(name, Const) and isinstance(name.term, Iri), "the IRI is never lifted"
    return user_function(name.term.value, e.columns(values), e.scope.account)


_Value = Callable[[_Evaluation, Function, _Args], Column]
_VALUES: dict[Function, _Value] = {
    **dict.fromkeys(arithmetic.BINARY, lambda e, f, a: arithmetic.calculate(f, *e.columns(a))),
    **dict.fromkeys(arithmetic.UNARY, lambda e, f, a: arithmetic.unary(f, e.column(a[0]))),
    Function.IF: lambda e, f, a: logic.branch(e.truth(a[0]), e.column(a[1]), e.column(a[2])),
    Function.COALESCE: lambda e, f, a: logic.coalesce(e.columns(a)),
    Function.BNODE: _blank,
    Function.RAND: lambda e, f, a: seeded_functions.rand(*e.seeds()),
    Function.UUID: lambda e, f, a: seeded_functions.uuid(*e.seeds(), as_iri=True),
    Function.STRUUID: lambda e, f, a: seeded_functions.uuid(*e.seeds(), as_iri=False),
    Function.USER: _user_function,
    Function.NOW: lambda e, f, a: seeded_functions.now(e.scope.now),
    Function.EVENT_TIME: lambda e, f, a: seeded_functions.event_time(e.scope.times),
    Function.REPORT_TIME: lambda e, f, a: seeded_functions.event_time(e.scope.now),
}

BY_TEXT = (STRINGS | PATTERNS | SQL_TEXTS | set(SCALAR)) - set(_CONDITIONS) - set(_VALUES)
"""The functions that make texts, or go text by text."""

assert set(_CONDITIONS) | set(_VALUES) | set(SCALAR) | SQL_FUNCTIONS == set(Function), (
    "every function is evaluated somewhere"
)

"""REGEX and REPLACE over whole columns.

One call of the engine for all texts that meet the same pattern. Where the pattern and its flags
are constants and the texts plain (``strings``), that is all; other rows are put together by their
distinct arguments first. Cost: 50 ns a row and some 50 us a pattern.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from levada.core.array_types import Longs
from levada.core.expression_budget import Account, unlimited_account
from levada.core.expressions import Function
from levada.core.rdf_terms import SPECIAL, Kind, Term
from levada.operators.expressions.row_blocks import Result, combinations
from levada.operators.expressions.scalar import regex
from levada.operators.expressions.scalar.literals import Text, literal_of, term_of
from levada.operators.expressions.scalar.numbers import ExpressionError
from levada.operators.expressions.scalar.strings import simple_text, text
from levada.operators.expressions.strings import argument_frame, bind, is_plain_row
from levada.operators.expressions.term_values import Column, length

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
    made = pl.select(pl.lit('"') + pl.lit(done.filter(at)) + pl.lit('"')).to_series()
    result.put_texts(suited_rows[at], Kind.STRING, made)
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
        for (i, value), made in zip(read.items(), done.to_list(), strict=True):
            if made is not None:
                new = made if function is Function.REGEX else Text(made, value.language)
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
        said = [simple_text(t) for t in arguments if t is not None]
        if function is Function.REGEX:
            return regex.compile_(*said, *[""] * (2 - len(said))).search(texts, account)
        pattern, replacement, *flags = said
        return regex.compile_(pattern, *(flags or [""])).replace_all(texts, replacement, account)
    except ExpressionError:
        return None

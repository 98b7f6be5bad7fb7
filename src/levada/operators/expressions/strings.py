"""Functions on strings over whole columns (SPARQL 1.1, 17.4.3), where the texts are plain.

A *plain* text is a simple literal without escapes: its characters are the bytes between its quotes,
so a function is one Polars expression over them. All other rows (language tags, escapes, errors)
take the general path of ``row_blocks``, which is also the oracle of this module. Columns of a few
rows take the general path, too, because it is quicker for them. STR needs no plain text: it copies
the bytes between the quotes. Cost: some ten nanoseconds a row and argument, whatever the number of
distinct values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from levada.core.array_types import Longs
from levada.core.expression_budget import Account, unlimited_account
from levada.core.expressions import Function
from levada.core.frozen import frozen
from levada.core.rdf_terms import SPECIAL, Kind
from levada.operators.expressions.row_blocks import Result, general, strict
from levada.operators.expressions.scalar.function_table import SCALAR
from levada.operators.expressions.term_values import MAX_PARSED_TEXTS, Column, length

Bodies = Sequence[pl.Expr]


@frozen
class _Form:
    """The value that a function computes from the characters of its string arguments, with its
    kind.
    """

    kind: Kind
    of: Callable[[Bodies], pl.Expr]


def _text_before(b: Bodies) -> pl.Expr:
    is_inside = b[0].str.contains(b[1], literal=True) & (b[1] != "")
    return (
        pl.when(is_inside)
        .then(b[0].str.splitn(b[1], 2).struct.field("field_0"))
        .otherwise(pl.lit(""))
    )


def _after(b: Bodies) -> pl.Expr:
    tail = b[0].str.splitn(b[1], 2).struct.field("field_1").fill_null("")
    return pl.when(b[1] == "").then(b[0]).otherwise(tail)


_FORMS: dict[Function, _Form] = {
    Function.STRLEN: _Form(Kind.INTEGER, lambda b: b[0].str.len_chars()),
    Function.STRSTARTS: _Form(Kind.BOOLEAN, lambda b: b[0].str.starts_with(b[1])),
    Function.STRENDS: _Form(Kind.BOOLEAN, lambda b: b[0].str.ends_with(b[1])),
    Function.CONTAINS: _Form(Kind.BOOLEAN, lambda b: b[0].str.contains(b[1], literal=True)),
    Function.STRBEFORE: _Form(Kind.STRING, _text_before),
    Function.STRAFTER: _Form(Kind.STRING, _after),
    Function.UCASE: _Form(Kind.STRING, lambda b: b[0].str.to_uppercase()),
    Function.LCASE: _Form(Kind.STRING, lambda b: b[0].str.to_lowercase()),
    Function.CONCAT: _Form(Kind.STRING, lambda b: pl.concat_str(b)),
}
# beyond it libraries differ in the characters whose case has several letters
_ASCII = (Function.UCASE, Function.LCASE)
STRINGS = frozenset({*_FORMS, Function.STR})
"""The functions that have a form over columns."""


def string_function(
    function: Function, columns: Sequence[Column], account: Account | None = None
) -> Column:
    """The value of one of ``STRINGS`` in each row; an error is unbound."""
    if length(columns) <= MAX_PARSED_TEXTS:
        return strict(SCALAR[function], columns)
    texts = argument_frame(columns)
    suited = _write(texts) if function is Function.STR else is_plain_row(texts, function)
    rows = np.flatnonzero(suited)
    result = Result(length(columns))
    if function is Function.CONCAT:
        bytes_ = texts.select(pl.sum_horizontal(pl.all().str.len_bytes())).to_series().to_numpy()
        too_long = (account or unlimited_account()).make(bytes_.astype(np.int64) * suited)
        rows, suited = np.flatnonzero(suited & ~too_long), suited | too_long
    if len(rows):
        some = texts if len(rows) == texts.height else texts[rows]
        _put(function, some, None if some is texts else rows, result)
    if not suited.all():
        others = np.flatnonzero(~suited & bind(columns))
        if len(others):
            general(SCALAR[function], columns, others, result)
    return result.column()


def argument_frame(columns: Sequence[Column]) -> pl.DataFrame:
    """The texts of the arguments, side by side; a constant is repeated (Polars keeps it once)."""
    n = length(columns)
    series = [c.texts() if c.n == n else c.texts().new_from_index(0, n) for c in columns]
    return pl.DataFrame([s.alias(str(i)) for i, s in enumerate(series)])


def bind(columns: Sequence[Column]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Where all arguments are bound: elsewhere the value is an error."""
    bound = np.ones(length(columns), bool)
    for column in columns:
        bound &= column.bound()
    return bound


def is_plain_row(
    texts: pl.DataFrame, function: Function
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """The rows whose arguments are all simple literals without escapes."""
    each = []
    for name in texts.columns:
        text = pl.col(name)
        quoted = text.str.starts_with('"') & text.str.ends_with('"')
        each.append(quoted & ~text.str.contains("\\", literal=True))
        if function in _ASCII:
            each.append(text.str.len_bytes() == text.str.len_chars())
    suited: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
        texts.select(pl.all_horizontal(each).fill_null(False)).to_series().to_numpy()
    )
    return suited


def _write(texts: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """The rows that are literals, or IRIs whose characters need no escape."""
    text = pl.col("0")
    suited = text.str.starts_with('"') | (text.str.starts_with("<") & ~text.str.contains(SPECIAL))
    is_plain: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
        texts.select(suited.fill_null(False)).to_series().to_numpy()
    )
    return is_plain


def _put(function: Function, texts: pl.DataFrame, rows: Longs | None, result: Result) -> None:
    """Writes the function's values of these plain texts at ``rows`` (None: all)."""
    if function is Function.STR:
        result.put_texts(rows, Kind.STRING, texts.select(_as_string(pl.col("0"))).to_series())
        return
    form = _FORMS[function]
    values = texts.select(
        form.of([pl.col(n).str.slice(1).str.head(-1) for n in texts.columns])
    ).to_series()
    if form.kind is Kind.STRING:
        result.put_texts(
            rows, Kind.STRING, pl.select(pl.lit('"') + pl.lit(values) + pl.lit('"')).to_series()
        )
        return
    man = values.cast(pl.Int64).to_numpy()
    scale = np.zeros(len(values), np.uint8) if form.kind is Kind.INTEGER else None
    result.put(rows, form.kind, man=man, scale=scale)


def _as_string(text: pl.Expr) -> pl.Expr:
    """Returns the bytes between the quotes, or angle brackets, as a simple literal."""
    literal = text.str.replace('"[^"]*$', '"')
    iri = pl.lit('"') + text.str.slice(1).str.head(-1) + pl.lit('"')
    return pl.when(text.str.starts_with("<")).then(iri).otherwise(literal)

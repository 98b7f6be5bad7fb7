"""Functions of the user over whole columns (``core.user_functions``).

The rows whose arguments are bound and of their types are passed, all at once, and the others are
errors. An exception of the function, or a result of another size or type, raises
``UserFunctionError``. Cost: a copy of each argument and of the result, and the function.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from levada.core.array_types import Bools, Longs
from levada.core.expression_budget import Account
from levada.core.rdf_terms import NUMERIC, SPECIAL, Kind, Literal
from levada.core.user_functions import Declared, UserFunction, ValueType, require
from levada.errors import LevadaError, UserFunctionError
from levada.operators.expressions.row_blocks import Result
from levada.operators.expressions.sql_functions import characters
from levada.operators.expressions.term_values import Column, length

_T = ValueType
_TYPES = {
    _T.INTEGER: pl.Int64, _T.DOUBLE: pl.Float64, _T.BOOLEAN: pl.Boolean,
    _T.STRING: pl.String, _T.IRI: pl.String,
}  # fmt: skip
KINDS = {
    _T.INTEGER: Kind.INTEGER, _T.DOUBLE: Kind.DOUBLE, _T.BOOLEAN: Kind.BOOLEAN,
    _T.STRING: Kind.STRING, _T.IRI: Kind.IRI,
}  # fmt: skip
DTYPES = {
    _T.INTEGER: np.dtype(np.int64), _T.DOUBLE: np.dtype(np.float64), _T.BOOLEAN: np.dtype(np.bool_),
}  # fmt: skip
"""The types of columns of states."""
_NO_IRI = '[\x00-\x20<>"{}|^`\\\\]'
MAX_TEXT = 300
"""Characters of an exception's text that are reported."""


def user_function(iri: str, columns: Sequence[Column], account: Account) -> Column:
    """The value of a function of the user in each row; an error is unbound. Raises
    ``UserFunctionError``.
    """
    made, n = require(iri), length(columns)
    if not isinstance(made, UserFunction) or len(columns) != len(made.arguments):
        raise UserFunctionError(f"The function <{iri}> now takes other arguments than the query.")
    read = [argument(c, t, n) for c, t in zip(columns, made.arguments, strict=True)]
    fits = np.ones(n, np.bool_)
    for _, bound in read:
        fits &= bound
    rows = np.flatnonzero(fits)
    if not len(rows):
        return Result(n).column()
    whole = len(rows) == n
    passed = [series if whole else series.gather(rows) for series, _ in read]
    values = read_result(made, made.returns, lambda: made.apply(*passed), len(rows))
    if values.dtype == pl.String:
        account.add(int(values.str.len_bytes().sum()))
    return column_of(made.returns, values, None if whole else rows, n)


def column_of(
    kind: ValueType, values: pl.Series, rows: Longs | None = None, n: int | None = None
) -> Column:
    """Returns values of a type as a column of ``n`` rows, at ``rows`` (None: all); null is
    unbound.
    """
    result = Result(len(values) if n is None else n)
    at = np.arange(result.n) if rows is None else rows
    some = values.is_not_null().to_numpy()
    values, at = (values, at) if some.all() else (values.filter(some), at[some])
    if kind in (_T.STRING, _T.IRI):
        _put_texts(result, at, kind, values)
    elif kind is _T.DOUBLE:
        result.put(at, Kind.DOUBLE, dbl=values.to_numpy() + 0.0)
    else:
        scale = np.zeros(len(at), np.uint8)
        result.put(at, KINDS[kind], man=values.cast(pl.Int64).to_numpy(), scale=scale)
    return result.column()


def argument(column: Column, kind: ValueType, n: int) -> tuple[pl.Series, Bools]:
    """Returns a column as ``n`` values of a type, and the rows that have one."""
    series: pl.Series
    if kind in (_T.STRING, _T.IRI, _T.TERM):
        texts = column.texts()
        match kind:
            case _T.STRING:
                series = characters(texts)
            case _T.IRI:
                is_iri = texts.str.starts_with("<").fill_null(False)
                series = texts.set(~is_iri, None).str.slice(1).str.head(-1)
            case _:
                series = texts
        fits = series.is_not_null().to_numpy()
    else:
        kinds, dbl, man, _ = column.values()
        series = pl.Series(dbl if kind is _T.DOUBLE else man)
        if kind is _T.DOUBLE:
            fits = np.isin(kinds, (*NUMERIC, Kind.HARD_NUMBER))
        else:
            fits = kinds == KINDS[kind]
        series = series.cast(pl.Boolean) if kind is _T.BOOLEAN else series
    if column.n == n:
        return series, np.asarray(fits)
    return series.new_from_index(0, n), np.broadcast_to(fits, n)


def read_result(
    made: Declared, kind: ValueType, call: Callable[[], Any], size: int, what: str = "values"
) -> pl.Series:
    """Returns the result of a call as a series of a type. Raises ``UserFunctionError``."""
    value = run_user_code(made, call)

    def convert() -> pl.Series:
        if not isinstance(value, pl.Series | np.ndarray | list | tuple) and not hasattr(
            value, "__arrow_c_array__"
        ):
            raise TypeError(f"it returned a {type(value).__name__}, and not a series")
        series = pl.Series(value).rechunk()
        if series.dtype == pl.Null or series.dtype != _TYPES[kind]:
            numbers = series.dtype.is_numeric() and kind in (_T.INTEGER, _T.DOUBLE)
            if not numbers and series.dtype != pl.Null:
                raise TypeError(f"it returned {series.dtype}, and declares {kind.value}")
            series = series.cast(_TYPES[kind], strict=True)
        if len(series) != size:
            raise ValueError(f"it returned {len(series)} {what} for {size}")
        return series

    series: pl.Series = run_user_code(made, convert)
    return series


def read_frame(
    made: Declared,
    call: Callable[[], Any],
    by: tuple[str, int],
    columns: Mapping[str, ValueType],
    *,
    nullable: bool = True,
) -> pl.DataFrame:
    """Returns the result of a call as a frame of typed columns, and of numbers ``by``, a name and
    their end. Raises ``UserFunctionError``.
    """
    result, (name, n) = run_user_code(made, call), by

    def numbers() -> pl.Series:
        if not isinstance(result, pl.DataFrame):
            raise TypeError(f"it returned a {type(result).__name__}, and not a frame")
        if lacking := {name, *columns} - set(result.columns):
            raise ValueError(f"its frame lacks the column {', '.join(sorted(lacking))}")
        read = result[name].cast(pl.Int64)
        if read.null_count() or (len(read) and not read.is_between(0, n - 1).all()):
            raise ValueError(f"it returned a {name} that it did not receive")
        return read

    read = [run_user_code(made, numbers)]
    for column, kind in columns.items():
        series = read_result(made, kind, partial(result.get_column, column), result.height)
        if not nullable and series.null_count():
            raise UserFunctionError(f"The state {column} of <{made.iri}> has a null.")
        read.append(series.alias(column))
    return pl.DataFrame(read)


def run_user_code(made: Declared, call: Callable[[], Any]) -> Any:
    """Calls code of the user. Raises ``UserFunctionError``."""
    try:
        return call()
    except BaseException as error:
        is_panic = type(error).__name__ == "PanicException"  # of Polars
        is_failure = is_panic or isinstance(error, Exception | SystemExit)
        if isinstance(error, LevadaError) or not is_failure:
            raise
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame for frame in frames if _is_user(frame)]
        place = f"{lines[-1].filename}:{lines[-1].lineno}" if lines else ""
        text = " ".join(str(error).split())[:MAX_TEXT]
        where = f" at {place}" if place else ""
        raise UserFunctionError(
            f"The function <{made.iri}> ({made.place}) failed{where}: {type(error).__name__}: "
            f"{text}.",
            place=place,
        ) from error


def _is_user(frame: traceback.FrameSummary) -> bool:
    """Whether a line is neither of Levada nor of a library."""
    return not any(part in frame.filename for part in ("/levada/", "site-packages"))


def _put_texts(result: Result, rows: Longs, kind: ValueType, values: pl.Series) -> None:
    if kind is _T.IRI:
        good = ~values.str.contains(_NO_IRI) & values.str.contains("^[A-Za-z][A-Za-z0-9+.-]*:")
        values, rows = values.filter(good), rows[good.to_numpy()]
        texts = pl.select(pl.lit("<") + pl.lit(values) + pl.lit(">")).to_series()
    else:
        texts = pl.select(pl.lit('"') + pl.lit(values) + pl.lit('"')).to_series()
        special = values.str.contains(SPECIAL).arg_true()
        if len(special):
            written = [str(Literal(text)) for text in values.gather(special).to_list()]
            texts = texts.scatter(special, written)
    result.put_texts(rows, KINDS[kind], texts)

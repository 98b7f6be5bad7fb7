"""Makes typed Arrow tables of reports, with columns of one type for all reports of a query.

    report    timestamp   the report time; null for a query without windows
    sign      bigint      +1, or -1 for a row that leaves a relation
    number    bigint      the place of the row within its report, from 0
    NAME      by type     a variable (CONSTRUCT: subject, predicate, object; ASK: boolean)
    NAME_datatype string  on request: the datatype of the term

A variable with the name of one of the first three keeps its name. The other column is then called
``levada_report``, ``levada_sign`` or ``levada_number``. (query, report, number) is a key of a row:
the same reports give the same rows in the same order.

Types have Spark's names: bigint, double, decimal(P,S), boolean, date, timestamp, timestamp_ntz and
string. A string column has IRIs, lexical forms and ``_:label``. The datatype of a literal is its
IRI, ``@`` and the tag for text with a language, and ``@id`` for an IRI or a blank node. Every value
is that of its term, promoted to double as in SPARQL; a term that its column cannot represent raises
``UnfitValueError``, which names the column. Cost: a few vectorised passes over each column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal as Word

import numpy as np
import polars as pl
import pyarrow as pa

from levada.connectors.serialization.decode_terms import plain_values
from levada.connectors.serialization.serialize import Batch, Times, triples_of
from levada.connectors.serialization.typed_columns import Typed, infer_values
from levada.core.event_time import TIMELESS, instant
from levada.core.frozen import frozen
from levada.core.query_model import Form
from levada.core.rdf_terms import XSD
from levada.errors import SinkError, UsageError, near

KEY_COLUMNS = ("report", "sign", "number")
TYPES = (
    "bigint", "double", "decimal(P,S)", "boolean", "date", "timestamp", "timestamp_ntz", "string",
)  # fmt: skip
DATATYPE = "_datatype"
_DIGITS, _SCALE = 38, 18  # of a decimal column: Spark's own default
_COLUMN = re.compile(r"\s*\??(?:`((?:[^`]|``)+)`|([^\s`]+))(?:\s+(.+?))?\s*")
_DECIMAL = re.compile(r"decimal\s*\(\s*([0-9]+)\s*,\s*([0-9]+)\s*\)")
_PARTS = re.compile(r"(?:`(?:[^`]|``)*`|\([^)]*\)|[^,;])+")
_PLAIN = {"integer": "bigint", "float": "double", "double": "double", "boolean": "boolean",
          "date": "date"}  # fmt: skip


class UnfitValueError(SinkError):
    """A term that its column cannot represent. ``report``: the id of its report."""

    def __init__(self, column: Column, text: str, report: int) -> None:
        self.column, self.report = column, report
        at = "" if report == TIMELESS else f" of the report at {instant(report)}"
        super().__init__(
            f"The column {column.name} has the type {column.type}, which cannot represent "
            f"{text}{at}.",
            hint=f"Set another type: columns='{column.variable} string' represents all terms.",
        )


@frozen
class Column:
    """A column of a table. ``content`` is ``report``, ``sign``, ``number``, or ``value`` or
    ``datatype`` of a variable.
    """

    name: str
    content: Word["report", "sign", "number", "value", "datatype"]
    type: str
    variable: str = ""


def parse_columns(text: str) -> dict[str, str]:
    """Parses names of variables with optional types, separated by commas or semicolons; a missing
    type is "". Raises ``UsageError``.

    >>> parse_columns("room, ?t double; cost decimal(10,2)")
    {'room': '', 't': 'double', 'cost': 'decimal(10,2)'}
    """
    columns: dict[str, str] = {}
    for part in _PARTS.findall(text) or [""]:
        match = _COLUMN.fullmatch(part)
        if match is None:
            raise UsageError(
                f"columns: {part.strip() or 'An empty text'} is not a column.",
                hint="Write names with optional types: room, temp double.",
            )
        quoted, plain, type_ = match.groups()
        name = quoted.replace("``", "`") if quoted else plain
        if name in columns:
            raise UsageError(f"columns: {name} is named twice.")
        columns[name] = check_type(name, type_) if type_ else ""
    return columns


def check_type(name: str, text: str) -> str:
    """Returns a type in its usual spelling. Raises ``UsageError``.

    >>> check_type("x", "DECIMAL( 9, 2 )")
    'decimal(9,2)'
    """
    word = text.strip().lower()
    if word == "decimal":
        return f"decimal({_DIGITS},{_SCALE})"
    if match := _DECIMAL.fullmatch(word):
        digits, scale = map(int, match.groups())
        if 1 <= digits <= _DIGITS and scale <= digits:
            return f"decimal({digits},{scale})"
    if word not in TYPES or "(" in word:
        raise UsageError(
            f"The column {name} cannot have the type {text.strip()}.", hint=near(word, TYPES)
        )
    return word


def result_variables(form: Form, variables: Sequence[str]) -> tuple[str, ...]:
    """Returns the variables of the results of a query."""
    match form:
        case Form.ASK:
            return ("boolean",)
        case Form.CONSTRUCT:
            return ("subject", "predicate", "object")
        case Form.SELECT:
            return tuple(variables)


def choose_variables(query: str, names: Iterable[str], variables: Sequence[str]) -> tuple[str, ...]:
    """Returns the named variables, or all without names. Raises ``UsageError`` for an unknown
    one.
    """
    chosen = tuple(name for name in names if name in variables or name not in KEY_COLUMNS)
    for name in chosen:
        if name not in variables:
            raise UsageError(
                f"The query {query} has no variable {name}.", hint=near(name, variables)
            )
    return chosen or tuple(variables)


def columns_of(
    variables: Sequence[str], types: Mapping[str, str], *, datatypes: bool = False
) -> tuple[Column, ...]:
    """Returns the columns of a table of these variables. A variable without a type is a string.

    >>> [c.name for c in columns_of(["number"], {})]
    ['report', 'sign', 'levada_number', 'number']
    """
    names = [f"levada_{key}" if key in variables else key for key in KEY_COLUMNS]
    columns = [
        Column(names[0], "report", "timestamp"),
        Column(names[1], "sign", "bigint"),
        Column(names[2], "number", "bigint"),
    ]
    for name in variables:
        columns.append(Column(name, "value", types.get(name) or "string", name))
        if datatypes:
            columns.append(Column(name + DATATYPE, "datatype", "string", name))
    return tuple(columns)


def arrow_type(name: str) -> pa.DataType:
    """Returns the Arrow type of a type.

    >>> arrow_type("decimal(38,18)")
    Decimal128Type(decimal128(38, 18))
    """
    if match := _DECIMAL.fullmatch(name):
        return pa.decimal128(*map(int, match.groups()))
    return {
        "bigint": pa.int64(), "double": pa.float64(), "boolean": pa.bool_(), "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"),
        "string": pa.string(),
    }[name]  # fmt: skip


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """Returns the schema of a table."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])


def report_table(batch: Batch, columns: Sequence[Column]) -> pa.Table:
    """Returns the rows of a batch of whole reports. Raises ``UnfitValueError``.

    >>> texts = pl.Series(['"5"^^<http://www.w3.org/2001/XMLSchema#integer>', "<e:a>"])
    >>> batch = Batch(np.array([7, 7]), columns={"x": texts})
    >>> report_table(batch, columns_of(["x"], {}, datatypes=True)).select([2, 3, 4]).to_pylist()[1]
    {'number': 1, 'x': 'e:a', 'x_datatype': '@id'}
    """
    solutions = triples_of(batch) if batch.form is Form.CONSTRUCT else batch
    terms, report = _terms(solutions), solutions.report
    arrays = []
    for column in columns:
        match column.content:
            case "report":
                values = pl.Series(report).set(pl.Series(report == TIMELESS), None)
                values = values.cast(pl.Datetime("ms", "UTC")).cast(pl.Datetime("us", "UTC"))
            case "sign":
                signs = np.ones(len(report), np.int64) if batch.change is None else batch.change
                values = pl.Series(signs).cast(pl.Int64)
            case "number":
                values = pl.Series(numbers(report))
            case _:
                values = _values(column, terms, report)
        arrays.append(_arrow(column, values))
    return pa.Table.from_arrays(arrays, schema=arrow_schema(columns))


def result_terms(batch: Batch) -> pl.DataFrame:
    """Returns the variables of a batch as N-Triples texts (ASK: the column boolean)."""
    return _terms(triples_of(batch) if batch.form is Form.CONSTRUCT else batch)


def _terms(batch: Batch) -> pl.DataFrame:
    if batch.form is Form.ASK:
        return pl.DataFrame({"boolean": batch.booleans})
    return pl.DataFrame({name: column.cast(pl.String) for name, column in batch.columns.items()})


def term_table(terms: pl.DataFrame, columns: Sequence[Column]) -> pa.Table:
    """Returns a table of variables without the key of a report. Raises ``UnfitValueError``."""
    report = np.full(terms.height, TIMELESS)
    arrays = [_arrow(column, _values(column, terms, report)) for column in columns]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(columns))


def _values(column: Column, terms: pl.DataFrame, report: Times) -> pl.Series:
    texts = terms[column.variable]
    return datatypes_of(texts) if column.content == "datatype" else _fit(column, texts, report)


def _arrow(column: Column, values: pl.Series) -> pa.Array:
    return values.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(arrow_type(column.type))


def numbers(report: Times) -> Times:
    """Returns the place of each row within its report.

    >>> numbers(np.array([5, 5, 7])).tolist()
    [0, 1, 0]
    """
    n = len(report)
    starts = np.flatnonzero(np.diff(report, prepend=report[0] - 1 if n else 0) != 0)
    sizes = np.diff(starts, append=n)
    return np.arange(n, dtype=np.int64) - np.repeat(starts, sizes)


def datatypes_of(texts: pl.Series) -> pl.Series:
    """Returns the datatype of each term: an IRI, ``@LANGUAGE`` or ``@id``; null for null.

    >>> datatypes_of(pl.Series(['"a"@en', "<e:a>", None])).to_list()
    ['@en', '@id', None]
    """
    if texts.dtype == pl.Boolean:
        return texts.replace_strict([True, False], [f"{XSD}boolean"] * 2, default=None)
    text = pl.col("text")
    tail = text.str.extract(r'"([^"]*)$')
    datatype = tail.str.strip_prefix("^^<").str.strip_suffix(">")
    literal = (
        pl.when(tail == "").then(pl.lit(f"{XSD}string"))
        .when(tail.str.starts_with("@")).then(tail).otherwise(datatype)
    )  # fmt: skip
    resource = pl.when(text.is_not_null()).then(pl.lit("@id"))
    chosen = pl.when(text.str.starts_with('"')).then(literal).otherwise(resource)
    return texts.cast(pl.String).rename("text").to_frame().select(chosen).to_series()


def _fit(column: Column, texts: pl.Series, report: Times) -> pl.Series:
    """Converts terms to the type of their column. Raises ``UnfitValueError``."""
    values = convert(texts, column.type)
    if values is not None:
        return values
    low, high = 0, texts.len()  # the first ``low`` terms fit, the first ``high`` do not
    while high - low > 1:
        middle = (low + high) // 2
        fits = convert(texts.slice(0, middle), column.type) is not None
        low, high = (middle, high) if fits else (low, middle)
    raise UnfitValueError(column, str(texts[low]), int(report[low]))


def convert(texts: pl.Series, type_: str) -> pl.Series | None:
    """Converts terms to a type; None if one of them has no exact value of it.

    >>> convert(pl.Series(['"5"^^<http://www.w3.org/2001/XMLSchema#integer>']), "double").to_list()
    [5.0]
    """
    if texts.dtype == pl.Boolean:  # of ASK
        return texts if type_ == "boolean" else texts.cast(pl.String) if type_ == "string" else None
    if type_ == "string":
        return plain_values(texts)
    typed = infer_values(texts)
    if typed.kind == "none":
        return typed.values
    values = typed.values
    match type_:
        case "bigint":
            return values if typed.kind == "integer" and values.dtype == pl.Int64 else None
        case "double" if typed.kind in ("integer", "decimal", "float", "double"):
            return values.cast(pl.Float64)
        case "boolean" | "date":
            return values if typed.kind == type_ else None
        case "timestamp" if typed.kind == "dateTime":
            has_zone = values.dtype == pl.Datetime("us", "UTC")
            return values if has_zone else values.dt.replace_time_zone("UTC")
        case "timestamp_ntz":
            return values if values.dtype == pl.Datetime("us") else None
        case _ if type_.startswith("decimal") and typed.kind in ("integer", "decimal"):
            return _as_decimal(values, arrow_type(type_))
    return None


def _as_decimal(values: pl.Series, type_: pa.DataType) -> pl.Series | None:
    target = pl.Decimal(type_.precision, type_.scale)
    digits, scale = _digits_of(values)
    if digits > type_.precision - type_.scale or scale > type_.scale:
        return None
    return values.cast(target)


def _digits_of(values: pl.Series) -> tuple[int, int]:
    """Returns the greatest number of digits before the point, and the scale."""
    scale = values.dtype.scale if isinstance(values.dtype, pl.Decimal) else 0
    texts = values.cast(pl.String).str.extract(r"^-?0*([0-9]*)").str.len_bytes()
    return int(texts.drop_nulls().to_numpy().max(initial=0)), scale


def inferred_type(texts: pl.Series) -> str:
    """Returns the type of a column of terms; "" without a term.

    >>> inferred_type(pl.Series(['"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>']))
    'decimal(38,18)'
    """
    if texts.dtype == pl.Boolean:
        return "boolean"
    return _type_of(infer_values(texts))


def _type_of(typed: Typed) -> str:
    values = typed.values
    if typed.kind == "none":
        return ""
    if typed.kind == "dateTime":
        return "timestamp" if values.dtype == pl.Datetime("us", "UTC") else "timestamp_ntz"
    if isinstance(values.dtype, pl.Decimal):
        digits, scale = _digits_of(values)
        usual = typed.kind == "decimal" and digits <= _DIGITS - _SCALE and scale <= _SCALE
        return f"decimal({_DIGITS},{_SCALE if usual else scale})"
    return _PLAIN.get(typed.kind, "string")


def common_type(a: str, b: str) -> str:
    """Returns a type that represents all values of two inferred types.

    >>> common_type("bigint", "decimal(38,18)"), common_type("bigint", "date")
    ('decimal(38,18)', 'string')
    """
    if a == b or not b:
        return a
    if not a:
        return b
    pair = {a, b}
    decimals = [name for name in pair if name.startswith("decimal")]
    if pair <= {"bigint", "double", *decimals}:
        if "double" in pair:
            return "double"
        if len(decimals) == 1 and _DECIMAL.fullmatch(decimals[0])[2] in ("0", str(_SCALE)):  # type: ignore[index]
            return decimals[0]  # all bigints fit, too
    return "string"

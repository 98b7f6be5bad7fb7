"""Converts canonical N-Triples texts to typed values, with one type for each column.

    texts of a column                            values                        kind
    none                                         Null                          none
    IRIs and blank nodes                         String: the IRI, or _:label   resource
    plain strings                                String                        string
    strings of one language                      String, without the tag       language
    xsd:integer and the types derived from it    Int64; Decimal(38, 0)         integer
    .. and xsd:decimal                           Decimal(38, scale)            decimal
    xsd:float                                    Float32                       float
    numbers of several types, xsd:double         Float64                       double
    xsd:boolean                                  Boolean                       boolean
    xsd:dateTime, all with a zone                Datetime("us", "UTC")         dateTime
    xsd:dateTime, all without                    Datetime("us")                dateTime
    xsd:date without a zone                      Date                          date
    xsd:dayTimeDuration                          Duration("us")                dayTimeDuration
    any other one datatype                       String: lexical forms         lexical
    anything else                                String: N-Triples texts       term

Invariants: null (unbound) stays null, and every other value is exactly that of its text, except
that numbers of several types are promoted as in SPARQL. If one value does not fit (ill-typed, more
than 38 digits, finer than a microsecond, a year outside 1 to 9999, with a zone beside one without),
the column has lexical forms, or texts. Cost: a few vectorised passes over the column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from levada.connectors.serialization.decode_terms import plain_values
from levada.core.frozen import frozen
from levada.core.rdf_terms import XSD

_TAIL = r'"([^"]*)$'  # the text after the lexical form: nothing, @tag or ^^<datatype>
_RESOURCE = "<"
_INTEGER = r"^[+-]?[0-9]+$"
_DECIMAL = r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)$"
_DOUBLE = r"^(?:[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN)$"
_DATETIME = (
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2})T([01][0-9]|2[0-3]|24):([0-5][0-9]):([0-5][0-9])"
    r"(?:\.([0-9]{1,6})0*)?(Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])?$"
)
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_DURATION = (
    r"^(-?)P(?:([0-9]{1,7})D)?"
    r"(?:T(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9})(?:\.([0-9]{1,6})0*)?S)?)?$"
)
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # us: the years 1 to 9999
_DAY, _HOUR, _MINUTE, _SECOND = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000
_LIMITS: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-(2**7), 2**7 - 1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 2**8 - 1),
}
_NUMBERS = {*_LIMITS, "decimal", "float", "double"}


@frozen
class Typed:
    """A column's values; ``kind`` is a word of the module's table. ``said`` is the common datatype,
    or language, of the texts.
    """

    values: pl.Series
    kind: str
    said: str = ""


def infer_values(texts: pl.Series) -> Typed:
    """Returns the values of a column of canonical texts.

    >>> five = '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'
    >>> infer_values(pl.Series([five, None])).values.to_list()
    [5, None]
    >>> [infer_values(pl.Series(t)).kind for t in ([five, "<e:a>"], ["<e:a>", "_:b"], ['"x"@en'])]
    ['term', 'resource', 'language']
    """
    texts = texts.cast(pl.String)
    tails = _tails(texts)
    if not tails:
        return Typed(pl.Series(texts.name, [None] * texts.len(), pl.Null), "none")
    if tails == [_RESOURCE]:
        return Typed(_plain(texts), "resource")
    if len(tails) == 1:
        return _of_one(texts, tails[0])
    names = {_xsd(tail) for tail in tails}
    if names <= _NUMBERS and (promoted := _promote(texts, tails, names)) is not None:
        return promoted
    return Typed(texts, "term")


def typed_frame(texts: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, Typed]]:
    """Returns a frame with typed columns of texts and report times as instants, and the types of
    the columns.

    >>> typed_frame(pl.DataFrame({"report": [1000], "x": ['"a"']}))[0].dtypes
    [Datetime(time_unit='ms', time_zone='UTC'), String]
    """
    typed_columns = {
        name: infer_values(texts[name]) for name in texts.columns if texts[name].dtype == pl.String
    }
    columns = [
        typed_columns[column.name].values if column.name in typed_columns else _instant(column)
        for column in texts.get_columns()
    ]
    return pl.DataFrame(columns), typed_columns


def _instant(column: pl.Series) -> pl.Series:
    """Converts the times of reports, ms, to instants; returns other columns unchanged."""
    return column.cast(pl.Datetime("ms", "UTC")) if column.dtype == pl.Int64 else column


def _tails(texts: pl.Series) -> list[str]:
    """Returns the distinct texts after the lexical forms; ``<`` for IRIs and blank nodes."""
    first = texts.drop_nulls().head(1)
    if not len(first):
        return []
    some = _tail_of(first)[0]
    if (  # the fast path: one tail
        not texts.str.starts_with('"').any()
        if some == _RESOURCE
        else (texts.str.starts_with('"') & texts.str.ends_with(f'"{some}')).all()
    ):
        return [some]
    return [str(tail) for tail in _tail_of(texts).drop_nulls().unique().to_list()]


def _tail_of(texts: pl.Series) -> pl.Series:
    text = pl.col("text")
    tail = pl.when(text.str.starts_with('"')).then(text.str.extract(_TAIL))
    resource = pl.when(text.is_not_null()).then(pl.lit(_RESOURCE))
    return (
        texts.rename("text")
        .to_frame()
        .select(tail=pl.when(text.str.starts_with('"')).then(tail).otherwise(resource))["tail"]
    )


def _xsd(tail: str) -> str:
    """Returns the local name of a datatype of XML Schema."""
    prefix = f"^^<{XSD}"
    return tail[len(prefix) : -1] if tail.startswith(prefix) else ""


def _of_one(texts: pl.Series, tail: str) -> Typed:
    """Returns the values of a column of literals with one datatype or language."""
    if not tail:
        return Typed(_plain(texts), "string")
    if tail.startswith("@"):
        return Typed(_plain(texts), "language", tail[1:])
    said, name = tail[3:-1], _xsd(tail)
    lexical = _lexical(texts, tail)
    values = _READERS[name](lexical) if name in _READERS else None
    if name in _LIMITS:
        values = _integers(lexical, name)
    if values is None:
        return Typed(_plain(texts), "lexical", said)
    return Typed(values, "integer" if name in _LIMITS else name, said)


def _plain(texts: pl.Series) -> pl.Series:
    return plain_values(texts).alias(texts.name)


def _lexical(texts: pl.Series, tail: str) -> pl.Series:
    """Returns the lexical forms as written: a text of a type with a parser has no escapes."""
    return texts.str.strip_prefix('"').str.strip_suffix(f'"{tail}')


def _whole(values: pl.Series, lexical: pl.Series) -> pl.Series | None:
    """Returns the values if each text has one, else None."""
    return values.alias(lexical.name) if values.null_count() == lexical.null_count() else None


def _integers(lexical: pl.Series, name: str = "integer") -> pl.Series | None:
    if not lexical.str.contains(_INTEGER).all():
        return None
    values = _whole(lexical.cast(pl.Int64, strict=False), lexical)
    if values is None:
        values = _whole(lexical.cast(pl.Decimal(38, 0), strict=False), lexical)
    if values is None:
        return None
    low, high = _LIMITS[name]
    below = low is not None and (values < low).any()
    return None if below or (high is not None and (values > high).any()) else values


def _decimals(lexical: pl.Series) -> pl.Series | None:
    """Converts to the least scale that represents all values exactly, if 38 digits are enough."""
    if not lexical.str.contains(_DECIMAL).all():
        return None
    scale = _longest(lexical.str.extract(r"\.([0-9]*?)0*$"))
    if scale + _longest(lexical.str.extract(r"^[+-]?0*([0-9]*)")) > 38:
        return None
    # zeros at the end may exceed the greatest scale
    short = lexical.str.replace(r"(\.[0-9]*?)0+$", "$1").str.strip_suffix(".")
    return _whole(short.cast(pl.Decimal(38, scale), strict=False), lexical)


def _longest(texts: pl.Series) -> int:
    sizes = texts.str.len_bytes().drop_nulls().to_numpy()
    return int(sizes.max(initial=0))


def _doubles(lexical: pl.Series) -> pl.Series | None:
    if not lexical.str.contains(_DOUBLE).all():
        return None
    return _whole(lexical.str.strip_prefix("+").cast(pl.Float64, strict=False), lexical)


def _floats(lexical: pl.Series) -> pl.Series | None:
    if not lexical.str.contains(_DOUBLE).all():
        return None
    return _whole(lexical.str.strip_prefix("+").cast(pl.Float32, strict=False), lexical)


def _booleans(lexical: pl.Series) -> pl.Series | None:
    if not lexical.is_in(["true", "false", "1", "0"]).all():
        return None
    return lexical.is_in(["true", "1"]).alias(lexical.name)


def _instants(lexical: pl.Series) -> pl.Series | None:
    """Converts dates and times: all with a zone, or none."""
    if not lexical.str.contains(_DATETIME).all():
        return None
    parts = (
        lexical.str.extract_groups(_DATETIME).struct.rename_fields(list("dhmsfz")).struct.unnest()
    )
    z = pl.col("z")
    zoned = parts["z"].drop_nulls().len()
    if zoned not in (0, lexical.drop_nulls().len()):
        return None
    hours, minutes = (z.str.slice(at, 2).cast(pl.Int64, strict=False) for at in (1, 4))
    sign = pl.when(z.str.starts_with("-")).then(-1).otherwise(1)
    offset = (sign * (hours * _HOUR + minutes * _MINUTE)).fill_null(0)
    day = pl.col("d").str.to_date("%Y-%m-%d", strict=False).cast(pl.Int64)
    clock = pl.col("h").cast(pl.Int64) * _HOUR + pl.col("m").cast(pl.Int64) * _MINUTE
    clock = clock + pl.col("s").cast(pl.Int64) * _SECOND + _fraction("f")
    at = day * _DAY + clock - offset
    fits = (clock <= _DAY) & at.is_between(_FIRST, _LAST)
    values = parts.select(at=pl.when(fits).then(at))["at"]
    return _whole(values.cast(pl.Datetime("us", "UTC" if zoned else None)), lexical)


def _fraction(name: str) -> pl.Expr:
    """Returns digits after a point as microseconds."""
    return pl.col(name).str.pad_end(6, "0").cast(pl.Int64).fill_null(0)


def _dates(lexical: pl.Series) -> pl.Series | None:
    if not lexical.str.contains(_DATE).all() or lexical.str.starts_with("0000").any():
        return None
    return _whole(lexical.str.to_date("%Y-%m-%d", strict=False), lexical)


def _durations(lexical: pl.Series) -> pl.Series | None:
    if not (lexical.str.contains(_DURATION) & lexical.str.contains(r"[0-9][DHMS]$")).all():
        return None
    parts = (
        lexical.str.extract_groups(_DURATION).struct.rename_fields(list("-dhmsf")).struct.unnest()
    )
    units = zip("dhms", (_DAY, _HOUR, _MINUTE, _SECOND), strict=True)
    size = pl.sum_horizontal(
        pl.col(name).cast(pl.Int64).fill_null(0) * unit for name, unit in units
    )
    sign = pl.when(pl.col("-") == "-").then(-1).otherwise(1)
    there = pl.any_horizontal(pl.col(list("dhms")).is_not_null())
    whole = sign * (size + _fraction("f"))
    values = parts.select(d=pl.when(there).then(whole))["d"]
    return _whole(values.cast(pl.Duration("us")), lexical)


def _promote(texts: pl.Series, tails: Sequence[str], names: set[str]) -> Typed | None:
    """Converts numbers of several types to the widest of them; None if one is ill-typed."""
    lexical = {
        tail: _lexical(texts.filter(texts.str.ends_with(f'"{tail}')), tail) for tail in tails
    }
    read = {tail: _number(lexical[tail], _xsd(tail)) for tail in tails}
    if any(values is None for values in read.values()):
        return None
    parts = [values for values in read.values() if values is not None]
    if names <= {*_LIMITS}:
        kind = "integer"
        plain = all(values.dtype == pl.Int64 for values in parts)
        type_: pl.DataType = pl.Int64() if plain else pl.Decimal(38, 0)
    elif names <= {*_LIMITS, "decimal"}:
        # the least scale for all values
        numbers = _decimals(_without_tail(texts))
        return None if numbers is None else Typed(numbers, "decimal")
    else:
        kind, type_ = "double", pl.Float64()
    out = pl.Series(texts.name, [None] * texts.len(), type_)
    for tail, values in zip(tails, parts, strict=True):
        rows = texts.str.ends_with(f'"{tail}').fill_null(False).arg_true()
        out = out.scatter(rows, values.cast(type_))
    return Typed(out, kind)


def _without_tail(texts: pl.Series) -> pl.Series:
    return texts.str.extract(r'^"([^"]*)"')


def _number(lexical: pl.Series, name: str) -> pl.Series | None:
    return _integers(lexical, name) if name in _LIMITS else _READERS[name](lexical)


_READERS: dict[str, Callable[[pl.Series], pl.Series | None]] = {
    "decimal": _decimals,
    "float": _floats,
    "double": _doubles,
    "boolean": _booleans,
    "dateTime": _instants,
    "date": _dates,
    "dayTimeDuration": _durations,
}

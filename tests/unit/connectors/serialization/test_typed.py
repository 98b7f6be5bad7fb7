"""Typed columns say what their texts say."""

import math
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.connectors.serialization.typed_columns import infer_values, typed_frame
from levada.core.rdf_terms import XSD, Literal, parse_term


def lit(lexical: str, name: str) -> str:
    return str(Literal(lexical, XSD + name))


INTEGER_TYPES = {
    "integer": 10**30,
    "long": 2**63 - 1,
    "int": 2**31 - 1,
    "short": 2**15 - 1,
    "byte": 127,
}


def as_float(lexical: str) -> float:
    """The nearest xsd:float, by way of its bits."""
    value = float(lexical)
    if math.isfinite(value) and abs(value) > 3.4028235677973366e38:
        return math.copysign(math.inf, value)
    return float(struct.unpack("f", struct.pack("f", value))[0])


def as_instant(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


whole = st.integers(-(10**30), 10**30).map(str) | st.integers(-300, 300).map(lambda n: f"{n:+05d}")
point = st.decimals(-(10**15), 10**15, places=6, allow_nan=False).map(lambda d: format(d, "f"))
real = st.floats().map(lambda f: {"inf": "INF", "-inf": "-INF", "nan": "NaN"}.get(repr(f), repr(f)))
moment = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1))
offset = st.integers(-14 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m)))
zoned = st.builds(lambda t, z: t.replace(tzinfo=z).isoformat(), moment, offset)
span = st.timedeltas(timedelta(-9_000_000), timedelta(9_000_000))


SPANS: dict[str, timedelta] = {}
"""What was drawn, by its text."""


def iso(delta: timedelta) -> str:
    us = abs(delta) // timedelta(microseconds=1)
    days, rest = divmod(us, 86_400_000_000)
    seconds, us = divmod(rest, 1_000_000)
    sign = "-" if delta < timedelta() else ""
    clock = f"{seconds // 3600}H{seconds // 60 % 60}M{seconds % 60}.{us:06d}S"
    text = f"{sign}P{days}DT{clock}"
    SPANS[text] = delta
    return text


READ: dict[str, tuple[st.SearchStrategy[str], Callable[[str], Any]]] = {
    "integer": (whole, int),
    "decimal": (point | whole.filter(lambda t: len(t) < 20), Decimal),
    "double": (real, float),
    "float": (real, as_float),
    "boolean": (st.sampled_from(["true", "false", "1", "0"]), lambda t: t in ("true", "1")),
    "dateTime": (zoned, as_instant),
    "date": (st.dates().map(date.isoformat), date.fromisoformat),
    "dayTimeDuration": (span.map(iso), lambda t: SPANS[t]),
}


def equal(a: Any, b: Any) -> bool:
    return bool(a == b) or (isinstance(a, float) and isinstance(b, float) and a != a and b != b)


@pytest.mark.long
@pytest.mark.parametrize("name", READ)
@given(data=st.data())
def test_a_column_of_one_datatype_has_the_values_of_its_texts(
    name: str, data: st.DataObject
) -> None:
    texts, read = READ[name]
    forms = data.draw(st.lists(texts | st.none(), min_size=1, max_size=20))
    found = infer_values(
        pl.Series("x", [None if t is None else lit(t, name) for t in forms], pl.String)
    )
    values = found.values.to_list()
    assert found.kind == (name if any(t is not None for t in forms) else "none")
    assert found.values.name == "x"
    assert all(
        v is None if t is None else equal(v, read(t)) for t, v in zip(forms, values, strict=True)
    ), (forms, values)


numbers = st.one_of(
    *(
        st.tuples(READ[name][0], st.just(name))
        for name in ("integer", "decimal", "double", "float")
    ),
    st.tuples(st.integers(-128, 127).map(str), st.sampled_from(["byte", "short", "int", "long"])),
)


@given(st.lists(numbers, min_size=2, max_size=8))
def test_numbers_of_several_types_are_the_widest(given_: list[tuple[str, str]]) -> None:
    found = infer_values(pl.Series([lit(text, name) for text, name in given_]))
    names = {name for _, name in given_}
    for (text, name), value in zip(given_, found.values.to_list(), strict=True):
        if found.kind == "term":
            assert parse_term(value).lexical == text
        elif found.kind in ("integer", "decimal"):
            assert value == Decimal(text)
        elif names == {"float"} or found.kind == "double":
            expected = as_float(text) if name == "float" else float(text)
            assert equal(value, expected)


text_of_any = st.text(st.characters(exclude_categories=["Cs"]))
term = st.one_of(
    st.sampled_from(["<http://e/a>", "_:b1", '<http://e/"odd">']),
    text_of_any.map(lambda t: str(Literal(t))),
    st.builds(
        lambda t, g: str(Literal(t, language=g)), text_of_any, st.sampled_from(["en", "de-at"])
    ),
    st.builds(
        lit, text_of_any | whole, st.sampled_from(["integer", "dateTime", "gYear", "boolean"])
    ),
    st.builds(lambda t: str(Literal(t, "http://e/own")), text_of_any),
)


@given(st.lists(term | st.none(), max_size=6))
def test_a_column_of_anything_loses_nothing_but_what_its_kind_says(texts: list[str | None]) -> None:
    found = infer_values(pl.Series("x", texts, pl.String))
    for text, value in zip(texts, found.values.to_list(), strict=True):
        if text is None:
            assert value is None
            continue
        back = parse_term(text)
        match found.kind:
            case "term":
                assert value == text
            case "resource":
                assert str(back) == (value if value.startswith("_:") else f"<{value}>")
            case "string":
                assert str(Literal(value)) == text
            case "language":
                assert str(Literal(value, language=found.said)) == text
            case "lexical":
                assert str(Literal(value, found.said)) == text
            case _:
                assert isinstance(back, Literal)
                assert found.said == back.datatype or found.kind in ("integer", "decimal", "double")


ODD = {
    "ill-typed": (["5", "x"], "integer", "lexical"),
    "blanks": ([" 5"], "integer", "lexical"),
    "39 digits": (["1" * 39], "integer", "lexical"),
    "a byte that is none": (["128"], "byte", "lexical"),
    "a negative unsigned": (["-1"], "unsignedInt", "lexical"),
    "18446744073709551615": ([str(2**64 - 1)], "unsignedLong", "integer"),
    "39 digits in all": (["1" * 20, "0." + "1" * 20], "decimal", "lexical"),
    "38 digits in all": (["1" * 18, "0." + "1" * 20], "decimal", "decimal"),
    "infinity": (["infinity"], "double", "lexical"),
    "+INF": (["+INF", "-INF", "NaN", "1e-400", "1e400"], "double", "double"),
    "with and without zone": (
        ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00"],
        "dateTime",
        "lexical",
    ),
    "no such day": (["2023-02-30T00:00:00Z"], "dateTime", "lexical"),
    "before the year 1": (["0001-01-01T00:00:00+01:00"], "dateTime", "lexical"),
    "nanoseconds": (["2024-01-01T00:00:00.123456789Z"], "dateTime", "lexical"),
    "zeros": (["2024-01-01T00:00:00.123456000Z"], "dateTime", "dateTime"),
    "a date with a zone": (["2024-01-01Z"], "date", "lexical"),
    "year 0": (["0000-01-01"], "date", "lexical"),
    "P": (["P", "PT"], "dayTimeDuration", "lexical"),
    "P1DT": (["P1DT"], "dayTimeDuration", "lexical"),
    "gYear": (["2024"], "gYear", "lexical"),
}


@pytest.mark.parametrize("case", ODD)
def test_what_does_not_fit_is_text(case: str) -> None:
    forms, name, kind = ODD[case]
    found = infer_values(pl.Series([lit(t, name) for t in forms]))
    assert found.kind == kind
    if kind == "lexical":
        assert found.values.to_list() == forms


def test_the_end_of_a_day_is_the_next_one() -> None:
    found = infer_values(
        pl.Series(
            [
                lit("1969-12-31T24:00:00Z", "dateTime"),
                lit("1969-12-31T23:59:59.5-01:00", "dateTime"),
            ]
        )
    )
    assert found.values.to_list() == [
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1970, 1, 1, 0, 59, 59, 500000, tzinfo=UTC),
    ]
    assert infer_values(pl.Series([lit("2024-01-01T24:00:01Z", "dateTime")])).kind == "lexical"


def test_types_of_a_frame() -> None:
    frame, _ = typed_frame(
        pl.DataFrame(
            {
                "report": [-1],
                "change": pl.Series([1], dtype=pl.Int8),
                "n": [lit("1", "int")],
                "d": [lit("1.50", "decimal")],
                "z": [lit("2024-01-01T00:00:00", "dateTime")],
            }
        )
    )
    assert frame.schema == {
        "report": pl.Datetime("ms", "UTC"),
        "change": pl.Int8,
        "n": pl.Int64,
        "d": pl.Decimal(38, 1),
        "z": pl.Datetime("us"),
    }

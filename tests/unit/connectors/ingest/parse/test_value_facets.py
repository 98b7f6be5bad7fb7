"""Values of literals: the arbitrary-precision twin by hand-made cases, and the kernel
against it.
"""

import datetime as dt
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from levada.connectors.ingest.parse.literal_values import (
    event_time,
    facets_of,
    instant_of,
    nearest_float,
)
from levada.connectors.ingest.parse.ntriples import parse
from levada.core.rdf_terms import XSD, Kind

INTEGERS = (
    "integer",
    "long",
    "int",
    "short",
    "byte",
    "nonNegativeInteger",
    "positiveInteger",
    "nonPositiveInteger",
)
INTEGERS += ("negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte")  # type: ignore[assignment]
TYPES = (
    *INTEGERS,
    "decimal",
    "double",
    "float",
    "boolean",
    "dateTime",
    "string",
    "date",
    "integers",
    "in",
)


@pytest.mark.parametrize(
    ("lexical", "name", "expected"),
    [
        ("5", "integer", (Kind.INTEGER, 5.0, 5, 0)),
        ("-007", "long", (Kind.INTEGER, -7.0, -7, 0)),
        ("+999999999999999999", "integer", (Kind.INTEGER, 1e18, 999999999999999999, 0)),
        ("1000000000000000000", "integer", (Kind.HARD_NUMBER, 1e18, 0, 0)),
        ("9223372036854775808", "long", (Kind.OTHER, 0.0, 0, 0)),
        ("18446744073709551615", "unsignedLong", (Kind.HARD_NUMBER, 2.0**64, 0, 0)),
        ("18446744073709551616", "unsignedLong", (Kind.OTHER, 0.0, 0, 0)),
        ("128", "byte", (Kind.OTHER, 0.0, 0, 0)),
        ("-128", "byte", (Kind.INTEGER, -128.0, -128, 0)),
        ("0", "positiveInteger", (Kind.OTHER, 0.0, 0, 0)),
        ("-0", "nonNegativeInteger", (Kind.INTEGER, 0.0, 0, 0)),
        ("0", "negativeInteger", (Kind.OTHER, 0.0, 0, 0)),
        ("1.0", "integer", (Kind.OTHER, 0.0, 0, 0)),
        (" 1", "integer", (Kind.OTHER, 0.0, 0, 0)),
        ("١", "integer", (Kind.OTHER, 0.0, 0, 0)),
        ("", "integer", (Kind.OTHER, 0.0, 0, 0)),
        ("1.50", "decimal", (Kind.DECIMAL, 1.5, 150, 2)),
        ("-.5", "decimal", (Kind.DECIMAL, -0.5, -5, 1)),
        ("5.", "decimal", (Kind.DECIMAL, 5.0, 5, 0)),
        ("0.9007199254740993", "decimal", (Kind.DECIMAL, 0.9007199254740993, 9007199254740993, 16)),
        ("0.0000000000000000001", "decimal", (Kind.HARD_NUMBER, 1e-19, 0, 0)),
        (".", "decimal", (Kind.OTHER, 0.0, 0, 0)),
        ("1e5", "decimal", (Kind.OTHER, 0.0, 0, 0)),
        ("1e5", "double", (Kind.DOUBLE, 1e5, 0, 0)),
        ("1E400", "double", (Kind.DOUBLE, math.inf, 0, 0)),
        ("-INF", "double", (Kind.DOUBLE, -math.inf, 0, 0)),
        ("+INF", "float", (Kind.FLOAT, math.inf, 0, 0)),
        ("inf", "double", (Kind.OTHER, 0.0, 0, 0)),
        ("1e", "double", (Kind.OTHER, 0.0, 0, 0)),
        ("0.1", "float", (Kind.FLOAT, float(np.float32(0.1)), 0, 0)),
        ("true", "boolean", (Kind.BOOLEAN, 0.0, 1, 0)),
        ("0", "boolean", (Kind.BOOLEAN, 0.0, 0, 0)),
        ("TRUE", "boolean", (Kind.OTHER, 0.0, 0, 0)),
        ("1970-01-02T00:00:00Z", "dateTime", (Kind.DATETIME, 0.0, 86_400_000, 0)),
        ("1970-01-01T24:00:00Z", "dateTime", (Kind.DATETIME, 0.0, 86_400_000, 0)),
        ("1970-01-01T00:00:00.0010-00:01", "dateTime", (Kind.DATETIME, 0.0, 60_001, 0)),
        ("1970-01-01T00:00:00.0001Z", "dateTime", (Kind.HARD_TIME, 0.0, 0, 0)),
        ("1970-01-01T00:00:00", "dateTime", (Kind.HARD_TIME, 0.0, 0, 0)),
        ("10000-01-01T00:00:00Z", "dateTime", (Kind.HARD_TIME, 0.0, 0, 0)),
        ("99999999999999999-02-29T00:00:00Z", "dateTime", (Kind.OTHER, 0.0, 0, 0)),
        ("1970-02-29T00:00:00Z", "dateTime", (Kind.OTHER, 0.0, 0, 0)),
        ("1970-01-01T00:00:00+14:01", "dateTime", (Kind.OTHER, 0.0, 0, 0)),
        ("1970-01-01", "date", (Kind.OTHER, 0.0, 0, 0)),
        ("x", "string", (Kind.STRING, 0.0, 0, 0)),
        ("9" * 1000, "integer", (Kind.HARD_NUMBER, math.inf, 0, 0)),
        ("9" * 1001, "integer", (Kind.OTHER, 0.0, 0, 0)),
        ("0" * 1001, "byte", (Kind.OTHER, 0.0, 0, 0)),
        ("1." + "0" * 1000, "decimal", (Kind.OTHER, 0.0, 0, 0)),
        ("0" * 1001, "double", (Kind.OTHER, 0.0, 0, 0)),
        ("x" * 1001, "string", (Kind.STRING, 0.0, 0, 0)),
    ],
)
def test_by_hand(lexical: str, name: str, expected: tuple[Kind, float, int, int]) -> None:
    assert tuple(facets_of(lexical, XSD + name)) == expected
    assert kernel(lexical, name) == printed(expected)


def printed(facets: Any) -> tuple[str, ...]:
    """Comparable: signs of zero and NaN show."""
    kind, dbl, man, scale = facets
    return str(int(kind)), repr(float(dbl)), str(int(man)), str(int(scale))


def kernel(lexical: str, name: str) -> tuple[str, ...]:
    line = f'<a:s> <a:p> "{lexical}"^^<{XSD}{name}> .'
    o = parse(line.encode(), quads=False, timed=False, seed=1, document=1).o
    assert o.dbl is not None and o.man is not None and o.scale is not None
    return printed((o.kind[0], o.dbl[0], o.man[0], o.scale[0]))


DIGITS = st.text("0123456789", max_size=22)
SIGN = st.sampled_from(["", "", "+", "-"])
NUMBERS = st.builds(
    lambda sign, whole, point, part, e, exponent: (
        sign + whole + point + (part if point else "") + (e + exponent if e else "")
    ),
    SIGN, DIGITS, st.sampled_from(["", "."]), DIGITS, st.sampled_from(["", "", "e", "E"]),
    st.integers(-400, 400).map(str) | DIGITS,
)  # fmt: skip
TIMES = st.builds(
    lambda y, mo, d, h, mi, s, part, zone: f"{y}-{mo:02}-{d:02}T{h:02}:{mi:02}:{s:02}{part}{zone}",
    st.integers(0, 10_100).map("{:04}".format) | st.sampled_from(["-0001", "123456", "00012"]),
    st.integers(0, 13), st.integers(0, 32), st.integers(0, 25), st.integers(0, 60),
    st.integers(0, 60),
    st.sampled_from(["", "", ".", ".5", ".123", ".1234", ".1230"]),
    st.sampled_from(["", "Z", "z", "+01:00", "-14:00", "+14:01", "+1:00"]),
)  # fmt: skip
WORDS = st.sampled_from(
    [
        "true",
        "false",
        "1",
        "0",
        "INF",
        "-INF",
        "+INF",
        "NaN",
        "nan",
        "",
        "+",
        ".",
        "e1",
        "tru",
        "falsey",
    ]
)


@settings(deadline=None)
@given(
    NUMBERS | TIMES | WORDS | st.floats().map(repr) | st.integers().map(str), st.sampled_from(TYPES)
)
@example("9007199254740993", "double")
@example("16777217", "float")
@example("16777217.00000000000001", "float")
@example("1.401298464324817e-45", "float")
@example("-0.0", "float")
def test_the_kernel_equals_its_twin(lexical: str, name: str) -> None:
    assert kernel(lexical, name) == printed(facets_of(lexical, XSD + name))


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_are_read_back(value: float) -> None:
    assert kernel(repr(value), "double")[1] == repr(value)


def nearest_by_search(exact: Fraction) -> float:
    """The nearest float to a fraction by comparing the neighbours of a first guess."""
    guess = np.float32(float(exact))
    around = [
        np.nextafter(guess, np.float32(-np.inf)),
        guess,
        np.nextafter(guess, np.float32(np.inf)),
    ]
    best = min(around, key=lambda f: (abs(Fraction(float(f)) - exact), int(f.view(np.uint32)) & 1))
    return float(best)


@settings(deadline=None)
@given(st.floats(-(2.0**99), 2.0**99, width=32), st.integers(-3, 3), st.integers(0, 40))
def test_floats_near_a_tie_are_rounded_once(value: float, step: int, digits: int) -> None:
    after = float(np.nextafter(np.float32(value), np.float32(np.inf)))
    middle = (Fraction(value) + Fraction(after)) / 2 + Fraction(step, 10**digits)
    scaled = round(middle * 10**60)
    text = f"{'-' if scaled < 0 else ''}{abs(scaled) // 10**60}.{abs(scaled) % 10**60:060}"
    assert nearest_float(text) == nearest_by_search(Fraction(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3.4028235677973366e38", 3.4028234663852886e38),
        ("340282356779733661637539395458142568448", math.inf),
        ("340282356779733661637539395458142568447.999", 3.4028234663852886e38),
        ("-340282356779733661637539395458142568447.999", -3.4028234663852886e38),
        ("1e-46", 0.0),
        ("1e-400", 0.0),
    ],
)
def test_floats_at_the_ends(text: str, expected: float) -> None:
    assert nearest_float(text) == expected


@settings(deadline=None)
@given(
    st.datetimes(min_value=dt.datetime(1, 1, 2), max_value=dt.datetime(9999, 12, 30)),
    st.integers(-840, 840),
)
def test_instants_equal_the_standard_library(when: dt.datetime, east: int) -> None:
    zoned = when.replace(tzinfo=dt.timezone(dt.timedelta(minutes=east)))
    text = zoned.isoformat(timespec="microseconds")
    expected = (zoned - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)
    instant = instant_of(text)
    assert (
        instant is not None
        and instant.ms == expected
        and instant.exact == (when.microsecond % 1000 == 0)
    )
    line = f'<a:s> <a:p> <a:o> "{text}"^^<{XSD}dateTime> .'
    assert parse(line.encode(), quads=False, timed=True, seed=1, document=1).time.tolist() == [
        expected
    ]


@pytest.mark.parametrize(
    ("lexical", "name", "power", "expected"),
    [
        ("17", "integer", 3, 17_000),
        ("17", "string", 0, 17),
        ("17.0129", "decimal", 3, 17_012),
        ("1.7e1", "decimal", 3, None),
        ("-1.7E-3", "double", 3, -2),
        ("300", "byte", 0, None),
        ("4611686018427387904", "integer", 0, None),
        ("999999999999999999", "integer", 3, None),
        ("2013-01-01T05:00:00", "dateTime", 3, 1_357_016_400_000),
        ("2013-01-01 05:00:00", "dateTimeStamp", 3, 1_357_016_400_000),
        ("2013-01-01", "date", 3, 1_356_998_400_000),
        ("2013-01-01", "dateTime", 3, None),
        ("2013", "gYear", 3, 1_356_998_400_000),
        ("2013", "string", 3, 2_013_000),
        ("146144000-01-01T00:00:00Z", "dateTime", 0, None),
        ("-0001-03-01T00:00:00Z", "dateTime", 0, -((719528 - 60 + 366) * 86_400_000)),
        ("soon", "dateTime", 0, None),
        ("true", "boolean", 0, None),
    ],
)
def test_event_times(lexical: str, name: str, power: int, expected: int | None) -> None:
    assert event_time(lexical, XSD + name, power) == expected

"""Event times out of text equal datetime's and a regular expression's."""

import datetime
import re
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.connectors.ingest.parse.literal_values import event_time
from levada.core.event_time import MAX, MIN, parse_time
from levada.core.rdf_terms import XSD, Literal
from levada.errors import UsageError
from levada.kernels.text.byte_ops import PAD
from levada.kernels.text.literals import DATATYPES
from levada.kernels.text.timestamps import instants, last_instants, literal_instants


def run(kernel: Any, texts: Any, power: int = 0) -> Any:
    data = [t.encode() for t in texts]
    length = np.array([len(t) for t in data], np.int64)
    return kernel(
        np.frombuffer(b"".join(data) or b" ", np.uint8), np.cumsum(length) - length, length, power
    ).tolist()


@given(
    st.lists(
        st.datetimes(
            timezones=st.sampled_from(
                [None, datetime.UTC, datetime.timezone(datetime.timedelta(hours=-5, minutes=-30))]
            )
        )
    )
)
def test_dates_equal_datetime(moments: Any) -> None:
    texts = [m.isoformat().replace("+00:00", "Z") for m in moments]
    assert run(instants, texts) == [parse_time(t) for t in texts]


@given(st.lists(st.integers(-(10**15), 10**15)), st.sampled_from([3, 0, -3, -6]))
def test_integers(values: Any, power: int) -> None:
    expected = [floor(v * Fraction(10) ** power) for v in values]
    assert run(instants, [str(v) for v in values], power) == expected


@given(
    st.lists(st.decimals(-(10**12), 10**12, allow_nan=False, places=11)),
    st.sampled_from([3, 0, -3, -6]),
)
def test_decimals_are_cut_from_their_digits(values: list[Decimal], power: int) -> None:
    expected = [floor(Fraction(v) * Fraction(10) ** power) for v in values]
    assert run(instants, [f"{v:f}" for v in values], power) == expected
    assert run(instants, [f"{v:.25E}" for v in values], power) == expected


@given(
    st.from_regex(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][01][0-9]:[0-9]{2})?",
        fullmatch=True,
    )
)
def test_impossible_dates_are_no_times(text: Any) -> None:
    text = re.sub("[^ -~]", "0", text)
    try:
        expected = parse_time(text)
    except UsageError:
        expected = MIN
    if (
        "T24:00:00" not in text
        and not text.startswith("0000")
        and "+14" not in text
        and "-14" not in text
    ):
        found = run(instants, [text])[0]
        hours = re.search(r"[+-](\d\d):(\d\d)$", text)
        if hours and (int(hours[1]) > 14 or int(hours[2]) > 59):
            expected = MIN
        assert found == expected


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ('"1970-01-01T00:00:01Z"', MIN),
        ("1970-01-01T24:00:00.0009", MIN),
        ("2024-03", 1_709_251_200_000),
        ("2024-03-01+01:00", 1_709_247_600_000),
        ("2024-03-05:00", 1_709_269_200_000),
        ("2024", 2024),
        ("-0044-03-15", -63_549_360_000_000),
        ("5.", 5),
        (".5", 0),
        ("-.5", -1),
        (".", MIN),
        ("1e3", 1000),
        ("1E-99999999999999999999", 0),
        ("-1E-99999999999999999999", -1),
        ("1E99999999999999999999", MIN),
        ("0E99999999999999999999", 0),
        ("1e", MIN),
        ("INF", MIN),
        ("9" * 2000, MIN),
        ("1970-01-01T24:00:00", 86_400_000),
        ("2013-02-29T00:00:00Z", MIN),
        ("2000-02-29T00:00:00Z", 951_782_400_000),
        ("1970-01-01T00:00:00.0009Z", 0),
        ("1969-12-31T23:59:59.9999Z", -1),
        ("1970-01-01T00:00:00+15:00", MIN),
        ("1970-01-01T00:00", MIN),
        ("0000000000000000000000000000007", 7),
        ("1234567890123456789", 1234567890123456789),
        ("+7", 7),
        ("-", MIN),
        ("", MIN),
        (" 7 ", 7),
        ("0x7", MIN),
    ],
)
def test_whole_texts(text: str, ms: Any) -> None:
    assert run(instants, [text]) == [ms]


def test_seconds_that_overflow_are_no_time() -> None:
    assert run(instants, ["999999999999999999", "1"], 3) == [MIN, 1000]


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("<http://e/2013/g-1092880800000>", 1_092_880_800_000),
        ("<http://e/1970-01-01T00:00:05Z/obs>", 5000),
        ("<http://e/1970-01-01T00:00:05.250+00:00#3>", 3),
        ("<http://e/7/1970-01-01T00:00:05>", 5000),
        ("<http://e/7/1970-13-01T00:00:05>", MIN),
        ("<http://e/obs>", MIN),
        ("<http://e/5/12345678901234567890>", MIN),
        ("<http://e/5/2024-03-01/obs>", 1_709_251_200_000),
        ("<http://e/5/room-1234-56-78>", 78),
        ("<http://e/5/1000.75>", 1000),
        ("<http://e/1.2.7>", 7),
        ("<http://e/7e2f>", 2),
    ],
)
def test_the_last_time_in_a_text(text: str, ms: Any) -> None:
    assert run(last_instants, [text]) == [ms]


@given(st.lists(st.text(st.sampled_from("a/-12345"), max_size=20)))
def test_last_integers_equal_a_regular_expression(texts: Any) -> None:
    texts = [t for t in texts if not re.search(r"\d{4}-\d\d-\d\d", t)]
    found = [int(re.findall(r"\d+", t)[-1]) if re.search(r"\d", t) else None for t in texts]
    expected = [MIN if v is None or v * 1000 >= MAX else v * 1000 for v in found]
    assert run(last_instants, texts, 3) == expected


def test_literals_equal_their_twin() -> None:
    texts = ["17", "-1.5", "1.5e3", "300", "2024", "2024-03", "2024-03-01Z", "2024-03-01", "soon"]
    texts += ["2024-03-01T00:00:00", "2024-03-01 00:00:00.5+02:00", " 5 ", "00:00:00Z", "--03", ""]
    types = [name for name, *_ in DATATYPES] + ["gMonth", "time", "duration", "other"]
    for name in types:
        literals = [Literal(text, XSD + name) for text in texts]
        expected = [event_time(text, XSD + name, 3) for text in texts]
        found = run(literal_instants, [str(literal) for literal in literals] + ["\n" * PAD], 3)
        assert found[:-1] == [MIN if ms is None else ms for ms in expected], name
    terms = ['"5"@en', "<http://e/5>", "_:b5", '"5"^^<http://e/integer>', "\n" * PAD]
    assert set(run(literal_instants, terms)) == {MIN}

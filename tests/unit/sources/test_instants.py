"""Event times out of text equal datetime's and a regular expression's."""

import datetime
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.errors import UsageError
from levada.kernels.text.instants import instants, last_instants
from levada.model.durations import parse_time
from levada.model.time import MAX, MIN


def run(kernel: Any, texts: Any, unit: int = 1) -> Any:
    data = [t.encode() for t in texts]
    length = np.array([len(t) for t in data], np.int64)
    return kernel(
        np.frombuffer(b"".join(data) or b" ", np.uint8), np.cumsum(length) - length, length, unit
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


@given(st.lists(st.integers(-(10**17), 10**17)), st.sampled_from([1, 10]))
def test_integers(values: Any, unit: Any) -> None:
    assert run(instants, [str(v) for v in values], unit) == [v * unit for v in values]


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
        ('"12"^^<http://www.w3.org/2001/XMLSchema#integer>', 12),
        ('"1970-01-01T00:00:01Z"', 1000),
        ("1970-01-01T24:00:00", 86_400_000),
        ("2013-02-29T00:00:00Z", MIN),
        ("2000-02-29T00:00:00Z", 951_782_400_000),
        ("1970-01-01T00:00:00.0009Z", 0),
        ("1969-12-31T23:59:59.9999Z", -1),
        ("1970-01-01T00:00:00+15:00", MIN),
        ("1970-01-01T00:00", MIN),
        ("0000000000000000000000000000007", 7),
        ("1234567890123456789", MIN),
        ("+7", 7),
        ("-", MIN),
        ("", MIN),
        ("7 ", MIN),
        ("0x7", MIN),
    ],
)
def test_whole_texts(text: str, ms: Any) -> None:
    assert run(instants, [text]) == [ms]


def test_seconds_that_overflow_are_no_time() -> None:
    assert run(instants, ["999999999999999999", "1"], 1000) == [MIN, 1000]


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
    ],
)
def test_the_last_time_in_a_text(text: str, ms: Any) -> None:
    assert run(last_instants, [text]) == [ms]


@given(st.lists(st.text(st.sampled_from("a/-12345"), max_size=20)))
def test_last_integers_equal_a_regular_expression(texts: Any) -> None:
    found = [int(re.findall(r"\d+", t)[-1]) if re.search(r"\d", t) else None for t in texts]
    expected = [MIN if v is None or v >= MAX // 1000 else v * 1000 for v in found]
    assert run(last_instants, texts, 1000) == expected

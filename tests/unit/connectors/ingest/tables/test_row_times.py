"""Times as people write them: by column, with formats and zones; and units that are not right."""

import datetime
import zoneinfo
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.lateness import likely_unit
from levada.connectors.ingest.tables.row_event_times import field_times, seeming_unit
from levada.core.event_time import MIN
from levada.errors import UsageError

NOON = 1_709_294_488_000  # 2024-03-01T12:01:28Z


def stream(**options: Any) -> StreamConfig:
    return StreamConfig.from_options("s", "a.csv", schema="k:integer", **options)


def times(values: Any, **options: Any) -> list[int | None]:
    found = field_times(pl.Series(values), stream(**options)).tolist()
    return [None if ts == MIN else ts for ts in found]


@pytest.mark.parametrize(
    ("text", "ts"),
    [
        ("2024-03-01 12:01:28", NOON),
        ("2024-03-01T12:01:28", NOON),
        (" 2024-03-01 12:01:28.123456 ", NOON + 123),
        ("2024-03-01 12:01:28.5+00:00", NOON + 500),
        ("2024-03-01 12:01:28+01:00", NOON - 3_600_000),
        ("2024-03-01 12:01:28Z", NOON),
        ("2024-03-01", NOON - 43_288_000),
        ("2024-02-30", None),
        ("2024-02-30 00:00:00", None),
        ("2024-03-01 12:01", None),
        ("2024-03-01  12:01:28", None),
        ("1709294488000", NOON),
        ("", None),
    ],
)
def test_what_programs_write(text: str, ts: int | None) -> None:
    assert times([text]) == [ts]


@pytest.mark.parametrize(
    ("form", "text", "ts"),
    [
        ("%d.%m.%Y %H:%M:%S", "01.03.2024 12:01:28", NOON),
        ("%m/%d/%y %I:%M:%S %p", "03/01/24 12:01:28 PM", NOON),
        ("%d %b %Y %H:%M:%S.%f", "01 Mar 2024 12:01:28.5", NOON + 500),
        ("%Y%m%d%H%M%S", 20240301120128, NOON),
        ("%Y-%m-%d %H:%M:%S%z", "2024-03-01 13:01:28+0100", NOON),
        ("%Y-%m-%d", "2024-03-01", NOON - 43_288_000),
        ("%Y-%m-%d", "01.03.2024", None),
        ("%Y-%m-%d", None, None),
    ],
)
def test_a_format(form: str, text: Any, ts: int | None) -> None:
    assert times([text], time_format=form) == [ts]


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("time_format", "%Y-%m-%d %H", "no hour, no minute"),
        ("time_format", "%Y-%j", "has %j"),
        ("time_format", "%d.%m.", "no year"),
        ("time_format", "%Y-%m-%d %H:%M:%S,%f", "Say %S.%f"),
        ("time_format", "%Y-%m-%d %I:%M", "%I or %p alone"),
        ("time_format", "%Y-%m-%d %", "has %"),
        ("zone", "Europe/Berlim", "Did you mean .*Europe/Berlin"),
        ("separator", ";;", "is no separator"),
    ],
)
def test_what_is_refused(option: str, value: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        stream(**{option: value})


def test_formats_and_zones_are_for_columns() -> None:
    for options in ({"zone": "Europe/Berlin"}, {"time_format": "%Y-%m-%d"}):
        with pytest.raises(UsageError, match="column of a table"):
            StreamConfig.from_options("s", "a.nt", **options)


def test_a_zone_is_of_times_without_one() -> None:
    texts = ["2024-07-01 12:00:00", "2024-07-01 12:00:00Z", "2024-07-01 12:00:00+02:00", "7"]
    summer = 1_719_828_000_000  # 10:00Z
    berlin = {"zone": "Europe/Berlin"}
    assert times(texts, **berlin) == [summer, summer + 7_200_000, summer, 7]
    assert times(["2024-07-01"], **berlin) == [summer - 43_200_000]
    naive = [datetime.datetime(2024, 7, 1, 12)]
    assert times(naive, **berlin) == [summer]
    assert times(["01.07.2024 12:00"], time_format="%d.%m.%Y %H:%M", **berlin) == [summer]
    # put forward: there is no such time; put back: the earlier of the two
    assert times(["2024-03-31 02:30:00", "2024-10-27 02:30:00"], **berlin) == [
        None,
        1_729_989_000_000,
    ]
    assert times(["300000-01-01 00:00:00", ""], **berlin) == [None, None]


@given(
    st.lists(st.datetimes(datetime.datetime(1980, 1, 1), datetime.datetime(2036, 1, 1))),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
)
def test_zones_are_those_of_the_library(moments: list[datetime.datetime], zone: str) -> None:
    info = zoneinfo.ZoneInfo(zone)
    expected = []
    for moment in moments:
        there = moment.replace(tzinfo=info, fold=0)
        back = there.astimezone(datetime.UTC).astimezone(info).replace(tzinfo=None)
        expected.append(int(there.timestamp() * 1e6 // 1000) if back == moment else None)
    found = times(pl.Series([str(moment) for moment in moments], dtype=pl.String()), zone=zone)
    assert all(
        a == b or (a is not None and b is not None and abs(a - b) <= 1)  # a double's last digit
        for a, b in zip(found, expected, strict=True)
    )


def test_small_units() -> None:
    assert times([NOON * 1000 + 999, None], unit="us") == [NOON, None]
    assert times([str(NOON * 10**6), "2024-03-01 12:01:28"], unit="ns") == [NOON, NOON]
    assert times(["-1"], unit="us") == [-1]
    assert times([1_700_000_000.123, None, float("nan")], unit="s") == [
        1_700_000_000_123, None, None,
    ]  # fmt: skip
    assert times(["1234e-5", "1e3"], unit="s", zone="Europe/Berlin") == [12, 1_000_000]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("real", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("kind", [pl.Int64(), pl.String()])
def test_another_unit_is_seen(unit: str, real: str, kind: Any) -> None:
    factor = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    raw = [(NOON // 1000 + k) * factor[real] for k in range(9)]
    table = pl.DataFrame({"ts": pl.Series(raw).cast(kind)})
    ts = field_times(table["ts"], stream(unit=unit))
    found = seeming_unit(table, table, ts, stream(unit=unit), NOON + 86_400_000)
    if (unit, real) in (("s", "us"), ("s", "ns")):
        return  # times that no integer holds are dead, and say no more
    assert found == ("" if unit == real else real)
    top = int(ts[ts <= NOON + 86_400_000].max(initial=MIN))
    assert found == seeming_unit(
        table, table, ts, stream(unit=unit), NOON + 86_400_000, greatest=top
    )


def test_a_right_time_is_enough_to_know_the_unit() -> None:
    ts = np.full(5, 1000)
    assert likely_unit(ts, stream(unit="ms"), NOON) == ""
    seconds = np.full(5, NOON // 1000)
    assert likely_unit(seconds, stream(unit="ms"), NOON + 86_400_000) == "s"
    with patch("levada.connectors.ingest.lateness._FACTORS", {}):
        assert likely_unit(seconds, stream(unit="ms"), NOON, NOON - 1) == "", "no time is looked at"


def test_small_numbers_and_old_times_are_no_other_unit() -> None:
    for ts in ([1000, 60_000], [MIN, 5], [0], [-(10**12)], [315_532_800_000], []):
        assert likely_unit(np.array(ts, np.int64), stream(), NOON) == ""

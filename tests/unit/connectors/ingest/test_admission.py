"""Cut, future, late, kept: in this order."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.lateness import AdmissionBounds, admit
from levada.connectors.ingest.tables.row_event_times import file_time
from levada.core.event_time import MIN

TIMES = st.lists(st.one_of(st.integers(-20, 20), st.just(MIN)), max_size=20)
BOUND = st.integers(-15, 15)


@given(TIMES, BOUND, BOUND, st.one_of(st.none(), st.integers(0, 12)), BOUND, BOUND)
def test_every_element_has_one_fate(
    times: Any, start: Any, stop: Any, limit: Any, late_below: Any, future_above: Any
) -> None:
    verdict = admit(
        np.array(times, np.int64), AdmissionBounds(start, stop, limit, late_below, future_above)
    )
    fates, passed = [], 0
    for ts in times:
        if ts == MIN or not start <= ts < stop or (limit is not None and passed >= limit):
            fates.append("out")
            continue
        passed += 1
        fates.append("future" if ts > future_above else "late" if ts < late_below else "keep")
    masks = {"keep": verdict.keep, "late": verdict.late, "future": verdict.future}
    assert {name: mask.tolist() for name, mask in masks.items()} == {
        name: [f == name for f in fates] for name in masks
    }
    assert verdict.passed == passed
    read = [ts for ts, fate in zip(times, fates, strict=True) if fate in ("keep", "late")]
    assert verdict.max_ts == max(read, default=MIN)
    assert verdict.times.tolist() == sorted(
        {ts for ts, fate in zip(times, fates, strict=True) if fate == "keep"}
    )


def test_a_file_name_without_a_match_says_no_time() -> None:
    config = StreamConfig.from_options("s", "a.nt", time=r"filename:_(\d+)?")
    assert file_time(config, "x_12.nt") == 12
    assert file_time(config, "x_y.nt") == MIN
    assert file_time(config, "xy.nt") == MIN

"""What blobs carry of what readers have found: all of it to partition 0, to the others what they
go by.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.checkpoint.epoch_context import SourceReport, TaskOutcome, heads_of
from levada.core.event_time import MIN

counts = st.sampled_from((0, 0, 1, 2**40))
times = st.sampled_from((MIN, -1, 0, 2**62))
controls = st.builds(
    SourceReport,
    counts,
    st.sampled_from(("", "a.csv")),
    times,
    counts,
    counts,
    counts,
    counts,
    accounted=counts,
    suspected_unit=st.sampled_from(("", "s")),
    dead_letter_reasons=st.lists(st.just("no"), max_size=1),
    null_messages=counts,
    reaches=times,
    pattern_matches=st.dictionaries(st.just("p"), counts, max_size=1),
    letter_files=st.lists(st.just(("late", "f", 1)), max_size=1),
    reports=st.sampled_from(("", "AAAA")),
)


def read(heads: list[list[object]]) -> list[SourceReport]:
    """As they are after a blob."""
    told: object = msgspec.json.decode(msgspec.json.encode(heads))
    return msgspec.convert(told, list[SourceReport])


@settings(deadline=None)
@given(st.lists(controls, max_size=3))
def test_heads_lose_nothing_that_is_gone_by(found: list[SourceReport]) -> None:
    assert read(heads_of(found, whole=True)) == found
    some = read(heads_of(found, whole=False))
    less: dict[str, Any] = {
        "pattern_matches": {},
        "letter_files": [],
        "dead_letter_reasons": [],
        "reports": "",
    }
    assert some == [msgspec.structs.replace(c, **less) for c in found]
    marks = [TaskOutcome(1, partition) for partition in (0, 1)]
    for mark, own in zip(marks, (found, some), strict=True):
        mark.record_inputs(own, {""})
    assert marks[0].input_digest == marks[1].input_digest


def test_what_is_as_usual_takes_no_room() -> None:
    (head,) = heads_of([SourceReport(0, "a.csv", 7, 5, pattern_matches={"p": 5})], whole=False)
    assert head == [0, "a.csv", 7, 5]

"""Random chains of queries: what one makes another reads, as the reference says, however it is cut,
and whenever they come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from test_random_cases import epochs, examples, partitions

from levada.core.event_time import MIN, WindowKind
from levada.runtime.driver import derived_streams
from levada.testing.compare import same_queries
from levada.testing.reference_model import Report
from support.generators import Case, CaseQuery, made_cases
from support.generators.elements import arrival
from support.stepped_runs import run_case, run_in_two

made = made_cases(most=2)


@examples(5)
@given(made, epochs, partitions, st.sampled_from((1, 3, derived_streams.EACH)))
def test_streams_made_by_queries_equal_the_reference(
    case: Case, rows: int, parts: int, each: int
) -> None:
    """Also where several tasks read them: another one for ``each`` solutions."""
    with patch.object(derived_streams, "EACH", each):
        found = run_case(case, epoch_rows=rows, partitions=parts)
    assert same_queries(case.expected(), found) is None


@examples(2)
@given(made, st.data())
def test_order_of_arrival_within_the_lateness_does_not_show(
    case: Case, data: st.DataObject
) -> None:
    case = replace(case, lateness=1500)
    other = {}
    for name, elements in case.streams.items():
        ordered = sorted(elements, key=lambda e: e.ts)
        moved = data.draw(
            arrival([e.ts for e in ordered], case.lateness), label=f"arrival of {name}"
        )
        other[name] = tuple(ordered[i] for i in moved)
    rows = data.draw(epochs, label="elements in an epoch")
    assert (
        same_queries(case.expected(), run_case(replace(case, streams=other), epoch_rows=rows))
        is None
    )


@examples(5)
@given(made, st.data())
def test_readers_and_makers_that_come_in_mid_stream_see_what_follows(
    case: Case, data: st.DataObject
) -> None:
    """The streams up to a cut, a run that leaves them open, then the rest with all queries; some
    come with the second run.
    """
    cut = {
        name: data.draw(st.integers(0, len(e)), label=f"cut of {name}")
        for name, e in case.streams.items()
    }
    rows, parts = (
        data.draw(epochs, label="elements in an epoch"),
        data.draw(partitions, label="partitions"),
    )
    late: list[str] = []
    for query in case.queries:
        follows = any(
            on.removeprefix("http://e/") in late for on, _ in query.reference.windows.values()
        )
        if follows or data.draw(st.booleans(), label=f"{query.name} comes later"):
            late.append(query.name)
    after = times_of_registration(case, cut, late)
    assert (
        same_queries(
            case.expected(after), run_in_two(case, cut, late, epoch_rows=rows, partitions=parts)
        )
        is None
    )


def times_of_registration(
    case: Case, cut: Mapping[str, int], late: Sequence[str]
) -> dict[str, int]:
    """T of each late query: the largest event time in the first run, of a made stream its maker's
    last report then.
    """
    seen = {
        name: max((e.ts for e in elements[: cut[name]]), default=MIN)
        for name, elements in case.streams.items()
    }
    w = {name: ts - case.lateness if ts > MIN else MIN for name, ts in seen.items()}
    full = case.expected()
    after = {}
    for query in case.queries:
        streams = [on for on, _ in query.reference.windows.values()]
        latest = max((seen[s] for s in streams), default=MIN)
        if query.name in late and latest > MIN:
            after[query.name] = latest
        name = f"http://e/{query.name}"
        w[name], seen[name] = MIN, MIN
        if query.name not in late and streams:
            least = min(w[s] for s in streams)
            w[name] = least + reaches(query) if least > MIN else MIN
            seen[name] = last_report(full[query.name], w[name])
    return after


def reaches(query: CaseQuery) -> bool:
    """Whether a report is made as soon as the watermark is there."""
    return all(
        window.kind is WindowKind.CLOSE_OPEN for _, window in query.reference.windows.values()
    )


def last_report(reports: Sequence[Report], before: int) -> int:
    """The time of the last of these reports before an instant."""
    return max((r.time for r in reports if r.time < before), default=MIN)

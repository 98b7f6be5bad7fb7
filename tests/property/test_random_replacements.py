"""Static graphs that are replaced while streams are read: random cases, and the same whatever the
cut and the way.

``LEVADA_CASES`` as in ``test_random_cases``.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from levada.plan.optimizer.pipeline import OPTIONAL, disable_rules
from levada.testing.compare import same, same_queries
from levada.testing.reference_model import Report
from support.example_counts import EXAMPLES, PATIENCE
from support.generators import Case, replaced_cases
from support.stepped_runs import run_replaced

pytestmark = pytest.mark.timeout(PATIENCE)
epochs = st.sampled_from((1, 2, 3, 7, 1000))
partitions = st.sampled_from((1, 2, 3))


def same_answers(expected: Sequence[Report], got: Sequence[Report]) -> str | None:
    """Whether a query without windows gives these answers in their order, and the last one last.

    Where only graphs are replaced that it does not read, it says nothing anew; where several are,
    it may be answered between them.
    """
    at = 0
    for n, answer in enumerate(expected):
        while at < len(got) and same([answer], [got[at]]) is not None:
            at += 1
        if at == len(got):
            return f"answer {n} of {len(expected)} is not there: {answer}\n{got}"
    return same(expected[-1:], got[-1:])


def judged(case: Case, late: dict[str, int], **run: object) -> str | None:
    """What a run says other than the reference."""
    after = {}
    for query in case.queries:
        own = {stream for stream, _ in query.reference.windows.values()}
        if query.name in late:
            read = case.replaced[late[query.name] - 1][0]
            after[query.name] = case.latest({name: n for name, n in read.items() if name in own})
    expected, got = case.expected(after, late), run_replaced(case, late, **run)  # type: ignore[arg-type]
    timeless = [q.name for q in case.queries if not q.reference.windows]
    for name in timeless:
        difference = same_answers(expected.pop(name), got.pop(name))
        if difference is not None:
            return f"query {name}: {difference}"
    return same_queries(expected, got)


@pytest.mark.long
@settings(
    max_examples=EXAMPLES or 8,
    deadline=None,
    print_blob=True,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)
@given(
    replaced_cases(),
    epochs,
    partitions,
    st.booleans(),
    st.sampled_from(((), ("hoist_static",), tuple(OPTIONAL))),
    st.data(),
)
def test_replaced_static_data_equal_the_reference(
    case: Case, rows: int, parts: int, live: bool, off: tuple[str, ...], data: st.DataObject
) -> None:
    late = {
        q.name: data.draw(
            st.integers(1, len(case.replaced)), label=f"{q.name} comes with the replacement"
        )
        for q in case.queries
        if data.draw(st.integers(0, 4), label=f"{q.name} comes later, if 4") == 4
    }
    with disable_rules(*off):
        assert judged(case, late, live=live, epoch_rows=rows, partitions=parts) is None

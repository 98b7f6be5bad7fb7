"""Random continuous queries over random streams: the engine, stepped in this process, says what the
reference says.

And it says the same whatever the cut into epochs, the number of partitions, the order of arrival
within the lateness, the queries that run beside, and the time at which a query is registered
(docs/semantics.md, "What does not change a result" and "Queries that come later"). By default 100
examples in all; ``LEVADA_CASES`` is the number for each test (``LEVADA_CASES=2000 pytest
tests/property`` for a night). A case that fails is printed as it is to be read, with what
reproduces it.
"""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.plan.topology import catalog_members
from levada.testing.compare import same_queries
from levada.testing.reference_model import Question
from support.example_counts import PATIENCE, examples
from support.generators import Case, cases, cql_cases, cql_view_cases, entailment_cases
from support.generators.elements import arrival
from support.stepped_runs import run_case, run_in_two

pytestmark = pytest.mark.timeout(PATIENCE)
rdf, tuples, views = cases(most=4), cql_cases(most=4), cql_view_cases(most=2)
entailment = entailment_cases(most=3)
both = rdf | tuples | views | entailment
epochs = st.sampled_from((1, 2, 3, 7, 1000))
partitions = st.sampled_from((1, 2, 3))


@pytest.mark.long
@examples(100)
@given(rdf, epochs, partitions)
def test_rsp_queries_equal_the_reference(case: Case, rows: int, parts: int) -> None:
    assert same_queries(case.expected(), run_case(case, epoch_rows=rows, partitions=parts)) is None


@examples(70)
@given(tuples, epochs, partitions)
def test_cql_queries_equal_the_reference(case: Case, rows: int, parts: int) -> None:
    assert same_queries(case.expected(), run_case(case, epoch_rows=rows, partitions=parts)) is None


@examples(30)
@given(views, epochs, partitions)
def test_cql_views_equal_the_reference(case: Case, rows: int, parts: int) -> None:
    assert same_queries(case.expected(), run_case(case, epoch_rows=rows, partitions=parts)) is None


@examples(30)
@given(entailment, epochs, partitions)
def test_entailed_queries_equal_the_reference(case: Case, rows: int, parts: int) -> None:
    assert same_queries(case.expected(), run_case(case, epoch_rows=rows, partitions=parts)) is None


@examples(20)
@given(both, epochs, partitions)
def test_neither_the_cut_into_epochs_nor_the_partitions_show(
    case: Case, rows: int, parts: int
) -> None:
    whole = run_case(case, epoch_rows=1000, partitions=1)
    assert same_queries(whole, run_case(case, epoch_rows=rows, partitions=parts)) is None


@examples(20)
@given(both, st.data())
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
    turned = replace(case, streams=other)
    rows = data.draw(epochs, label="elements in an epoch")
    assert same_queries(run_case(case, epoch_rows=rows), run_case(turned, epoch_rows=rows)) is None


@examples(10)
@given(both, epochs)
def test_queries_together_say_what_each_says_alone(case: Case, rows: int) -> None:
    together = run_case(case, epoch_rows=rows)
    alone = {
        q.name: run_case(replace(case, queries=(q,)), epoch_rows=rows)[q.name] for q in case.queries
    }
    assert same_queries(alone, together) is None


def streams_of(question: Question) -> set[str]:
    """The streams that a query reads, itself or by its views."""
    views = getattr(question, "views", {})
    read = {stream for stream, _ in question.windows.values()}
    return {s for name in read for s in (streams_of(views[name]) if name in views else {name})}


@examples(20)
@given(both, st.data())
def test_query_registered_in_mid_stream_sees_what_follows(case: Case, data: st.DataObject) -> None:
    """The streams up to a cut, a run that leaves them open, then the rest with all queries; some
    come with the second run.
    """
    in_mid_stream(case, data, gone=False)


@pytest.mark.long
@examples(8)
@given(both, st.data(), st.sampled_from((1, 512)), st.sampled_from((0, 4)))
def test_queries_that_are_gone_do_not_show(
    case: Case, data: st.DataObject, empty: int, share: int
) -> None:
    """The same, and a twin of each query goes with the first run: its rows are in state, its places
    in the plan are empty.
    """
    with (
        patch.object(catalog_members, "EMPTY", empty),
        patch.object(catalog_members, "SHARE", share),
    ):
        in_mid_stream(case, data, gone=True)


def in_mid_stream(case: Case, data: st.DataObject, *, gone: bool) -> None:
    cut = {
        name: data.draw(st.integers(0, len(e)), label=f"cut of {name}")
        for name, e in case.streams.items()
    }
    late = [q.name for q in case.queries if data.draw(st.booleans(), label=f"{q.name} comes later")]
    rows, parts = (
        data.draw(epochs, label="elements in an epoch"),
        data.draw(partitions, label="partitions"),
    )
    after = {}
    for query in case.queries:
        streams = streams_of(query.reference)
        seen = [e.ts for name in streams for e in case.streams[name][: cut[name]]]
        if query.name in late and seen:
            after[query.name] = max(seen)
    got = run_in_two(case, cut, late, epoch_rows=rows, partitions=parts, gone=gone)
    assert same_queries(case.expected(after), got) is None

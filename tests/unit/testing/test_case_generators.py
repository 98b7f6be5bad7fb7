"""The random cases are what they promise, and the reference is consistent on them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyoxigraph as ox
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from levada.testing.compare import same_queries
from levada.testing.reference import Bag, evaluate
from levada.testing.reference_model import Element, ReferenceQuery
from support.generators import Case, cases, cql_cases
from support.generators.vocabulary import STATIC, TRIPLES

every = list(HealthCheck)
few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
both = cases() | cql_cases()


def test_vocabulary_is_canonical() -> None:
    for triple in [*TRIPLES, *(t for graph in STATIC.values() for t in graph)]:
        (quad,) = ox.parse(f"{triple} .".encode(), ox.RdfFormat.N_TRIPLES)
        store = ox.Store()
        store.add(quad)
        (stored,) = store
        assert str(stored.triple) == triple


@few
@given(both)
def test_no_element_is_late(case: Case) -> None:
    for elements in case.streams.values():
        largest = -(2**62)
        for element in elements:
            assert element.ts >= largest - case.lateness
            largest = max(largest, element.ts)


@few
@given(both)
def test_a_case_says_all_that_it_is(case: Case) -> None:
    text = case.describe()
    for query in case.queries:
        assert all(line in text for line in query.text.splitlines())
        assert str(dict(query.options)) in text
    for elements in case.streams.values():
        for element in elements:
            items = element.triples if isinstance(element, Element) else (str(element.values),)
            assert all(item in text for item in items)
            assert str(element.ts) in text


@few
@given(both)
def test_order_of_arrival_does_not_matter(case: Case) -> None:
    turned = replace(
        case, streams={name: tuple(reversed(elements)) for name, elements in case.streams.items()}
    )
    assert same_queries(case.expected(), turned.expected()) is None


@few
@given(both)
def test_reports_are_in_order_and_not_empty(case: Case) -> None:
    expected = case.expected()
    for query in case.queries:
        times = [r.time for r in expected[query.name]]
        assert times == sorted(times)
        if not query.reference.empty_reports:
            once = not query.reference.windows  # it has one report, also an empty one
            assert once or all(
                r.solutions or r.graph or r.boolean is not None for r in expected[query.name]
            )


@few
@given(both)
def test_inserts_minus_deletes_are_the_relation(case: Case) -> None:
    for query in case.queries:
        asked = query.reference
        if not asked.windows:
            continue  # one report, no changes
        if isinstance(asked, ReferenceQuery) and (
            asked.template or "ASK" in asked.sparql or "SAMPLE" in asked.sparql
        ):
            continue
        relation, gained, lost = (
            {
                r.time: r.solutions
                for r in evaluate(replace(asked, output=o), case.streams, case.static)
            }
            for o in ("RSTREAM", "ISTREAM", "DSTREAM")
        )
        now: Bag = Counter()
        for time in sorted(relation.keys() | gained.keys() | lost.keys()):
            now = now + gained.get(time, Counter()) - lost.get(time, Counter())
            assert now == relation.get(time, Counter())


@few
@given(both)
def test_registration_is_a_fresh_run_over_what_follows(case: Case) -> None:
    times = sorted(e.ts for elements in case.streams.values() for e in elements)
    after = times[len(times) // 2]
    rest = {
        name: tuple(e for e in elements if e.ts > after) for name, elements in case.streams.items()
    }
    later = case.expected(dict.fromkeys((q.name for q in case.queries), after))
    assert same_queries(replace(case, streams=rest).expected(), later) is None


WORDS = (
    *(
        "OPTIONAL",
        "UNION",
        "VALUES",
        "BIND",
        "FILTER",
        "GROUP BY",
        "LIMIT",
        "DISTINCT",
        "HAVING",
        "ASK",
        "CONSTRUCT",
    ),
    *("STEP", "TRIPLES", "[NOW]", "[ALL]", "RSTREAM", "ISTREAM", "DSTREAM", ":w1", "{ SELECT"),
    *("Istream", "Dstream", "Rstream", "Group By", "Slide", "[Rows", "Where l.k = r.k"),
    *("'bounds'", "'t0'", "'report'", "'empty_reports'"),
)


@pytest.mark.long
def test_cases_are_varied_and_say_something() -> None:
    """Of 120 cases at a fixed seed, many queries have results, and nearly all forms, windows and
    options occur.
    """
    seen: Counter[str] = Counter()

    @seed(1)
    @settings(
        max_examples=120,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=every,
    )
    @given(both)
    def count(case: Case) -> None:
        expected = case.expected()
        for query in case.queries:
            seen["queries"] += 1
            seen["with results"] += any(
                r.solutions or r.graph or r.boolean for r in expected[query.name]
            )
            seen.update(word for word in WORDS if word in query.text + str(query.options))

    count()
    assert seen["with results"] > 0.3 * seen["queries"]
    assert len([word for word in WORDS if not seen[word]]) <= 5

"""Queries that come and go leave nothing behind that grows: neither in manifests nor in the
checkpoint's plans.
"""

from pathlib import Path
from typing import Any

import pytest

from levada.engine.engine import Engine
from levada.testing.stream_builders import write_lines
from support.generators import Clause
from support.query_dsl import S, element, feed, query, step

RANGE = {"w": (S, Clause("range", 1500))}


def text_of(number: Any) -> Any:
    return query(
        "SELECT ?a ?n", f"WINDOW :w {{ ?a :p{number} ?n }}", name=f"q{number}", windows=RANGE
    ).text


def elements(first: Any, count: Any) -> list[Any]:
    return [
        element(1000 * (first + i), *(f"a p{k} {i}" for k in range(first, first + 40)))
        for i in range(count)
    ]


def test_a_query_that_comes_again_counts_from_zero_and_the_progress_counts_all(
    tmp_path: Path,
) -> None:
    path = write_lines(tmp_path / "s.nt", [])
    with Engine(spark=False, partitions=2) as engine:
        engine.stream(S, path)
        old = engine.register(text_of(0), name="q")
        engine.start()
        feed(engine, path, elements(0, 5))
        old.unregister()
        new = engine.register(text_of(0), name="q")
        feed(engine, path, [element(9000, "a other 1")])
        status = {q.name: q for q in engine.status().queries}["q"]
        assert (status.results, new.to_polars(terms=True).height) == (0, 0)
        assert status.reason, "though one of this name had results"
        engine.stop()
        assert engine.progress().results == old.to_polars(terms=True).height > 0


@pytest.mark.long
def test_manifests_and_plans_follow_from_the_queries_that_are_there(tmp_path: Path) -> None:
    path, plans = write_lines(tmp_path / "s.nt", []), tmp_path / "ck" / "plans"

    def versions() -> list[int]:
        return [int(plan.name.split("-")[0]) for plan in plans.glob("[0-9]*.plan")]

    with Engine(spark=False, partitions=1, checkpoint=tmp_path / "ck") as engine:
        engine.stream(S, path)
        engine.start()
        for first in range(0, 1000, 40):
            here = [engine.register(text_of(n)) for n in range(first, first + 40)]
            feed(engine, path, elements(first, 1))
            if first == 200:
                early = max(versions())
            for one in here:
                one.unregister()
        engine.stop()
        last = engine._open().last
        assert len(last.totals) <= 40
        assert 40 <= len(last.pattern_matches[S]) <= 2 * 256
        assert early < min(versions())


def test_a_report_that_several_partitions_have_rows_of_counts_once(tmp_path: Path) -> None:
    """Each group of a report may be elsewhere, and no partition need have rows of all reports."""
    rows = [element(1000 * i, f"a{i} p {i}", f"b{i} p {i}") for i in range(40)]
    path = write_lines(tmp_path / "s.nt", rows)
    tail = " GROUP BY ?a"
    summed = query(
        "SELECT ?a (SUM(?n) AS ?m)",
        "WINDOW :w { ?a :p ?n }",
        tail=tail,
        name="sum",
        windows={"w": (S, step(1000, 1000))},
    )
    every = query(
        "SELECT ?a ?n", "WINDOW :w { ?a :p ?n }", name="all", windows={"w": (S, step(1000, 1000))}
    )
    with Engine(spark=False, partitions=4) as engine:
        engine.stream(S, path)
        handles = [engine.register(q.text, name=q.name) for q in (summed, every)]
        engine.start(once=True)
        engine.await_end()
        last = engine._open().last
        for handle in handles:
            reports = len(list(handle.results()))
            assert reports == 40
            own = handle._lifetime.query
            assert own is not None and engine._publication.totals.query_totals(own) == (80, reports)
            assert last.totals.query_counts(own) == (80, 0, 0, reports)
        assert engine._publication.reports == 80

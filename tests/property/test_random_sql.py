"""Random SQL says what DuckDB says over the rows of each window: functions, NULL, joins, groups,
queries in queries, sets, numbers of rows; cut into epochs, in partitions, stopped and started
again.

8 queries; ``LEVADA_CASES`` is another number, and the long test has 200.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest

from levada.errors import QueryError
from levada.testing.compare import same
from levada.testing.reference_model import Row
from support.generators import Case
from support.generators.random_sql import random_query, random_row
from support.sql_judge import SCHEMAS, case_query
from support.stepped_runs import run_case, run_stopped

CASES = int(os.environ.get("LEVADA_CASES", "0")) or 8
TOGETHER = 4  # queries in one engine
TOO_LARGE = "The query takes more than 50,000 operators"
OUTPUTS = ("RELATION", "RELATION", "ISTREAM", "DSTREAM")


@pytest.mark.parametrize("first", range(0, CASES, TOGETHER))
def test_a_random_text_says_what_duckdb_says(first: int) -> None:
    _check(first)


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 1200, TOGETHER))
def test_many_random_texts_say_what_duckdb_says(first: int) -> None:
    _check(first)


def _check(first: int) -> None:
    rng = Random(first)
    queries = []
    for seed in range(first, first + TOGETHER):
        text, types = random_query(seed)
        window = rng.choice(("range", "slide", "all"))
        queries.append(case_query(f"q{seed}", text, types, window, rng.choice(OUTPUTS)))
    streams = {
        stream: tuple(
            Row(1000 + 500 * rng.randrange(20), random_row(rng, stream))  # type: ignore[arg-type]
            for _ in range(10)
        )
        for stream in SCHEMAS
    }
    ordered = {s: tuple(sorted(rows, key=lambda row: row.ts)) for s, rows in streams.items()}
    partitions, is_stopped = rng.choice((1, 3)), rng.random() < 0.3
    rows = rng.choice((3, 1000))

    def run(case: Case) -> Any:
        if is_stopped:
            return run_stopped(case, 2, epoch_rows=4, partitions=partitions)
        return run_case(case, epoch_rows=rows, partitions=partitions)

    while True:
        case = Case(ordered, tuple(queries), 0, {}, SCHEMAS, frozenset())
        try:
            results = run(case)
            break
        except QueryError as error:  # queries within many others are refused for their size
            assert TOO_LARGE in error.message
            queries = [query for query in queries if query.name not in error.__notes__]
            assert len(queries) < len(case.queries), "the error names the query"
    expected = case.expected()
    for query in queries:
        difference = same(expected[query.name], results[query.name])
        assert difference is None, f"{query.name}: {query.text}\n{difference}"

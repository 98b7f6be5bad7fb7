"""State that moves changes no result: random queries over random streams, with another group table
and another number of partitions at each epoch, stops, starts over other numbers of partitions and
deaths between, against the reference (Parallel windowed joins, W17, W56).
"""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.checkpoint import live_files
from levada.testing.compare import same_queries
from support.entailment_cases import SUB, under
from support.example_counts import PATIENCE, examples
from support.generators import Case, cases, cql_cases, cql_view_cases, entailment_cases
from support.generators.windows import Clause
from support.query_dsl import S, at, query, triples
from support.random_key_groups import MOST, by_lot, looked_up
from support.stepped_runs import run_moved

pytestmark = pytest.mark.timeout(PATIENCE)
queries = cases(most=4) | cql_cases(most=4) | cql_view_cases(most=2) | entailment_cases(most=3)
lots = st.integers(0, 2**32 - 1)
partitions = st.none() | st.integers(1, MOST)
starts = st.lists(st.tuples(st.integers(2, 9), partitions), min_size=1, max_size=3)
deaths = st.dictionaries(st.integers(1, 8), st.booleans(), max_size=2)


@pytest.mark.long
@examples(25)
@given(queries, st.sampled_from((3, 5, 9)), lots, starts, deaths)
def test_moves_do_not_show(
    case: Case, rows: int, lot: int, stops: list[tuple[int, int | None]], dies: dict[int, bool]
) -> None:
    # in some there are inventories
    few = 0 if lot % 2 == 0 else live_files.MAX_INLINE_NAMES
    with looked_up(small=lot % 4 < 2), patch.object(live_files, "MAX_INLINE_NAMES", few):
        got = run_moved(case, by_lot(lot), stops, dies, epoch_rows=rows)
    assert same_queries(case.expected(), got) is None


@pytest.mark.parametrize("lot", [0, 4])
def test_equal_rows_of_two_groups_move_one_by_one(lot: int) -> None:
    """Found: a term of a triple and the same term of what follows from it were kept as one row, by
    the group of one of them; then that group moved, and what took the other back found nothing.
    """
    schema = f":K :name 'kay' . :L {SUB} :M"
    asked = query("SELECT (COUNT(*) AS ?n)", "WINDOW :w { ?x :q? ?y }",
                  windows={"w": Clause("count", count=8, step=4)})  # fmt: skip
    elements = tuple(at(500 * i, f":a :p 1 . :a :r 'b{i // 4}' . :c :u :b") for i in range(1, 14))
    case = Case({S: elements}, (under("rdfs", schema, asked),), 0, {None: triples(schema)},
                ontology=triples(schema))  # fmt: skip
    got = run_moved(case, by_lot(lot), [(2, 3), (9, 4)], {}, epoch_rows=5)
    assert same_queries(case.expected(), got) is None

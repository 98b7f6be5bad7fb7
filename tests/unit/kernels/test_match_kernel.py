"""The pattern table against a comparison of whole columns for each pattern."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.connectors.ingest.parse.ntriples import Triples, parse
from levada.kernels.keyed.pattern_match import match_rows
from levada.operators.matching.pattern_table import (
    PREDICATE_IS_OBJECT,
    SUBJECT_IS_OBJECT,
    SUBJECT_IS_PREDICATE,
    PatternTable,
    match_by_comparison,
)

TERMS = [f"<a:{c}>" for c in "abcd"]
TRIPLES = st.lists(st.tuples(*[st.sampled_from(TERMS)] * 3), max_size=40)
PATTERNS = st.lists(
    st.tuples(st.tuples(*[st.sampled_from([None, *TERMS])] * 3), st.integers(0, 7)),
    unique=True,
    max_size=60,
)


def columns(triples: list[tuple[str, str, str]], seed: int = 5) -> Triples:
    text = "".join(f"{s} {p} {o} .\n" for s, p, o in triples)
    return parse(text.encode(), quads=False, timed=False, seed=seed, document=1)


def table_of(patterns: list, seed: int = 5) -> PatternTable:
    return PatternTable.build(
        [pattern for pattern, _ in patterns], [code for _, code in patterns], seed
    )


@settings(deadline=None)
@given(TRIPLES, PATTERNS, st.integers(0, 2**64 - 1), st.data())
def test_the_table_equals_the_comparison(triples: Any, patterns: Any, seed: Any, data: Any) -> None:
    found, table = columns(triples, seed), table_of(patterns, seed)
    keep = data.draw(
        st.none() | st.lists(st.booleans(), min_size=found.n, max_size=found.n).map(np.array)
    )
    keep = None if keep is None else keep.astype(np.bool_)
    rows, starts = table.match(found, keep)
    expected_rows, expected = match_by_comparison(table, found, keep)
    assert rows.tolist() == expected_rows.tolist() and starts.tolist() == expected.tolist()
    assert rows.dtype == np.int64 and starts.dtype == np.int64


@settings(deadline=None)
@given(TRIPLES, PATTERNS)
def test_the_pairs_are_what_the_patterns_say(triples: Any, patterns: Any) -> None:
    rows, starts = table_of(patterns).match(columns(triples))
    matched = np.repeat(np.arange(len(patterns)), np.diff(starts))
    expected = []
    for i, (pattern, code) in enumerate(patterns):
        for row, (s, p, o) in enumerate(triples):
            constants = all(c is None or c == t for c, t in zip(pattern, (s, p, o), strict=True))
            equal = (
                (not code & SUBJECT_IS_OBJECT or s == o)
                and (not code & SUBJECT_IS_PREDICATE or s == p)
                and (not code & PREDICATE_IS_OBJECT or p == o)
            )
            if constants and equal:
                expected.append((i, row))
    assert list(zip(matched.tolist(), rows.tolist(), strict=True)) == expected


def test_many_patterns() -> None:
    triples = [(f"<a:{i % 700}>", f"<a:p{i % 7}>", f"<a:{i % 31}>") for i in range(5000)]
    patterns = [((f"<a:{i}>", f"<a:p{i % 7}>", None), 0) for i in range(20_000)] + [
        ((None, "<a:p3>", "<a:5>"), 0)
    ]
    table, found = table_of(patterns), columns(triples)
    rows, starts = table.match(found)
    matched = np.repeat(np.arange(len(patterns)), np.diff(starts))
    some = PatternTable.build([patterns[i][0] for i in (0, 13, 699, 700, 20_000)], [0] * 5, 5)
    few_rows, few_starts = match_by_comparison(some, found)
    few = np.repeat(np.arange(5), np.diff(few_starts))
    chosen = np.isin(matched, [0, 13, 699, 700, 20_000])
    assert rows[chosen].tolist() == few_rows.tolist()
    assert matched[chosen].tolist() == np.array([0, 13, 699, 700, 20_000])[few].tolist()


def test_output_that_does_not_fit_is_resumed() -> None:
    found, table = (
        columns([("<a:a>", "<a:b>", "<a:c>")] * 10),
        table_of([((None, None, None), 0), (("<a:a>", None, None), 0)]),
    )
    s, p, o = found.s, found.p, found.o
    rows, matched = np.empty(5, np.int64), np.empty(5, np.int32)
    every = np.zeros(0, np.bool_)
    last, count = match_rows(
        s.x, s.y, p.x, p.y, o.x, o.y, every, table.patterns, table.table, table.filters,
        table.masks, table.bits, 3, rows, matched
    )  # fmt: skip
    assert (last, count) == (5, 4) and rows[:4].tolist() == [3, 3, 4, 4]
    assert len(table.match(found)[0]) == 20


def test_both_halves_of_an_identity_are_compared() -> None:
    found, table = columns([("<a:a>", "<a:b>", "<a:c>")]), table_of([((None, "<a:b>", None), 0)])
    assert len(table.match(found)[0]) == 1
    found.p.y = found.p.y ^ np.uint64(1)
    assert len(table.match(found)[0]) == 0


def test_empty_tables_and_chunks() -> None:
    assert [
        part.tolist() for part in table_of([]).match(columns([("<a:a>", "<a:b>", "<a:c>")]))
    ] == [[], [0]]
    assert [part.tolist() for part in table_of([((None, None, None), 0)]).match(columns([]))] == [
        [],
        [0, 0],
    ]


def test_a_table_pickles() -> None:
    table, found = table_of([((None, "<a:b>", None), 0)]), columns([("<a:a>", "<a:b>", "<a:c>")])
    assert pickle.loads(pickle.dumps(table)).match(found)[0].tolist() == [0]


def test_equal_patterns_are_a_programmers_error() -> None:
    with pytest.raises(AssertionError, match="distinct"):
        table_of([((None, None, None), 0), ((None, None, None), 0)])

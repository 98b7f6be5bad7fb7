"""Whatever order the joins of a query have, it says what the naive reference says of it.

Sets of queries of 3 to 5 patterns that are made of each other come and go over streams with
repeated triples and disorder, in each mode of sharing and in several on one checkpoint
(``coming``): in the orders that are chosen, and in such as are drawn for each query each time that
it comes. What has another order than the query by itself is counted, so that a test of nothing
fails. 2 sets of each; ``LEVADA_CASES`` is another number.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_shared_is_alone import latenesses, mixed_modes, worlds

from support.dynamic_queries import MODES, Coming, World, check, comings, counters
from support.generators.case import CaseQuery
from support.generators.sketches import CONDITIONS, FORMS, MORE, OPTIONS, OUTPUTS, WINDOWS, Sketch
from support.random_join_orders import Lots

SETS = int(os.environ.get("LEVADA_CASES", "0"))
MOST = 12 if SETS else 5
PATTERNS = (
    "?x :q ?y", "?y :p ?v", "?x :p ?u", "?y :q ?z", "?x :r ?s", "?z :q ?x", "?y :r ?t", ":a :q ?y",
    "?x :q :b", "?z :p ?v", "?z :q :c",
)  # fmt: skip
pytestmark = pytest.mark.timeout(0)


def hang_together(patterns: Sequence[str]) -> bool:
    """Whether patterns have variables in common, directly or through others."""
    names = [{w for w in p.split() if w.startswith("?")} for p in patterns]
    reached, left = set(names[0]), names[1:]
    while near := [own for own in left if own & reached]:
        reached.update(*near)
        left = [own for own in left if own not in near]
    return not left


several = st.lists(st.sampled_from(PATTERNS), min_size=3, max_size=5, unique=True)
joined = several.filter(hang_together).map(tuple)


@st.composite
def sets(draw: st.DrawFn) -> list[CaseQuery]:
    """Queries of which each has most patterns of one before."""
    found = [Sketch(draw(joined), clause=draw(st.sampled_from(WINDOWS[:7])))]
    for _ in range(draw(st.integers(1, MOST - 1))):
        one = draw(st.sampled_from(found))
        kept = draw(st.permutations(one.patterns))[: draw(st.integers(2, len(one.patterns)))]
        more = [p for p in draw(joined) if p not in kept][: 5 - len(kept)]
        patterns = (*kept, *more)
        if len(patterns) >= 3 and hang_together(patterns):
            one = replace(one, patterns=patterns)
        found.append(
            replace(
                one,
                clause=draw(st.sampled_from((one.clause, one.clause, *WINDOWS[:9]))),
                condition=draw(st.sampled_from((None, None, *CONDITIONS))),
                output=draw(st.sampled_from(OUTPUTS)),
                form=draw(st.sampled_from(FORMS)),
                shown=tuple(draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))),
                more=draw(st.sampled_from(("", "", *MORE))),
                options=draw(st.sampled_from(OPTIONS)),
                renamed=draw(st.booleans()),
            )
        )
    return [sketch.query(f"q{i}") for i, sketch in enumerate(found)]


def judge(forced: bool) -> tuple[dict[str, Counter[str]], int]:
    """Judges sets; what is shared, and how many joins had another order than by themselves."""
    shared, others = counters(), 0

    @settings(
        max_examples=SETS or 2,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(comings(sets()), worlds(), mixed_modes, latenesses, st.integers(0, 99))
    def each(
        coming: Sequence[Coming], world: World, mixed: Sequence[str], alone: int, seed: int
    ) -> None:
        nonlocal others
        lots = Lots(seed) if forced else None
        check(coming, world, shared, alone, mixed, orders=lots)
        others += lots.others if lots else 0

    each()
    print(f"{shared}, {others} in other orders")
    return shared, others


@pytest.mark.long
def test_orders_by_lot_say_what_each_query_says_alone() -> None:
    shared, others = judge(forced=True)
    assert others > 0
    assert set(shared) == set(MODES)


def test_chosen_orders_say_what_each_query_says_alone() -> None:
    shared, _ = judge(forced=False)
    assert shared["relax"]["there"] < shared["off"]["there"], f"joins are shared: {shared}"

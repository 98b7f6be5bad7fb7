"""Joins of many parts in one step say what joins of two say: random stars, and what is none, with
another group table, another number of partitions and other divided groups at each epoch, stops and
deaths between, some engines told the one form and some the other, in each mode of sharing, against
the reference. Rows that one step has put together are counted, so that a test of nothing fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.frame import Frame
from levada.core.query_limits import Memory
from levada.engine.engine import Engine
from levada.engine.statistics import stream_statistics
from levada.operators import operator_registry as table
from levada.operators.state import join_state
from levada.operators.windowed import adaptive_join
from levada.operators.windowed.adaptive_join import Figures
from levada.plan.execution import steps as s
from levada.plan.execution.key_group_table import GroupTable, deal_round_robin
from levada.plan.sharing.sharing_modes import Sharing
from levada.testing.compare import same_queries
from support.example_counts import PATIENCE, examples
from support.generators import Case
from support.heavy_key_cases import Lots, groups_of
from support.query_dsl import S, at, query
from support.random_key_groups import looked_up
from support.star_join_cases import starred
from support.stepped_runs import run_between, run_moved

pytestmark = pytest.mark.timeout(PATIENCE)
lots = st.integers(0, 2**32 - 1)
starts = st.lists(
    st.tuples(st.integers(2, 9), st.none() | st.integers(1, 4)), min_size=1, max_size=3
)
deaths = st.dictionaries(st.integers(1, 8), st.booleans(), max_size=2)
modes = st.sampled_from(tuple(Sharing))
forms = st.sampled_from((("multiway",), ("multiway",), ("multiway", "binary"), ("auto",)))


class Chosen:
    """Another form at each look, by lots of a seed: how often each has been chosen."""

    def __init__(self, seed: int) -> None:
        self.lots, self.found = Random(seed), Counter[bool]()

    def __call__(self, figures: Figures) -> tuple[int, ...]:
        inputs = len(figures.rows).bit_length() - 1
        order = self.lots.choice(
            [figures.order, (), tuple(self.lots.sample(range(inputs), inputs))]
        )
        self.found[bool(order)] += 1
        return order


@pytest.fixture(autouse=True, scope="module")
def unknown() -> Iterator[None]:
    """Nothing is known of streams: a star whose variable has few values would go by another one."""
    with patch.object(stream_statistics, "MIN_SAMPLE_ROWS", 2**62):
        yield


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows have been put together in one step."""
    found, in_pieces = [0], table.IN_PIECES[s.MultiwayJoin]

    def counted(*args: Any) -> Iterator[Frame]:
        for rows in in_pieces(*args):
            found[0] += rows.n
            yield rows

    monkeypatch.setitem(table.IN_PIECES, s.MultiwayJoin, counted)
    return found


def test_a_star_is_put_together_in_one_step(made: list[int]) -> None:
    stream = [at(1000 * i, f':a :p {i} . :a :q :b . :b :q :a . :a :r "ab"') for i in range(8)]
    asked = query("SELECT *", "WINDOW :w { ?x :p ?n . ?x :q ?b . ?x :r ?s . ?c :q ?x }")
    case = Case({S: tuple(stream)}, (asked,))
    got = run_moved(
        case, Lots(7, groups_of(case)).deal, [(2, 3)], {3: True}, epoch_rows=2, joins=("multiway",)
    )
    assert same_queries(case.expected(), got) is None
    assert made[0] >= 8


def test_a_form_that_changes_does_not_show(made: list[int]) -> None:
    """With rows of before in each change: state of two at a time is made of what is in state."""
    stream = [
        at(500 * i, f":a :p {i} . :a :q :b{i % 3} . :b :q :a . :a :r {i % 4}") for i in range(40)
    ]
    asked = query("SELECT *", "WINDOW :w { ?x :p ?n . ?x :q ?b . ?x :r ?s . ?c :q ?x }")
    case = Case({S: tuple(stream)}, (asked,))
    chosen = Chosen(4)
    with patch.object(adaptive_join, "choose", chosen):
        got = run_between(case, lambda engine: None, [(50, 2)], {}, epoch_rows=4, joins=("auto",))
    assert same_queries(case.expected(), got) is None
    assert min(chosen.found.values()) >= 8


def turned(epoch: int, table: GroupTable) -> GroupTable:
    """Half of the groups a partition further."""
    to, many = table.partition.astype(np.int32), table.partitions
    some = np.random.default_rng(epoch).random(table.groups) < 0.5
    to[some] = (to[some] + 1) % many
    other = np.flatnonzero(to != deal_round_robin(table.groups, many).partition).astype(np.int32)
    return GroupTable(1, table.groups, many, other, to[other])


@pytest.mark.long
@pytest.mark.parametrize("small", [False, True])
def test_groups_that_move_have_what_follows_from_their_rows_made_again(small: bool) -> None:
    """Partitions differ in their forms when groups move between them, which is now and then."""
    parts = ":a{k} :p {i} . :a{k} :q :b{m} . :b{m} :q :a{k} . :a{k} :r {m}"
    stream = [at(500 * i, parts.format(i=i, k=i % 7, m=i % 3)) for i in range(60)]
    asked = query("SELECT *", "WINDOW :w { ?x :p ?n . ?x :q ?b . ?x :r ?s . ?c :q ?x }")
    case = Case({S: tuple(stream)}, (asked,))
    looks = Counter[tuple[int, ...]]()

    def choose(figures: Figures) -> tuple[int, ...]:
        order = figures.order or ((1, 0, 2, 3), (), (2, 1, 0, 3), ())[looks.total() % 4]
        looks[order] += 1
        return order

    def prepare(engine: Engine) -> None:
        engine._open().tables.dealing = lambda n, table: turned(n, table) if n % 6 == 5 else None

    with patch.object(adaptive_join, "choose", choose), looked_up(small=small):
        got = run_between(case, prepare, [(90, 3)], {}, epoch_rows=4, joins=("auto",))
    assert same_queries(case.expected(), got) is None
    assert len(looks) == 3
    assert min(looks.values()) >= 5


@pytest.mark.long
@pytest.mark.parametrize("order", [None, (), (1, 0, 2, 3)])
def test_of_runs_of_others_is_read_what_new_rows_meet(order: tuple[int, ...] | None) -> None:
    """In one step, and in both forms where one is chosen: two at a time all of the rows are read in
    the epoch in which what is kept is made.
    """
    stream = [at(500 * i, f':a :p {i} . :a :q :b . :b :q :a . :a :r "ab"') for i in range(12)]
    asked = query("SELECT *", "WINDOW :w { ?x :p ?n . ?x :q ?b . ?x :r ?s . ?c :q ?x }")
    case, rows_met, met = Case({S: tuple(stream)}, (asked,)), [0], join_state._rows

    def counted(*args: Any) -> Frame:
        found = met(*args)
        rows_met[0] += found.n
        return found

    form = "multiway" if order is None else "auto"
    choose = patch.object(adaptive_join, "choose", lambda figures: order)
    with looked_up(small=True), patch.object(join_state, "_rows", counted), choose:
        got = run_moved(case, turned, [(2, 3)], {}, epoch_rows=3, joins=(form,))
    assert same_queries(case.expected(), got) is None
    assert rows_met[0] >= 8


@examples(6)
@given(
    starred(), st.sampled_from((3, 5, 9, 1000)), lots, starts, deaths, modes,
    st.sampled_from(("", "moved", "moved", "divided")),
    st.sampled_from(("", "", "1MB,theta=4096")),
    st.sampled_from(("", "1d")),
)  # fmt: skip
def test_forms_that_change_do_not_show(
    case: Case, rows: int, lot: int, stops: list[tuple[int, int | None]],
    dies: dict[int, bool], mode: str, groups: str, memory: str, slices: str,
) -> None:  # fmt: skip
    def prepare(engine: Engine) -> None:
        engine._memory, engine._slices = Memory.parse(memory), slices
        if groups:
            heavy = groups_of(case) if groups == "divided" else ()
            engine._open().tables.dealing = Lots(lot, heavy).deal

    with patch.object(adaptive_join, "choose", Chosen(lot)), looked_up(small=lot % 2 == 0):
        got = run_between(
            case, prepare, stops, dies, epoch_rows=rows, sharing=mode, joins=("auto",)
        )
    assert same_queries(case.expected(), got) is None


@examples(9)
@given(starred(), st.sampled_from((3, 5, 9, 1000)), lots, starts, deaths, modes, forms)
def test_joins_in_one_step_do_not_show(
    case: Case, rows: int, lot: int, stops: list[tuple[int, int | None]],
    dies: dict[int, bool], mode: str, joins: tuple[str, ...],
) -> None:  # fmt: skip
    deal = Lots(lot, groups_of(case)).deal
    with looked_up(small=lot % 2 == 0):
        got = run_moved(case, deal, stops, dies, epoch_rows=rows, sharing=mode, joins=joins)
    assert same_queries(case.expected(), got) is None

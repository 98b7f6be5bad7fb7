"""Chains and circles of parts in one step, some of them at all partitions, say what joins of two
say: with another group table, another number of partitions and other divided groups at each epoch,
stops and deaths between, some engines told the one form and some the other, against the reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.frame import Frame
from levada.core.query_limits import Memory
from levada.engine.engine import Engine
from levada.engine.statistics import stream_statistics
from levada.operators import operator_registry
from levada.plan.execution import steps as s
from levada.plan.lowering import join_strategy
from levada.plan.sharing.sharing_modes import Sharing
from levada.plan.statistics.choose_join_strategy import Choice, candidates
from levada.plan.statistics.join_cost import Problem
from levada.testing.compare import same_queries
from support.example_counts import PATIENCE, examples
from support.generators import Case, CaseQuery, Clause, elements
from support.generators.vocabulary import STATIC
from support.heavy_key_cases import Lots, groups_of
from support.query_dsl import S, T, at, query
from support.star_join_cases import CLAUSES, OUTPUTS
from support.stepped_runs import run_between, run_moved

pytestmark = pytest.mark.timeout(PATIENCE)
lots = st.integers(0, 2**32 - 1)
starts = st.lists(
    st.tuples(st.integers(2, 9), st.none() | st.integers(1, 4)), min_size=1, max_size=3
)
deaths = st.dictionaries(st.integers(1, 8), st.booleans(), max_size=2)
SHAPES = (
    ("?x :q ?y", "?y :q ?z", "?z :q ?x"),
    ("?x :q ?y", "?y :q ?z", "?z :p ?n"),
    ("?x :p ?n", "?x :q ?y", "?y :q ?z", "?z :q ?x"),
    ("?x :q ?y", "?x :p ?n", "?y :q ?z", "?y :p ?m"),
    ("?a :q ?b", "?b :q ?c", "?c :q ?d", "?d :p ?n", "?a :p ?m"),
    ("?x :q ?y", "?y :q ?x", "?y :p ?n"),
    ("?x :q ?y", "?y :q ?z", "?y :p ?n", "?u :p ?n", "?u :q ?x"),
)
MORE = ("", "", "", " FILTER(?x != ?y)", " ?y :kind ?k", " FILTER(?n > 1)")


@st.composite
def chained(draw: st.DrawFn) -> Case:
    """One to three chains and circles over two streams."""
    late = draw(st.sampled_from((0, 0, 1500)))
    streams = {name: draw(elements(lateness=late, least=8)) for name in (S, T)}
    asked = [draw(_queries(f"q{i}")) for i in range(draw(st.integers(1, 3)))]
    return Case(streams, tuple(asked), late, STATIC)


KEYLESS = (
    ("{{ {w} ?x :q ?y }} }} UNION {{ {w} ?x :p ?n }} }} ", "{v} ?y :q ?z }}"),
    (
        "{{ {w} ?x :q ?y }} }} UNION {{ {w} ?x :p ?n }} }} ",
        "{{ {v} ?z :q ?y }} }} UNION {{ {v} ?z :r ?m }} }}",
    ),
    ("{{ {w} ?x :q ?y }} }} UNION {{ {w} ?z :p ?n }} }} ", "{v} ?x :q ?z }}"),
    ("{w} ?x :q :b }}", "{v} ?z :p ?m }}"),
    ("{w} ?x :q ?y }}", "{v} ?z :p ?m . ?m2 :q ?k }}"),
)
"""Parts whose common variables may all be unbound, and parts that have none."""


@st.composite
def keyless(draw: st.DrawFn) -> Case:
    """One or two such joins over two streams."""
    late = draw(st.sampled_from((0, 0, 1500)))
    streams = {name: draw(elements(lateness=late, least=6)) for name in (S, T)}
    asked = []
    for i in range(draw(st.integers(1, 2))):
        windows: dict[str, Clause | tuple[str, Clause]] = {
            w: (draw(st.sampled_from((S, T))), draw(st.sampled_from(CLAUSES))) for w in "wv"
        }
        places = {w: f"WINDOW :{w} {{" for w in "wv"}
        body = " ".join(part.format(**places) for part in draw(st.sampled_from(KEYLESS)))
        output = draw(st.sampled_from(OUTPUTS))
        asked.append(query("SELECT *", body, windows=windows, output=output, name=f"q{i}"))
    return Case(streams, tuple(asked), late, STATIC)


@st.composite
def _queries(draw: st.DrawFn, name: str) -> CaseQuery:
    windows: dict[str, Clause | tuple[str, Clause]] = {}
    within: dict[str, list[str]] = {}
    for part in draw(st.sampled_from(SHAPES)):
        w = draw(st.sampled_from(("w", "w", "v", "u"))) if within else "w"
        within.setdefault(w, []).append(part)
        if w not in windows:
            windows[w] = (draw(st.sampled_from((S, T))), draw(st.sampled_from(CLAUSES)))
    body = " ".join(f"WINDOW :{w} {{ {' . '.join(own)} }}" for w, own in within.items())
    body += draw(st.sampled_from(MORE))
    output = draw(st.sampled_from(OUTPUTS))
    return query("SELECT *", body, windows=windows, output=output, name=name)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows have been put together in one step."""
    found, in_pieces = [0], operator_registry.IN_PIECES[s.LinkedJoin]

    def counted(*args: Any) -> Iterator[Frame]:
        for rows in in_pieces(*args):
            found[0] += rows.n
            yield rows

    monkeypatch.setitem(operator_registry.IN_PIECES, s.LinkedJoin, counted)
    return found


@pytest.mark.parametrize("shape", SHAPES[:1])
def test_chains_and_circles_are_put_together_in_one_step(
    shape: tuple[str, ...], made: list[int]
) -> None:
    parts = ":a :q :b{k} . :b{k} :q :a . :a :q :a . :a :p {k} . :b1 :p {m}"
    stream = [at(500 * i, parts.format(k=i % 2, m=i % 3)) for i in range(24)]
    asked = query("SELECT *", f"WINDOW :w {{ {' . '.join(shape)} }}")
    case = Case({S: tuple(stream)}, (asked,))
    deal = Lots(7, groups_of(case)).deal
    got = run_moved(case, deal, [(5, 3), (9, 2)], {3: True}, epoch_rows=3, joins=("replicated",))
    assert same_queries(case.expected(), got) is None
    assert made[0] >= 8


class Lot:
    """One of the forms that a join could have, by lots of a seed; how many were in one step."""

    def __init__(self, seed: int) -> None:
        self.lots, self.linked = Random(seed), 0

    def __call__(self, problem: Problem, now: str | None = None) -> Choice:
        found = candidates(problem)
        chosen = self.lots.choice(found)
        self.linked += chosen.copied > 0
        return Choice(chosen, tuple(found))


def chosen_by(lot: Lot) -> AbstractContextManager[object]:
    """Forms by lots, also of streams of a few rows."""
    found = ExitStack()
    found.enter_context(patch.object(join_strategy, "choose", lot))
    found.enter_context(patch.object(stream_statistics, "MIN_SAMPLE_ROWS", 1))
    return found


@pytest.mark.long
def test_each_form_that_can_be_chosen_is_right() -> None:
    """Chains over partitions that come and go, each join by another variable of all there are."""
    parts = ":a :q :b{k} . :b{k} :q :a . :a :q :a . :a :p {k} . :b1 :p {m}"
    stream = [at(500 * i, parts.format(k=i % 2, m=i % 3)) for i in range(16)]
    asked = [query("SELECT *", f"WINDOW :w {{ {' . '.join(shape)} }}", name=f"q{i}")
             for i, shape in enumerate([*SHAPES[:2], SHAPES[5]])]  # fmt: skip
    case = Case({S: tuple(stream)}, tuple(asked))
    expected, linked = case.expected(), 0
    for seed in range(2):
        lot = Lot(seed)
        with chosen_by(lot):
            deal = Lots(seed, groups_of(case)).deal
            got = run_moved(case, deal, [(3, 3), (9, 2)], {3: True}, epoch_rows=3, joins=("auto",))
        assert same_queries(expected, got) is None
        linked += lot.linked
    assert linked >= 3


@examples(4)
@given(
    st.one_of(chained(), keyless()), st.sampled_from((3, 5, 9, 1000)), lots, starts, deaths,
    st.sampled_from(tuple(Sharing)),
    st.sampled_from((("auto",), ("auto",), ("auto", "binary"))),
    st.sampled_from(("", "", "1MB,theta=4096")),
)  # fmt: skip
def test_forms_that_are_chosen_do_not_show(
    case: Case, rows: int, lot: int, stops: list[tuple[int, int | None]],
    dies: dict[int, bool], mode: str, joins: tuple[str, ...], memory: str,
) -> None:  # fmt: skip
    def prepare(engine: Engine) -> None:
        engine._memory = Memory.parse(memory)
        engine._open().tables.dealing = Lots(lot, groups_of(case)).deal

    with chosen_by(Lot(lot)):
        got = run_between(case, prepare, stops, dies, epoch_rows=rows, sharing=mode, joins=joins)
    assert same_queries(case.expected(), got) is None


@examples(5)
@given(
    chained(), st.sampled_from((3, 5, 9, 1000)), lots, starts, deaths,
    st.sampled_from(tuple(Sharing)),
    st.sampled_from((("replicated",), ("replicated",), ("replicated", "binary"))),
    st.sampled_from(("", "", "1MB,theta=4096")),
    st.sampled_from(("", "", "1d")),
)  # fmt: skip
def test_joins_with_parts_at_all_partitions_do_not_show(
    case: Case, rows: int, lot: int, stops: list[tuple[int, int | None]],
    dies: dict[int, bool], mode: str, joins: tuple[str, ...], memory: str, slices: str,
) -> None:  # fmt: skip
    def prepare(engine: Engine) -> None:
        engine._memory, engine._slices = Memory.parse(memory), slices
        engine._open().tables.dealing = Lots(lot, groups_of(case)).deal

    got = run_between(case, prepare, stops, dies, epoch_rows=rows, sharing=mode, joins=joins)
    assert same_queries(case.expected(), got) is None

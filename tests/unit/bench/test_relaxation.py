"""Relaxing: the paper's example as it says it, rows of random operators, and that nothing smaller
would do.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from airport import MINUTE, Q1, Q1_JOIN, Q2, drawn
from bench.papers.streamreuse.model.conditions import Where, where
from bench.papers.streamreuse.model.descriptor import Descriptor, descriptor, part, usable
from bench.papers.streamreuse.model.explain import show, show_relaxed
from bench.papers.streamreuse.model.relaxation import compensation, least, relax, relaxable
from bench.papers.streamreuse.model.value_intervals import between, values
from bench.papers.streamreuse.model.windows import every, instants
from naive_rows import alone, random_data, report, rows_of, told

EXAMPLE = """\
CHECK-INS [5 min], FLIGHTS [5 min], every 1 min
equal: CHECK-INS.FLIGHT = FLIGHTS.NUM
where: FLIGHTS.CARRIER in ('CO' or 'DL')
columns: CHECK-INS.STATUS, CHECK-INS.VACANT SEATS, FLIGHTS.CARRIER, FLIGHTS.DEST, FLIGHTS.GATE, \
FLIGHTS.NUM, FLIGHTS.TERMINAL
for Q1: where FLIGHTS.CARRIER in ('DL') and FLIGHTS.TERMINAL in ('TERMINAL A'); \
CHECK-INS within 1 min; columns CHECK-INS.STATUS, FLIGHTS.DEST, FLIGHTS.GATE, FLIGHTS.NUM
for Q2: every 5 min; columns CHECK-INS.STATUS, CHECK-INS.VACANT SEATS, FLIGHTS.NUM"""

SOURCES = """\
FLIGHTS, on change
where: FLIGHTS.CARRIER in ('CO' or 'DL')
columns: FLIGHTS.CARRIER, FLIGHTS.DEST, FLIGHTS.GATE, FLIGHTS.NUM, FLIGHTS.TERMINAL
CHECK-INS, on change
where: all
columns: CHECK-INS.FLIGHT, CHECK-INS.STATUS, CHECK-INS.VACANT SEATS"""


def test_the_papers_example() -> None:
    assert show_relaxed([("Q1", Q1_JOIN), ("Q2", Q2)]) == EXAMPLE
    relaxed = relax(Q1_JOIN, Q2)
    leaves = [show(part(relaxed, {source})) for source in ("FLIGHTS", "CHECK-INS")]
    assert "\n".join(leaves) == SOURCES


def test_what_an_operator_of_the_whole_query_wants_of_the_join() -> None:
    """NUM, GATE, DEST and STATUS, as the paper deploys it before the second query."""
    assert {c.partition(".")[2] for c in Q1_JOIN.columns} == {"NUM", "GATE", "DEST", "STATUS"}
    assert part(part(Q1, {"FLIGHTS", "CHECK-INS"}), {"FLIGHTS"}) == part(Q1, {"FLIGHTS"})


def test_neither_order_nor_direction_keeps_equal_operators_apart() -> None:
    turned = descriptor(
        {"CHECK-INS": 5 * MINUTE, "FLIGHTS": 5 * MINUTE},
        [("FLIGHTS.NUM", "CHECK-INS.FLIGHT")],
        where({"FLIGHTS.CARRIER": values("CO", "DL")}),
        ["CHECK-INS.VACANT SEATS", "CHECK-INS.FLIGHT", "CHECK-INS.STATUS"],
        instants=every(5 * MINUTE, 10 * MINUTE),
    )
    assert turned == Q2 and hash(turned) == hash(Q2)


@pytest.mark.parametrize("seed", range(60))
def test_relaxed_and_compensated_is_each(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data, one = random_data(rng), drawn(rng)
    other = drawn(rng)
    while not relaxable(one, other):
        other = drawn(rng)
    relaxed = relax(one, other)
    assert relaxed == relax(other, one) == least([one, other, one])
    for wanted in (one, other):
        now = report(wanted)
        assert relaxed.windows.instants.has(now)
        made = rows_of(relaxed, [data[source] for source in relaxed.sources], now)
        assert told(wanted, rows_of(wanted, [made], now)) == alone(wanted, data, now)
    assert compensation(relaxed, relaxed).nothing


def _small() -> list[Descriptor]:
    """All operators over a stream of two attributes with a few conditions and windows."""
    boxes = [values(1), values(2), between(1, 2), values(1, 2), between(0), None]
    steps = [every(2), every(4), every(4, 1), instants([(2, 0), (4, 1)])]
    found = []
    for box, text, columns, ranges, step in product(
        boxes, ([], ["p"], ["q"], ["p q"]), ({"a"}, {"b"}, {"a", "b"}), (1, 2), steps
    ):
        told_ = [frozenset((t, ("S.b",)) for t in clause.split()) for clause in text]
        conditions = where({} if box is None else {"S.a": box}, told_)
        shown = [f"S.{c}" for c in columns]
        found.append(descriptor({"S": ranges}, (), conditions, shown, instants=step))
    return found


def test_nothing_smaller_serves_both() -> None:
    """Whatever of the small operators is usable for both is usable for the relaxed one."""
    space = _small()
    rng = np.random.default_rng(1)
    for _ in range(60):
        one, other = (space[int(i)] for i in rng.integers(0, len(space), 2))
        relaxed = relax(one, other)
        assert usable(relaxed, one) and usable(relaxed, other)
        assert all(usable(d, relaxed) for d in space if usable(d, one) and usable(d, other))


def test_relaxing_does_not_depend_on_order() -> None:
    rng = np.random.default_rng(2)
    space = _small()
    for _ in range(200):
        some = [space[int(i)] for i in rng.integers(0, len(space), 4)]
        assert least(some) == least(some[::-1])


def test_a_product_of_many_clauses_stays_implied_and_small() -> None:
    def clauses(prefix: str) -> Where:
        return where({}, [frozenset({(f"{prefix}{i}", ("S.a",))}) for i in range(12)])

    common = where({}, [frozenset({("c", ("S.a",))})])
    assert (clauses("x") & common) | (clauses("y") & common) == common


def test_reports_are_a_union_and_never_a_common_divisor() -> None:
    both = every(4) | every(6)
    assert [t for t in range(13) if both.has(t)] == [0, 4, 6, 8, 12]
    assert every(1) | every(5) == every(1)
    assert not every(2).covers(every(4, 1)) and every(2, 1).covers(every(4, 3))


def _grouped(group: str, function: str = "COUNT", ranges: int = 5, **box: int) -> Descriptor:
    return descriptor(
        {"S": ranges},
        (),
        where({f"S.{a}": values(v) for a, v in box.items()}),
        instants=every(5),
        group=[f"S.{a}" for a in group],
        aggregates=[(function, "S.v")],
    )


def test_groupings_serve_coarser_ones_and_conditions_on_their_groups() -> None:
    fine = _grouped("ab")
    assert usable(fine, _grouped("a")) and not usable(_grouped("a"), fine)
    assert usable(fine, _grouped("ab", a=1)) and usable(fine, _grouped("b", a=1))
    assert not usable(fine, _grouped("ab", c=1)), "the rows of c = 1 can't be told any more"
    assert not usable(fine, _grouped("ab", ranges=4)), "an aggregate can't be cut"
    assert compensation(fine, _grouped("a")).group == frozenset({"S.a"})


def test_averages_follow_from_sums_and_counts_also_of_finer_groups() -> None:
    fine, average = _grouped("ab"), _grouped("a", "AVG")
    assert not usable(fine, average)
    both = replace(fine, aggregates=fine.aggregates | {("SUM", "S.v")})
    assert usable(both, average) and usable(both, _grouped("ab", "AVG"))
    kept = replace(fine, aggregates=frozenset({("AVG", "S.v"), ("GROUP_CONCAT", "S.v")}))
    assert not usable(kept, average) and not usable(kept, _grouped("a", "GROUP_CONCAT"))
    assert usable(kept, _grouped("ab", "GROUP_CONCAT"))


def test_groupings_relax_in_functions_and_conditions_on_their_groups_alone() -> None:
    one, other = _grouped("a", a=1), _grouped("a", "SUM", a=2)
    both = relax(one, other)
    assert usable(both, one) and usable(both, other)
    assert both.aggregates == one.aggregates | other.aggregates
    assert not relaxable(_grouped("a", b=1), _grouped("a", b=2))
    assert not relaxable(_grouped("a"), _grouped("a", ranges=4))

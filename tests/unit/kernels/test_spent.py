"""The account of a task: columns that live are charged once, and queries are looked at rarely."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

from levada.core.expression_budget import MIN_CHARGED_ROWS, Charge, ExpressionBudget
from levada.core.frame import Frame
from levada.core.query_limits import QueryLimits
from levada.errors import ExcessError
from levada.kernels.terms.term_lookup import TermLookup

ROWS = 1000
COLUMN = 8 * ROWS  # bytes


def frame(op: int = 0, columns: int = 1) -> Frame:
    """Rows of one member: ``op`` and so many other columns of eight bytes a row."""
    others = {f"x{i}": np.full(ROWS, i, np.int64) for i in range(columns)}
    return Frame({"op": np.full(ROWS, op, np.int64), **others}, ROWS)


def test_columns_are_charged_once_and_until_they_are_dropped() -> None:
    spent, rows = ExpressionBudget(), frame(columns=2)
    spent.hold(1, rows)
    more = rows.with_(y=np.zeros(ROWS, np.int64))
    spent.hold(2, more)
    spent.hold(3, more.slice(10, 900))
    assert spent.now("made") == 4 * COLUMN
    del rows
    assert spent.now("made") == 4 * COLUMN
    kept = more["y"]
    del more
    assert spent.now("made") == COLUMN
    del kept
    assert spent.now("made") == 0


def test_a_chain_of_operators_that_copy_all_rows_is_charged_for_what_lives() -> None:
    spent, rows = ExpressionBudget(QueryLimits(made=5 * COLUMN)), frame()
    for node in range(50):
        rows = rows.take(np.arange(ROWS))
        spent.hold(node, rows)
    kept = []
    with pytest.raises(ExcessError, match="more than 40,000 bytes of rows") as found:
        for node in range(50):
            kept.append(rows.take(np.arange(ROWS)))
            spent.hold(node, kept[-1])
    assert found.value.limit == "made" and len(kept) == 2


def test_few_rows_cost_no_look() -> None:
    spent = ExpressionBudget(QueryLimits(made=1))
    spent.hold(1, Frame({"op": np.zeros(MIN_CHARGED_ROWS - 1, np.int32)}, MIN_CHARGED_ROWS - 1))
    assert spent.now("made") == 0


def test_queries_are_looked_at_once_for_each_part_that_the_heaviest_has_left() -> None:
    looks: list[list[Charge]] = []

    def heaviest(charges: Sequence[Charge], limit: float) -> tuple[float, int, int]:
        looks.append(list(charges))
        return limit / 2, -1, -1

    spent = ExpressionBudget(QueryLimits(made=4 * COLUMN), heaviest=heaviest)
    kept = [frame(op=i) for i in range(20)]
    for node, rows in enumerate(kept):
        spent.hold(node, rows)
    assert spent.now("made") == 40 * COLUMN
    assert len(looks) == 1 + (40 - 6) // 2
    assert looks[0][1].node == 1 and looks[0][1].amount == 2 * COLUMN
    members = looks[0][1].rows
    assert members is not None and members.tolist() == [0, ROWS]


def test_what_is_asked_for_counts_before_it_is_made() -> None:
    spent, rows = ExpressionBudget(QueryLimits(made=3 * COLUMN)), frame()
    spent.hold(1, rows)
    spent.ask(1, COLUMN, lambda: rows["op"])
    with pytest.raises(ExcessError, match="bytes of rows"):
        spent.ask(1, 4 * COLUMN, lambda: rows["op"])
    assert spent.now("made") == 2 * COLUMN


def test_texts_are_charged_until_they_are_released() -> None:
    pool = TermLookup(0)
    for turn in (1, 2):
        pool.spent.turn = turn
        pool.identify(pl.Series([f'"{turn} {i}"' for i in range(1000)]))
    both = pool.spent.now("made")
    x, y = pool.tables[1].x[:500], pool.tables[1].y[:500]
    pool.release(0, [(x, y)])
    assert 0.2 * both < pool.spent.now("made") < 0.3 * both
    assert [part.node for part in pool.spent.parts_of(pool.tables[0].data, 1000)] == [2]
    pool.release(0, [])
    assert pool.spent.now("made") == 0


def test_rows_without_members_are_charged_to_their_operator() -> None:
    spent = ExpressionBudget(QueryLimits(made=1 << 20))
    rows = Frame({"v": np.zeros(1000, np.int64)}, 1000)
    spent.hold(7, rows)
    assert spent.by_node("made") == {7: 8000}


@pytest.mark.parametrize("start", [0, 8, 24])
def test_columns_that_share_an_array_are_charged_to_their_own_members(start: int) -> None:
    """As those of a frame that came from another task, which are views of its bytes."""
    looked: list[Charge] = []

    def heaviest(charges: Sequence[Charge], limit: float) -> tuple[float, int, int]:
        looked.extend(charges)
        return limit + 1, 7, 0

    op = np.repeat(np.array([0, 3], np.int64), [10, ROWS - 10])
    blob = np.zeros(start + 2 * COLUMN, np.uint8)
    blob[start : start + COLUMN] = op.view(np.uint8)
    views = [blob[start + i * COLUMN : start + (i + 1) * COLUMN].view(np.int64) for i in (0, 1)]
    spent = ExpressionBudget(QueryLimits(made=COLUMN), heaviest=heaviest)
    with pytest.raises(ExcessError):
        spent.hold(7, Frame({"op": views[0], "x": views[1]}, ROWS))
    assert spent.by_node("made") == {7: 2 * COLUMN}
    ((node, rows, amount),) = looked
    assert (node, amount) == (7, 2 * COLUMN)
    assert rows is not None
    assert rows.tolist() == [10, 0, 0, ROWS - 10]


def test_columns_are_followed_only_where_they_could_be_too_much() -> None:
    spent, kept = ExpressionBudget(QueryLimits(made=10 * COLUMN)), [frame() for _ in range(4)]
    for node, rows in enumerate(kept):
        spent.hold(node, rows)
    spent.hold(9, frame())
    assert not spent._columns
    spent.hold(5, kept[0])
    assert len(spent._columns) == 8, "what lives, each column once"
    with pytest.raises(ExcessError):
        for node in range(2):
            kept.append(frame())
            spent.hold(node, kept[-1])
    assert spent.now("made") == 12 * COLUMN


def test_the_seconds_of_members_are_by_their_rows() -> None:
    seconds = iter(np.arange(0, 1000, 10.0))
    looked: list[Charge] = []

    def heaviest(charges: Sequence[Charge], limit: float) -> tuple[float, int, int]:
        looked.extend(charges)
        return limit, -1, -1

    spent = ExpressionBudget(QueryLimits(cpu=25), clock=lambda: next(seconds), heaviest=heaviest)
    spent.turn = 3
    for op in ([0, 0, 2, 0], [1], [0, 0, 0, 0]):
        account = spent.account(np.array(op, np.int32))
        account.start()
        account.look()
    ((node, rows, amount),) = looked
    assert (node, amount) == (3, 30)
    assert rows is not None and rows.tolist() == [17.5, 10, 2.5]
    alone = spent.account()
    alone.start()
    with patch("levada.core.expression_budget.np.bincount") as count:
        alone.look()
    assert not count.called

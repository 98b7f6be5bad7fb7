"""Where rows are: an exchange comes only where equal keys are not together yet."""

from dataclasses import replace

import pytest

from levada.core.expressions import Var
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Iri
from levada.plan.physical import build
from levada.plan.physical.operators import HOME, Op
from levada.plan.physical.partitioning import LOST, join_keys, place, place_as_input, place_by_keys

BASE = build.match(
    TriplePattern(Var("x"), Iri("http://e/p"), Var("y")), "http://e/s", (), 0, raw=False
)


def rows(*variables: str, stage: int = 0, placed: tuple[str, ...] = (), maybe: str = "") -> Op:
    """An operator whose rows are in a stage, partitioned by ``placed``."""
    names = frozenset(maybe)
    return replace(BASE, variables=variables, stage=stage, placed=placed, maybe=names)


@pytest.mark.parametrize(
    ("inputs", "stage", "exchange"),
    [
        ([rows("x")], 1, [("x",)]),
        ([rows("x", stage=1, placed=("x",))], 1, [None]),
        ([rows("x", "y", stage=1, placed=("y",))], 2, [("x",)]),
        ([rows("x", stage=1, placed=("x",)), rows("x")], 1, [None, ("x",)]),
        ([rows("x", stage=1, placed=("x",)), rows("x", stage=1)], 2, [("x",), ("x",)]),
        ([rows("x", stage=1, placed=("x",)), rows("x", stage=3, placed=("x",))], 3, [("x",), None]),
    ],
)
def test_a_join_is_in_the_first_stage_in_which_its_keys_can_be_together(
    inputs: list[Op], stage: int, exchange: list[tuple[str, ...] | None]
) -> None:
    assert place(tuple(inputs), ("x",)) == (stage, tuple(exchange))


def test_what_is_at_home_is_sent_there_again() -> None:
    """All rows in one place are a partitioning by nothing; who asks for it cannot tell it from
    rows that are anywhere.
    """
    assert place((rows("x", stage=1, placed=HOME),), HOME) == (2, (HOME,))


@pytest.mark.parametrize(
    ("op", "keys", "stage", "moved"),
    [
        (rows("x", "y", stage=1, placed=("x",)), ("x", "y"), 1, False),
        (rows("x", "y", stage=1, placed=("x", "y")), ("x",), 2, True),
        (rows("x", stage=1, placed=HOME), ("x",), 1, False),
        (rows("x", stage=1, placed=()), ("x",), 2, True),
        (rows("x", stage=1, placed=LOST), ("x",), 2, True),
        (rows("x"), (), 1, True),
    ],
)
def test_groups_stay_where_a_part_of_their_keys_has_brought_them(
    op: Op, keys: tuple[str, ...], stage: int, moved: bool
) -> None:
    found, exchange, placed = place_by_keys(op, keys)
    assert (found, exchange != (None,)) == (stage, moved)
    assert placed == ((keys or HOME) if moved else op.placed)


def test_a_join_goes_where_one_side_is_already() -> None:
    left, right = rows("a", "b", "c", stage=1, placed=("b",)), rows("b", "c")
    assert join_keys(left, right) == (("b", "c"), ("b", "c"), ("b",))
    assert join_keys(right, left)[2] == ("b",)


def test_a_join_of_rows_that_are_anywhere_goes_by_the_first_key() -> None:
    assert join_keys(rows("a", "b"), rows("b", "a")) == (("a", "b"), ("a", "b"), ("a",))


def test_what_may_be_unbound_is_no_key() -> None:
    shared, keys, placed = join_keys(rows("a", "b", maybe="a"), rows("a", "b"))
    assert (shared, keys, placed) == (("a", "b"), ("b",), ("b",))
    left = rows("a", "b", stage=1, placed=("a",), maybe="a")
    assert join_keys(left, rows("a", "b"))[2] == ("b",)


def test_a_product_is_made_at_home() -> None:
    assert join_keys(rows("a"), rows("b")) == ((), (), HOME)


def test_an_operator_that_takes_rows_where_they_are_changes_nothing() -> None:
    assert place_as_input(rows("x", stage=2, placed=("x",))) == (2, (None,), ("x",))

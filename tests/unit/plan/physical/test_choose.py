"""Which form a join gets by figures of its parts: decisions that anybody would make."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from levada.plan.statistics.choose_join_strategy import TWO, Choice, candidates, choose
from levada.plan.statistics.join_cost import (
    BinaryJoin,
    Part,
    Problem,
    cost_of_binary_joins,
    cost_of_one_step,
    parts_of,
)
from levada.plan.statistics.statistics import Values, agreement_probability

SECONDS = 10  # that windows are long


def part(rows: float, **values: Values) -> Part:
    """So many rows in the window."""
    return Part(rows / SECONDS, rows, 100, values)


def even(many: float) -> Values:
    return Values.even(many)


def chain(*parts: Part, partitions: int = 4) -> Problem:
    """Parts that are joined in their order, each join by another variable."""
    two: BinaryJoin | int = 0
    for i in range(1, len(parts)):
        shared = next(v for v in parts[i].values if any(v in p.values for p in parts[:i]))
        two = BinaryJoin(two, i, (shared,), (True, True))
    assert isinstance(two, BinaryJoin)
    return Problem(parts, two, partitions)


def abc(a: float, b: float, c: float, *, keys: float = 20_000, partitions: int = 4) -> Problem:
    """A and B by ?x, B and C by ?y."""
    x, y = even(keys), even(keys)
    return chain(part(a, x=x), part(b, x=x, y=y), part(c, y=y), partitions=partitions)


def best_of_one_step(choice: Choice) -> str:
    return next(one.by for one in choice.candidates if one.by != TWO)


def test_a_small_end_of_a_chain_goes_to_all() -> None:
    choice = choose(abc(20_000, 20_000, 200))
    assert (choice.chosen.by, choice.chosen.form, choice.chosen.copied) == ("x", "replicated", 1)


def test_the_small_part_is_copied_whichever_it_is() -> None:
    """Two at a time from a small part on is cheap, too."""
    choice = choose(abc(200, 20_000, 20_000))
    assert choice.chosen.by == TWO
    assert best_of_one_step(choice) == "y"


def test_parts_of_one_size_over_many_partitions_stay_two_at_a_time() -> None:
    choice = choose(abc(20_000, 20_000, 20_000, partitions=32))
    assert choice.chosen.by == TWO
    assert choice.chosen.form == "staged, two at a time"
    assert all(choice.why_not(one) for one in choice.candidates if one != choice.chosen)


def test_what_is_joined_on_the_way_is_not_made_where_it_is_large() -> None:
    """20 rows a key in A and B, of which hardly one meets C."""
    x = even(1000)
    wide = chain(part(20_000, x=x), part(20_000, x=x, y=even(20_000)), part(1000, y=even(10**6)))
    choice = choose(wide)
    assert choice.chosen.by == "x"
    two = next(c for c in choice.candidates if c.by == TWO)
    assert two.cost.state > 5 * choice.chosen.cost.state
    assert two.cost.bytes > 5 * choice.chosen.cost.bytes


@pytest.mark.parametrize("bad", [even(3), Values.with_heaviest(20_000, 0.4)])
def test_a_variable_of_few_values_or_of_a_heavy_one_loses(bad: Values) -> None:
    """Both ends are small, so either could be copied: what decides is how even rows are."""
    good = even(20_000)
    ends = part(300, x=good), part(300, y=good)
    middle = part(20_000, x=good, y=good)
    tied = chain(ends[0], middle, ends[1], partitions=8)
    assert cost_of_one_step(tied, "x").whole == pytest.approx(cost_of_one_step(tied, "y").whole)
    for name, other in (("x", "y"), ("y", "x")):
        odd = replace(middle, values={**middle.values, name: bad})
        problem = Problem((ends[0], odd, ends[1]), tied.two, 8)
        assert (
            cost_of_one_step(problem, name).busiest > 1.2 * cost_of_one_step(problem, other).busiest
        )
        assert best_of_one_step(choose(problem)) == other


def test_with_one_partition_nothing_is_copied_twice() -> None:
    problem = abc(20_000, 20_000, 500, partitions=1)
    assert cost_of_one_step(problem, "x").rows == pytest.approx(4050)
    assert cost_of_one_step(problem, "x").cpu == pytest.approx(
        cost_of_one_step(problem, "x").busiest
    )
    assert cost_of_one_step(abc(20_000, 20_000, 500), "x").rows == pytest.approx(4000 + 4 * 50)


def test_a_circle_is_closed_by_what_both_ends_share() -> None:
    x, y, z = even(100), even(100), even(100)
    parts = part(1000, x=x, y=y), part(1000, y=y, z=z), part(1000, z=z, x=x)
    two = BinaryJoin(BinaryJoin(0, 1, ("y",), (True, True)), 2, ("z",), (True, True))
    problem = Problem(parts, two, 4)
    assert problem.kept_rows((0, 1)) == pytest.approx(10_000)
    assert problem.kept_rows((0, 1, 2)) == pytest.approx(1000)
    assert problem.new_rows((0, 1, 2)) == pytest.approx(300)
    assert {c.copied for c in candidates(problem)} == {0, 1}


def test_what_runs_stays_until_another_form_costs_half() -> None:
    tied = abc(20_000, 20_000, 20_000, partitions=4)
    first = choose(tied)
    for one in first.candidates:
        again = choose(tied, now=one.by)
        least = again.candidates[0]
        assert (again.chosen.by == one.by) == (one.cost.whole <= 2 * least.cost.whole)
    grown = abc(20_000, 20_000, 10, partitions=4)
    assert choose(grown, now=TWO).chosen.by == TWO  # better, but not by half
    wide = abc(20_000, 20_000, 10, keys=500, partitions=4)
    assert choose(wide, now=TWO).chosen.by == "x"


def test_a_choice_asked_again_with_its_own_answer_is_the_same() -> None:
    for sizes in ((20_000, 20_000, 200), (9, 20_000, 20_000), (500, 500, 500)):
        for partitions in (1, 3, 16):
            problem = abc(*sizes, partitions=partitions)
            first: Choice = choose(problem)
            assert choose(problem, now=first.chosen.by).chosen.by == first.chosen.by


def test_two_at_a_time_counts_what_is_made_and_moved() -> None:
    problem = abc(1000, 1000, 1000, keys=100)
    cost = cost_of_binary_joins(problem)
    between = problem.new_rows((0, 1))
    assert between == pytest.approx(2 * 100 * 1000 / 100)
    assert cost.rows == pytest.approx(300 + between)
    assert cost.bytes == pytest.approx(300 * 100 + between * 200)
    assert cost.state == pytest.approx(3000 * 100 + problem.kept_rows((0, 1)) * 200)
    assert parts_of(problem.two) == (0, 1, 2)


def test_how_often_rows_agree_follows_from_what_was_seen() -> None:
    rng = np.random.default_rng(5)
    one, other = (rng.integers(0, 500, 4000).astype(np.uint64) for _ in range(2))
    assert agreement_probability(Values.from_rows(one), Values.from_rows(other)) == pytest.approx(
        1 / 500, rel=0.2
    )
    strange = Values.from_rows(other + np.uint64(10**6))
    assert agreement_probability(Values.from_rows(one), strange) < 1e-6
    assert (
        agreement_probability(Values.with_heaviest(100, 0.5), Values.with_heaviest(100, 0.5)) > 0.25
    )
    assert agreement_probability(even(1), even(1)) == 1


def test_heavy_values_show_in_the_busiest_partition() -> None:
    assert Values.even(100_000).busiest(4) == pytest.approx(0.25, abs=0.001)
    assert Values.even(2).busiest(4) == 0.5
    assert Values.with_heaviest(1000, 0.4).busiest(4) == pytest.approx(0.55)
    assert Values.with_heaviest(1000, 0.4).busiest(1) == 1

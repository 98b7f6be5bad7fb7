"""Members by columns beside lists of them."""

from __future__ import annotations

from random import Random

import numpy as np

from levada.core.rdf_terms import Iri, Literal
from levada.plan.execution.member_table import MemberColumns, MemberTable
from levada.plan.execution.shapes import Member

TERMS = (None, Iri("e:a"), Iri("e:b"), Literal("a"), Literal("1"))


def drawn(rng: Random, number: int, *, ragged: bool) -> Member:
    """A member that differs from others in something."""
    width = rng.randrange(4) if ragged else 2
    return Member(
        (number, rng.randrange(3)),
        (),
        rng.choice([(), ("e:s",)]),
        rng.choice([0, 0, 7]),
        tuple(rng.choice(TERMS) for _ in range(width)),
        query=rng.choice(["", f"q{number}"]),
        show_empty=rng.random() < 0.1,
    )


def test_columns_that_grow_are_a_list_of_members(random_seed: int) -> None:
    rng = Random(random_seed)
    for turn in range(40):
        held, known = MemberColumns(), list[Member]()
        there = set[int]()
        ragged = bool(turn % 2)
        for number in range(rng.choice([1, 3, 40])):
            member = drawn(rng, number, ragged=ragged)
            assert held.find(member) == -1
            assert held.add(member) == number
            known.append(member)
            there.add(number)
            if rng.random() < 0.2:
                gone = rng.choice(sorted(there))
                held.remove(gone)
                there.discard(gone)
        assert [held[at] for at in range(len(held))] == known
        assert [held.find(m) for m in known] == [
            at if at in there else -1 for at in range(len(known))
        ]
        assert held.living_numbers() == sorted(there)
        chosen = rng.sample(range(len(known)), rng.randint(1, len(known)))
        one, other = held.table(chosen), MemberTable.from_members([known[at] for at in chosen])
        assert one == other and list(one) == [known[at] for at in chosen] == list(other)
        assert [one[i] for i in range(-len(one), 0)] == list(one[:])
        check_columns(one, [known[at] for at in chosen])
        for number in range(len(known), len(known) + 3):  # also behind a few that were sealed
            known.append(drawn(rng, number, ragged=ragged))
            assert held.add(known[-1]) == number
        assert [held[at] for at in range(len(held))] == known


def check_columns(table: MemberTable, members: list[Member]) -> None:
    """What is asked by columns is what members say."""
    assert list(table.each_constants()) == [m.constants for m in members]
    assert list(table.each_query()) == [m.query for m in members]
    assert list(table.each_stream()) == [m.streams for m in members]
    assert [table.query_at(i) for i in range(len(members))] == [m.query for m in members]
    assert [table.inputs_at(i) for i in range(len(members))] == [m.inputs for m in members]
    np.testing.assert_array_equal(table.inputs.T, [m.inputs for m in members])
    columns = table.columns_of_constants()
    for i, member in enumerate(members):
        own = [column[i] for column in columns]
        assert own[: len(member.constants)] == list(member.constants)
        assert own[len(member.constants) :] == [None] * (len(columns) - len(member.constants))


def test_a_column_in_which_all_are_the_same_is_one_value() -> None:
    table = MemberTable.from_members([Member((i,), query="q", start=i) for i in range(9)])
    assert (len(table.query), len(table.start), len(table)) == (1, 9, 9)

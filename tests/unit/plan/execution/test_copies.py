"""Rows of divided groups go to all who share them, others to their own partition, in order."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.plan.execution.key_group_table import (
    Division,
    GroupTable,
    SplitKeyGroup,
    deal_round_robin,
    divide_groups,
)
from levada.plan.execution.splittable_joins import Copies

JOIN, OTHER = 7, 8


@st.composite
def tables(draw: st.DrawFn) -> GroupTable:
    parts = draw(st.integers(2, 5))
    table = deal_round_robin(draw(st.integers(1, 12)), parts)
    heavy = []
    for group in draw(st.sets(st.integers(0, table.groups - 1))):
        home = int(table.partition[group])
        others = draw(st.sets(st.sampled_from([p for p in range(parts) if p != home]), min_size=1))
        heavy.append(SplitKeyGroup(group, (home, *others)))
    return divide_groups(table, Division(tuple(heavy), (JOIN,)))


@given(tables(), st.lists(st.integers(0, 11), max_size=20))
def test_a_row_goes_to_all_who_share_its_group(table: GroupTable, drawn: list[int]) -> None:
    group = np.array([g % table.groups for g in drawn], np.uint16)
    target = table.partition[group].astype(np.int32)
    copies = Copies(table)
    assert copies.find_targets(OTHER, group, target) is None
    found = copies.find_targets(JOIN, group, target)
    shared = {h.group: h.parts for h in table.division.heavy}
    wanted = [(i, p) for i, g in enumerate(group.tolist()) for p in shared.get(g, (target[i],))]
    if found is None:
        assert not shared.keys() & set(group.tolist())
    else:
        assert list(zip(found.rows.tolist(), found.target.tolist(), strict=True)) == wanted

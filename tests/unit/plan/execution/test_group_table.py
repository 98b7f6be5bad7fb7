"""Group tables: what they say, how they are written, and what none may say."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.errors import CheckpointError
from levada.plan.encoding.plan_codec import encode_groups, read_groups
from levada.plan.execution.key_group_table import GroupTable, deal_round_robin


@st.composite
def tables(draw: st.DrawFn) -> GroupTable:
    groups, partitions = draw(st.integers(1, 300)), draw(st.integers(1, 9))
    moved = draw(st.lists(st.integers(0, groups - 1), unique=True))
    to = draw(st.lists(st.integers(0, partitions - 1), min_size=len(moved), max_size=len(moved)))
    version = draw(st.integers(1, 99))
    return GroupTable(
        version, groups, partitions, np.array(moved, np.int32), np.array(to, np.int32)
    )


@given(tables())
def test_groups_are_dealt_but_for_those_that_are_moved(table: GroupTable) -> None:
    moved = dict(zip(table.moved.tolist(), table.to.tolist(), strict=True))
    wanted = [moved.get(g, g % table.partitions) for g in range(table.groups)]
    assert table.partition.tolist() == wanted


@given(tables())
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, t: GroupTable) -> None:
    path = tmp_path_factory.mktemp("table") / "t"
    path.write_bytes(encode_groups(t))
    read = read_groups(path)
    assert (read.version, read.groups, read.partitions) == (t.version, t.groups, t.partitions)
    assert read.partition.tolist() == t.partition.tolist()


@pytest.mark.parametrize(
    ("moved", "to"), [([64], [0]), ([-1], [0]), ([0], [4]), ([0], [-1]), ([0, 1], [0])]
)
def test_a_group_or_partition_that_there_is_not_is_refused(
    tmp_path: Path, moved: list[int], to: list[int]
) -> None:
    path, table = tmp_path / "t", deal_round_robin(64, 4)
    object.__setattr__(table, "moved", np.array(moved, np.int32))
    object.__setattr__(table, "to", np.array(to, np.int32))
    path.write_bytes(encode_groups(table))
    with pytest.raises(CheckpointError, match=r"group that is moved|group's partition"):
        read_groups(path)


def test_the_first_table_is_even() -> None:
    sizes = np.bincount(deal_round_robin(65_536, 48).partition)
    assert len(sizes) == 48
    assert sizes.max() - sizes.min() <= 1

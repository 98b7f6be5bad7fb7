"""Where work goes changes no result: random queries by random placements of groups, readers and
tasks, stepped in this process, against the reference.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import Case, cases, cql_cases, cql_view_cases, entailment_cases
from examples import PATIENCE, examples
from levada.engine.engine import Engine
from levada.placement.placement import group_name
from levada.plan.sealed.group_table import GroupTable, dealt
from levada.runtime.local import LocalExecutor
from levada.testing.compare import same_queries
from stepped import run_between, run_case

pytestmark = pytest.mark.timeout(PATIENCE)
both = cases(most=4) | cql_cases(most=4) | cql_view_cases(most=2) | entailment_cases(most=3)
MACHINES = 3


def by_lot(seed: int, groups: int, streams: Iterable[str]) -> str:
    """Some of the groups, the readers of streams, and tasks of a stage on machines by lot."""
    rng = np.random.default_rng(seed)
    machine = {
        group_name(g, groups): int(rng.integers(MACHINES))
        for g in range(groups)
        if rng.random() < 0.8
    }
    machine |= {name: int(rng.integers(MACHINES)) for name in streams}
    machine |= {f"1.{p}": int(rng.integers(MACHINES)) for p in range(MACHINES)}
    return json.dumps({"levada": "placement", "machines": MACHINES, "machine": machine})


@examples(8)
@given(
    both,
    st.sampled_from((1, 3, 1000)),
    st.sampled_from((3, 4, 7)),
    st.sampled_from((1, 16, 4096)),
    st.integers(0, 2**32 - 1),
)
def test_no_placement_shows(case: Case, rows: int, parts: int, groups: int, lot: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.json"
        path.write_text(by_lot(lot, groups, case.streams))
        with patch("stepped.Engine", partial(Engine, place=path)):
            got = run_case(case, epoch_rows=rows, partitions=parts)
    assert same_queries(case.expected(), got) is None


def moving(seed: int, epoch: int, table: GroupTable) -> GroupTable | None:
    """Before some epochs half of the groups go elsewhere, among so many partitions or more."""
    rng = np.random.default_rng((seed, epoch))
    parts = int(rng.integers(MACHINES, MACHINES + 3))
    if rng.random() < 0.3:
        return None
    to = table.partition.astype(np.int32)
    moved = (rng.random(table.groups) < 0.5) | (to >= parts)
    to[moved] = rng.integers(0, parts, np.count_nonzero(moved))
    other = np.flatnonzero(to != dealt(table.groups, parts).partition).astype(np.int32)
    return GroupTable(1, table.groups, parts, other, to[other])


starts = st.lists(
    st.tuples(st.integers(2, 9), st.none() | st.integers(MACHINES, MACHINES + 2)),
    min_size=1,
    max_size=3,
)
deaths = st.dictionaries(st.integers(1, 8), st.booleans(), max_size=2)


@examples(2)
@given(both, st.sampled_from((3, 9)), st.integers(0, 2**32 - 1), starts, deaths)
def test_no_placement_shows_through_moves_attempts_and_replays(
    case: Case, rows: int, lot: int, stops: list[tuple[int, int | None]], dies: dict[int, bool]
) -> None:
    """Counted and placed, with groups that move, starts over other numbers of partitions and deaths
    between; each task has an attempt before of which nothing becomes.
    """
    run_job = LocalExecutor.run

    def twice(self: LocalExecutor, job: Any) -> Any:
        run_job(self, job)
        return run_job(self, job)

    def prepare(engine: Engine) -> None:
        engine._open().tables.dealing = partial(moving, lot)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.json"
        path.write_text(by_lot(lot, 16, case.streams))
        with (
            patch("stepped.Engine", partial(Engine, place=path, slices="1d")),
            patch.object(LocalExecutor, "run", twice),
        ):
            got = run_between(case, prepare, stops, dies, epoch_rows=rows)
    assert same_queries(case.expected(), got) is None

"""Where work goes changes no result: random queries by random placements of groups, readers and
tasks, in this process, against the reference; on Spark, with an executor that is killed,
``tests/cluster/test_learned.py`` does.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.checkpoint.key_group_tables import as_it_is
from levada.engine.engine import Engine
from levada.placement.placement_file import group_name
from levada.plan.execution.key_group_table import GroupTable, deal_round_robin
from levada.runtime import epoch_pipeline
from levada.runtime.driver import stream_progress
from levada.runtime.executor import LocalExecutor
from levada.testing.compare import same_queries
from levada.testing.reference_model import Report
from support.cluster_like_executor import Elsewhere
from support.example_counts import EXAMPLES, PATIENCE, examples
from support.fault_injection import nobody
from support.generators import Case, cases, cql_cases, cql_view_cases, entailment_cases
from support.stepped_runs import run_between

pytestmark = pytest.mark.timeout(PATIENCE)
both = cases(most=2) | cql_cases(most=2) | cql_view_cases(most=1) | entailment_cases(most=2)
FEW, RUNS = 12, 4  # cases in CI; runs of each, by another lot each


def by_lot(rng: np.random.Generator, machines: int, streams: Iterable[str]) -> str:
    """Some of the groups, the readers of streams, and tasks of a stage on machines by lot."""
    groups = int(rng.choice((1, 16, 256)))
    named = [group_name(g, groups) for g in range(groups) if rng.random() < 0.8]
    named += [*streams, *(f"1.{p}" for p in range(machines))]
    machine = {name: int(rng.integers(machines)) for name in named}
    return json.dumps({"levada": "placement", "machines": machines, "machine": machine})


def moving(seed: int, most: tuple[int, int], epoch: int, table: GroupTable) -> GroupTable | None:
    """Before some epochs half of the groups go elsewhere, among so many partitions."""
    rng = np.random.default_rng((seed, epoch))
    if rng.random() < 0.5:
        return None
    parts = int(rng.integers(*most))
    to = table.partition.astype(np.int32)
    moved = (rng.random(table.groups) < 0.5) | (to >= parts)
    to[moved] = rng.integers(0, parts, np.count_nonzero(moved))
    other = np.flatnonzero(to != deal_round_robin(table.groups, parts).partition).astype(np.int32)
    return GroupTable(1, table.groups, parts, other, to[other])


def run_by_lot(case: Case, lot: int) -> dict[str, list[Report]]:
    """The reports of a case under a placement by lot: over so many partitions, among which groups
    may move while it runs; tasks in any order, some of them twice; sometimes an executor is lost,
    the engine dies and the epoch is replayed, or it goes on over other partitions.
    """
    rng = np.random.default_rng(lot)
    machines = int(rng.integers(1, 4))
    first, then = rng.integers(machines, machines + 3, 2).tolist()
    starts = [(int(rng.integers(1, 4)), first), (10_000, then)][int(rng.random() < 0.7) :]
    dies = {int(rng.integers(1, 4)): bool(rng.random() < 0.5)} if rng.random() < 0.3 else {}
    losses = rng.integers(1, 20, 1).tolist() if rng.random() < 0.3 else []
    moves = partial(moving, lot, (machines, machines + 3)) if rng.random() < 0.6 else as_it_is

    def prepare(engine: Engine) -> None:
        engine._open().tables.dealing = moves

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.json"
        path.write_text(by_lot(rng, machines, case.streams))
        counted = str(rng.choice(("", "1d")))
        with (
            patch("support.stepped_runs.Engine", partial(Engine, place=path, slices=counted)),
            patch.object(LocalExecutor, "run", Elsewhere(lot, losses).run),
        ):
            return run_between(case, prepare, starts, dies, epoch_rows=int(rng.choice((7, 15, 50))))


@pytest.mark.long
@settings(examples(FEW), max_examples=max(EXAMPLES // RUNS, FEW))
@given(both, st.integers(0, 2**32 - 1))
def test_no_placement_shows(case: Case, lot: int) -> None:
    """Whatever goes where, and whatever becomes of it, results are the same."""
    expected = case.expected()
    with (
        patch("levada.engine.epoch_loop.PAUSES", (0.0, 0.0, 0.0)),
        patch.object(stream_progress, "find_crashes", nobody),
        patch.object(epoch_pipeline, "rehearse", lambda job: None),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # what is lost is told
        for i in range(RUNS):
            wrong = same_queries(expected, run_by_lot(case, lot + i))
            assert wrong is None, f"lot {lot + i}: {wrong}"

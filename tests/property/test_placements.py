"""Where work goes changes no result: random queries by random placements of groups, readers and
tasks, stepped in this process, against the reference.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import Case, cases, cql_cases, cql_view_cases, entailment_cases
from examples import PATIENCE, examples
from levada.engine.engine import Engine
from levada.placement.placement import group_name
from levada.testing.compare import same_queries
from stepped import run_case

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


@examples(12)
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

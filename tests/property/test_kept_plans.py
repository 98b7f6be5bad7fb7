"""Random queries planned into one topology: their plan and catalog, written and read, are what they
were, and go on as they would have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.plan.encoding.plan_codec import encode_plan, read_plan
from levada.plan.execution.plan import Plan
from levada.plan.execution.shapes import Shape
from levada.plan.topology.catalog_file import encode_catalog, read_catalog
from levada.plan.topology.topology import Topology
from support.example_counts import examples
from support.generators import Case, cases, cql_cases, cql_view_cases, entailment_cases
from support.stepped_runs import run_case

pytestmark = pytest.mark.timeout(600)
queries = cases(most=4) | cql_cases(most=4) | cql_view_cases(most=2) | entailment_cases(most=3)


def difference(a: Any, b: Any, where: str = "") -> str | None:
    """The first place where two values are not the same, types and orders included."""
    if type(a) is not type(b):
        return f"{where}: {type(a)} and {type(b)}"
    if isinstance(a, np.ndarray):
        same = a.dtype == b.dtype and a.shape == b.shape and (a == b).all()
        return None if same else f"{where}: {a} and {b}"
    if isinstance(a, Shape):  # they are trees of shared shapes
        return None if a == b else f"{where}: another shape"
    if dataclasses.is_dataclass(a) and not isinstance(a, type):
        names = [f.name for f in dataclasses.fields(a) if f.name not in OF_A_SEAL]
        pairs = [(f"{where}.{n}", getattr(a, n), getattr(b, n)) for n in names]
    elif isinstance(a, Mapping):
        if list(a) != list(b):
            return f"{where}: {list(a)} and {list(b)}"
        pairs = [(f"{where}[{k!r}]", a[k], b[k]) for k in a]
    elif isinstance(a, (tuple, list)) and len(a) == len(b):
        pairs = [(f"{where}[{i}]", x, y) for i, (x, y) in enumerate(zip(a, b, strict=True))]
    else:
        return None if a == b else f"{where}: {a} and {b}"
    found = (difference(x, y, place) for place, x, y in pairs)
    return next((told for told in found if told), None)


OF_A_SEAL = {"changed"}
"""What is another since the last seal."""
OF_A_RUN = {"_depths", "common", "data", "builder", "change", "sites", "sides", "orders", "journal",
            "relaxations",
            "graph", "streams", "sharing", "_graph"}  # fmt: skip
"""What a topology looks up anew, by what newcomers of one run find what is there, and what has a
file of its own.
"""


def table(topology: Topology) -> dict[str, Any]:
    """All that a topology holds, but for what it looks up anew and orders that nobody sees."""
    parts = (topology, topology.streams, topology.graph, topology.sharing)
    held = {name: value for part in parts for name, value in vars(part).items()}
    held |= {"alike": sorted(topology.graph.alike.values())}
    return {name: value for name, value in held.items() if name not in OF_A_RUN}


def look(
    folder: Path, plan: Plan, topology: Topology, identities: Mapping[str, str]
) -> Iterator[str | None]:
    """What is not the same after a plan and its catalog were written and read."""
    path = folder / "looked-at"
    path.write_bytes(encode_plan(plan))
    yield difference(plan, read_plan(path))
    path.write_bytes(encode_catalog(topology, identities))
    (again, known), (twin, _) = read_catalog(path), read_catalog(path)
    yield difference(table(topology), table(again))
    yield difference(dict(identities), known)
    for one in (again, twin):
        one.remove(next(iter(one.queries)))
    path.write_bytes(encode_catalog(again, {}))
    third, _ = read_catalog(path)
    sealed = again.seal(3)
    yield difference(sealed, twin.seal(3))
    yield difference(sealed, third.seal(3))


@examples(48)
@given(queries, st.sampled_from((1, 2)))
def test_random_plans_come_back_as_they_were(case: Case, partitions: int) -> None:
    found: list[str | None] = []
    save = Checkpoint.save_plan

    def looking(self: Checkpoint, plan: Plan, topology: Topology, known: Mapping[str, str]) -> bool:
        found.extend(look(self.root, plan, topology, known))
        return save(self, plan, topology, known)

    short = dataclasses.replace(case, streams={n: e[:1] for n, e in case.streams.items()})
    with patch.object(Checkpoint, "save_plan", looking):
        run_case(short, partitions=partitions)
    assert found and not any(found), [told for told in found if told]

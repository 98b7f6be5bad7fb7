"""A query has as many rows of state alone as among others, in both modes in which it has a limit of
them, after every epoch: whoever keeps them with it, and whatever was not dropped yet. In the order
of its joins that it has alone: among others it may have another one, in which sub-joins keep other
rows. Eight sets of up to six queries; ``LEVADA_CASES`` is another number.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from levada import Engine
from levada.checkpoint.epoch_context import TaskOutcome
from levada.core.query_limits import Limited
from levada.plan.sharing.join_orders import choose_order, running_subjoins
from levada.plan.sharing.join_orders.order_cost import Costs
from levada.plan.sharing.join_orders.subjoin_keys import Keyed
from levada.runtime.driver import epoch_totals
from levada.testing.reference_model import Element
from levada.testing.stream_builders import write_lines
from support.generators.case import CaseQuery
from support.generators.elements import elements
from support.generators.sketches import STREAM, sketched_sets
from support.generators.vocabulary import OVERLAP
from support.stepped_runs import register

SETS = int(os.environ.get("LEVADA_CASES", "8"))
Held = dict[str, list[int]]
pytestmark = pytest.mark.timeout(0)


def own_order(keyed: Keyed, seen: choose_order.OrderContext, costs: Costs) -> choose_order.Chosen:
    """A conjunction is joined in the query's own order, whatever others join."""
    return replace(choose_order.choose(keyed, seen, costs), units=())


def kept(queries: Sequence[CaseQuery], stream: Sequence[Element], late: int, mode: str) -> Held:
    """How many rows each query has after each epoch."""
    found: list[Counter[str]] = []
    judged = epoch_totals.count_excess_rows

    def seen(done: Sequence[TaskOutcome], limits: Limited) -> dict[str, int]:
        found.append(sum((Counter(each.window_rows) for each in done), Counter()))
        return judged(done, limits)

    with (
        tempfile.TemporaryDirectory() as name,
        patch.object(epoch_totals, "count_excess_rows", seen),
        patch.object(running_subjoins, "choose", own_order),
    ):
        folder = Path(name)
        write_lines(folder / "0.nt", stream)
        with Engine(
            spark=False, checkpoint=folder / "c", partitions=2, sharing=mode, epoch="0",
            epoch_rows=4, limits="state=1M",
        ) as engine:  # fmt: skip
            (folder / "g.nt").write_text("<http://e/a> <http://e/q> <http://e/b> .\n")
            for graph in ("http://e/g", OVERLAP):  # that texts of C-SPARQL may name
                engine.static(folder / "g.nt", graph)
            engine.stream(STREAM, folder / "0.nt", lateness=late)
            register(engine, queries)
            engine.start(once=True, keep_open=True)
            engine.await_end()
    return {query.name: [counts[query.name] for counts in found] for query in queries}


@pytest.mark.long
def test_a_query_has_as_many_alone_as_among_others() -> None:
    most: list[int] = []
    _judge(most)
    assert max(most) > 3, "some have rows of state"


def _judge(most: list[int]) -> None:
    streams = st.sampled_from((0, 1500)).flatmap(
        lambda late: elements(lateness=late, least=12).map(lambda stream: (stream, late))
    )

    @settings(
        max_examples=SETS, deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip
    @given(sketched_sets(6), streams, st.integers(0, 9))
    def each(queries: list[CaseQuery], world: tuple[list[Element], int], one: int) -> None:
        alone = queries[one % len(queries)]
        right = kept([alone], *world, "exact")[alone.name]
        most.append(max(right, default=0))
        for mode in ("off", "exact"):
            found = kept(queries, *world, mode)
            assert found[alone.name] == right, f"{mode}: {alone.text}"

    each()

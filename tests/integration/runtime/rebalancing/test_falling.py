"""W58: epochs of a run in which the load falls to a tenth, by the rows that its tasks count.

No clock decides: an epoch is a second, and a row takes a task ``1 / RATE`` of one. All else is the
engine's: which rows come to which partition, what is counted, when partitions leave, what they had.
What the clocks of a machine say of it: ``LEVADA_MOVING=tenth python -m bench moving``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from levada.checkpoint.epoch_context import EpochContext, TaskOutcome
from levada.checkpoint.manifest import Manifest, RebalanceReport
from levada.engine.engine import Engine
from levada.runtime.rebalancing.rebalancer import Balancing
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions
from levada.testing.memory_sink import MemorySink
from levada.testing.reference_model import Element
from levada.testing.stream_builders import write_lines
from support.query_dsl import S, T, element, judge, query, register, step

MOST, EVERY, STILL = 8, 1, 30
RATE = 60.0  # rows that a task does in a second
EPOCH, HIGH = 60, 8  # elements of both streams in an epoch; epochs before the load falls
EPOCHS = HIGH + EVERY * (STILL + 6)
WINDOWS = {"w": (S, step(600, 600)), "v": (T, step(600, 600))}
JOIN = query(
    "SELECT ?a ?n", "WINDOW :w { ?a :p ?b } WINDOW :v { ?b :r ?n }", name="join", windows=WINDOWS
)


def elements(predicate: str) -> list[Element]:
    """As many in each epoch, of which the query is asked all at first, and then one in ten."""
    half = EPOCH // 2
    found = []
    for i in range(EPOCHS * half):
        falls = i >= HIGH * half and i % 10
        a, b = (f"a{i % 40}", f"b{i * 7 % 11}") if predicate == "p" else (f"b{i * 7 % 11}", f"{i}")
        found.append(element(20 * i, f"{a} {'x' if falls else predicate} {b}"))
    return found


class ByTheRow(Balancing):
    """What tasks take is their rows; an epoch waits for its second. ``busy``: s of each epoch."""

    def __init__(self) -> None:
        options = BalanceOptions(reorganize_every=EVERY)
        super().__init__(options, most=MOST, least=1.0)
        self.busy: dict[int, float] = {}

    def see(
        self,
        done: Sequence[TaskOutcome],
        context: EpochContext,
        told: RebalanceReport | None,
        *,
        hurried: bool,
        spread: bool,
    ) -> None:
        """An epoch."""
        for d in done:
            d.seconds = d.cpu_seconds = d.input_rows / RATE
        self.busy[context.epoch] = sum(d.cpu_seconds for d in done if d.stage)
        second = msgspec.structs.replace(context, wall_ms=1000 * context.epoch)
        super().see(done, second, told, hurried=False, spread=True)


def test_a_tenth_of_the_rows_has_fewer_partitions_and_does_not_swing(tmp_path: Path) -> None:
    told, sink, balancing = list[Manifest](), MemorySink(), ByTheRow()
    streams = {S: elements("p"), T: elements("r")}
    with Engine(
        spark=False, checkpoint=tmp_path / "ck", epoch_rows=EPOCH, seed=7,
        master=f"local[{MOST}]", sink=sink,
    ) as engine:  # fmt: skip
        engine._balancing = balancing
        tables = engine._open().tables
        for name, each in streams.items():
            engine.stream(name, write_lines(tmp_path / f"{name[-1]}.nt", each))
        register(engine, [JOIN])
        engine._on_epoch(told.append)
        engine.start(once=True)
        engine.await_end()
        parts = {m.epoch: tables.load(m.group_table_version).partitions for m in told}
    judge([JOIN], streams, sink.reports)

    own, busy = [parts[epoch] for epoch in sorted(parts)], balancing.busy
    assert busy[EPOCHS - 1] < 0.1 * busy[HIGH], "the load has fallen, as tasks count it"
    assert set(own[:HIGH]) == {MOST}, "half of eight seconds are for 3.8 s of work"
    assert all(a >= b for a, b in pairwise(own)), "no swing"
    low = own.index(1)
    assert low <= HIGH + 8 * EVERY
    rounds = {m.balance.epoch: m.balance for m in told if m.balance is not None}
    still = [found for epoch, found in rounds.items() if epoch > low + 1]
    assert len(still) >= STILL and {len(found.loads) for found in still} == {1}
    last = {name.split(".")[1] for name in told[-1].state}
    assert last == {"0"}, "and nobody else has state"

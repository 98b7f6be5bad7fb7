"""Balance in runs: real queries, real counts of rows by group, loads that are made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from levada.checkpoint.epoch_context import (
    Counted,
    EpochContext,
    TaskOutcome,
    column_of,
    load_groups,
)
from levada.checkpoint.manifest import Manifest, RebalanceReport
from levada.cli.main import main
from levada.engine.engine import Engine
from levada.engine.status.status import read_status
from levada.errors import UsageError
from levada.plan.execution.key_group_table import table_of_partitions
from levada.runtime.rebalancing.rebalancer import Balancing
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions
from levada.testing.memory_sink import MemorySink
from levada.testing.stream_builders import write_lines
from support.query_dsl import S, T, element, judge, query, register, step
from support.rebalancing_world import ByRows, Drawn

LEFT = [element(20 * i, f"a{i % 40} p b{i * 7 % 97}") for i in range(1200)]
RIGHT = [element(40 * i, f"b{i * 11 % 97} r {i}") for i in range(600)]
WINDOWS = {"w": (S, step(4000, 4000)), "v": (T, step(4000, 4000))}
JOIN = query(
    "SELECT ?a ?n",
    "WINDOW :w { ?a :p ?b } WINDOW :v { ?b :r ?n }",
    name="join",
    windows=WINDOWS,
)


def run(
    root: Path, balancing: Balancing | None, *, partitions: int | None = 4, half: bool = True,
    **given_: Any,
) -> tuple[list[Manifest], MemorySink]:  # fmt: skip
    """A run over all there is; ``half``: of the groups are in the first partition at first."""
    told: list[Manifest] = []
    sink = MemorySink()
    with Engine(
        spark=False, checkpoint=root / "ck", epoch_rows=100, partitions=partitions, seed=7,
        master="local[4]", sink=sink, **given_,
    ) as engine:  # fmt: skip
        if half:
            tables = engine._open().tables
            out = tables.load(tables.current).partition.astype(np.int32)
            out[: len(out) // 2] = 0
            table = table_of_partitions(out, 4)
            tables.place(table.moved, table.to)
        if balancing is not None:
            engine._balancing = balancing
        for name, elements in ((S, LEFT), (T, RIGHT)):
            engine.stream(name, write_lines(root / f"{name[-1]}.nt", elements))
        register(engine, [JOIN])
        engine._on_epoch(told.append)
        engine.start(once=True)
        engine.await_end()
    return told, sink


class Kept(ByRows):
    """Time is rows; what tasks have told of rows by group is kept."""

    def __init__(self) -> None:
        super().__init__(BalanceOptions(reorganize_every=3), most=0, least=0.0)
        self.seen: list[tuple[EpochContext, list[TaskOutcome]]] = []
        self.tables: list[Any] = []

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
        self.seen.append((context, list(done)))
        self.tables.append(load_groups(context.group_table_file).partition)
        super().see(done, context, told, hurried=hurried, spread=True)


@dataclass(frozen=True)
class Evened:
    """A run of 18 epochs with half of the groups in one of four partitions at first."""

    root: Path
    told: list[Manifest]
    sink: MemorySink
    counted: Kept


@pytest.fixture(scope="module")
def evened(tmp_path_factory: pytest.TempPathFactory) -> Evened:
    root, counted = tmp_path_factory.mktemp("evened"), Kept()
    return Evened(root / "ck", *run(root, counted), counted)


def test_a_run_becomes_even(evened: Evened) -> None:
    told = evened.told
    judge([JOIN], {S: LEFT, T: RIGHT}, evened.sink.reports)
    rounds = {m.balance.epoch: m.balance for m in told if m.balance is not None}
    ratios = [found.ratio for found in rounds.values()]
    assert ratios[0] > 2 and ratios[-1] < 1.25
    assert told[-1].group_table_version > told[0].group_table_version
    first = next(iter(rounds.values())).decisions[0]
    assert (first.action, first.supplier) == ("move", 0) and first.groups > 0
    moved = next(m for m in told if m.epoch == first.epoch)
    assert moved.group_table_version == told[0].group_table_version + 1, (
        "from that epoch on, and not before"
    )
    assert read_status(evened.root).balance == told[-1].balance


def test_rows_are_counted_in_some_epochs(evened: Evened) -> None:
    """Each row that an operator is given, pairs of the join too, in the partition of its group."""
    seen = evened.counted.seen
    with_rows = [i for i, (_, done) in enumerate(seen) if any(d.rows_by_group for d in done)]
    assert with_rows == [i for i in range(len(seen)) if i % 3 == 1 or i == 0]
    for i in with_rows:
        for d in seen[i][1]:
            counted = d.rows_by_group or Counted(-1, "", "", 0)
            assert int(column_of(counted.rows, 4).sum()) == d.input_rows
            groups = column_of(counted.groups, 2)
            assert (evened.counted.tables[i][groups] == d.partition).all()
    assert sum(d.input_rows for d in seen[with_rows[-1]][1]) > 100


def test_the_degree_follows_loads(tmp_path: Path) -> None:
    """Drawn ones, so that there are moves, more partitions and fewer."""
    options = BalanceOptions(1, 0.002, 0.001, quiet=1)
    drawn = Drawn(options, most=4, seed=11)
    told, sink = run(tmp_path, drawn, partitions=None, half=False)
    judge([JOIN], {S: LEFT, T: RIGHT}, sink.reports)
    assert set(drawn.decided) == {"move", "grow", "shrink"}
    assert {len({n.split(".")[1] for n in m.state}) for m in told} >= {1, 4}


def test_off_measures_nothing(tmp_path: Path) -> None:
    told, _ = run(tmp_path, None, half=False, balance="off")
    assert {m.group_table_version for m in told} == {1} and told[-1].balance is None
    assert read_status(tmp_path / "ck").balance is None


def test_what_is_known_is_told_as_a_table_and_as_json(
    evened: Evened, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", str(evened.root), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["balance"]
    assert said["partitions"] == 4 and said["ratio"] >= 1
    assert {"epoch", "action", "supplier", "consumer", "groups", "expected_ratio", "reason"} <= set(
        said["decisions"][0]
    )
    assert {p["kind"] for p in said["loads"]} <= {"supplier", "consumer", "neutral"}
    assert main(["status", str(evened.root), "--verbose"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "partitions, the busiest took" in shown and "is a supplier" in shown


def test_groups_that_are_placed_stay(tmp_path: Path) -> None:
    place = tmp_path / "p.json"
    machine = {"group 7/65536": 1}
    place.write_text(json.dumps({"levada": "placement", "machines": 2, "machine": machine}))
    with pytest.raises(UsageError, match=r"p\.json places groups, and balance would move them\."):
        Engine(spark=False, place=place, balance="on")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("beta=2", "--balance: balance has no option beta. Known: reorganize_every,"),
        ("on,supplier_threshold=0", "--balance: supplier_threshold is 0, not above 0.01 and"),
        ("of", "--balance: balance is off, on, windowed-joins, not 'of'. Did you mean off"),
    ],
)
def test_wrong_options_are_one_sentence(
    option: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.rq").write_text(JOIN.text)
    assert main(["run", str(tmp_path / "q.rq"), "--stream", "s=s.nt", "--balance", option]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert said in error and "Traceback" not in error


def test_an_app_file_says_it_too(tmp_path: Path) -> None:
    from levada.cli.app.app_file import load_app

    def options(balance: str) -> BalanceOptions | bool | None:
        (tmp_path / "app.yaml").write_text(f"options: {{balance: {balance}}}")
        return load_app(tmp_path / "app.yaml").options.balance

    assert options("on") == options("true") == BalanceOptions()
    assert options("off") is False, "also where the default is on"
    assert options("{preset: windowed-joins, supplier_threshold: 0.4}") == BalanceOptions(
        buffer_rows=16_384, choice="random", supplier_threshold=0.4
    )
    with pytest.raises(UsageError, match=r"options\.balance: balance has no option reorganise_"):
        options("{reorganise_every: 4}")


class Beside(Balancing):
    """Time is rows; from an epoch on the first partition has a third of its processor, and others
    the rest: it takes as much CPU as before, and three times as long. ``slowest``: of each epoch,
    what the slowest partition took by what each would take if all were alike and alone.
    """

    COMES, SLOWER = 5, 3.0

    def __init__(self, measure: str) -> None:
        super().__init__(BalanceOptions(reorganize_every=3, measure=measure), most=0, least=0.0)
        self.slowest: dict[int, float] = {}

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
        beside = self.SLOWER if context.epoch >= self.COMES else 1.0
        seconds, rows = np.zeros(context.partitions), 0
        for d in done:
            d.cpu_seconds = d.input_rows / 1e3  # far more than an epoch of the test takes
            d.seconds = d.cpu_seconds * (beside if d.partition == 0 else 1.0)
            if d.stage:
                seconds[d.partition] += d.seconds
                rows += d.input_rows
        self.slowest[context.epoch] = float(seconds.max() * context.partitions / (rows / 1e3))
        super().see(done, context, told, hurried=True, spread=True)


def test_a_slow_executor_is_relieved_in_four_reorganizations(tmp_path: Path) -> None:
    """W57: its occupancy rises, groups leave, and what an epoch takes falls; by CPU time nothing
    moves. What the clocks of a machine say of it: ``LEVADA_MOVING=beside python -m bench moving``.
    """
    slowed = Beside("time")
    told, sink = run(tmp_path, slowed, partitions=2, half=False)
    judge([JOIN], {S: LEFT, T: RIGHT}, sink.reports)
    rounds = {m.balance.epoch: m.balance for m in told if m.balance is not None}
    first, _, _, fourth = (e for e in sorted(rounds) if Beside.COMES < e <= Beside.COMES + 12)
    loads = {e: {p.partition: p for p in b.loads}[0] for e, b in rounds.items()}
    assert loads[first].kind == "supplier" and loads[first].occupancy > 0.5
    assert {(d.action, d.supplier) for d in rounds[fourth].decisions} == {("move", 0)}
    assert (
        loads[fourth].kind == "neutral" and loads[fourth].input_rows < 0.7 * loads[first].input_rows
    )
    slow = [slowed.slowest[e] for e in range(Beside.COMES, first)]
    relieved = [slowed.slowest[e] for e in range(fourth, max(slowed.slowest) + 1)]
    assert min(slow) > 3 and max(relieved) < 2.2, "even would be 1.5: two partitions, 4/3 of a core"


def test_by_cpu_time_nobody_beside_is_seen(tmp_path: Path) -> None:
    told, _ = run(tmp_path, Beside("cpu"), partitions=2, half=False)
    assert not [d for m in told if m.balance is not None for d in m.balance.decisions]

"""``balance``: the busiest partition by the mean one, before groups move and after.

W1 over keys of a b-model (each half of the keys has 0.8 of what their whole has, or the rest, and
so on: Parallel windowed joins, VI), on 4 partitions, from two group tables: as groups are dealt,
and one that has half of them in the first partition. A reorganization every 5 epochs, epochs of
100,000 events of both streams.

    before, after   stage CPU of the busiest partition by the mean one, in the round before the
                    first reorganization, and in the one after the fifth
    moving          the slowest epoch that groups moved before, by the median of the others
    cost            CPU with loads measured and nothing moved, by that without balance; medians of
                    three runs each in turn
    heavy           W1 with one key that has 30 % of all events, the others even: by how far apart
                    in ms events of a pair may be (so pairs are many, or few)
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.data import Events, pairs_within, write
from bench.join import query
from bench.measure import Tree
from bench.papers.windowed_joins import b_model as keys_of
from bench.result import Result, check_count
from levada import Engine
from levada.checkpoint.manifest import Manifest
from levada.plan.execution.key_group_table import table_of_partitions

EVERY, ROUNDS, PARTITIONS = 5, 7, 4
EPOCH, BITS, BIAS = 100_000, 23, 0.8  # the keys are 0 to 10**7, as the paper has them
WIDTH = 4_000
HEAVY, KEYS, WIDTHS = 0.3, 100_000, (50, 4)
GROUPS = 1 << 16
NEVER = {"reorganize_every": EVERY, "supplier_threshold": 1.0}
MOVES = {"reorganize_every": EVERY}


def b_model(seed: int, n: int, bits: int = BITS, bias: float = BIAS) -> Events:
    """``n`` events, one a millisecond, with keys of a b-model."""
    rng = np.random.default_rng(seed)
    k = keys_of(rng, n, bits, bias)
    return Events(k, np.round(rng.random(n) * 1000, 3), np.arange(n, dtype=np.int64))


def one_key(seed: int, n: int, share: float = HEAVY, keys: int = KEYS) -> Events:
    """``n`` events, one a millisecond: a key has this share of them, all others the rest."""
    rng = np.random.default_rng(seed)
    k = np.where(rng.random(n) < share, 0, rng.integers(1, keys, n))
    return Events(k, np.round(rng.random(n) * 1000, 3), np.arange(n, dtype=np.int64))


class Watch:
    """What epochs took, and what balance told of rounds."""

    def __init__(self) -> None:
        self.at = [time.perf_counter()]
        self.moved: list[bool] = []
        self.rounds: list[list[float]] = []
        self._groups, self._last = 1, -1

    def see(self, manifest: Manifest) -> None:
        """An epoch is published."""
        self.at.append(time.perf_counter())
        self.moved.append(manifest.group_table_version != self._groups)
        self._groups = manifest.group_table_version
        if (told := manifest.balance) is not None and told.epoch != self._last:
            self._last = told.epoch
            self.rounds.append([p.cpu_seconds for p in told.loads])

    def side(self, count: int, cpu: float) -> dict[str, Any]:
        """What was seen."""
        each = np.diff(self.at)[1:]  # the first loads what it needs
        moved = np.array(self.moved[1:], bool)
        median = statistics.median(each[~moved].tolist())
        ratios = [round(max(cpu) / (sum(cpu) / PARTITIONS), 3) for cpu in self.rounds if any(cpu)]
        slowest = float(each[moved].max(initial=0.0))
        return {
            "count": count,
            "cpu_s": round(cpu, 2),
            "before": ratios[0] if ratios else None,
            "after": ratios[5] if len(ratios) > 5 else None,
            "by_round": ratios,
            "busiest_ms": [round(max(cpu) * 1000, 1) for cpu in self.rounds],
            "moving_epochs": int(moved.sum()),
            "moving": round(slowest / median, 2),
            "epoch_ms": round(median * 1000, 1),
        }


def _run(
    root: Path, expected: int, epoch: int, *, half: bool = False, width: int = WIDTH, **given_: Any
) -> dict[str, Any]:
    """One run over the streams below ``root``; ``half``: of the groups in the first partition."""
    watch, tree = Watch(), Tree()
    with (
        tempfile.TemporaryDirectory(prefix="levada-balance-") as folder,
        Engine(
            checkpoint=Path(folder) / "c", epoch_rows=epoch, partitions=PARTITIONS,
            keep_results=False, seed=7, **given_,
        ) as engine,
    ):  # fmt: skip
        if half:
            out = np.arange(GROUPS) % PARTITIONS
            out[: GROUPS // 2] = 0
            tables = engine._open().tables
            table = table_of_partitions(out.astype(np.int32), PARTITIONS)
            tables.place(table.moved, table.to)
            watch._groups = tables.current
        for name in "ab":
            engine.stream(name.upper(), root / name)
        engine.register(query(width), name="w1", dialect="cql")
        engine._on_epoch(watch.see)
        engine._on_epoch(lambda manifest: engine._await_spark())
        before = tree.cpu()
        engine.start(once=True)
        engine.await_end()
        spent = (tree.cpu() - before).total
        assert engine._driver is not None, "it has been started"
        count = engine._driver.last.results
    check_count("balance", count, expected)
    return watch.side(count, spent)


def run(scale: float, stepped: bool) -> Result:
    """Both tables with balance, and what measuring costs."""
    epoch = max(int(EPOCH * scale), 1000)
    n = epoch // 2 * (EVERY * ROUNDS + 2)
    how = {"spark": False} if stepped else {"master": "local[2]"}
    with tempfile.TemporaryDirectory(prefix="levada-w1-") as folder:
        streams = [b_model(seed, n) for seed in (1, 2)]
        for name, value, stream in zip("ab", "vw", streams, strict=True):
            write(Path(folder) / name, stream, epoch // 2, value)
        expected = pairs_within(streams[0], streams[1], WIDTH)

        def one(*, half: bool, balance: Any) -> dict[str, Any]:
            return _run(Path(folder), expected, epoch, half=half, balance=balance, **how)

        found = {name: one(half=name == "half", balance=MOVES) for name in ("dealt", "half")}
        still = [[one(half=False, balance=b)["cpu_s"] for b in (NEVER, "off")] for _ in range(3)]
    measured, without = (statistics.median(side) for side in zip(*still, strict=True))
    cost = {"measured_cpu_s": measured, "off_cpu_s": without, "cost": round(measured / without, 3)}
    more = {"cost": cost, "runs": still, "heavy": _heavy(n, epoch, **how)}
    return Result("balance", found["dealt"], found["half"], more=more)


def _heavy(n: int, epoch: int, **how: Any) -> dict[str, Any]:
    """One key of 30 %, by the width of the windows."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="levada-w1-") as folder:
        streams = [one_key(seed, n) for seed in (1, 2)]
        for name, value, stream in zip("ab", "vw", streams, strict=True):
            write(Path(folder) / name, stream, epoch // 2, value)
        for width in WIDTHS:
            expected = pairs_within(streams[0], streams[1], width)
            found[f"{width} ms"] = {
                name: _run(Path(folder), expected, epoch, width=width, balance=balance, **how)
                for name, balance in (("whole", NEVER), ("divided", MOVES))
            }
    return found

"""``moving``: what it costs that state moves, that partitions are few or many, that executors are
two; each figure by itself (``LEVADA_MOVING``: the names of some).

    moved    W1 with 10,000,000 rows in state over 4 partitions, stepped, epochs of 20,000: an epoch
             from which on 1/64 of the groups is elsewhere, by the median one (CPU); the bytes of
             state that the new owner read beyond what it read in the epoch before, by those of the
             groups: in that epoch, and in four (``looked``); from 4 partitions to 2 and to 4 again:
             the slowest of the epochs there by the median one. Partitions share no open file, as
             in processes of their own
    degrees  the same of a process that has all partitions, which share what they have open
    beside   W1 on two executors, of which one shares its processor with busy processes (``beside``)
    tenth    a load that ``W1`` over 8 partitions has a tenth of its time for, an epoch a second:
             CPU of an epoch with ``--balance on`` and 8 partitions at most, by that over 8
    driver   an epoch of the driver alone, with outcomes as of 1,000 partitions, two stages and 30
             files each, made up: its CPU, and calls of the file system; ``all``: each partition has
             one file that is new, and one that nobody needs any more, ``few``: one in a hundred;
             medians, and the mean and the most, for some epochs write an inventory of all names
    two      W1, 1,000,000 rows an epoch, spread over two executors, by one that goes as the engine
             chooses: CPU of all processes an epoch, without the first ones, in which JVMs compile;
             of what both executors took, the part of the busier one. ``hosts``: they read no files
             of each other, as of two hosts (Spark's choice here); ``host``: they do
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np

from bench.beside import beside
from bench.data import Events, events, pairs_within, write
from bench.empty import empty_after_first
from bench.executors import Executors, jvms
from bench.join import query
from bench.looked import Looked
from bench.measure import Tree
from bench.result import Result, check_count
from levada import Engine
from levada.checkpoint.file_inventory import names_of
from levada.checkpoint.manifest import Manifest
from levada.plan.execution.key_group_table import GroupTable, deal_round_robin, table_of_partitions
from levada.runtime.driver import parallelism
from levada.runtime.executor import Job, LocalExecutor
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions

ROWS, LOADED, EPOCH, SPARSE = 10_000_000, 1_000_000, 20_000, 50_000_000
EPOCHS, MOVES, CHANGES = 34, (10, 14, 20), {26: 2, 30: 4}
PLAIN = 26  # before that the partitions are four
RATE, SECONDS, PARTITIONS = 5_000, 24, 8  # events a second of each stream
STAGES, MANY, FILES = 2, 1000, 30
LASTS, COLD = 12, 9  # epochs of two, twice; of these the first ones, which do not count
ON_TWO = {"one": (1, "false"), "hosts": (2, "false"), "host": (2, "true")}
LOOP = "levada loop"


class Stepped(Engine):
    """An engine whose jobs are looked at."""

    looked: Looked

    def _executor(self) -> Looked:
        self.looked = Looked()
        return self.looked


def degrees(scale: float) -> dict[str, Any]:
    """Of partitions of one process."""
    found = moved(scale, apart=False)
    return {name: found[name] for name in ("epoch_ms", "slowest_plain", "moved", "degrees")}


def moved(scale: float, *, apart: bool = True) -> dict[str, Any]:
    """``apart``: partitions are as in processes of their own."""
    rows, epoch = int(ROWS * scale) // 2, int(EPOCH * scale) // 2
    n = rows + EPOCHS * epoch
    keys = max(int(SPARSE * scale), 1000)
    streams = [events(seed, n, keys, 1.0) for seed in (1, 2)]
    with tempfile.TemporaryDirectory(prefix="levada-moving-") as name:
        folder = Path(name)
        for first, size, cut in ((0, int(LOADED * scale) // 2, slice(rows)),
                                 (10_000, epoch, slice(rows, n))):  # fmt: skip
            for side, value, stream in zip("ab", "vw", streams, strict=True):
                part = Events(stream.k[cut], stream.v[cut], stream.ts[cut])
                write(folder / side, part, size, value, first)
            told = _epochs(folder, 2 * size, n, watched=bool(first), apart=apart)
    check_count("moving", told["count"], pairs_within(*streams, n))
    return told["figures"]


def _epochs(
    folder: Path, epoch: int, width: int, *, watched: bool, apart: bool
) -> dict[str, Any]:  # fmt: skip
    """A start over all that is there; what its epochs took."""
    at, last, state = [time.process_time()], list[Manifest](), 0
    with ExitStack() as reading, Stepped(
        checkpoint=folder / "c", epoch_rows=epoch, partitions=4, keep_results=False, spark=False,
        seed=7,
    ) as engine:  # fmt: skip
        for side in "ab":
            engine.stream(side.upper(), folder / side)
        engine.register(query(width), name="w1", dialect="cql")
        if watched:
            engine._open().tables.dealing = _dealing(engine)

        def see(manifest: Manifest) -> None:
            nonlocal state
            at.append(time.process_time())
            last[:] = [manifest]
            if len(at) == MOVES[0]:  # at the end of streams nothing is left
                named = names_of(engine.root, manifest).files
                state = sum((engine.root / file).stat().st_size for file in named)

        engine._on_epoch(see)
        engine.start(once=True, keep_open=not watched)
        if apart:
            reading.enter_context(engine.looked.reading())
        engine.await_end()
        spent, seen = np.diff(at), engine.looked.seen
    return {"count": last[0].results, "figures": _figures(spent, seen, state) if watched else {}}


def _dealing(engine: Stepped) -> Callable[[int, GroupTable], GroupTable | None]:
    begun = list[int]()

    def deal(epoch: int, table: GroupTable) -> GroupTable | None:
        begun.append(epoch)
        number = epoch - begun[0] + 1
        if number in CHANGES:
            return deal_round_robin(table.groups, CHANGES[number])
        if number not in MOVES:
            return None
        to = table.partition.astype(np.int32)
        to[np.flatnonzero(to == 0)[: table.groups // 64]] = 1
        return table_of_partitions(to, table.partitions)

    return deal


def _figures(spent: Any, seen: dict[int, list[int]], state: int) -> dict[str, Any]:
    plain = [t for n, t in enumerate(spent.tolist(), 1) if 4 < n < PLAIN and n not in MOVES]
    median, groups = statistics.median(plain), state / 64

    def read(move: int, epochs: int) -> float:
        usual = seen[move - 1][1]
        return round(sum(seen[move + i][1] - usual for i in range(epochs)) / groups, 2)

    return {
        "state_mb": round(state / 1e6, 1),
        "epoch_ms": round(1000 * median, 1),
        "slowest_plain": round(max(plain) / median, 2),
        "moved": [round(spent[n - 1] / median, 2) for n in MOVES],
        "read_by_groups": [read(n, 1) for n in MOVES],
        "read_in_four_epochs": [read(n, 4) for n in MOVES],
        "degrees": {str(n): round(max(spent[n - 1 : n + 3]) / median, 2) for n in CHANGES},
    }


def tenth(scale: float) -> dict[str, Any]:
    """The same load over 8 partitions, and over as many as it needs."""
    often = BalanceOptions(reorganize_every=3, quiet=1)
    found = {name: _fed(max(scale, 0.5), how) for name, how in (
        ("fixed", {"partitions": PARTITIONS}),
        ("adaptive", {"balance": often, "master": "local[8]"}),
    )}  # fmt: skip
    cost = found["adaptive"]["cpu_ms"] / found["fixed"]["cpu_ms"]
    return {**found, "adaptive_by_fixed": round(cost, 2)}


def _fed(scale: float, how: dict[str, Any]) -> dict[str, Any]:
    """A run to which a second's events are given each second; epochs of its last third."""
    seconds = max(int(SECONDS * scale), 12)
    streams = [events(seed, RATE * seconds, 100_000, RATE / 1000) for seed in (1, 2)]
    spent, partitions = list[float](), list[int]()
    with (
        tempfile.TemporaryDirectory(prefix="levada-tenth-") as name,
        Engine(
            checkpoint=Path(name) / "c", keep_results=False, spark=False, seed=7, epoch="1s", **how
        ) as engine,
    ):  # fmt: skip
        folder, at = Path(name), [0.0]
        for side, value in zip("ab", "vw", strict=True):
            (folder / side).mkdir()
            schema = {"k": "integer", value: "double"}
            engine.stream(side.upper(), folder / side, schema=schema)
        engine.register(query(10_000), name="w1", dialect="cql")

        def see(manifest: Manifest) -> None:
            spent.append(time.process_time() - at[0])
            partitions.append(
                len({key.split(".")[1] for key in names_of(engine.root, manifest).state})
            )
            at[0] = time.process_time()

        engine._on_epoch(see)
        engine.start()
        for second in range(seconds):
            for side, value, stream in zip("ab", "vw", streams, strict=True):
                own = slice(second * RATE, (second + 1) * RATE)
                _appear(folder / side, second, value, stream, own)
            engine.await_end(1.0)
    own = spent[len(spent) * 2 // 3 :]
    return {
        "cpu_ms": round(1000 * statistics.median(own), 1),
        "partitions": [partitions[0], partitions[-1]],
        "epochs": len(spent),
    }


def _appear(folder: Path, number: int, value: str, stream: Events, own: slice) -> None:
    columns = (stream.ts[own].tolist(), stream.k[own].tolist(), stream.v[own].tolist())
    lines = [f"{t},{k},{v}\n" for t, k, v in zip(*columns, strict=True)]
    beside = folder / f".{number:05}"
    beside.write_text(f"ts,k,{value}\n" + "".join(lines))
    beside.rename(folder / f"{number:05}.csv")


class Made(LocalExecutor):
    """Runs the first job, and makes the outcomes of all others up: each partition and stage needs
    ``FILES`` files, of which one is new, and one needed no more, in one partition of ``apart``.
    What tasks delete is not there: they do not run.
    """

    def __init__(self, apart: int) -> None:
        self._apart, self._job, self.making = apart, 0, 0.0

    def run(self, job: Job) -> list[bytes]:
        """Outcomes of ``job``, as tasks would tell them."""
        self._job += 1
        if self._job == 1:
            return super().run(job)
        began = time.process_time()
        made = [self._outcome(s, p) for s in range(1, STAGES + 1) for p in range(MANY)]
        self.making += time.process_time() - began
        return made

    def _outcome(self, stage: int, partition: int) -> bytes:
        last = self._job + FILES
        mine = f"state/{stage}-{partition}-0123456789abcdef"
        done = {"stage": stage, "partition": partition, "cpu_seconds": 0.01,
                "cpu_by_node": {"3": 0.01}, "rows_by_node": {"3": 100},
                "input_rows": 100}  # fmt: skip
        if self._job == 2:
            files = [f"{mine}{n:06}" for n in range(last - FILES, last)]
            done |= {"lists_all_files": True, "state": files[-1], "files": files}
        elif partition % self._apart == 0:
            new = f"{mine}{last - 1:06}"
            done |= {
                "state": new,
                "files": [new],
                "unneeded_files": [f"{mine}{last - FILES - 1:06}"],
            }
        return msgspec.json.encode({"controls": [], "done": [done]})


class Counted:
    """Calls of the file system, of the thread that runs epochs."""

    NAMES = ("open", "stat", "lstat", "unlink", "remove", "rename", "replace", "link", "scandir",
             "listdir", "mkdir")  # fmt: skip

    def __init__(self) -> None:
        self.calls = 0

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Counts meanwhile."""

        def counted(call: Callable[..., Any]) -> Callable[..., Any]:
            def one(*given: Any, **named: Any) -> Any:
                self.calls += threading.current_thread().name == LOOP
                return call(*given, **named)

            return one

        patches = [patch.object(os, name, counted(getattr(os, name))) for name in self.NAMES]
        patches += [patch("io.open", counted(open)), patch("builtins.open", counted(open))]
        with ExitStack() as patched:
            for each in patches:
                patched.enter_context(each)
            yield


def driver(scale: float) -> dict[str, Any]:
    """Epochs of the driver alone."""
    epochs = max(int(40 * scale), 6)
    return {name: _alone(apart, epochs) for name, apart in (("all", 1), ("few", 100))}


def _alone(apart: int, epochs: int) -> dict[str, float]:
    made = Made(apart)

    class Alone(Engine):
        def _executor(self) -> Made:
            return made

    counted, cpu, calls = Counted(), list[float](), list[int]()
    with tempfile.TemporaryDirectory(prefix="levada-driver-") as name, counted.counting():
        write(Path(name) / "a", events(1, 100, 10, 1.0), 100)
        with Alone(
            checkpoint=Path(name) / "c", partitions=MANY, keep_results=False, spark=False, seed=7
        ) as engine:
            engine.stream("A", Path(name) / "a")
            engine.register(
                "Rstream(Select k, Count(*) As n From A [Range 1 hour Slide 1 hour] Group By k)",
                dialect="cql",
            )

            def see(manifest: Manifest) -> None:
                cpu.append(time.process_time() - made.making)
                calls.append(counted.calls)

            engine._on_epoch(see)
            empty_after_first(engine, epochs)
            engine.start(once=True, keep_open=True)
            engine.await_end()
    spent, called = np.diff(cpu)[3:], np.diff(calls)[3:]
    return {"cpu_ms": round(1000 * float(np.median(spent)), 1),
            "mean_ms": round(1000 * float(np.mean(spent)), 1),
            "calls": float(np.median(called)), "most_calls": float(called.max())}  # fmt: skip


def two(scale: float) -> dict[str, Any]:
    """One executor and two."""
    epoch = int(1_000_000 * scale)
    n = LASTS * epoch
    with tempfile.TemporaryDirectory(prefix="levada-two-") as name:
        folder, streams = Path(name), [events(s, n, max(epoch // 10, 1), 1.0) for s in (1, 2)]
        for side, value, stream in zip("ab", "vw", streams, strict=True):
            write(folder / side, stream, epoch // 2, value)
        expected = pairs_within(*streams, 60_000)
        found = {name: _on(folder, name, epoch, expected) for name in ON_TWO}
    cpu = {name: told["cpu_s"] for name, told in found.items()}
    return {**found, "two_by_one": {n: round(cpu[n] / cpu["one"], 2) for n in ("hosts", "host")}}


def _on(folder: Path, name: str, epoch: int, expected: int) -> dict[str, Any]:
    from levada.runtime.spark.spark_executor import BESIDE
    from levada.runtime.spark.spark_session import start_session, stop_session

    many, shared = ON_TWO[name]
    session = start_session(
        f"local-cluster[{many},1,1024]", config={BESIDE: shared}, scratch=folder / f"spark-{name}"
    )
    try:
        Executors(session).wait(many)
        tree, looks = Tree(), list[tuple[float, dict[str, float]]]()
        most = -1 if many > 1 else parallelism.MOST_BYTES
        with (
            patch.object(parallelism, "MOST_BYTES", most),
            Engine(
                spark=session, checkpoint=folder / name, epoch_rows=epoch, partitions=many,
                keep_results=False, seed=7,
            ) as engine,
        ):  # fmt: skip
            for side in "ab":
                engine.stream(side.upper(), folder / side)
            engine.register(query(60_000), name="w1", dialect="cql")
            engine._on_epoch(lambda manifest: looks.append((tree.cpu().total, _by_executor())))
            engine.start(once=True)
            engine.await_end()
            assert engine._driver is not None, "it has been started"
            check_count("moving", engine._driver.last.results, expected)
    finally:
        stop_session(session)
    (first, before), (last, after) = looks[COLD - 1], looks[-2]
    own, epochs = [after[name] - before.get(name, 0.0) for name in after], len(looks) - COLD - 1
    return {"cpu_s": round((last - first) / epochs, 3), "busier": round(max(own) / sum(own), 3),
            "epochs": epochs}  # fmt: skip


def _by_executor() -> dict[str, float]:
    """CPU seconds of each executor's JVM and of the workers below it."""
    found = dict[str, float]()
    for name, process in jvms():
        tree = [process, *process.children(recursive=True)]
        found[name] = sum(sum(each.cpu_times()[:4]) for each in tree)
    return found


PARTS: dict[str, Callable[[float], dict[str, Any]]] = {
    "moved": moved, "degrees": degrees, "tenth": tenth, "driver": driver, "two": two,
    "beside": beside,
}  # fmt: skip


def run(scale: float, stepped: bool) -> Result:
    """Those that are wanted; ``two`` and ``beside`` are on Spark in any case."""
    wanted = os.environ.get("LEVADA_MOVING", " ".join(PARTS)).split()
    more = {name: PARTS[name](scale) for name in wanted}
    return Result("moving", {"count": len(more)}, more=more)

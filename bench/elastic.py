"""``elastic``: throughput over time, while a cluster goes from one executor to four and to two; and
while one of three is killed.

W1 with a partition for each executor, every epoch spread over tasks. On ``local-cluster[4,1,1024]``
three of four executors leave before it starts, three come when a third of the epochs are over, two
leave behind the second third. Then on ``local-cluster[3,1,1024]``, where one is killed (SIGKILL)
halfway. The number of results is checked, so nothing was lost or doubled.

    phases   of each number of executors: epochs, and the median of events a second from when that
             many were there on, without the first two epochs of them; seconds until there were
    stayed   of the stage tasks, how many ran on the executor of the epoch before
    remote   of the bytes of state that tasks' partitions list, those which their executor has
             neither written nor listed before; ``warm``: without the epochs in which executors have
             come or left, and the five behind these
    killed   median of events a second before and after, and how many epochs it took from the kill
             on until one had 0.9 of two thirds of what the median was

A picture of the first run is written where ``LEVADA_PICTURE`` says. Four executors on a machine of
two cores have the time of two: such a run shows that work goes to executors that come, and goes on
without those that leave; how it scales it does not show.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from bench.data import Events, events, pairs_within, write
from bench.join import query
from bench.result import Result, check_count
from levada import Engine
from levada.runtime.driver import task_count
from levada.runtime.homes import Homes
from levada.runtime.late import homes_of
from levada.runtime.store import state_files
from levada.runtime.store.manifest import Manifest
from levada.runtime.store.names.inventory import names_of
from levada.windows.state.pieces import read_head

STEPS = (1, 4, 2)
MOST, THREE = max(STEPS), 3
EPOCHS, EPOCH = 24, 100_000  # of each step; events of both streams
KEYS, WIDTH = 200_000, 100_000  # so the state is that of two epochs of each stream
WARM = 5
PICTURE = os.environ.get("LEVADA_PICTURE", "")
PATIENCE = 120.0  # s
SIZE, EDGE = (860, 320), 60


class Executors:
    """Those of a session, as many as are wanted."""

    def __init__(self, session: Any) -> None:
        context = session.sparkContext
        self._spark, self._jvm = context._jsc.sc(), context._jvm

    def ids(self) -> list[str]:
        """Those that there are, oldest first."""
        found = str(self._spark.getExecutorIds().mkString(",")).split(",")
        return sorted(filter(None, found), key=int)

    def want(self, number: int) -> None:
        """Has so many be there soon; does not wait."""
        jvm, gone = self._jvm, self.ids()[number:]
        nobody = jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap())
        self._spark.requestTotalExecutors(number, 0, nobody)
        if gone:
            leave = jvm.java.util.ArrayList()
            for executor in gone:
                leave.add(executor)
            self._spark.killExecutors(jvm.PythonUtils.toSeq(leave))

    def wait(self, number: int) -> None:
        """Until there are so many."""
        end = time.monotonic() + PATIENCE
        while len(self.ids()) != number:
            assert time.monotonic() < end, f"{number} executors are wanted, there are {self.ids()}"
            time.sleep(0.1)

    def kill(self) -> None:
        """The last one is gone at once."""
        last = self.ids()[-1]
        found = next((process for name, process in jvms() if name == last), None)
        assert found is not None, f"no process is the executor {last}"
        found.kill()


def jvms() -> Iterator[tuple[str, psutil.Process]]:
    """The JVM of each executor below this process, by its id."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has just ended
            line = process.cmdline()
            if "--executor-id" in line and "java" in line[0]:
                yield line[line.index("--executor-id") + 1], process


@dataclass(frozen=True, slots=True)
class Epoch:
    """When it was published (s since the first), its events, the executors that it had; of the
    bytes of state that its tasks' partitions list, all and those from elsewhere.
    """

    at: float
    events: int
    executors: int
    listed: int = 0
    remote: int = 0


class Kept:
    """Which files of state each executor has written or listed."""

    def __init__(self, root: Path) -> None:
        self._root, self._sizes = root, dict[str, int]()
        self._known: dict[str, set[str]] = {}
        self._of: dict[str, tuple[str, ...]] = {}  # the files of a partition's state

    def see(self, manifest: Manifest, homes: Homes) -> tuple[int, int]:
        """The bytes that an epoch's tasks listed, and those of them that came from elsewhere."""
        listed = remote = 0
        now = {
            name: self._files(file) for name, file in names_of(self._root, manifest).state.items()
        }
        for (stage, partition), executor in homes._at[False].items():
            name = f"{stage}.{partition}"
            before, known = self._of.get(name, ()), self._known.setdefault(executor, set())
            listed += sum(self._sizes[file] for file in before)
            remote += sum(self._sizes[file] for file in before if file not in known)
            known.update(before, now.get(name, ()))
        self._of = now
        return listed, remote

    def _files(self, file: str) -> tuple[str, ...]:
        head = read_head(state_files.map_(str(self._root), file)[1])
        pieces = [piece.file for some in head.pieces.values() for piece in some]
        found = tuple(dict.fromkeys([file, *filter(None, pieces)]))
        for name in found:
            if name not in self._sizes:
                self._sizes[name] = (self._root / name).stat().st_size
        return found


class Watch:
    """What epochs took; between them something may happen (after so many)."""

    def __init__(self, root: Path, happens: dict[int, Callable[[], None]]) -> None:
        self._kept, self._happens, self._read = Kept(root), happens, 0
        self._began = time.perf_counter()
        self.homes = Homes()
        self.epochs: list[Epoch] = []
        self.stayed = 0.0

    def see(self, manifest: Manifest) -> None:
        """An epoch is published; the next one has not begun."""
        now, told = time.perf_counter() - self._began, manifest.homes
        read = sum(r.elements for r in manifest.streams.values())
        there = 0 if told is None else told.executors
        self.epochs.append(
            Epoch(now, read - self._read, there, *self._kept.see(manifest, self.homes))
        )
        self._read = read
        if told is not None and told.tasks:
            self.stayed = told.stayed / told.tasks
        if (happens := self._happens.get(len(self.epochs))) is not None:
            happens()


def rates(epochs: Sequence[Epoch]) -> list[float]:
    """Events a second of each epoch; of the first, whose start is not known, 0."""
    return [0.0, *(b.events / max(b.at - a.at, 1e-9) for a, b in pairwise(epochs))]


def phases(epochs: Sequence[Epoch]) -> dict[str, dict[str, float]]:
    """What was reached with each number of executors."""
    rate, found = rates(epochs), {}
    for i, number in enumerate(STEPS):
        own = [n for n in range(i * EPOCHS, (i + 1) * EPOCHS) if n < len(epochs)]
        full = [n for n in own if epochs[n].executors == number]
        settled = [rate[n] for n in full[2:]]
        begun = epochs[own[0] - 1].at if own[0] else 0.0
        found[str(number)] = {
            "epochs": len(own),
            "events_s": round(statistics.median(settled)) if settled else 0,
            "change_s": round(epochs[full[0]].at - begun, 2) if full and i else 0.0,
        }
    return found


def remote(epochs: Sequence[Epoch], *, warm: bool) -> float:
    """The share of bytes from elsewhere."""
    cold: set[int] = set(range(WARM))
    for n, (a, b) in enumerate(pairwise(epochs), 1):
        if a.executors != b.executors:
            cold.update(range(n, n + WARM + 1))
    some = [e for n, e in enumerate(epochs) if not (warm and n in cold)]
    return round(sum(e.remote for e in some) / max(sum(e.listed for e in some), 1), 4)


def recovered(epochs: Sequence[Epoch], kill: int) -> dict[str, Any]:
    """What a kill behind the ``kill``-th epoch cost."""
    rate = rates(epochs)
    before = statistics.median(rate[kill // 2 : kill])
    wanted = 0.9 * before * (THREE - 1) / THREE
    back = next((n for n, r in enumerate(rate[kill:], 1) if r >= wanted), None)
    after = statistics.median(rate[kill + (back or 0) :])
    slowest = max(b.at - a.at for a, b in pairwise(epochs[kill - 1 :]))
    return {
        "before": round(before),
        "after": round(after),
        "epochs_until": back,
        "slowest_s": round(slowest, 2),
        "executors": [e.executors for e in epochs[kill - 1 : kill + 8]],
    }


def picture(epochs: Sequence[Epoch]) -> str:
    """Events a second over time as SVG; below, how many executors there were."""
    (wide, high), rate = SIZE, rates(epochs)
    last, top = epochs[-1].at, max(rate) * 1.1
    x = [EDGE + (wide - 2 * EDGE) * e.at / last for e in epochs]
    y = [high - EDGE - (high - 2 * EDGE) * r / top for r in rate]
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in list(zip(x, y, strict=True))[1:])
    parts = []
    changes = [i for i, e in enumerate(epochs) if i == 0 or e.executors != epochs[i - 1].executors]
    for i, end in zip(changes, [*changes[1:], len(epochs) - 1], strict=True):
        many = epochs[i].executors
        parts.append(
            f'<rect x="{x[i]:.1f}" y="{EDGE}" width="{x[end] - x[i]:.1f}" '
            f'height="{high - 2 * EDGE}" fill="#4a7" fill-opacity="{0.08 * many:.2f}"/>'
            f'<text x="{(x[i] + x[end]) / 2:.1f}" y="{high - EDGE + 18}">{many}</text>'
        )
    for share in (0.0, 0.5, 1.0):
        at = high - EDGE - (high - 2 * EDGE) * share / 1.1
        told = f"{max(rate) * share / 1e6:.2f} M"
        parts.append(f'<text x="{EDGE - 8}" y="{at:.1f}" text-anchor="end">{told}</text>')
    parts += [
        f'<text x="{wide / 2}" y="24">events a second; below, the executors that there were, '
        f"over {last:.0f} s</text>",
        f'<text x="{wide / 2}" y="{high - 12}">all of them share {os.cpu_count()} cores</text>',
        f'<polyline points="{line}" fill="none" stroke="#136" stroke-width="2"/>',
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
        'font-family="sans-serif" font-size="13" text-anchor="middle">'
        f'<rect width="{wide}" height="{high}" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _run(session: Any, folder: Path, epoch: int, most: int, watch: Watch) -> int:
    """A run to its end; how many results."""
    with Engine(
        spark=session, checkpoint=folder / f"c{most}", epoch_rows=epoch, partitions=most,
        keep_results=False, seed=7,
    ) as engine:  # fmt: skip
        for name in "ab":
            engine.stream(name.upper(), folder / name)
        engine.register(query(WIDTH), name="w1", dialect="cql")

        def see(manifest: Manifest) -> None:
            assert engine._driver is not None, "it has been started"
            watch.homes = homes_of(engine._driver.epochs.executor) or watch.homes
            watch.see(manifest)

        engine._on_epoch(see)
        engine.start(once=True)
        engine.await_end()
        assert engine._driver is not None, "it has been started"
        return engine._driver.last.results


def _written(folder: Path, epoch: int, epochs: int) -> tuple[Events, Events]:
    """Both streams of a run."""
    a, b = (events(seed, epoch // 2 * epochs, KEYS, 1.0) for seed in (1, 2))
    for side, value, stream in (("a", "v", a), ("b", "w", b)):
        write(folder / side, stream, epoch // 2, value)
    return a, b


def _on(most: int, epoch: int, epochs: int, plan: Callable[[Executors], Any]) -> Watch:
    """A run on so many executors at most, to which happens what is planned."""
    from levada.runtime.spark.session import start_session, stop_session

    with tempfile.TemporaryDirectory(prefix="levada-elastic-") as name:
        folder = Path(name)
        streams = _written(folder, epoch, epochs)
        session = start_session(f"local-cluster[{most},1,1024]", scratch=folder / "spark")
        try:
            executors = Executors(session)
            executors.wait(most)
            watch = Watch(folder / f"c{most}", plan(executors))
            count = _run(session, folder, epoch, most, watch)
        finally:
            stop_session(session)
        check_count("elastic", count, pairs_within(*streams, WIDTH))
    return watch


def _steps(executors: Executors) -> dict[int, Callable[[], None]]:
    """From step to step; the first is taken at once."""
    executors.want(STEPS[0])
    executors.wait(STEPS[0])
    later = enumerate(STEPS[1:], 1)
    return {i * EPOCHS: lambda number=number: executors.want(number) for i, number in later}  # type: ignore[misc]


def run(scale: float, stepped: bool) -> Result:
    """Both runs."""
    assert not stepped, "executors come and go on a cluster alone"
    task_count.CALLS = 0  # one task has one executor
    epoch = max(int(EPOCH * scale), 1000)
    watch = _on(MOST, epoch, EPOCHS * len(STEPS), _steps)
    if PICTURE:
        Path(PICTURE).write_text(picture(watch.epochs))
    killed = _on(THREE, epoch, 2 * EPOCHS, lambda executors: {EPOCHS: executors.kill})
    side = {
        "epochs": len(watch.epochs),
        "stayed": round(watch.stayed, 4),
        "remote": remote(watch.epochs, warm=False),
        "remote_warm": remote(watch.epochs, warm=True),
        "listed_mb": round(sum(e.listed for e in watch.epochs) / 1e6, 1),
    }
    more = {
        "phases": phases(watch.epochs),
        "killed": recovered(killed.epochs, EPOCHS),
        "cores": os.cpu_count(),
    }
    return Result("elastic", side, more=more)

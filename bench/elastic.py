"""``elastic``: throughput over time, while a cluster goes from one executor to four and to two; and
while one of three is killed.

W1 with a partition for each executor, every epoch spread over tasks. On ``local-cluster[4,1,1024]``
three of four executors leave before it starts, then three come, then two leave. On
``local-cluster[3,1,1024]`` one is killed (SIGKILL). Streams go on as long as they are read: each
phase ends when as many executors as it wants have been at work for ``EPOCHS`` epochs, however long
they take to start (``PATIENCE`` at most, and it says so). The number of results is checked, so
nothing was lost or doubled.

    phases   of each number of executors: epochs, and the median of events a second from when that
             many were at work on, without the first two epochs of them; seconds until there were,
             and the epochs and the median of events a second meanwhile
    stayed   of the stage tasks, how many ran on the executor of the epoch before
    remote   of the bytes of state that tasks' partitions list, those which their executor has
             neither written nor listed before; ``warm``: without the epochs in which executors have
             come or left, and the five behind these
    killed   median of events a second before and after, and how many epochs it took from the kill
             on until one had 0.9 of two thirds of what the median was; it goes on until the one
             that comes in its place has been at work for ``EPOCHS`` epochs
    load     of the machine, before and behind each run

A picture of the first run is written where ``LEVADA_PICTURE`` says. Four executors on a machine of
two cores have the time of two: such a run shows that work goes to executors that come, and goes on
without those that leave; how it scales it does not show.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from bench.executors import Executors
from bench.fed import Feed, telling
from bench.join import query
from bench.result import Result, check_count
from levada import Engine
from levada.checkpoint import state_files
from levada.checkpoint.executor_affinity import ExecutorAffinity
from levada.checkpoint.file_inventory import names_of
from levada.checkpoint.manifest import Manifest
from levada.operators.state.state_parts import read_head
from levada.runtime.driver import parallelism
from levada.runtime.warmup_executor import homes_of

STEPS = (1, 4, 2)
MOST, THREE = max(STEPS), 3
EPOCHS, EPOCH = 24, 100_000  # of each phase, all at work; events of both streams
KEYS, WIDTH = 200_000, 100_000  # so the state is that of two epochs of each stream
WARM = 5
PICTURE = os.environ.get("LEVADA_PICTURE", "")
PATIENCE = 180.0  # s until those that are wanted are at work
SIZE, EDGE = (860, 320), 60


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

    def see(self, manifest: Manifest, homes: ExecutorAffinity) -> tuple[int, int]:
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


class Phase(NamedTuple):
    """A part of a run: how many executors it wants (None: as many as there are), what happens at
    its beginning.
    """

    wanted: int | None
    begin: Callable[[], None]


@dataclass(slots=True)
class Seen:
    """A phase that has begun: with which epoch, and at which time by the clock."""

    wanted: int | None
    first: int
    began: float
    full: int = 0  # epochs with all at work
    gave_up: bool = False


class Watch:
    """What epochs took, phase after phase; ``over``: behind the last one."""

    def __init__(self, root: Path, phases: Sequence[Phase]) -> None:
        self._kept, self._next, self._read = Kept(root), list(phases), 0
        self._began = time.perf_counter()
        self.homes = ExecutorAffinity()
        self.epochs: list[Epoch] = []
        self.seen: list[Seen] = []
        self.stayed, self.over = 0.0, False
        self._begin()

    def _begin(self) -> None:
        wanted, begin = self._next.pop(0)
        self.seen.append(Seen(wanted, len(self.epochs), time.monotonic()))
        begin()

    def see(self, manifest: Manifest) -> None:
        """An epoch is published; the next one has not begun."""
        now, told = time.perf_counter() - self._began, manifest.executors
        read = sum(r.elements for r in manifest.streams.values())
        there = 0 if told is None else told.executors
        self.epochs.append(
            Epoch(now, read - self._read, there, *self._kept.see(manifest, self.homes))
        )
        self._read = read
        if told is not None and told.recurring_tasks:
            self.stayed = told.same_executor_tasks / told.recurring_tasks
        self._go_on(there)

    def _go_on(self, there: int) -> None:
        """Counts an epoch of the phase, and begins the next one if it is over."""
        phase = self.seen[-1]
        phase.full += phase.wanted in (None, there)
        if not phase.full and time.monotonic() - phase.began > PATIENCE:
            phase.gave_up = True
            print(f"{self.told()}: no longer waited for", file=sys.stderr, flush=True)
        if phase.full < EPOCHS and not phase.gave_up:
            return
        if self._next:
            self._begin()
        else:
            self.over = True

    def told(self) -> str:
        """Where it stands, in a sentence."""
        phase, there = self.seen[-1], self.epochs[-1].executors if self.epochs else 0
        wanted = "" if phase.wanted is None else f" of {phase.wanted}"
        since = time.monotonic() - phase.began
        return (
            f"elastic: epoch {len(self.epochs)}, {there}{wanted} executors at work, {since:.0f} s"
        )


def rates(epochs: Sequence[Epoch]) -> list[float]:
    """Events a second of each epoch; of the first, whose start is not known, 0."""
    return [0.0, *(b.events / max(b.at - a.at, 1e-9) for a, b in pairwise(epochs))]


def phases(watch: Watch) -> dict[str, dict[str, float]]:
    """What was reached with each number of executors."""
    epochs, found = watch.epochs, dict[str, dict[str, float]]()
    rate, ends = rates(epochs), [*(p.first for p in watch.seen[1:]), len(epochs)]
    for phase, end in zip(watch.seen, ends, strict=True):
        full = [n for n in range(phase.first, end) if epochs[n].executors == phase.wanted]
        first = full[0] if full else end
        until, settled = rate[max(phase.first, 1) : first], [rate[n] for n in full[2:]]
        begun = epochs[phase.first - 1].at if phase.first else 0.0
        found[str(phase.wanted)] = {
            "epochs": end - phase.first,
            "events_s": round(statistics.median(settled)) if settled else 0,
            "change_s": round(epochs[first].at - begun, 2) if full and phase.first else 0.0,
            "change_epochs": len(until),
            "change_events_s": round(statistics.median(until)) if until else 0,
            "change_slowest_s": round(
                max((b.at - a.at for a, b in _around(epochs, phase, full)), default=0), 2
            ),
        }
    return found


def _around(epochs: Sequence[Epoch], phase: Seen, full: Sequence[int]) -> list[tuple[Epoch, Epoch]]:
    """The epochs of a phase until two with all executors are over, each with the one before."""
    end = full[:2][-1] + 1 if full else len(epochs)
    return list(pairwise(epochs[max(phase.first - 1, 0) : end]))


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


def _run(session: Any, folder: Path, epoch: int, most: int, plan: Sequence[Phase]) -> Watch:
    """A run through all phases, and one to the end of what is there, whose results are counted."""
    feed, options = Feed(folder, epoch // 2, KEYS), {"keep_results": False, "seed": 7}
    feed.reach(0)
    with _engine(folder, epoch, most, spark=session, **options) as engine:
        watch = Watch(engine.root, plan)

        def see(manifest: Manifest) -> None:
            assert engine._driver is not None, "it has been started"
            watch.homes = homes_of(engine._driver.epochs.executor) or watch.homes
            watch.see(manifest)
            if watch.over:
                engine._driver.loop.request_stop()
            else:
                feed.reach(len(watch.epochs))

        engine._on_epoch(see)
        with telling(watch.told):
            engine.start()
            engine.await_end()
    with _engine(folder, epoch, most, spark=False, **options) as engine:
        engine.start(once=True)
        engine.await_end()
        assert engine._driver is not None, "it has been started"
        check_count("elastic", engine._driver.last.results, feed.pairs(WIDTH))
    return watch


def _engine(folder: Path, epoch: int, most: int, **how: Any) -> Engine:
    engine = Engine(checkpoint=folder / "c", epoch_rows=epoch, partitions=most, **how)
    for name in "ab":
        engine.stream(name.upper(), folder / name)
    engine.register(query(WIDTH), name="w1", dialect="cql")
    return engine


def _on(most: int, epoch: int, plan: Callable[[Executors], Sequence[Phase]]) -> Watch:
    """A run on so many executors at most, with the phases that are planned."""
    from levada.runtime.spark.spark_session import start_session, stop_session

    with tempfile.TemporaryDirectory(prefix="levada-elastic-") as name:
        folder = Path(name)
        session = start_session(f"local-cluster[{most},1,1024]", scratch=folder / "spark")
        try:
            executors = Executors(session)
            executors.wait(most)
            return _run(session, folder, epoch, most, plan(executors))
        finally:
            stop_session(session)


def _steps(executors: Executors) -> list[Phase]:
    """From step to step; the first is taken at once."""
    executors.want(STEPS[0])
    executors.wait(STEPS[0])
    return [Phase(number, partial(executors.want, number)) for number in STEPS]


def _kill(executors: Executors) -> list[Phase]:
    """Three, one of which is killed, and another one that comes."""

    def nothing() -> None:
        pass

    return [Phase(THREE, nothing), Phase(None, executors.kill), Phase(THREE, nothing)]


def run(scale: float, stepped: bool) -> Result:
    """Both runs."""
    assert not stepped, "executors come and go on a cluster alone"
    parallelism.MOST_BYTES = -1  # one task has one executor
    epoch, load = max(int(EPOCH * scale), 1000), [os.getloadavg()[0]]
    watch = _on(MOST, epoch, _steps)
    load.append(os.getloadavg()[0])
    if PICTURE:
        Path(PICTURE).write_text(picture(watch.epochs))
    killed = _on(THREE, epoch, _kill)
    load.append(os.getloadavg()[0])
    side = {
        "epochs": len(watch.epochs),
        "stayed": round(watch.stayed, 4),
        "remote": remote(watch.epochs, warm=False),
        "remote_warm": remote(watch.epochs, warm=True),
        "listed_mb": round(sum(e.listed for e in watch.epochs) / 1e6, 1),
    }
    more = {
        "phases": phases(watch),
        "killed": recovered(killed.epochs, killed.seen[1].first),
        "cores": os.cpu_count(),
        "load": [round(each, 1) for each in load],
    }
    return Result("elastic", side, more=more)

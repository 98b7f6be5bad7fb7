"""Random queries over random streams, where both come and go while the engine runs, which dies and
starts again between: each query says what the naive reference says of the elements that its streams
have had from its coming on; a stream that comes under the name of another is new.

A case has turns: in each some queries and streams go and come in one instant, then every stream is
fed and read; before a commit or behind it the engine may die. In the end the streams end, those
that came while it ran among them. 5 cases; ``LEVADA_CASES`` is another number.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from levada import Engine
from levada.checkpoint.manifest import Manifest
from levada.core.event_time import MIN
from levada.errors import EngineError, UsageError
from levada.testing import MemorySink
from levada.testing.compare import same
from levada.testing.reference import evaluate
from levada.testing.reference_model import Element, Report
from levada.testing.stream_builders import lines
from support.generators import CaseQuery
from support.generators.windows import Clause
from support.polling import until
from support.query_dsl import element, query, step
from support.stepped_runs import register

CASES = int(os.environ.get("LEVADA_CASES", "0")) or 5
TURNS = 5
NAMES = ("http://e/s", "http://e/t", "http://e/u")
CLAUSES = (step(2000, 1000), step(4000, 2000), Clause("range", 2000), Clause("count", count=3))
pytestmark = pytest.mark.timeout(0)


class DeathError(Exception):
    """What an engine that dies sees."""


@dataclass
class Stream:
    """A stream from its coming to its going: a file, or rows that are pushed. ``own``: the program
    names it at each start.
    """

    name: str
    path: Path | None
    own: bool
    elements: list[Element] = field(default_factory=list)


@dataclass
class Asked:
    """A query, its streams by name, and the largest time that they had when it came. ``sure``: it
    has gone, and all of its reports before this instant had been made.
    """

    query: CaseQuery
    streams: dict[str, Stream]
    after: int
    sure: int | None = None

    @property
    def right(self) -> list[Report]:
        """What the reference says."""
        had = {name: stream.elements for name, stream in self.streams.items()}
        return evaluate(replace(self.query.reference, after=self.after), had)


class World:
    """What a program knows of its engine."""

    def __init__(self, folder: Path, draw: random.Random) -> None:
        self.folder, self.draw, self.clock = folder, draw, 0
        self.sink = MemorySink()
        self.streams: dict[str, Stream] = {}
        self.queries: dict[str, Asked] = {}
        self.gone: list[Asked] = []
        self.deaths: list[bool] = []  # of the next commits: before or behind
        self.fate = (
            threading.Lock()
        )  # of ``deaths`` and ``dying``: an engine's thread takes from it
        self.dying = False
        self.died = self.came = self.files = 0
        self.sharing = draw.choice(("off", "exact", "relax"))
        if draw.random() < 0.5:
            self.name_stream(NAMES[0], own=True)
        self.engine = self.start()

    def start(self, *, once: bool = False) -> Engine:
        """An engine on the checkpoint. A stream that came while one ran is named again, or not."""
        engine = Engine(
            spark=False, checkpoint=self.folder / "c", partitions=2, sink=self.sink, seed=7,
            epoch_rows=self.draw.choice((2, 1000)), sharing=self.sharing,
        )  # fmt: skip
        read = {name for asked in self.queries.values() for name in asked.streams}
        for name, stream in self.streams.items():
            if stream.own or name in read or self.draw.random() < 0.5:
                engine.stream(name, stream.path)
        register(engine, [asked.query for asked in self.queries.values()])
        checkpoint = engine._open()
        self._doom(checkpoint)
        engine.start(once=once)
        return engine

    def _doom(self, checkpoint: Any) -> None:
        commit: Callable[[Manifest], None] = checkpoint.commit

        def doomed(manifest: Manifest) -> None:
            with self.fate:
                self.dying = bool(self.deaths)
                behind = not self.dying or self.deaths.pop()
            if behind:
                commit(manifest)
            if self.dying:
                raise DeathError

        checkpoint.commit = doomed

    # -- a turn --

    def turn(self) -> None:
        """Queries and streams go and come; then what there is is fed."""
        with self.engine._registry.lock:  # all in one instant
            for name in [n for n in self.queries if self.draw.random() < 0.3]:
                self.drop(name)
            read = {name for asked in self.queries.values() for name in asked.streams}
            for name in [n for n in self.streams if n not in read and self.draw.random() < 0.5]:
                self.engine.remove_stream(name)
                del self.streams[name]
            for name in NAMES:
                if name not in self.streams and self.draw.random() < 0.6:
                    self.name_stream(name)
            while self.streams and self.draw.random() < 0.6:
                self.ask()
            if self.draw.random() < 0.5:
                self.deaths = [self.draw.random() < 0.5]
        for stream in self.streams.values():
            self.feed(stream)
        self.read()

    def drop(self, name: str) -> None:
        asked = self.queries.pop(name)
        records = self.engine._records()
        asked.sure = min(records[stream].watermark for stream in asked.streams)
        self.engine.unregister(name)
        self.gone.append(asked)

    def name_stream(self, name: str, *, own: bool = False) -> None:
        """A stream: pushed, a new file, or one that another stream had read."""
        old = [p for p in self.folder.glob("*.nt") if p not in self.paths]
        path = self.draw.choice([None, self.folder / f"{self.files}.nt", *old])
        self.files += 1
        stream = self.streams[name] = Stream(name, path, own)
        if path is not None:
            path.touch()
            found = [line.split() for line in path.read_text().splitlines()]
            stream.elements = [Element(int(w[3]), (" ".join(w[:3]),)) for w in found]
        if not own:
            self.engine.stream(name, path)
            self.came += 1

    @property
    def paths(self) -> set[Path | None]:
        return {stream.path for stream in self.streams.values()}

    def ask(self) -> None:
        """A query over a stream, or two."""
        name = f"q{len(self.queries) + len(self.gone)}"
        on, other = (self.draw.choice(list(self.streams)) for _ in range(2))
        clause = self.draw.choice(CLAUSES)
        windows: dict[str, Any] = {"w": (on, clause)}
        kind = self.draw.randrange(3)
        if kind == 0:
            head, group, tail = "SELECT ?a ?n", "WINDOW :w { ?a :p ?n }", ""
        elif kind == 1:
            head, tail = "SELECT ?a (COUNT(*) AS ?c)", "GROUP BY ?a"
            group = "WINDOW :w { ?a :p ?n }"
        else:
            windows["v"] = (other, clause)
            head, tail = "SELECT ?a ?n ?m", ""
            group = "WINDOW :w { ?a :p ?n } WINDOW :v { ?a :p ?m }"
        made = query(head, group, tail, windows=windows, name=name)
        streams = {n: self.streams[n] for n in {on, *([other] if kind == 2 else [])}}
        seen = [e.ts for n in streams for e in streams[n].elements if e.ts <= self.read_to[n]]
        self.queries[name] = Asked(made, streams, max(seen, default=MIN))
        register(self.engine, [made])

    @property
    def read_to(self) -> dict[str, int]:
        """How far each stream has been read; one that has just come has not."""
        last, registry = self.engine._driver.last, self.engine._registry
        new = {n for n in self.streams if n in registry.removed_streams or n not in last.streams}
        return {n: MIN if n in new else last.streams[n].max_ts for n in self.streams}

    def feed(self, stream: Stream) -> None:
        """Some more elements, each later than all before."""
        new = []
        for _ in range(self.draw.randrange(6)):
            self.clock += self.draw.randrange(1, 1500)
            new.append(element(self.clock, f"a{self.draw.randrange(3)} p {self.draw.randrange(4)}"))
        if not new:
            return
        stream.elements += new
        if stream.path is not None:
            with stream.path.open("a") as file:
                file.writelines(f"{line}\n" for line in lines(new))
            return
        while True:
            try:
                self.engine.push(stream.name, list(lines(new)))
            except UsageError:  # it has died
                self.revive()
            else:
                return

    def read(self) -> None:
        """Waits until all is read with the plan of now, by an engine that is not about to die."""
        while True:
            until(self._is_read, "what is there is read", step=0.002)
            with self.fate:
                self.deaths = []
                if not self.dying:
                    return
            until(lambda: not self.engine.running, "an engine that dies has ended", step=0.002)
            self.revive()

    def _is_read(self) -> bool:
        if not self.engine.running:
            self.revive()
        driver, registry = self.engine._driver, self.engine._registry
        assert driver is not None and driver._catalog is not None
        topology = driver._catalog._topology
        if registry.changed or topology is None or driver.last.plan < topology.version:
            return False
        records = self.engine._records()  # of an engine that starts they are those of before
        return all(
            name in records and records[name].elements == len(stream.elements)
            for name, stream in self.streams.items()
        )

    def revive(self) -> None:
        """The engine has died; another one goes on."""
        try:
            self.engine.await_end()
        except EngineError as error:
            if not isinstance(error.__cause__, DeathError):
                raise
        self.engine.close()
        self.died += 1
        self.dying = False
        self.engine = self.start()

    def end(self) -> None:
        """The streams end."""
        self.engine.close()
        if not self.streams:  # and so no query
            return
        self.engine = self.start(once=True)
        assert set(self.engine.streams()) == set(self.streams), "those that came come again"
        self.engine.await_end()
        self.engine.close()

    def judge(self) -> int:
        """Compares with the reference; how many reports that are."""
        for asked in (*self.gone, *self.queries.values()):
            own = self.sink.reports.get(asked.query.name, [])
            right = asked.right
            if asked.sure is not None:
                least = [r for r in right if r.time < asked.sure]
                assert len(own) >= len(least), f"{asked.query.text}\nwas sure of {len(least)}"
                right = right[: len(own)]
            difference = same(right, own)
            assert difference is None, f"{asked.query.text}\nafter {asked.after}\n{difference}"
        return sum(map(len, self.sink.reports.values()))


@pytest.mark.long
def test_queries_say_what_the_reference_says(tmp_path: Path, random_seed: int) -> None:
    reports = died = came = 0
    for case in range(CASES):
        draw = random.Random(f"{random_seed} {case}")
        folder = tmp_path / str(case)
        folder.mkdir()
        world = World(folder, draw)
        try:
            for _ in range(TURNS):
                world.turn()
            world.end()
        finally:
            world.engine.close()
        reports, died, came = reports + world.judge(), died + world.died, came + world.came
    assert reports > 5 * CASES, "there is something to say"
    assert died >= CASES // 2 and came >= CASES, "streams come, engines die"

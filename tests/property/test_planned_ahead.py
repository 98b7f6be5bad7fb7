"""Random requests to an engine that reads all the while: queries are added, replaced and dropped,
several at once, by requests and by the program, over deaths and starts. Each query reports what a
few lines of Python count from the instant that the answer names: once, and without gaps.

Planning takes a random time, so elements arrive meanwhile. 1 case; ``LEVADA_CASES`` is another
number.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from levada import Engine
from levada.checkpoint.manifest import Manifest
from levada.checkpoint.request_files import Answer, QuerySpec, Request
from levada.cli.remote.add_drop import ask
from levada.connectors.serialization.serialize import Batch, ndjson
from levada.core.event_time import MIN
from levada.errors import EngineError, UsageError
from levada.plan.sharing.sharing_modes import Sharing
from levada.runtime.driver.query_catalog import Catalog
from support.polling import until

CASES = int(os.environ.get("LEVADA_CASES", "0")) or 1
TURNS = 5
S = "http://e/s"
SHARINGS = ("off", "exact", Sharing.CONTAINMENT, "relax")
KINDS = {"a0": "k0", "a1": "k1"}  # static data
pytestmark = pytest.mark.timeout(0)
Row = tuple[str, ...]


class DeathError(Exception):
    """Ends an engine in a commit."""


@dataclass(frozen=True)
class Element:
    time: int
    subject: str
    predicate: str
    value: str


@dataclass
class Asked:
    """A query, whose rows ``mark`` tells apart from those of others of its name. ``start``: its
    first event time. ``sure``: all reports before it had been made when the query was dropped.
    """

    name: str
    mark: str
    kind: str
    size: int  # s, of the window
    step: int  # s
    maker: Asked | None = None
    start: int | None = None
    sure: int | None = None
    by_program: bool = False

    @property
    def text(self) -> str:
        window = f"[RANGE PT{self.size}S STEP PT{self.step}S]"
        source = f"<{S}>" if self.maker is None else f":{self.maker.name}"
        m, used = self.mark, "r" if self.maker else "p"
        head = f"SELECT ?{m}a ?{m}v"
        inside, outside, tail = f"?{m}a :{used} ?{m}v", "", ""
        match self.kind:
            case "filter":
                inside += f" FILTER(?{m}a = :a1)"
            case "count":
                head, tail = f"SELECT ?{m}a (COUNT(*) AS ?{m}n)", f"GROUP BY ?{m}a"
            case "join":
                head = f"SELECT ?{m}v ?{m}w"
                inside += f" . ?{m}a :q ?{m}w"
            case "static":
                head = f"SELECT ?{m}v ?{m}k"
                outside = f"?{m}a :kind ?{m}k"
            case "maker":
                head = f"REGISTER STREAM :{self.name} AS CONSTRUCT {{ ?{m}a :r ?{m}v }}"
        where = f"WHERE {{ WINDOW :w {{ {inside} }} {outside} }} {tail}"
        return f"PREFIX : <http://e/> {head} FROM NAMED WINDOW :w ON {source} {window} {where}"

    def rows(self, there: list[Element]) -> Counter[Row]:
        """The rows for the elements of a window, which has a triple once."""
        there = list({(e.subject, e.predicate, e.value): e for e in there}.values())
        used = [e for e in there if e.predicate == ("r" if self.maker else "p")]
        match self.kind:
            case "filter":
                return Counter((e.subject, e.value) for e in used if e.subject == "a1")
            case "count":
                counts = Counter(e.subject for e in used)
                return Counter((subject, str(n)) for subject, n in counts.items())
            case "join":
                others = [e for e in there if e.predicate == "q"]
                return Counter(
                    (e.value, f.value) for e in used for f in others if e.subject == f.subject
                )
            case "static":
                return Counter((e.value, KINDS[e.subject]) for e in used if e.subject in KINDS)
        return Counter((e.subject, e.value) for e in used)

    def right(self, elements: list[Element], end: int) -> list[tuple[int, Counter[Row]]]:
        """The reports up to an instant."""
        assert self.start is not None
        if self.maker is not None:
            elements = [
                Element(at, subject, "r", value)
                for at, rows in self.maker.right(elements, end)
                for subject, value in sorted(rows)
            ]
        found = []
        for at in range(0, end + 1, 1000 * self.step):
            low = max(self.start, at - 1000 * self.size)
            if rows := self.rows([e for e in elements if low <= e.time < at]):
                found.append((at, rows))
        return found


class FolderSink:
    """Keeps each batch in a file of its own: one that is published again takes its place."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder

    def publish(self, query: str, variables: Any, epoch: int, batch: Batch) -> list[str]:
        path = self._folder / f"{epoch:08d} {query} {'-'.join(variables)}"
        path.with_suffix(".new").write_bytes(ndjson(query, variables, batch))
        path.with_suffix(".new").rename(path)
        return []

    def reports(self, asked: Asked) -> list[tuple[int, Counter[Row]]]:
        """The reports of a query in the order in which they were published."""
        lines: list[Any] = []
        for path in sorted(self._folder.glob(f"* {asked.name} *")):
            lines += map(json.loads, path.read_text().splitlines())
        return [found for line in lines if (found := _report(line, asked)) is not None]


def _report(line: Any, asked: Asked) -> tuple[int, Counter[Row]] | None:
    """A line as a report; None: it is of another query of the name."""
    if "graph" in line and asked.kind != "maker":
        return None
    if "graph" in line:
        triples = [re.findall(r"http://e/(\w+)>|\"(\w+)\"", text) for text in _split(line["graph"])]
        return line["report"], Counter((s[0], v[1] or v[0]) for s, _, v in triples)
    names = line["head"]["vars"]
    if not names[0].startswith(asked.mark):
        return None
    rows = line["results"]["bindings"]
    return line["report"], Counter(
        tuple(row[name]["value"].rsplit("/", 1)[-1] for name in names) for row in rows
    )


def _split(graph: str) -> list[str]:
    return [line for line in graph.split("\n") if line.strip()]


class World:
    """An engine, what it reads, and the queries that there should be."""

    def __init__(self, folder: Path, draw: random.Random) -> None:
        self.folder, self.draw = folder, draw
        self.sharing = draw.choice(SHARINGS)
        self.sink = FolderSink(folder / "out")
        self.elements: list[Element] = []
        self.live: dict[str, Asked] = {}
        self.gone: list[Asked] = []
        self.marks = (f"m{n}x" for n in itertools.count())
        self.doomed = self.died = 0
        self.ids = map("{:020d}".format, itertools.count())
        (folder / "s").mkdir()
        (folder / "static.nt").write_text(
            "".join(f"<http://e/{s}> <http://e/kind> <http://e/{k}> .\n" for s, k in KINDS.items())
        )
        self.program(self.new("each"))
        self.engine = self.start()
        self._stop = threading.Event()
        self._feeder = threading.Thread(target=self._feed, args=(draw.randrange(10**9),))
        self._feeder.start()

    # -- the engine --

    def start(self) -> Engine:
        engine = Engine(
            spark=False, checkpoint=self.folder / "ck", sink=self.sink, sharing=self.sharing
        )
        engine.stream(S, self.folder / "s")
        engine.static(self.folder / "static.nt")
        for asked in self.live.values():
            if asked.by_program:
                engine.register(asked.text, name=asked.name)
        checkpoint = engine._open()
        commit: Callable[[Manifest], None] = checkpoint.commit

        def doomed(manifest: Manifest) -> None:
            self.doomed -= 1
            if self.doomed == 0:
                if self.died % 2:
                    commit(manifest)
                raise DeathError
            commit(manifest)

        checkpoint.commit = doomed
        engine.start()
        return engine

    def look(self) -> None:
        """Starts an engine anew if it has died."""
        if self.engine.running:
            return
        with pytest.raises(EngineError):
            self.engine.await_end()
        self.again()

    def again(self) -> None:
        self.engine.close()
        self.died += 1
        self.engine = self.start()

    def until(self, condition: Callable[[], Any], what: str) -> None:
        def seen() -> Any:
            self.look()
            return condition()

        until(seen, what, step=0.005)

    def _feed(self, seed: int) -> None:
        draw, now = random.Random(seed), 1
        for i in itertools.count():
            if self._stop.is_set():
                return
            now += draw.randrange(1, 400)
            new = Element(now, f"a{draw.randrange(3)}", draw.choice("pq"), f"v{i}")
            path = self.folder / "s" / f"{i:06d}.nt"
            line = f'<http://e/{new.subject}> <http://e/{new.predicate}> "{new.value}" {now} .\n'
            path.with_name(".new").write_text(line)
            self.elements.append(new)
            path.with_name(".new").rename(path)
            time.sleep(draw.choice((0.001, 0.004, 0.03)))

    # -- queries --

    def new(self, kind: str = "", name: str = "") -> Asked:
        mark, maker = next(self.marks), None
        kind = kind or self.draw.choice(("each", "filter", "count", "join", "static", "maker"))
        size, step = self.draw.choice(((2, 1), (1, 1), (4, 2), (3, 1), (2, 2)))
        makers = [a for a in self.live.values() if a.kind == "maker"]
        if kind in ("each", "count") and makers and self.draw.random() < 0.6:
            maker = self.draw.choice(makers)
        name = name if name and kind != "maker" else f"q{mark}"
        return Asked(name, mark, kind, size, step, maker)

    def program(self, asked: Asked) -> None:
        asked.by_program = True
        self.live[asked.name] = asked

    def drop(self, name: str) -> Asked:
        asked = self.live[name]
        if asked.maker is None:
            record = self.engine._records().get(S)
            asked.sure = None if record is None else record.watermark
        return asked

    # -- a turn --

    def turn(self) -> None:
        askers, free = [], list(self.live)
        for _ in range(self.draw.randrange(1, 4)):
            drop, add = "", []
            if free and self.draw.random() < 0.5:
                drop = free.pop(self.draw.randrange(len(free)))
            if not drop or self.draw.random() < 0.6:
                # what the program gives again under the name of a query would win
                kept = drop and not self.live[drop].by_program and self.draw.random() < 0.5
                add = [self.new(name=drop if kept else "")]
                add += [self.new() for _ in range(self.draw.choice((0, 0, 1, 2)))]
                if add[0].kind == "maker":
                    add.append(Asked(f"r{add[0].name}", next(self.marks), "each", 2, 1, add[0]))
            askers.append(Asker(self, drop, add))
        if self.draw.random() < 0.4:
            self.doomed = self.draw.randrange(1, 25)
        for _ in range(self.draw.choice((0, 1, 2))):
            time.sleep(self.draw.choice((0, 0.05, 0.2)))
            self.program_changes(free)
        for asker in askers:
            self.until(asker.has_ended, "an answer")
        for asker in askers:
            self.follow(asker)
        self.until(self.is_settled, "queries are planned")
        self.starts()
        if self.draw.random() < 0.2:
            self.engine.stop()
            self.again()
            self.until(self.is_settled, "queries are planned")
            self.starts()

    def program_changes(self, free: list[str]) -> None:
        self.look()
        own = [n for n in free if self.live[n].by_program and n in self.live]
        try:
            if own and self.draw.random() < 0.4:
                name = own[0]
                free.remove(name)
                asked = self.drop(name)
                self.engine.unregister(name)
                self.gone.append(self.live.pop(name))
                assert asked is self.gone[-1]
            else:
                asked = self.new(self.draw.choice(("each", "filter", "count", "join", "static")))
                asked.maker = None
                self.engine.register(asked.text, name=asked.name)
                self.program(asked)
        except (UsageError, EngineError) as error:
            if self.engine.running:
                assert "is read by" in str(error), error

    def follow(self, asker: Asker) -> None:
        """What has become of a request."""
        answer = asker.answer
        if answer is not None and answer.refusal:
            assert re.search("is read by|no stream|takes part", answer.refusal), answer
            done = False
        elif answer is not None:
            done = True
        else:  # the engine ended
            there = self.engine.queries()
            done = all(a.name in there for a in asker.add) if asker.add else asker.drop not in there
            if asker.add and asker.drop == asker.add[0].name:
                text = self.engine._registry.queries[asker.drop].text
                done = text == asker.add[0].text
        if not done:
            for asked in asker.dropped:
                asked.sure = None
            return
        for asked in asker.dropped:
            self.gone.append(self.live.pop(asked.name))
        for asked in asker.add:
            self.live[asked.name] = asked
        for told in answer.messages if answer is not None else ():
            if found := re.match(r"(\w+): added, from (\S+)Z on", told):
                said = round(datetime.fromisoformat(f"{found[2]}+00:00").timestamp() * 1000)
                self.live[found[1]].start = said

    def is_settled(self) -> bool:
        queries = self.engine._registry.queries
        assert set(queries) == set(self.live), set(queries) ^ set(self.live)
        return all(query.lifetime.query is not None for query in queries.values())

    def starts(self) -> None:
        for name, query in self.engine._registry.queries.items():
            plan = query.lifetime.query
            if plan is None or not self.engine.running:
                continue
            asked = self.live[name]
            if asked.start is None:
                asked.start = plan.start  # later the instant of a switch of its joins

    def elements_read(self) -> int:
        record = self.engine._records().get(S)
        return 0 if record is None else record.elements

    def end(self) -> None:
        self.doomed = 0
        self._stop.set()
        self._feeder.join()
        self.until(
            lambda: self.elements_read() == len(self.elements),
            "all is read",
        )
        self.starts()
        self.engine.stop()

    def close(self) -> None:
        self._stop.set()
        self._feeder.join()
        self.engine.close()

    def judge(self) -> int:
        end, reports = self.elements[-1].time, 0
        for asked in (*self.gone, *self.live.values()):
            own = self.sink.reports(asked)
            if asked.start is None:
                assert asked in self.gone
                continue
            right = asked.right(self.elements, end)
            if asked in self.gone:
                least = sum(at < (asked.sure or MIN) for at, _ in right)
                assert len(own) >= least, f"{asked}\nhas {len(own)} reports of at least {least}"
                right = right[: len(own)]
            elif asked.maker is not None:  # what is made when the engine stops is read later
                right = right[: max(len(own), len(right) - 4)]
            wrong = [(r, o) for r, o in itertools.zip_longest(right, own) if r != o]
            assert not wrong, (
                f"{self.sharing}: {asked}\n{asked.text}\n{len(wrong)} of {len(right)} are wrong,"
                f" the first:\nright {wrong[0][0]}\nfound {wrong[0][1]}"
            )
            reports += len(own)
        return reports


class Asker:
    """A request that a thread makes."""

    def __init__(self, world: World, drop: str, add: list[Asked]) -> None:
        self.drop, self.add = drop, add
        self.dropped = [world.drop(drop)] if drop else []
        self.answer: Answer | None = None
        self._world = world
        self._id = next(world.ids)
        self.thread = threading.Thread(target=self._ask, daemon=True)
        self.thread.start()

    def has_ended(self) -> bool:
        return not self.thread.is_alive()

    def _ask(self) -> None:
        adding = [QuerySpec(asked.name, asked.text) for asked in self.add]
        request = Request(self._id, add=adding, drop=self.drop)
        try:
            self.answer = ask(self._world.folder / "ck", request, lambda: time.sleep(0.002))
        except EngineError:
            self.answer = None


@pytest.mark.long
def test_queries_planned_ahead_report_what_is_due(
    tmp_path: Path, random_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_ahead = Catalog.plan_ahead
    slow = random.Random(random_seed)

    def plan(catalog: Catalog, *args: Any) -> Any:
        time.sleep(slow.choice((0, 0.01, 0.1)))
        plan = plan_ahead(catalog, *args)
        time.sleep(slow.choice((0, 0.01, 0.1)))
        return plan

    monkeypatch.setattr(Catalog, "plan_ahead", plan)
    for case in range(CASES):
        folder = tmp_path / str(case)
        folder.mkdir()
        world = World(folder, random.Random(f"{random_seed} {case}"))
        try:
            for _ in range(TURNS):
                world.turn()
            world.end()
        finally:
            world.close()
        reports = world.judge()
        assert reports > 20

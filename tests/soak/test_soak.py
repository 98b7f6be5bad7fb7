"""A soak: an engine that runs for long at part of its load, over every kind of source, with late
and bad elements, queries that come and go, static data that change, and kill -9 again and again.
Its processes stay as large as they were, and its results are those of the reference.

    make soak              an hour on Spark; SOAK=3m for less
    SOAK=40s (`make long`) without Spark

Judged at the end: each element is counted, late or dead, as it was written to be; the light
queries' reports are the naive reference's, without what was told to be late; sums of the heavy one
are counted here; a query that came says what an equal one has said all along; and nothing grew.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from feed import IRI, MAPPING, RATE, Feed, Load, renamed
from watch import Life, grown, table

from levada.core.event_time import parse_duration
from levada.testing.compare import read_ndjson, same
from levada.testing.reference import evaluate
from levada.testing.reference_model import Element, ReferenceQuery, Report
from support.generators import Clause
from support.polling import PATIENCE, newest_epoch, until

LASTS = parse_duration(os.environ.get("SOAK", "40s")) / 1000  # s
MASTER = os.environ.get("SOAK_MASTER", "none")
LOAD = int(os.environ.get("SOAK_LOAD", "2000"))  # lines a second
KILL_EVERY = min(max(LASTS / 12, 12 if MASTER == "none" else 40), 300)  # s; Spark starts in ten
SETTLED = 20 if MASTER == "none" else 60  # s after which a life is as large as it gets
KINDS = ("nt", "gz", "parquet", "csv", "ndjson", "ttl")
TICK = 0.25  # s
STEP, RANGE = 4000, 8000
pytestmark = [pytest.mark.soak, pytest.mark.timeout(int(3 * LASTS) + 1200)]

HEAD = "PREFIX : <http://e/>\n"
LIGHT = (
    "SELECT ?a (COUNT(?n) AS ?c) (SUM(?n) AS ?s) "
    "FROM NAMED WINDOW :w ON <{}> [RANGE PT8S STEP PT4S] WHERE {{ "
    "WINDOW :w {{ ?a :p ?n }} }} GROUP BY ?a"
)
HEAVY = (
    "SELECT ?a (COUNT(?n) AS ?c) (SUM(?n) AS ?s) "
    "FROM NAMED WINDOW :w ON <http://e/load> [RANGE PT1S STEP PT1S] WHERE { "
    "WINDOW :w { ?a :p ?n } } GROUP BY ?a"
)
JOIN = """SELECT ?a ?n ?m FROM NAMED WINDOW :w ON <http://e/nt> [RANGE PT4S STEP PT4S]
FROM NAMED WINDOW :v ON <http://e/gz> [RANGE PT4S STEP PT4S]
WHERE { WINDOW :w { ?a :p ?n } WINDOW :v { ?a :p ?m } }"""
ROOMS = """SELECT ?v (COUNT(?n) AS ?c) FROM NAMED WINDOW :w ON <http://e/csv> [RANGE PT8S STEP PT4S]
WHERE { WINDOW :w { ?a :p ?n } GRAPH :g { :version :is ?v } } GROUP BY ?v"""


class Soak:
    """The whole of it: feeds, the engine's process, what was seen."""

    def __init__(self, root: Path, rng: random.Random) -> None:
        self.root, self.rng = root, rng
        self.feeds = [Feed(kind, kind, root) for kind in KINDS]
        self.load = Load(root, LOAD)
        (root / "map.yaml").write_text(MAPPING)
        (root / "queries").mkdir()
        for kind in KINDS:
            self.ask(kind, LIGHT.format(IRI.format(kind)))
        self.ask("heavy", HEAVY)
        self.ask("join", JOIN)
        self.ask("rooms", ROOMS)
        streams = {IRI.format(f.name): (str(f.path), f.options) for f in self.feeds}
        streams["http://e/load"] = str(self.load.path), {"lateness": "1s"}
        (root / "streams.json").write_text(json.dumps(streams))
        self.version, self.guests, self.lives = 0, 0, list[Life]()
        self.kills = 0
        self.renew()
        self.process: subprocess.Popen[bytes] | None = None

    def ask(self, name: str, text: str) -> None:
        renamed(self.root / "queries" / f"{name}.rq", (HEAD + text).encode())

    def renew(self) -> None:
        """Other static data."""
        self.version += 1
        renamed(
            self.root / "rooms.nt",
            f'<http://e/version> <http://e/is> "{self.version}" .\n'.encode(),
        )

    def start(self, how: str) -> None:
        self.before = newest_epoch(self.root / "ck")
        here = str(Path(__file__).parent / "engine.py")
        with (self.root / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, here, str(self.root), MASTER, how],
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self.lives.append(Life())

    def kill(self) -> None:
        """SIGKILL, to the driver or to all of it."""
        assert self.process is not None
        below = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        self.process.wait()
        if self.rng.random() < 0.5:
            for child in below:
                with suppress(psutil.NoSuchProcess):  # ends by itself without a driver
                    child.kill()
        psutil.wait_procs(below, timeout=PATIENCE)
        self.kills += 1

    def feed(self, seconds: float) -> None:
        """What is due after so many seconds."""
        self.load.write(int(seconds * self.load.rate))
        for feed in self.feeds:
            due = int(seconds * RATE)
            # a file of a second or two each
            if feed.kind not in ("gz", "parquet") or due - feed.done >= 2 * RATE:
                feed.write(due)

    def guest(self) -> None:
        """A query comes or goes."""
        there = sorted((self.root / "queries").glob("guest*.rq"))
        if there and self.rng.random() < 0.5:
            self.rng.choice(there).unlink()
        else:
            self.guests += 1
            self.ask(f"guest{self.guests}", LIGHT.format("http://e/nt"))

    def forget(self) -> None:
        """Old files of the heavy stream go once their reports are there."""
        there = sorted((self.root / "out" / "heavy").glob("*.ndjson"))
        if there and (text := there[-1].read_text()):
            self.load.forget(json.loads(text.splitlines()[-1])["report"] - 3000)

    def advanced(self) -> bool:
        """Whether this life has done something: what no life does, none can be right in."""
        return newest_epoch(self.root / "ck") >= self.before + 5

    def said(self) -> str:
        return (self.root / "log").read_text()[-3000:]

    def run(self) -> None:
        began, ticks = time.monotonic(), 0
        self.start("on")
        killed_at = began
        while (now := time.monotonic()) - began < LASTS:
            assert self.process is not None
            assert self.process.poll() is None, self.said()
            self.feed(now - began)
            ticks += 1
            if not ticks % 4:
                self.lives[-1].sample(psutil.Process(self.process.pid), self.root / "ck")
                self.forget()
            if not ticks % 16:
                self.guest()
            if not ticks % 22:
                self.renew()
            if now - killed_at > KILL_EVERY * self.rng.uniform(0.7, 1.3) and self.advanced():
                self.kill()
                self.start("on")
                killed_at = time.monotonic()
            time.sleep(TICK)

        def late_born() -> bool:
            """A life that began just now has its epochs of what still comes."""
            self.feed(time.monotonic() - began)
            return self.advanced()

        until(late_born, "five epochs of the last life", process=self.process, step=TICK)
        self.kill()
        last = max(feed.done for feed in self.feeds)
        for feed in self.feeds:
            feed.write(last + RATE)
        self.start("once")
        assert self.process is not None
        assert self.process.wait(3 * PATIENCE) == 0, self.said()
        assert "Traceback" not in self.said()


@pytest.fixture
def soak(tmp_path: Path, random_seed: int) -> Iterator[Soak]:
    print(f"LEVADA_SEED={random_seed}")
    soak = Soak(tmp_path, random.Random(random_seed))
    yield soak
    if soak.process is not None and soak.process.poll() is None:
        soak.kill()


@pytest.mark.long
def test_soak(soak: Soak) -> None:
    soak.run()
    late = letters(soak.root, "late")
    account = json.loads((soak.root / "account.json").read_text())
    check_account(soak, account, len(late))
    said = published(soak.root)
    check_light(soak, said, {letter["text"].strip() for letter in late})
    check_heavy(soak, said["heavy"])
    check_rooms(said)
    guests = check_guests(said)
    steps = [life for life in soak.lives[:-1] if life.seen]
    print(
        f"{soak.kills} kills, {guests} guests judged, {soak.version} versions, "
        f"{len(late)} late, {account}"
    )
    print(f"CPU-s by life: {[round(life.cpu, 1) for life in steps]}")
    print(table(steps))
    assert soak.kills >= 2
    assert not (growing := grown(steps, SETTLED)), growing


def letters(root: Path, kind: str) -> list[Any]:
    found = sorted((root / "out" / kind).glob("*.ndjson"))
    return [json.loads(text) for path in found for text in path.read_text().splitlines()]


def published(root: Path) -> dict[str, list[Report]]:
    names = (
        p
        for p in sorted((root / "out").rglob("*.ndjson"))
        if p.parent.name not in ("late", "dead-letter")
    )
    return read_ndjson(text for path in names for text in path.read_text().splitlines())


def check_account(soak: Soak, account: dict[str, list[int]], late: int) -> None:
    """Every element that was written has been counted once."""
    for feed in soak.feeds:
        elements, behind, dead, gone = account[IRI.format(feed.name)]
        assert elements + behind == len(feed.elements()), (feed.name, account)
        assert (dead, gone) == (feed.bad, 0), (feed.name, account)
    assert account["http://e/load"] == [soak.load.done, 0, 0, 0]
    assert sum(counts[1] for counts in account.values()) == late
    assert len(letters(soak.root, "dead-letter")) == sum(feed.bad for feed in soak.feeds)
    assert late, "where epochs are short some are late"


def check_light(soak: Soak, said: dict[str, list[Report]], late: set[str]) -> None:
    """What the reference says of the elements that were not late."""
    step = Clause("step", RANGE, STEP).window({})
    taken: dict[str, list[Element]] = {}
    for feed in soak.feeds:
        there = feed.elements()
        if feed.late:
            there = [e for e in there if f"{e.triples[0]} {e.ts} ." not in late]
        taken[IRI.format(feed.name)] = sorted(there, key=lambda e: e.ts)
    for feed in soak.feeds:
        text = HEAD + LIGHT.partition("FROM")[0] + "{ GRAPH :w { ?a :p ?n } } GROUP BY ?a"
        name = IRI.format(feed.name)
        query = ReferenceQuery(text, {"http://e/w": (name, step)})
        assert same(evaluate(query, {name: taken[name]}), said[feed.name]) is None, feed.name
    short = Clause("step", STEP, STEP).window({})
    both = {"http://e/w": ("http://e/nt", short), "http://e/v": ("http://e/gz", short)}
    text = HEAD + "SELECT ?a ?n ?m { GRAPH :w { ?a :p ?n } GRAPH :v { ?a :p ?m } }"
    assert same(evaluate(ReferenceQuery(text, both), taken), said["join"]) is None


def check_heavy(soak: Soak, reports: list[Report]) -> None:
    found = {
        report.time: {
            values["a"].strip("<>"): (number(values["c"]), number(values["s"]))
            for values in map(dict, report.solutions)
        }
        for report in reports
    }
    assert found == soak.load.sums(1000)


def number(text: str) -> int:
    return int(text.split('"')[1])


def check_rooms(said: dict[str, list[Report]]) -> None:
    """Each report knows one version, and none an older one than that before."""
    right = {r.time: sum(number(dict(s)["c"]) for s in r.solutions) for r in said["csv"]}
    versions = []
    for report in said["rooms"]:
        assert len(report.solutions) == 1, report
        [solution] = map(dict, report.solutions)
        versions.append(int(solution["v"].strip('"')))
        assert number(solution["c"]) == right[report.time]
    assert len(said["rooms"]) == len(right)
    assert versions == sorted(versions)
    assert len(set(versions)) > 1


def check_guests(said: dict[str, list[Report]]) -> int:
    """From its second window on a guest says what the query that was always there says."""
    right = {report.time: report for report in said["nt"]}
    judged = 0
    for name, reports in said.items():
        if name.startswith("guest") and reports:
            later = [r for r in reports if r.time >= reports[0].time + RANGE]
            assert same([right[r.time] for r in later], later) is None, name
            judged += bool(later)
    assert judged
    return judged

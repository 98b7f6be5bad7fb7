"""A second process adds, drops and reads while the engine is killed, again and again: a request is
done once, refused once, or withdrawn, and what is published and read is what the reference says.

The engine is killed from without at a random moment, or leaves by itself at a random change of the
disk; of those who ask, some die before they have an answer.
"""

import os
import random
import secrets
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from levada.checkpoint.checkpoint_folder import newest_manifest, plan_of
from levada.checkpoint.manifest import read_manifest
from levada.checkpoint.reader_leases import ReaderLease, epochs_there
from levada.checkpoint.request_files import QuerySpec, Request, list_requests, place, read_ledger
from levada.cli.remote.add_drop import ask
from levada.core.checkpoint_files import facts_of
from levada.engine.status.epoch_follower import Reader
from levada.errors import EngineError
from levada.testing.compare import read_ndjson, same
from levada.testing.reference import evaluate
from levada.testing.reference_model import Element, ReferenceQuery, Report
from levada.testing.stream_builders import lines
from support.generators import Clause
from support.polling import PATIENCE, until

KILLS = int(os.environ.get("LEVADA_KILLS", "3"))
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(PATIENCE * (KILLS + 5))]
S = "http://e/s"
TEXT = f"""PREFIX : <http://e/>
SELECT ?a ?n FROM NAMED WINDOW :w ON <{S}> [RANGE PT2S STEP PT1S]
WHERE {{ WINDOW :w {{ ?a :p ?n }} }}"""
REFERENCE = "PREFIX : <http://e/>\nSELECT ?a ?n WHERE { GRAPH :w { ?a :p ?n } }"
RUN = f"""
import sys, time
from pathlib import Path
from levada.connectors.serialization.serialize import Format
from levada.engine.engine import Engine
from levada.connectors.sinks.file_sink import FileSink
from levada_kill import arm
root, point = Path(sys.argv[1]), int(sys.argv[2])
out = FileSink(root / "out", Format.NDJSON)
engine = Engine(
    spark=False, checkpoint=root / "ck", epoch_rows=7, partitions=2, sink=out, keep_results=False
)
engine.stream("{S}", root / "s")
engine.register('''{TEXT}''', name="always")
if point:
    arm(point)
engine.start()
while engine.running and not (root / "stop").exists():
    time.sleep(0.01)
engine.stop()
engine.await_end()
engine.close()
"""


@dataclass
class Talk:
    """What was asked, and what became of it."""

    root: Path
    rng: random.Random
    unknown: set[str] = field(default_factory=set)
    living: set[str] = field(default_factory=set)
    fates: Counter[str] = field(default_factory=Counter)
    written: int = 0
    elements: list[Element] = field(default_factory=list)

    def feed(self, files: int) -> None:
        for _ in range(files):
            new = [element(len(self.elements) + i) for i in range(3)]
            hidden = self.root / ".new"
            hidden.write_text("".join(f"{line}\n" for line in lines(new)))
            hidden.replace(self.root / "s" / f"{self.written:06d}.nt")
            self.elements += new
            self.written += 1

    def ask_something(self) -> None:
        """A query comes or goes; a fifth of those who ask die before they are answered."""
        free = [f"q{i}" for i in range(12) if f"q{i}" not in self.living | self.unknown]
        if self.living and self.rng.random() < 0.4:
            request = Request(new_id(), drop=self.rng.choice(sorted(self.living)))
        elif free:
            request = Request(new_id(), [QuerySpec(self.rng.choice(free), TEXT)])
        else:
            return
        name = request.drop or request.add[0].name
        if self.rng.random() < 0.1:
            place(self.root / "ck", request)
            self.unknown.add(name)
            self.living.discard(name)
            self.fates["died"] += 1
            return
        try:
            answer = ask(self.root / "ck", request, lambda: time.sleep(0.002))
        except EngineError:
            self.fates["withdrawn"] += 1
            return
        assert not answer.refusal, answer
        self.fates["done"] += 1
        if request.drop:
            self.living.discard(name)
        else:
            self.living.add(name)


def element(i: int) -> Element:
    number = f'"{i}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return Element(200 * i, (f"<http://e/a{i % 3}> <http://e/p> {number}",))


def new_id() -> str:
    return f"{time.time_ns():020d}-{secrets.token_hex(4)}"


def begin(root: Path, point: int) -> subprocess.Popen[str]:
    path = [str(Path(__file__).parents[1] / "cluster"), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(root), str(point)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        stderr=subprocess.PIPE,
        text=True,
    )


class Read(threading.Thread):
    """Reads all that is committed, whichever engine runs."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.reader = Reader(root, ReaderLease(root, "read", time.monotonic), from_start=True)
        self.over = threading.Event()
        self.found: Counter[tuple[str, int, str]] = Counter()

    def run(self) -> None:
        while True:
            over = self.over.is_set()
            for _, batches in self.reader.epochs():
                for query, batch in batches:
                    for report, n in zip(batch.report, batch.columns["n"], strict=True):
                        self.found[query.name, int(report), n.split('"')[1]] += 1
            if over:
                return
            time.sleep(0.005)


class Starts(threading.Thread):
    """A reader that has read nothing yet, all the time: so all manifests and plans are kept, which
    say from where on each query ran in each epoch.
    """

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._root, self._sign = root, ReaderLease(root, "starts", time.monotonic)
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.is_set():
            self._sign.require_epoch(1)
            time.sleep(0.2)

    def found(self) -> dict[str, list[int]]:
        """The starts of each query; one that no epoch had has reported nothing."""
        epochs = sorted(epochs_there(self._root))
        assert epochs == list(range(1, len(epochs) + 1)), "all are kept"
        facts, found = facts_of(self._root), dict[str, set[int]]()
        for version in {read_manifest(self._root / "manifests" / str(n)).plan for n in epochs}:
            for name, query in plan_of(self._root, facts, version).queries.items():
                found.setdefault(name, set()).add(query.start)
        return {name: sorted(starts) for name, starts in found.items()}


def a_life(talk: Talk) -> None:
    """An engine, to its death."""
    point = talk.rng.choice((0, talk.rng.randint(1, 400)))
    process = begin(talk.root, point)
    until(lambda: (talk.root / "ck" / "engine.json").exists() or process.poll() is not None)
    for _ in range(talk.rng.randint(5, 25)):
        talk.feed(talk.rng.randint(0, 2))
        talk.ask_something()
    process.kill()
    _, said = process.communicate()
    assert process.returncode in (-9, 86), said


def the_last_life(talk: Talk) -> None:
    """An engine that does all that is left to do."""
    process = begin(talk.root, 0)
    while not talk.fates["done"] and process.poll() is None:
        talk.ask_something()  # on a busy machine nothing may have been answered before
    talk.feed(2)
    latest = talk.elements[-1].ts

    def all_is_done() -> bool:
        manifest = newest_manifest(talk.root / "ck")
        read = manifest is not None and manifest.streams[S].watermark >= latest
        return read and not list_requests(talk.root / "ck")

    until(all_is_done, process=process)
    (talk.root / "stop").touch()
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said


def check_lives(talk: Talk, name: str, starts: list[int], seed: int) -> None:
    """What a query reported is what the reference says, from each of its starts on to where the
    next one begins, or where it was dropped.
    """
    got = published(talk.root).get(name, [])
    question = ReferenceQuery(REFERENCE, {"http://e/w": (S, Clause("step", 2000, 1000).window({}))})
    covered = 0
    for start, after in pairwise([*starts, 2**60]):
        own = [r for r in got if start < r.time <= after - 1 or (start < 0 and r.time < after)]
        covered += len(own)
        last = max((r.time for r in own), default=start)
        if name in {*talk.living, "always"} and after == 2**60:
            last = talk.elements[-1].ts
        right = evaluate(question, {S: [e for e in talk.elements if e.ts >= start]})
        told = f"seed {seed}, {name} from {start}, {talk.fates}"
        assert same([r for r in right if r.time <= last], own) is None, told
    assert covered == len(got), f"seed {seed}, {name}: a report is in no life, or in two"


def published(root: Path) -> dict[str, list[Report]]:
    texts = [
        line
        for path in sorted((root / "out").rglob("*.ndjson"))
        for line in path.read_text().splitlines()
    ]
    found = read_ndjson(texts)
    return {name: sorted(reports, key=lambda r: r.time) for name, reports in found.items()}


@pytest.mark.long
def test_talk_to_an_engine_that_is_killed(tmp_path: Path, random_seed: int) -> None:
    talk = Talk(tmp_path, random.Random(random_seed))
    (tmp_path / "s").mkdir()
    talk.feed(1)
    process = begin(tmp_path, 0)
    until((tmp_path / "ck" / "manifests").is_dir, process=process)
    read = Read(tmp_path / "ck")
    read.start()
    starts = Starts(tmp_path / "ck")
    starts.start()
    process.kill()
    process.communicate()
    for _ in range(KILLS):
        (tmp_path / "ck" / "engine.json").unlink(missing_ok=True)
        a_life(talk)
    the_last_life(talk)
    read.over.set()
    read.join()
    starts.over.set()
    starts.join()
    began = starts.found()
    there = {added.name for added in read_ledger(tmp_path / "ck").added_queries}
    assert talk.living <= there <= talk.living | talk.unknown, f"seed {random_seed}"
    for name in ("always", *(f"q{i}" for i in range(12))):
        check_lives(talk, name, began.get(name, []), random_seed)
    files = Counter(
        (name, report.time, dict(solution)["n"].split('"')[1])
        for name, reports in published(tmp_path).items()
        for report in reports
        for solution, times in report.solutions.items()
        for _ in range(times)
    )
    assert read.reader.missed == 0, f"seed {random_seed}"
    assert read.found == files, f"seed {random_seed}"
    assert talk.fates["done"], "somebody was answered"

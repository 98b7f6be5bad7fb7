"""Engine and broker are killed at random steps while random queries run from topics to topics: what
is committed in the end is what the naive reference says of each query, each report once.

A set of queries lives four times on one checkpoint: before each life a part of its streams comes,
in the life the engine, the broker or both go (``doomed``); a fifth life, in which nobody does,
reads to the end. ``make chaos`` has a seventh of KILLS, a set for each four; ``make test``
has none: a broker of its own and three starts of an engine are more than one kill is worth there.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from levada.testing.compare import read_ndjson, same
from levada.testing.reference_model import Element, Row
from levada.testing.stream_builders import lines, write_graph
from support.generators import Case, cases, cql_cases
from support.generators.elements import elements
from support.generators.sketches import STREAM, sketched_sets
from support.generators.vocabulary import STATIC
from support.kafka_broker import Broker
from support.kafka_consumer import consumed, own
from support.polling import PATIENCE, until

KILLS = int(os.environ.get("LEVADA_KILLS", "2"))
LIVES = 4
DISK, TOPIC = 60, 12
"""The last step of its kind at which a fate may come."""
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(PATIENCE * (KILLS + 5))]


@st.composite
def alike(draw: st.DrawFn) -> Case:
    """Queries that are made of each other."""
    lateness = draw(st.sampled_from((0, 1500)))
    stream = draw(elements(lateness=lateness, least=6))
    return Case({STREAM: stream}, tuple(draw(sketched_sets(9))), lateness, STATIC)


def a_case(seed: int) -> Case:
    """The first case of a seed in which much may be lost."""
    found: list[Case] = []

    @hypothesis.seed(seed)
    @settings(
        max_examples=200, database=None, deadline=None, derandomize=False,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(cases(most=4) | cql_cases(most=4) | alike())
    def look(case: Case) -> None:
        if not found and sum(map(len, case.streams.values())) > 2 * LIVES:
            reports = case.expected()
            if min(map(len, reports.values())) > 0 and sum(map(len, reports.values())) > 10:
                found.append(case)

    look()
    return found[0]


@dataclass
class World:
    """A set of queries between topics: ``left`` has the messages that have not come yet."""

    broker: Broker
    folder: Path
    case: Case
    name: str
    rng: random.Random
    left: list[tuple[str, int, list[str]]] = field(default_factory=list)

    def create(self) -> None:
        """Topics, static graphs, and what the engine is told of them."""
        streams = []
        for i, (name, arrived) in enumerate(self.case.streams.items()):
            topic, count = f"{self.name}-in{i}", self.rng.choice((1, 1, 2, 3))
            options: dict[str, Any] = {"lateness": self.case.lateness, "format": "nt"}
            if columns := self.case.schemas.get(name):
                options |= {"format": "ndjson", "schema": dict(columns), "time": "field:ts"}
            streams.append((name, self.broker.topic(topic, count), options))
            for element in arrived:
                self.left.append((topic, self.rng.randrange(count), messages(element, columns)))
        graphs = [
            (str(write_graph(self.folder / f"g{i}.nt", triples)), graph)
            for i, (graph, triples) in enumerate(self.case.static.items())
        ]
        queries = [
            (q.name, q.text, q.dialect, dict(q.options), self.broker.topic(self.topic(q.name)))
            for q in self.case.queries
        ]
        told = {
            "streams": streams, "graphs": graphs, "queries": queries,
            "epoch_rows": self.rng.choice((1, 2, 3)), "partitions": self.rng.choice((1, 2)),
        }  # fmt: skip
        (self.folder / "world.json").write_text(json.dumps(told))

    def topic(self, query: str) -> str:
        """Where the reports of a query go."""
        return f"{self.name}-{query}"

    def feed(self, lives: int) -> None:
        """The part of each stream that comes before the first of so many lives that are left."""
        for topic in sorted({topic for topic, _, _ in self.left}):
            there = [one for one in self.left if one[0] == topic]
            coming = there[: -(-len(there) // lives)]
            for _, partition, values in coming:
                self.broker.send(topic, values, partition)
            self.left = [one for one in self.left if one[0] != topic] + there[len(coming) :]

    def live(self, who: str, kind: str = "disk", at: int = 0) -> bool:
        """A life of an engine; whether it met its fate."""
        for name in ("there", "on"):
            (self.folder / name).unlink(missing_ok=True)
        (self.folder / "fate.json").write_text(json.dumps((who, kind, at, who == "none")))
        process = self.start()
        met = False
        if who in ("broker", "both"):
            until(lambda: (self.folder / "there").exists() or process.poll() is not None)
            if met := (self.folder / "there").exists():
                self.broker.stop(signal.SIGKILL)
                (self.folder / "on").touch()
                if who == "both":
                    process.wait(PATIENCE)
                self.broker.start()
        code = process.wait(PATIENCE)
        died = code == -signal.SIGKILL and who in ("engine", "both")
        assert code == 0 or died, f"{code}: {(self.folder / 'said').read_text()[-3000:]}"
        return met or died

    def start(self) -> subprocess.Popen[bytes]:
        """The engine's process."""
        tests = Path(__file__).parents[2]
        path = [str(tests), str(tests / "cluster"), os.environ.get("PYTHONPATH", "")]
        with (self.folder / "said").open("ab") as said:
            return subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("doomed.py")), str(self.folder)],
                stderr=said,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            )

    def judge(self) -> str | None:
        """None if what is committed is what the reference says; else the first difference."""
        for name, right in self.case.expected().items():
            found = read_ndjson(own(consumed(self.broker, self.topic(name))))
            assert found.keys() <= {name}
            if difference := same(right, found.get(name, [])):
                return f"{name}: {difference}"
        return None


def messages(element: Element | Row, columns: Any) -> list[str]:
    """An element as messages: a triple each, or a row."""
    if isinstance(element, Element):
        return list(lines([element]))
    return [json.dumps({**dict(zip(columns, element.values, strict=True)), "ts": element.ts})]


def fates(rng: random.Random) -> Iterator[tuple[str, str, int]]:
    """Who goes in a life, and at which step."""
    while True:
        kind = rng.choice(("disk", "topic"))
        who = rng.choice(("engine", "broker", "both"))
        yield who, kind, rng.randint(1, DISK if kind == "disk" else TOPIC)


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Broker]:
    """A broker that is killed."""
    made = Broker(tmp_path / "broker")
    yield made
    made.stop()


@pytest.mark.long
def test_what_is_committed_is_what_the_reference_says(
    mortal: Broker, tmp_path: Path, random_seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def say(text: str) -> None:
        with capsys.disabled():
            print(text, flush=True)

    rng, killed, sets = random.Random(random_seed), Counter[str](), 0
    say(f"\nseed {random_seed}")
    while killed.total() < KILLS:
        sets += 1
        folder = tmp_path / f"set{sets}"
        folder.mkdir()
        world = World(mortal, folder, a_case(rng.getrandbits(32)), f"set{sets}", rng)
        world.create()
        lived = []
        for life, fate in zip(range(LIVES), fates(rng), strict=False):
            world.feed(LIVES - life)
            met = world.live(*fate)
            killed[f"{fate[0]} at {fate[1]}"] += met
            lived.append((*fate, met))
        world.live("none")
        difference = world.judge()
        assert difference is None, told(random_seed, lived, world, difference)
        say(f"set {sets}: {world.case.queries[0].dialect}, {lived}")
    say(f"{killed.total()} kills in {sets} sets: {dict(killed)}")


def told(seed: int, lived: Sequence[Any], world: World, difference: str) -> str:
    """What there is to know of a difference."""
    return f"seed {seed}, {lived}\n{difference}\n{world.case.describe()}"

"""Equal queries that come one by one, with what stands above their joins, become one as soon as no
element from before the later start can count; each says what it says alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from levada import Engine
from levada.testing.compare import same
from levada.testing.memory_sink import MemorySink
from levada.testing.reference import evaluate
from support.generators.windows import Clause
from support.polling import until_engine
from support.query_dsl import S, at, feed, query
from support.stepped_runs import register

STREAM = [
    at(700 * i, f":x{i % 3} :p :y{i % 4} . :y{i % 2} :q {i % 5} . :x{i % 2} :r {i % 3}")
    for i in range(30)
]
BODY = "WINDOW :w { ?x :p ?y . ?y :q ?v }"
OPTIONAL = "WINDOW :w { ?x :p ?y . ?y :q ?v OPTIONAL { ?x :r ?z } }"
STEP, CHANGE = Clause("step", 4000, 2000), Clause("range", 3000)
COUNT = ("SELECT ?y (COUNT(*) AS ?n) (MAX(?v) AS ?m)", BODY, "GROUP BY ?y")
ASKED = (
    (*COUNT, STEP, "RSTREAM"),
    (*COUNT, CHANGE, "ISTREAM"),
    ("SELECT DISTINCT ?v ?x", BODY, "", STEP, "DSTREAM"),
    ("SELECT ?x ?v ?z", OPTIONAL, "", CHANGE, "RSTREAM"),
)
TIMES = 3


def above(engine: Engine) -> Counter[str]:
    """Members of each kind, but Emits."""
    assert engine._driver is not None and engine._driver._catalog._topology is not None
    found: Counter[str] = Counter()
    for node in engine._driver._catalog._topology.graph.nodes.values():
        found[type(node.shape.step).__name__] += len(node.members.index)
    del found["Emit"]
    return found


@pytest.mark.long
@pytest.mark.parametrize("mode", ["exact", "relax"])
def test_they_become_one_and_say_what_they_say_alone(tmp_path: Path, mode: str) -> None:
    sink, path, counts = MemorySink(), tmp_path / "s.nt", []
    path.touch()
    asked = [
        [query(h, g, t, windows={"w": c}, output=o, name=f"q{k}-{i}") for i in range(TIMES)]
        for k, (h, g, t, c, o) in enumerate(ASKED)
    ]

    def engine() -> Engine:
        found = Engine(
            spark=False, checkpoint=tmp_path / "c", sink=sink, epoch="1ms", partitions=2,
            sharing=mode,
        )  # fmt: skip
        found._registry.planning = found._registry.planning._replace(looks=1)
        found.stream(S, path)
        return found

    with engine() as running:
        running.start()
        for i in range(TIMES):
            with running._registry.lock:
                register(running, [own[i] for own in asked])
            for one in STREAM[3 * i : 3 * i + 3]:
                feed(running, path, [one])
            until_engine(running, lambda: not running._registry.changed)
            counts.append(above(running))
        assert counts[-1] != counts[0], "those that came later have operators of their own"
        for one in STREAM[3 * TIMES : 22]:
            feed(running, path, [one])
        until_engine(running, lambda: above(running) == counts[0])
    with engine() as running:  # goes on from the checkpoint
        register(running, [one for own in asked for one in own])
        running.start()
        feed(running, path, STREAM[22:])
        assert above(running) == counts[0], "they are one after a stop, too"
    for own in asked:
        for i, came in enumerate(own):
            seen = max((e.ts for e in STREAM[: 3 * i]), default=None)
            question = came.reference if seen is None else replace(came.reference, after=seen)
            got = sink.reports[came.name]
            difference = same(evaluate(question, {S: STREAM})[: len(got)], got)
            assert len(got) > 3 and difference is None, f"{came.name}: {came.text}\n{difference}"

"""Queries that ask for too much among nine that do not: each is suspended by the limit that it
meets, the nine say what the reference says, and the engine goes on.

Here over a stream that lies there, with low limits, and four at a time; with ``LEVADA_CASES`` each
alone, too, in each mode of sharing. ``LEVADA_LIVE=30`` has each of them over a live stream of 1,000
elements a second for so many seconds, with a server's limits, and prints when it was suspended.
Times decide nothing.
"""

from __future__ import annotations

import itertools
import os
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from levada import Engine
from levada.connectors.serialization.serialize import Batch
from levada.core.query_limits import SERVED
from levada.engine.status.status import read_status
from levada.operators.expressions.scalar import regex
from levada.plan.sharing.sharing_modes import Sharing
from levada.testing import MemorySink
from levada.testing.compare import same_queries
from levada.testing.reference_model import Element, Report
from levada.testing.stream_builders import lines
from support.expensive_queries import EVIL, Evil, nine, stream
from support.generators import CaseQuery
from support.polling import until_engine
from support.query_dsl import STREAM, expected, query, step
from support.stepped_runs import register

LIVE = int(os.environ.get("LEVADA_LIVE", "5"))  # the 4 s of the largest window, and one more
LOW = "bytes=100KB,reports=20000,made=500KB,rate=3000,texts=100KB,cpu=1"
MODES = ("off", "exact", Sharing.CONTAINMENT, "relax")
ALONE = [*itertools.product(MODES, EVIL)]
Reports = Mapping[str, Sequence[Report]]
pytestmark = [pytest.mark.filterwarnings("ignore:.*suspended"), pytest.mark.timeout(0)]


def run(
    root: Path, path: Path, asked: Sequence[CaseQuery], others: Mapping[str, str], **options: Any
) -> Reports:
    """A run over what is there; what was published."""
    sink = MemorySink()
    given = {"partitions": 1, "epoch_rows": 60, "limits": LOW, **options}
    with Engine(spark=False, checkpoint=root, sink=sink, seed=7, **given) as engine:
        engine.stream(STREAM, path)
        register(engine, asked)
        for name, text in others.items():
            engine.register(text, name=name)
        engine.start(once=True, keep_open=True)
        engine.await_end()
    return sink.reports


def add(path: Path, elements: Sequence[Element]) -> None:
    with path.open("a") as file:
        file.writelines(f"{line}\n" for line in lines(elements))


def judge(asked: Sequence[CaseQuery], elements: Sequence[Element], got: Reports) -> None:
    """What they say is what the reference says, as far as the stream is complete."""
    last = elements[-1].ts
    whole = expected(asked, {STREAM: elements})
    right = {name: [r for r in reports if r.time <= last] for name, reports in whole.items()}
    assert sum(map(len, right.values())) > len(asked)
    difference = same_queries(right, {q.name: got.get(q.name, []) for q in asked})
    assert difference is None, difference


def check(root: Path, evil: Mapping[str, Evil], mode: str, draw: random.Random) -> None:
    elements, asked = stream(5, 40), nine(draw)
    add(root / "s.nt", elements)
    texts = {name: one.text for name, one in evil.items()}
    partitions = draw.choice((1, 2))
    got = run(root / "c", root / "s.nt", asked, texts, sharing=mode, partitions=partitions)
    judge(asked, elements, got)
    told = read_status(root / "c").suspended_queries
    assert set(told) == {name for name, one in evil.items() if one.limits}
    for name, why in told.items():
        assert any(f"--limits {word}=N" in why for word in evil[name].limits), why


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "MOST_SECONDS", 0.2)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_four_among_nine(tmp_path: Path, random_seed: int, mode: str) -> None:
    names = list(EVIL)
    random.Random(random_seed).shuffle(names)
    own = names[MODES.index(mode) :: len(MODES)]
    check(tmp_path, {n: EVIL[n] for n in own}, mode, random.Random(f"{random_seed} {mode}"))


@pytest.mark.long
@pytest.mark.parametrize(("mode", "name"), ALONE)
def test_one_among_nine(tmp_path: Path, random_seed: int, mode: str, name: str) -> None:
    check(tmp_path, {name: EVIL[name]}, mode, random.Random(f"{random_seed} {mode} {name}"))


JOIN = "?a :p ?x . ?a :e ?b"
WINDOW = step(2000, 1000)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_those_who_share_its_join_or_read_what_it_makes(tmp_path: Path, mode: str) -> None:
    """Joins that differ in a constant and are one where queries share; it stays suspended after a
    restart, and goes on with a higher limit, and with it who reads what it makes.
    """
    alike = [
        query("SELECT ?a ?b ?x", f"WINDOW :w {{ {JOIN} FILTER(?x > {60 + i}) }}", name=f"q{i}",
              windows={"w": WINDOW}) for i in range(4)
    ]  # fmt: skip
    asked = Evil(
        f'CONSTRUCT {{ ?a :b ?b . ?a :c "{"x" * 4000}" }}', f"{JOIN} FILTER(?x > 50)", ("bytes",),
        "RANGE PT2S STEP PT1S",
    )  # fmt: skip
    reads = asked.text.replace(":s [", ":evil [").replace(JOIN, "?a :b ?b").replace("?x > 50", "1")
    others = {"evil": asked.text, "reader": reads.replace("?a :c", "?b :c")}
    path, elements = tmp_path / "s.nt", stream(9, 40)
    got: dict[str, list[Report]] = {}
    for part, limits, suspended in ((0, LOW, ["evil"]), (1, LOW, ["evil"]), (2, "bytes=off", [])):
        add(path, [e for e in elements if e.ts // 3000 == part])
        found = run(tmp_path / "c", path, alike, others, sharing=mode, limits=limits)
        for name, reports in found.items():
            got.setdefault(name, []).extend(reports)
        assert list(read_status(tmp_path / "c").suspended_queries) == suspended
        # its first report is of half a window
        assert all(bool(found.get(name)) == (part == 2) for name in others if part), part
    judge(alike, elements, got)


@pytest.mark.long
def test_of_those_who_share_an_operator_the_one_whose_expression_takes_long(
    tmp_path: Path,
) -> None:
    """They differ in the pattern alone, and who has most texts is not who takes most time."""
    text = EVIL["back-reference"].text
    quick = text.replace("(a|aa)+", "(b|bb)+")
    more = quick.replace("?a :t ?t", "?a ?q ?t")  # also other texts
    elements, asked = stream(4, 40), nine(random.Random(1))
    add(tmp_path / "s.nt", elements)
    others = {"quick": quick, "evil": text, "more": more}
    got = run(tmp_path / "c", tmp_path / "s.nt", asked, others)
    judge(asked, elements, got)
    assert list(read_status(tmp_path / "c").suspended_queries) == ["evil"]


class Nine(MemorySink):
    """Keeps what the nine say."""

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """The same."""
        return [] if query == "evil" else super().publish(query, variables, epoch, batch)


def fed(folder: Path, seconds: int, rate: int) -> Callable[[], None]:
    """Feeds a folder with a file a second, as clocks go."""

    def feed() -> None:
        began = time.monotonic()
        for second in range(seconds):
            add(folder.parent / "next", stream(1, rate, second))
            time.sleep(max(began + second + 1 - time.monotonic(), 0))
            (folder.parent / "next").rename(folder / f"{second:06}.nt")

    return feed


@pytest.mark.long
@pytest.mark.parametrize("name", EVIL)
def test_one_among_nine_over_a_live_stream(
    tmp_path: Path, random_seed: int, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.undo()
    asked, rate, sink = nine(random.Random(random_seed), 97), 1000, Nine()
    folder, root = tmp_path / "s", tmp_path / "c"
    folder.mkdir()
    with Engine(
        spark=False, checkpoint=root, sink=sink, limits=SERVED, partitions=1, keep_results=False
    ) as engine:
        engine.stream(STREAM, folder)
        register(engine, asked)
        engine.register(EVIL[name].text, name="evil")
        feeding = threading.Thread(target=fed(folder, LIVE, rate))
        began, cpu = time.monotonic(), time.process_time()
        engine.start()
        feeding.start()
        if EVIL[name].limits:
            until_engine(engine, lambda: (root / "suspended.json").exists())
        took = f"{time.monotonic() - began:.1f} s, {time.process_time() - cpu:.1f} s of CPU"
        feeding.join()
        until_engine(engine, lambda: engine._records()[STREAM].elements == LIVE * rate * 9 // 4)
    told = read_status(root).suspended_queries
    print(f"\n{name}: {took}; load {os.getloadavg()[0]:.1f}; {told.get('evil', 'goes on')}")
    assert list(told) == ["evil"] * bool(EVIL[name].limits)
    judge(asked, stream(LIVE, rate), sink.reports)

"""IStreams of one join over windows that differ in their ranges say each what it says alone: of
rows that come again, whose ends fall on beginnings of equal ones, in sets that come and go, over
epochs, partitions and stops. ``LEVADA_CASES``: so many sets of each grid.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from levada import Engine
from levada.core.frame import Frame
from levada.core.query_limits import Memory
from levada.operators.reporting.ranges import range_relation_to_stream
from levada.operators.reporting.ranges.range_relation_to_stream import entries
from levada.testing.reference_model import Element
from support.dynamic_queries import PHASES, Coming, World, check, counters
from support.generators.sketches import Sketch
from support.generators.windows import Clause
from support.query_dsl import STREAM, at, query
from support.random_key_groups import by_lot

pytestmark = pytest.mark.timeout(0)
MANY = os.environ.get("LEVADA_CASES")
CASES = int(MANY or 1)
TEXT = (
    "PREFIX : <http://e/> REGISTER ISTREAM :o AS SELECT ?x FROM NAMED WINDOW :w ON :s "
    "[RANGE PT{}S] WHERE {{ WINDOW :w {{ ?x :p ?y . ?x :q ?z }} }}"
)
PAIR = ("?x :p ?y", "?x :q ?z")
GRIDS: tuple[tuple[int, dict[str, object]], ...] = (
    (0, {}),
    (1000, {}),
    (500, {"bounds": "(]"}),
    (1000, {"report": "change"}),
)
"""Steps, 0 for none, and options."""
LENGTHS = (250, 500, 750, 1000, 1500, 2000, 2250, 3000, 4000, 5000, 7500)


def drawn(draw: random.Random, step: int, options: dict[str, object], i: int) -> Coming:
    """A query of the pair, which shows all, or what several rows have in common."""
    length = draw.choice(LENGTHS)
    clause = Clause("step", length, step) if step else Clause("range", length)
    shown = draw.choice(((0, 1, 2), (0, 1, 2), (0, 2), (1, 2), (2,)))
    form = draw.choice(("select", "select", "select", "construct"))
    output = draw.choice(("ISTREAM",) * 6 + ("RSTREAM", "DSTREAM"))
    sketch = Sketch(PAIR, None, clause, output, form, shown, options=options)
    comes = draw.choice((0, 0, 0, 1, 2))
    goes = draw.choice((PHASES, PHASES, comes + 1))
    life = draw.choice((None, None, None, 3000))
    return Coming(sketch.query(f"q{i}"), comes, goes, life)


def world(draw: random.Random) -> World:
    """A stream of few triples on a grid of 250 ms, which come again and again."""
    times = sorted(draw.randrange(48) * 250 for _ in range(40))
    told = [
        f":x{draw.randrange(2)} :p :y{draw.randrange(2)}"
        if draw.random() < 0.5
        else f":x{draw.randrange(2)} :q :z{draw.randrange(2)}"
        for _ in times
    ]
    stream = [at(ts, one) for ts, one in zip(times, told, strict=True)]
    return World({STREAM: stream}, {STREAM: (12, 26)})


@pytest.mark.long
@pytest.mark.parametrize("grid", range(len(GRIDS)) if MANY else (0, 1))
def test_each_says_what_it_says_alone(random_seed: int, grid: int) -> None:
    step, options = GRIDS[grid]
    for case in range(CASES):
        draw = random.Random(f"{random_seed} {grid} {case}")
        coming = [drawn(draw, step, options, i) for i in range(12 if MANY else 8)]
        mixed = ("relax", draw.choice(("off", "exact", "relax")), "relax", "relax")
        check(coming, world(draw), counters(), draw.randrange(8), mixed)


def test_who_stands_for_all_goes_while_rows_wait() -> None:
    """Those of one stream, beside others over a stream that is far ahead."""

    def over(stream: str, name: str, length: int, goes: int = PHASES) -> Coming:
        clause = Clause("step", length, 2000)
        group = "WINDOW :w { ?x :p ?y . ?x :q ?z }"
        windows = {"w": (f"http://e/{stream}", clause)}
        asked = query("SELECT ?x", group, name=name, windows=windows, output="ISTREAM")
        return Coming(asked, goes=goes)

    def told(first: int) -> list[Element]:
        words = (":p :y", ":q :z")
        return [at(first + 700 * i, f":x{i % 3} {word}") for i in range(12) for word in words]

    coming = [
        over("s", "s2", 2000), over("s", "s4", 4000),
        over("t", "t2", 2000), over("t", "t4", 4000, 1), over("t", "t6", 6000, 2),
    ]  # fmt: skip
    streams = {"http://e/s": told(50_000), "http://e/t": told(0)}
    check(coming, World(streams, dict.fromkeys(streams, (10, 18))), counters())


def lotted(lot: int, memory: str) -> Callable[[Engine], None]:
    """Other group tables and numbers of partitions from epoch to epoch, little memory."""

    def prepare(engine: Engine) -> None:
        engine._memory = Memory.parse(memory)
        engine._open().tables.dealing = by_lot(lot)

    return prepare


@pytest.mark.long
def test_wherever_groups_are(random_seed: int) -> None:
    for case in range(CASES):
        draw = random.Random(f"{random_seed} {case}")
        step, options = GRIDS[case % len(GRIDS)]
        coming = [drawn(draw, step, options, i) for i in range(10)]
        prepare = lotted(draw.randrange(10**6), draw.choice(("", "1MB,theta=4096")))
        mixed = ("relax", "relax", "exact", "relax")
        check(coming, world(draw), counters(), draw.randrange(8), mixed, prepare=prepare)


def written(path: Path, pairs: int) -> None:
    """So many pairs, 100 ms apart, each again after a second; those of the last instant are not
    reported yet.
    """
    with path.open("w") as file:
        for i in range(pairs):
            for name in (i, i - 10)[: 1 + (i >= 10)]:
                file.write(f"<http://e/x{name}> <http://e/p> <http://e/y> {100 * i} .\n")
                file.write(f"<http://e/x{name}> <http://e/q> <http://e/z> {100 * i} .\n")


def test_a_row_is_kept_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ranges there are, and its results are written once; each has and counts its own."""
    kept = Counter[int]()

    def counting(rows: Frame) -> Frame:
        found = entries(rows)
        kept[queries] += found.n
        return found

    monkeypatch.setattr(range_relation_to_stream, "entries", counting)
    written(tmp_path / "s.nt", 60)
    sizes = {}
    for queries in (3, 40):
        folder = tmp_path / str(queries)
        with Engine(
            spark=False, checkpoint=folder, partitions=1, epoch_rows=500, sharing="relax"
        ) as engine:
            engine.stream(STREAM, tmp_path / "s.nt")
            texts = [TEXT.format(0.5 + i / 10) for i in range(queries)]
            asked = [engine.register(text, name=f"q{i}") for i, text in enumerate(texts)]
            engine.start(once=True, keep_open=True)
            engine.await_end()
            counts = [sum(len(r.rows.rows()) for r in one.results()) for one in asked]
            assert counts == [108 if i < 5 else 59 for i in range(queries)]
            assert engine.progress().results == sum(counts)
        files = [*(folder / "results").iterdir()]
        sizes[queries] = sum(path.stat().st_size for path in files)
    assert kept[40] == kept[3] > 60
    assert sizes[40] < 2 * sizes[3]

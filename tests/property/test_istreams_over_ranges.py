"""IStreams of one join over windows that differ in their ranges say each what it says alone: of
rows that come again, whose ends fall on beginnings of equal ones, in sets that come and go, over
epochs, partitions and stops. ``LEVADA_CASES``: so many sets of each grid.
"""

from __future__ import annotations

import os
import random

import pytest

from asking import STREAM, at
from cases.sketches import Sketch
from cases.windows import Clause
from coming import PHASES, Coming, World, check, counters
from levada import Engine
from levada.plan.sealed.steps import RangedChanges

pytestmark = pytest.mark.timeout(0)
MANY = os.environ.get("LEVADA_CASES")
CASES = int(MANY or 1)
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


@pytest.mark.parametrize("grid", range(len(GRIDS)) if MANY else (0, 1))
def test_each_says_what_it_says_alone(random_seed: int, grid: int) -> None:
    step, options = GRIDS[grid]
    for case in range(CASES):
        draw = random.Random(f"{random_seed} {grid} {case}")
        coming = [drawn(draw, step, options, i) for i in range(12 if MANY else 8)]
        mixed = ("relax", draw.choice(("off", "exact", "relax")), "relax", "relax")
        check(coming, world(draw), counters(), draw.randrange(8), mixed)


def members(engine: Engine) -> int:
    """How many members those operators have of which many are one."""
    plan = engine._driver.epochs.plan if engine._driver else None
    assert plan is not None
    found = [node for node in plan.nodes.values() if isinstance(node.step, RangedChanges)]
    return sum(int(one.alive.sum()) for one in found)

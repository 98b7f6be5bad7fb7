"""Kills while queries go over to other orders of their joins all the time: each plan has the old
operators or the new ones, never a mixture, and results are those of a run without a death.

``LEVADA_KILLS`` is the number of kills, 1 unasked. Stepped, since it is the checkpoint that is on
trial: the process is killed, at a random change of the disk, by ``os._exit``. Each process draws
its orders anew, so a run that goes on has others in mind than the one that began a switch.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from levada.testing.compare import read_ndjson, same
from levada.testing.reference import evaluate
from levada.testing.reference_model import Element, ReferenceQuery
from levada.testing.stream_builders import lines
from support.generators import Clause
from support.polling import PATIENCE

KILLS = int(os.environ.get("LEVADA_KILLS", "1"))
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(PATIENCE * (KILLS + 5))]
S = "http://e/s"
BODY = "?x :p ?y . ?y :q ?z . ?z :r ?u"
OUTPUTS = ("RSTREAM", "ISTREAM", "DSTREAM")
EACH = 20
RUN = """
import random, sys
from pathlib import Path
from levada.connectors.serialization.serialize import Format
from levada.engine.engine import Engine
from levada.runtime.cost_model import plan_migrations
from levada.connectors.sinks.file_sink import FileSink
from levada_kill import arm
root, point, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng, done = random.Random(seed), 0
trees = [((0, 1), 2), ((1, 2), 0), ((2, 1), 0), (2, (1, 0))]
finish = plan_migrations.finish
def counted(topology, name):
    global done
    done += 1
    finish(topology, name)
plan_migrations.finish = counted
engine = Engine(
    spark=False, checkpoint=root / "ck", epoch_rows=6, partitions=2,
    sink=FileSink(root / "out", Format.NDJSON), keep_results=False,
)
planning = engine._registry.planning
forced = lambda name, number, conjunction: [rng.choice(trees)]
engine._registry.planning = planning._replace(orders=forced, looks=1)
engine.stream("http://e/s", root / "s.nt")
for output in ("RSTREAM", "ISTREAM", "DSTREAM"):
    engine.register(f'''PREFIX : <http://e/> REGISTER {output} <http://e/{output}> AS
SELECT ?x ?z ?u FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT2S STEP PT1S]
WHERE {{ WINDOW :w {{ ?x :p ?y . ?y :q ?z . ?z :r ?u }} }}''', name=output)
if point:
    arm(point)
engine.start(once=True, keep_open=True)
engine.await_end()
engine.close()
print(done)
"""


def go(root: Path, point: int, seed: int) -> int:
    """A run on what is there: how many switches it has done; -1: it was killed."""
    path = str(Path(__file__).parents[1] / "cluster")
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(root), str(point), str(seed)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        timeout=PATIENCE,
        text=True,
    )
    assert done.returncode in (0, 86), done.stderr
    return int(done.stdout) if done.returncode == 0 else -1


def drawn(rng: random.Random, i: int) -> Element:
    """Links of chains, at every 250 ms."""
    links = [
        f"<http://e/{p}{rng.randrange(2)}> <http://e/{p}> <http://e/{o}{rng.randrange(2)}>"
        for p, o in ("pq", "qr", "ru")
    ]
    return Element(250 * i, tuple(links))


@pytest.mark.long
def test_orders_that_change_between_kills(tmp_path: Path, random_seed: int) -> None:
    rng = random.Random(random_seed)
    elements = [drawn(rng, i) for i in range(EACH * KILLS)]
    done = 0
    for round_ in range(KILLS):
        with (tmp_path / "s.nt").open("a") as file:
            own = elements[EACH * round_ : EACH * (round_ + 1)]
            file.writelines(f"{line}\n" for line in lines(own))
        go(tmp_path, rng.randint(1, 120), rng.randrange(1 << 30))
        done += max(go(tmp_path, 0, rng.randrange(1 << 30)), 0)
    print(f"{done} switches in runs that were not killed")
    assert done >= KILLS
    found = read_ndjson(
        line
        for path in sorted((tmp_path / "out").rglob("*.ndjson"))
        for line in path.read_text().splitlines()
    )
    window = Clause("step", 2000, 1000).window({})
    for output in OUTPUTS:
        question = ReferenceQuery(
            f"PREFIX : <http://e/> SELECT ?x ?z ?u {{ GRAPH :w {{ {BODY} }} }}",
            {"http://e/w": (S, window)}, output,
        )  # fmt: skip
        right = [r for r in evaluate(question, {S: elements}) if r.time <= elements[-1].ts]
        said = sorted(found.get(output, ()), key=lambda r: r.time)  # by some seeds it says nothing
        assert same(right, said) is None, f"seed {random_seed}, {output}"

"""Kills while the set of queries changes: each start may come with other queries, and each query is
right for its part.

``make chaos`` runs this beside ``tests/cluster/test_crash.py``, which it repeats LEVADA_KILLS
times. Stepped, since it is the checkpoint that is on trial: the process is killed, at a random
change of the disk, by ``os._exit``.
"""

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from levada.testing.compare import read_ndjson, same
from levada.testing.reference import evaluate
from levada.testing.reference_model import Element, ReferenceQuery
from levada.testing.stream_builders import lines
from support.generators import Clause
from support.polling import PATIENCE

KILLS = int(os.environ.get("LEVADA_KILLS", "5"))
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(PATIENCE * (KILLS + 5))]
S = "http://e/s"
SPARQL = "PREFIX : <http://e/>\nSELECT ?a ?n WHERE {{ {0} :w {{ ?a :p ?n }} }}"
RUN = """
import sys
from pathlib import Path
from levada.connectors.serialization.serialize import Format
from levada.engine.engine import Engine
from levada.connectors.sinks.file_sink import FileSink
from levada_kill import arm
root, point, *names = sys.argv[1:]
out = FileSink(Path(root) / "out", Format.NDJSON)
checkpoint = Path(root) / "ck"
engine = Engine(
    spark=False, checkpoint=checkpoint, epoch_rows=7, partitions=2, sink=out, keep_results=False
)
engine.stream("http://e/s", Path(root) / "s.nt")
text = '''PREFIX : <http://e/>
SELECT ?a ?n FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT2S STEP PT1S]
WHERE { WINDOW :w { ?a :p ?n } }'''
for name in names:
    engine.register(text, name=name)
if int(point):
    arm(int(point))
engine.start(once=True, keep_open=True)
engine.await_end()
engine.close()
"""


def go(root: Path, point: int, names: Sequence[str]) -> bool:
    """A run of some queries on what is there; True if it came to its end."""
    path = str(Path(__file__).parents[1] / "cluster")
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(root), str(point), *names],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        timeout=PATIENCE,
        text=True,
    )
    assert done.returncode in (0, 86), done.stderr
    return done.returncode == 0


@pytest.mark.long
def test_queries_that_change_between_kills(tmp_path: Path, random_seed: int) -> None:
    rng = random.Random(random_seed)
    elements = [
        Element(
            200 * i,
            (
                f'<http://e/a{i % 3}> <http://e/p> "{i}"^^<http://www.w3.org/2001/XMLSchema#integer>',
            ),
        )
        for i in range(12 * (KILLS + 1))
    ]
    seen = 0
    for round_ in range(KILLS):
        with (tmp_path / "s.nt").open("a") as file:
            file.writelines(f"{line}\n" for line in lines(elements[seen : seen + 12]))
        names = ["always", f"round{round_}"]
        go(tmp_path, rng.randint(1, 60), names)
        assert go(tmp_path, 0, names)
        seen += 12
    found = read_ndjson(
        line
        for path in sorted((tmp_path / "out").rglob("*.ndjson"))
        for line in path.read_text().splitlines()
    )
    window = Clause("step", 2000, 1000).window({})
    question = ReferenceQuery(SPARQL.format("GRAPH"), {"http://e/w": (S, window)})
    due = elements[seen - 1].ts
    right = [r for r in evaluate(question, {S: elements[:seen]}) if r.time <= due]
    assert same(right, sorted(found["always"], key=lambda r: r.time)) is None, f"seed {random_seed}"
    for round_ in range(1, KILLS):
        own, end = elements[12 * round_ : seen], elements[12 * round_ + 11].ts
        right = [r for r in evaluate(question, {S: own}) if r.time <= end]
        assert same(right, found.get(f"round{round_}", [])) is None, (
            f"seed {random_seed}, round {round_}"
        )

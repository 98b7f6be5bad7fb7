"""Workers killed in random epochs on real Spark, whose tasks are done again; and the driver, which
is started again until it ends (judge 4): each LEVADA_KILLS times, 2 unless said.

The seed is told with a failure; LEVADA_SEED repeats it, but for the instants within an epoch at
which processes are killed.
"""

import os
import random
from collections import Counter
from pathlib import Path

import killing
import pytest

from levada.testing.reference import evaluate
from levada.testing.reference_model import ReferenceQuery

KILLS = int(os.environ.get("LEVADA_KILLS", "2"))
WORKERS = 5  # at most: each is killed in an epoch of its own, and there are not many more
pytestmark = [
    pytest.mark.spark,
    pytest.mark.chaos,
    pytest.mark.timeout(killing.LIMIT * (KILLS + 3)),
]


def expected() -> Counter[tuple[str, int, frozenset[tuple[str, str]]]]:
    """What the reference says, as a bag of (query, report, solution)."""
    found: Counter[tuple[str, int, frozenset[tuple[str, str]]]] = Counter()
    for name, windows in killing.clauses().items():
        head, _, body = killing.QUERIES[name].partition("AS SELECT")[2].partition("WHERE")
        sparql = (
            f"PREFIX : <http://e/>\nSELECT {head.partition('FROM NAMED')[0]} "
            f"WHERE {body.replace('WINDOW', 'GRAPH')}"
        )
        over = {f"http://e/{w}": (on, clause.window({})) for w, (on, clause) in windows.items()}
        output = "ISTREAM" if name == "fresh" else "RSTREAM"
        for report in evaluate(ReferenceQuery(sparql, over, output), killing.streams()):
            found.update({(name, report.time, s): n for s, n in report.solutions.items()})
    return found


@pytest.mark.long
def test_a_killed_driver_loses_nothing_and_repeats_nothing(
    tmp_path: Path, random_seed: int
) -> None:
    data = tmp_path / "data"
    killing.prepare(data)
    print(f"LEVADA_SEED={random_seed}")
    rng = random.Random(random_seed)
    workers = killing.go_without_workers(data, tmp_path / "whole", min(KILLS, WORKERS), rng)
    print(f"{workers} workers killed")
    whole = killing.published(tmp_path / "whole")
    assert whole == expected(), "the run whose driver lives is right"
    assert workers, "tasks were done by workers"
    done = 0
    while done < KILLS:
        root = tmp_path / f"after-{done}"
        story = killing.survive(data, root, KILLS - done, rng)
        print(root.name, story)
        assert story, "at least one kill a round"
        assert killing.published(root) == whole, f"seed {random_seed}: {story}"
        done += len(story)

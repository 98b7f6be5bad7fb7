"""A placement that is learned on a cluster of four executors, and again with one of them killed
between two steps, in a process of its own: prints what became of it as JSON. ``python learning.py
QUERY``, in a folder with a stream ``s``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
from killed_executors import kill_executor

import levada
from levada.checkpoint.manifest import Manifest
from levada.runtime.driver import parallelism
from levada.runtime.spark.spark_session import start_session, stop_session

MACHINES, PARTITIONS, EPOCH = 4, 8, 320
MASTER = f"local-cluster[{MACHINES},1,1024]"
# executors of one host read each other's files; as on several hosts, they do not here
APART = {"spark.shuffle.readHostLocalDisk": "false", "spark.locality.wait.process": "30s"}


class Killer:
    """Kills the executor of machine 1 once, when the first step of learning has been told."""

    def __init__(self) -> None:
        self.killed = 0

    def tell(self, manifest: Manifest) -> None:
        """Looks at an epoch, in the thread that runs epochs: the next one has not begun."""
        placed = manifest.placement
        if self.killed or placed is None or not placed.learning_steps:
            return
        executor = placed.executors[1].rpartition("_")[2]
        if kill_executor(executor):
            self.killed = manifest.epoch


def run(name: str, text: str, killer: Killer | None = None, **given: Any) -> tuple[Any, Any]:
    """The results of a query over ``s``, and what is told of its placement."""
    with levada.Engine(
        checkpoint=name, partitions=PARTITIONS, epoch_rows=EPOCH, master=MASTER, seed=3, **given
    ) as engine:
        engine.stream("http://e/s", "s", files="parallel")
        query = engine.register(text, name="q")
        if killer is not None:
            engine._on_epoch(killer.tell)
        engine.start(once=True)
        rows = sorted([r.time, *map(str, row)] for r in query.results() for row in r.rows.rows())
        placed = engine.status().placement
        return rows, None if placed is None else msgspec.to_builtins(placed)


def main(text: str) -> None:
    """All of it on one session."""
    parallelism.MOST_BYTES = -1  # a job in one task sends nothing
    plain, _ = run("plain", text, spark=False)
    session = start_session(MASTER, config=APART, scratch=Path("spark"))
    learned, told = run("learned", text, spark=session, place="learn")
    killer = Killer()
    again, after = run("again", text, killer, spark=session, place="learn")
    stop_session(session)
    found = {
        "rows": len(plain),
        "same": [learned == plain, again == plain],
        "learned": told,
        "killed": killer.killed,
        "after": after,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])

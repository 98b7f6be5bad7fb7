"""A join and a count on a cluster of three executors, in each way in which a cluster is used, in a
process of its own: prints the rows of each run and its figures as JSON. ``python
three_executors.py``, in a folder with the streams ``first``, ``later`` and ``whole``, and a
placement ``p.json``.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from killed_executors import kill_executor

import levada
from levada.checkpoint.manifest import Manifest
from levada.runtime.driver import parallelism
from levada.runtime.rebalancing.rebalancer import Balancing
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions
from levada.runtime.spark import spark_executor
from levada.runtime.spark.spark_executor import SparkExecutor
from levada.runtime.spark.spark_session import start_session, stop_session

sys.path.append(str(Path(__file__).parents[1]))
from support.rebalancing_world import Drawn

MASTER = "local-cluster[3,1,1024]"
HEAD = "PREFIX : <http://e/> SELECT {} FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S] "
QUERIES = {
    "join": f"{HEAD.format('?k ?v ?w')} WHERE {{ WINDOW :w {{ ?k :p ?v . ?k :q ?w }} }}",
    "count": HEAD.format("?v (COUNT(*) AS ?n)")
    + "WHERE { WINDOW :w { ?k :p ?v . ?k :q ?w } } GROUP BY ?v",
}
Rows = dict[str, list[list[Any]]]


class Run:
    """One run after the other; each adds its rows and its figures."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.rows: dict[str, Rows] = {}
        self.figures: dict[str, dict[str, Any]] = {}

    def __call__(
        self, name: str, stream: str = "whole", *, close: bool = True,
        on_epoch: Callable[[Manifest], None] | None = None, balancing: Balancing | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        """Runs both queries over a folder; a run of the same name continues from its checkpoint."""
        options = {"spark": self._session, "epoch_rows": 150} | options
        with levada.Engine(checkpoint=f"checkpoint {name}", **options) as engine:
            engine.stream("http://e/s", stream, files="parallel")
            queries = {key: engine.register(text, name=key) for key, text in QUERIES.items()}
            if balancing is not None:
                engine._balancing = balancing
            if on_epoch is not None:
                engine._on_epoch(on_epoch)
            engine.start(once=True, keep_open=not close)
            rows = self.rows.setdefault(name, {key: [] for key in QUERIES})
            for key, query in queries.items():
                read = [[r.time, *map(str, row)] for r in query.results() for row in r.rows.rows()]
                rows[key] = sorted(rows[key] + read)
            self.figures[name] = self._figures(engine.status())

    def _figures(self, status: Any) -> dict[str, Any]:
        homes, placed, balanced = status.executors, status.placement, status.balance
        return {
            "partitions": status.epoch_costs.partitions,
            "carried": None if status.transport is None else asdict(status.transport),
            "homes": None if homes is None else [homes.executors, homes.same_executor_tasks],
            "moves": 0 if balanced is None else len(balanced.decisions),
            "placed": None if placed is None else placed.preferred_tasks,
        }


class Killer:
    """Kills an executor behind the third epoch."""

    killed = 0

    def __call__(self, manifest: Manifest) -> None:
        if manifest.epoch >= 3 and not self.killed:
            self.killed = kill_executor("1")


def main() -> None:
    """All runs on one session."""
    parallelism.MOST_BYTES = -1  # one task uses one executor
    session = start_session(MASTER, scratch=Path("spark"))
    run = Run(session)
    run("alone", spark=False)
    run("by default")
    run("placed", place="p.json", partitions=3)
    often = BalanceOptions(reorganize_every=1, supplier_threshold=0.002, consumer_threshold=0.001)
    run("balanced", partitions=4, balancing=Drawn(often, most=0, seed=7))
    run("bounded", memory="200MB")
    shutil.copytree("first", "growing")
    run("resized", "growing", close=False, partitions=2)
    shutil.copytree("later", "growing", dirs_exist_ok=True)
    run("resized", "growing", partitions=5)
    killer = Killer()
    run("killed", on_epoch=killer)
    by_file = partial(SparkExecutor, threshold=1000)
    with patch.object(spark_executor, "SparkExecutor", by_file):
        run("by file")
    stop_session(session)
    print(json.dumps({"rows": run.rows, "figures": run.figures, "killed": killer.killed}))


if __name__ == "__main__":
    main()

"""``mappings``: placements of one task graph, run by the engine on four executors: RLAS with the
model ``epochs``, first fit, round robin, lots (BriskStream's OS), of the four applications, W1 and
W3 (Zhang et al., SIGMOD 2019, Fig. 13, for a cluster).

Each work's tasks (readers of 4 files a stream, 8 partitions a stage) are placed by each, and the
engine runs each placement (``--place FILE``), and once as it would by itself (``engine``). Told are
rows a second and a CPU-second, bytes from other executors a row, and what the model had
``predicted``, of which nothing comes from these runs (``bench.mapped.predicted``): bytes by the
send graph of a run in this process, as ``levada place`` has them, and as the model has them, where
each task sends as much to each (``in_turn``; rows go to files in turn, but stages that exchange by
the same key keep them in their partition).
``rows_per_s_here`` is the model's
where executors share so many cores as this machine has: **on two cores four executors do not run
side by side**, so ``rows_per_s``, which has a core for each, cannot be seen here.
``off``: the predicted by the measured, less one. Counts are checked against plain Python.

``LEVADA_MAPPINGS="WC|W1"`` runs some; ``LEVADA_MASTER=spark://..`` elsewhere, with
``LEVADA_MACHINES``, ``LEVADA_CORES``. ``--stepped``: only what is predicted, with costs of
decisions 6 and 7 in place of probed ones.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from bench.edges import calls_of
from bench.mapped import placed, predicted, runs
from bench.mapped.clock import lines
from bench.mapped.predicted import Case, Costs
from bench.mapped.works import WORKS, Work, Written
from bench.result import Result
from levada.engine.placement.measured_send_graph import read_send_graph
from levada.placement.replication.rlas import Search
from levada.placement.send_graph import SendGraph
from levada.runtime.spark.spark_executor import SparkExecutor

WANTED = os.environ.get("LEVADA_MAPPINGS", "|".join(WORKS)).split("|")
CORES = int(os.environ.get("LEVADA_CORES", str(os.cpu_count() or 1)))
KNOWN = Costs(0.011, 0.015, 0.010, 5e-9, 5e-9)
SEARCH = Search(steps=20_000, nodes=20_000)
MAIN = 0.01
"""What part of the most that is read a reader has, at least, to be one of those that are placed."""


def model_of(
    work: Work, written: Written, root: Path, costs: Costs
) -> tuple[Case, list[list[str]], SendGraph]:
    """What the model knows of a work, measured in this process; the tasks of each stage, and what
    they have sent each other.
    """
    engine = partial(runs.ClockedEngine, None)
    told = runs.run(work, written, root, make=engine, options={"slices": placed.SLICE})
    graph = read_send_graph(root, None)
    stages = placed.by_stage(graph)
    sent = Counter[str]()
    for source, rows in zip(graph.source.tolist(), graph.rows.tolist(), strict=True):
        sent[graph.tasks[source]] += rows
    most = max(sent[task] for task in stages[0])
    stages[0] = [task for task in stages[0] if sent[task] >= MAIN * most]
    calls = calls_of(lines(root), told)
    tasks = [len(own) for own in stages]
    case = predicted.case(calls, told.epochs, told.rows / told.epochs, tasks, costs)
    return case, stages, graph


def compare(
    name: str, scale: float, session: Any, costs: Costs, search: Search = SEARCH
) -> dict[str, Any]:
    """All placements of a work; without a session only what is predicted."""
    work = WORKS[name]
    with tempfile.TemporaryDirectory(prefix="levada-mappings-") as folder:
        root = Path(folder)
        written = work.write(root, work.size(scale), False)
        case, stages, graph = model_of(work, written, root / "alone", costs)
        found: dict[str, Any] = {"count": written.results, "tasks": list(case.tasks)}
        files: dict[str, Path | str] = {}
        for way, counts in predicted.placements(case, search).items():
            found[way] = {"plan": [" ".join(map(str, row)) for row in counts.tolist()]}
            found[way]["predicted"] = predicted.predicted(case, counts, CORES)
            at = predicted.machines(stages, counts)
            far = predicted.sent_far(graph, at) / written.rows
            found[way]["predicted"]["remote_bytes_a_row"] = round(far, 1)
            files[way] = placed.write(root / f"{way}.json", way, at)
        if session is None:
            return found

        def once(way: str, turn: int) -> runs.Told:
            options = {"spark": session, "place": files[way]}
            own = root / f"{way}-{turn}"
            return runs.run(work, written, own, stages=runs.Stages(session), options=options)

        files["engine"] = ""
        for way, told in runs.in_turns({way: partial(once, way) for way in files}).items():
            found[way] = found.get(way, {}) | runs.together(told).brief()
            found[way] |= {"off": _off(found[way])} if "predicted" in found[way] else {}
    return found


def _off(own: dict[str, Any]) -> dict[str, float]:
    """How far what was predicted is from what was measured."""
    said = own["predicted"]
    pairs = {
        "rows_per_s_here": ("rows_per_s_here", "rows_per_s"),
        "rows_per_cpu_s": ("rows_per_cpu_s", "rows_per_cpu_s"),
        "remote_bytes": ("remote_bytes_a_row", "remote_bytes_a_row"),
    }
    return {
        name: round(float(said[a]) / max(float(own[b]), 1e-9) - 1, 3)
        for name, (a, b) in pairs.items()
    }


def run(scale: float, stepped: bool) -> Result:
    """On one session."""
    if stepped:
        found = {name: compare(name, scale, None, KNOWN) for name in WANTED}
        return _result(found, KNOWN)
    with runs.cluster() as session:
        compare("WC", min(scale, 0.05), session, KNOWN)  # the JVM compiles itself
        costs = predicted.probe(SparkExecutor(session))
        found = {name: compare(name, scale, session, costs) for name in WANTED}
    return _result(found, costs)


def _result(found: dict[str, Any], costs: Costs) -> Result:
    count = sum(side["count"] for side in found.values())
    more = {"machines": runs.MACHINES, "cores": CORES, "costs_ms": costs.told()}
    return Result("mappings", {"count": count}, more=more | found)

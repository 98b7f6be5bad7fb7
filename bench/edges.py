"""``edges``: where a tuple's time goes on each edge, BriskStream's Fig. 8 (Zhang et al., SIGMOD
2019, section 6.3: Execute, RMA, Others), for its four applications, W1 and W3.

    one     an epoch is one task: operators hand frames over in memory
    near    spread over 8 partitions, all tasks on one executor: every blob is by value, none remote
    remote  the same tasks so placed that every blob comes from another executor

An edge is what a stage gets; in CPU-us for each row that comes along it:

    kernel     operators of the stage that gets it
    serialise  cutting rows by target and packing them (sender), unpacking them (receiver)
    ship       threads of the receiving tasks in the JVM: shuffle, pipes to and from Python
    rest       state, results, and what a stage does around its operators

``wait_us`` is wall time: how much longer Spark's tasks ran than the function of the stage in them,
``ship`` among it, and ``fetch_us`` what of it they waited for blobs. ``beside_us`` is, for each
element that is read, what all processes take beside the calls: the driver, Spark's scheduler, its
Python workers around calls. ``by_one`` and ``by_near`` compare CPU per element. Counts are checked
against plain Python. Each way runs twice, to and fro. ``LEVADA_EDGES="WC|W1"`` runs some; ``LEVADA_MASTER=spark://..``
elsewhere. ``--stepped``: one process, where only ``one`` is.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.mapped import placed, runs
from bench.mapped.clock import lines
from bench.mapped.runs import ClockedEngine, SparkStage, Stages, Told, cluster
from bench.mapped.works import WORKS, Work, Written
from bench.result import Result
from levada.runtime.cost_model.parallelism_choice import ONE, SPREAD

WANTED = os.environ.get("LEVADA_EDGES", "|".join(WORKS)).split("|")
US = 1e3
"""ns."""
Calls = list[Counter[str]]
"""Of all calls of each stage: ns by what they were for, rows and bytes."""


def calls_of(found: Sequence[dict[str, int]], told: Told) -> Calls:
    """The calls of the epochs that count, by stage."""
    own = [f for f in found if told.first <= f["epoch"] < told.first + told.epochs]
    calls: Calls = [Counter() for _ in range(1 + max(f["stage"] for f in own))]
    for line in own:
        calls[line["stage"]].update({k: v for k, v in line.items() if k not in ("epoch", "stage")})
    return calls


def edges_of(calls: Calls, jobs: Sequence[Sequence[SparkStage]]) -> list[dict[str, Any]]:
    """Each edge; ``jobs``: Spark's, if each of their stages is one of the engine's."""
    found = []
    for i in range(1, len(calls)):
        before, own = calls[i - 1], calls[i]
        rows = max(own["rows"], 1)
        spark = [job[i] for job in jobs if len(job) == len(calls)]
        ns = {
            "kernel": own["nodes"] - own["cut"],
            "serialise": before["cut"] + before["pack"] + own["unpack"],
            "ship": sum(s.cpu for s in spark) * 1e9,
            "rest": own["cpu"] - own["nodes"] - own["unpack"] - own["pack"],
        }
        more = {
            "wait": sum(s.ran for s in spark) * 1e9 - own["wall"] if spark else 0,
            "fetch": sum(s.waited for s in spark) * 1e9,
        }
        shares = {f"{name}_us": round(value / rows / US, 3) for name, value in (ns | more).items()}
        size = round(own["bytes"] / rows, 1)
        found.append({"edge": f"{i - 1}-{i}", "rows": own["rows"], "bytes": size, **shares})
    return found


Once = tuple[Told, Calls]
"""A run, and the calls in it that count."""


def _once(
    work: Work, written: Written, root: Path, way: str, session: Any, place: Path | str
) -> Once:
    """One run of a way."""
    told = runs.run(
        work,
        written,
        root,
        make=partial(ClockedEngine, session),
        stages=None if session is None else Stages(session),
        way=ONE if way == "one" else SPREAD,
        options={"place": place},
    )
    return told, calls_of(lines(root), told)


def _told(way: str, found: Sequence[Once]) -> dict[str, Any]:
    """What the runs of a way have come to."""
    told = runs.together([told for told, _ in found])
    stages = zip(*(calls for _, calls in found), strict=True)
    calls: Calls = [sum(own, Counter[str]()) for own in stages]
    apart = [] if way == "one" else told.jobs
    cpu, called = told.cpu.total, sum(c["cpu"] for c in calls) / 1e9
    threads = sum(s.cpu for job in apart for s in job)
    reads = calls[0]["cpu"] - calls[0]["cut"] - calls[0]["pack"]
    return told.brief() | {
        "cpu_us": round(cpu / told.rows * 1e6, 3),
        "read_us": round(reads / told.rows / US, 3),
        "beside_us": round((cpu - called - threads) / told.rows * 1e6, 3),
        "edges": {e.pop("edge"): e for e in edges_of(calls, apart)},
    }


def compare(name: str, scale: float, session: Any) -> dict[str, Any]:
    """All ways of a work; in this process, where there is no session, one."""
    work = WORKS[name]
    with tempfile.TemporaryDirectory(prefix="levada-edges-") as folder:
        root = Path(folder)
        written = work.write(root, work.size(scale), False)
        if session is None:
            return {"one": _told("one", [_once(work, written, root / "one", "one", None, "")])}
        stages = placed.by_stage(placed.counted(work, written, root / "counted"))
        files: dict[str, Path | str] = {
            "one": "",
            "near": placed.write(root / "near.json", "near", placed.near(stages)),
            "remote": placed.write(root / "remote.json", "remote", placed.apart(stages)),
        }

        def once(way: str, turn: int) -> Once:
            return _once(work, written, root / f"{way}-{turn}", way, session, files[way])

        found = runs.in_turns({way: partial(once, way) for way in files})
        told = {way: _told(way, own) for way, own in found.items()}
    told["near"]["by_one"] = _by(told, "near", "one")
    told["remote"]["by_near"] = _by(told, "remote", "near")
    return told


def _by(found: dict[str, Any], way: str, other: str) -> float:
    return round(float(found[way]["cpu_us"]) / max(float(found[other]["cpu_us"]), 1e-9), 2)


def run_all(scale: float, session: Any) -> dict[str, Any]:
    """All works that are wanted."""
    return {name: compare(name, scale, session) for name in WANTED}


def run(scale: float, stepped: bool) -> Result:
    """On one session."""
    if stepped:
        found = run_all(scale, None)
    else:
        with cluster() as session:
            compare("WC", min(scale, 0.05), session)  # the JVM compiles itself
            found = run_all(scale, session)
    count = sum(side["one"]["count"] for side in found.values())
    return Result("edges", {"count": count}, more=found)

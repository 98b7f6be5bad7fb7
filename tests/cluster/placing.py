"""Jobs and an engine on a cluster of four executors, placed and not, in a process of their own:
prints what became of them as JSON. ``python placing.py PLANS QUERY``, in a folder with a stream
``s`` and a placement ``p.json``.
"""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

import levada
from levada.cli import main as commands
from levada.engine.placement.edge_transport import read_edges
from levada.runtime.driver import parallelism
from levada.runtime.executor import Job
from levada.runtime.preferred_locations import LocalityStats, PreferredLocations
from levada.runtime.spark import executor_checks
from levada.runtime.spark.blob_transport import HostLocality
from levada.runtime.spark.executor_checks import ExecutorChecks
from levada.runtime.spark.spark_executor import SparkExecutor
from levada.runtime.spark.spark_session import start_session, stop_session

MACHINES, PAYLOADS, PARTS = 4, 6, 5
MASTER = f"local-cluster[{MACHINES},1,1024]"
FUNCTIONS = ("spark_jobs:matrix_intake", "spark_jobs:matrix_stage")
# executors of one host read each other's files; as on several hosts, they do not here. Where tasks
# are wanted they wait for room, also on a machine that is busy
APART = {"spark.shuffle.readHostLocalDisk": "false", "spark.locality.wait.process": "30s"}


class Seen:
    """What Spark says of the placed jobs that have been run since this was asked last."""

    def __init__(self, session: Any) -> None:
        self._context = session.sparkContext
        self._before = -1

    def bytes(self) -> int:
        """Those that crossed executors in all stages of jobs that were not asked for yet."""
        spark, tracker = self._context._jsc.sc(), self._context.statusTracker()
        spark.listenerBus().waitUntilEmpty()
        jobs = [job for job in tracker.getJobIdsForGroup(None) if job > self._before]
        self._before = max(jobs, default=self._before)
        stages = {stage for job in jobs for stage in tracker.getJobInfo(job).stageIds}
        told = (spark.statusStore().lastStageAttempt(stage) for stage in sorted(stages))
        return sum(int(stage.shuffleRemoteBytesRead()) for stage in told)

    def executors(self) -> tuple[list[list[str]], int]:
        """The executor of each task of the last job, stage by stage; the bytes that crossed
        executors.
        """
        spark, tracker = self._context._jsc.sc(), self._context.statusTracker()
        spark.listenerBus().waitUntilEmpty()
        self._before = max(tracker.getJobIdsForGroup(None))
        found, remote = [], 0
        for stage in sorted(tracker.getJobInfo(self._before).stageIds):
            told = spark.statusStore().taskList(stage, 0, 1000)
            tasks = sorted((t.index(), t.executorId()) for t in map(told.apply, range(told.size())))
            found.append([executor for _, executor in tasks])
            remote += spark.statusStore().lastStageAttempt(stage).shuffleRemoteBytesRead()
        return found, remote


def plan(number: int, executor: SparkExecutor, seen: Seen) -> dict[str, Any]:
    """A random plan of random sizes: what was sent, by our sizes and by Spark's count."""
    rng, stages = np.random.default_rng(number), 1 + number % 2
    sizes = [rng.integers(100, 60_000, (n, PARTS)) for n in (PAYLOADS, PARTS)]
    given = {"stages": stages, "first": sizes[0].tolist(), "later": sizes[1].tolist()}
    payloads = [b"%d" % i for i in range(PAYLOADS)]
    job = Job(json.dumps(given).encode(), payloads, stages, PARTS, FUNCTIONS)
    wanted = [tuple(rng.integers(0, MACHINES, n).tolist()) for n in (PAYLOADS, PARTS, PARTS)]
    tally = LocalityStats()
    places = PreferredLocations(MACHINES, wanted[0], tuple(wanted[1 : stages + 1]), tally)
    placed, plain = executor.run(replace(job, places=places)), None
    where, remote = seen.executors()
    plain = executor.run(job)
    far = [
        (sizes[n][i, j], source != target)
        for n in range(stages)
        for i, source in enumerate(where[n])
        for j, target in enumerate(where[n + 1])
    ]
    elsewhere = [
        tally.standing(machine) != at
        for machines, ats in zip(wanted, where, strict=False)
        for machine, at in zip(machines, ats, strict=True)
    ]
    return {
        "same": placed == plain,
        "sent": sum(int(size) for size, apart in far if apart),
        "blobs": sum(apart for _, apart in far),
        "remote": remote,
        "seen": [len(elsewhere), sum(elsewhere)],
    }


def by_file(session: Any, seen: Seen) -> dict[str, Any]:
    """Jobs whose blobs go by file to tasks on the sender's host, as all executors are here: their
    outcomes, what Spark then still carries between executors, what they leave; and one whose files
    are lost.
    """
    executor, plain = SparkExecutor(session, threshold=1000), SparkExecutor(session)
    executor._near = HostLocality(by_host=True)
    rng, scratch = np.random.default_rng(1), Path("spark").absolute()
    given: dict[str, Any] = {"stages": 2, "lost": str(scratch / "lost")}
    for name, n in (("first", PAYLOADS), ("later", PARTS)):
        given[name] = rng.integers(2_000, 60_000, (n, PARTS)).tolist()
    payloads = [b"%d" % i for i in range(PAYLOADS)]
    job = Job(json.dumps(given).encode(), payloads, 2, PARTS, FUNCTIONS)
    apart = PreferredLocations(
        MACHINES, (0, 1, 2, 3, 0, 1), ((0, 1, 2, 3, 0), (3, 2, 1, 0, 3)), LocalityStats()
    )
    right, same, remote = plain.run(job), [], []
    for one in (plain, executor, executor):
        seen.bytes()
        same.append(one.run(replace(job, places=apart)) == right)
        remote.append(seen.bytes())
    left = sorted({path.name for path in scratch.glob(f"**/levada-xfer/{executor._name}/*")})
    together = PreferredLocations(MACHINES, (0,) * PAYLOADS, ((0,) * PARTS,) * 2, LocalityStats())
    losing = replace(job, functions=(FUNCTIONS[0], "spark_jobs:losing_stage"), places=together)
    lost = [executor.run(losing) == right, (scratch / "lost").exists()]
    return {"same": same, "remote": remote, "left": left, "lost": lost,
            "missed": executor.miss_counts(),
            "after": executor._near.hosts(()) is None}  # fmt: skip


def without_executors(executor: SparkExecutor) -> dict[str, Any]:
    """A placement on more machines than there are executors, of a job that reads nothing."""
    tally, given = LocalityStats(), {"stages": 1, "first": [], "later": []}
    job = Job(json.dumps(given).encode(), [], 1, PARTS, FUNCTIONS)
    places = PreferredLocations(6, (), ((5, 5, 0, -1, 2),), tally)
    same = executor.run(replace(job, places=places)) == executor.run(job)
    there = [bool(at) for at in tally.executors]
    return {"same": same, "there": there}


def _not_asked(self: ExecutorChecks) -> None:
    """What executors see is asked by a job of its own, whose bytes would count; they see all."""
    self._responding = executor_checks._executors(self._session)


def run(session: Any, name: str, place: str, text: str) -> tuple[Any, Any]:
    """The results of a query over ``s``, and the status of its checkpoint."""
    ExecutorChecks.ask = _not_asked
    with levada.Engine(
        spark=session, checkpoint=name, partitions=MACHINES, epoch_rows=150, place=place
    ) as engine:
        engine.stream("http://e/s", "s", files="parallel")
        query = engine.register(text, name="q")
        engine.start(once=True)
        rows = sorted([r.time, *map(str, row)] for r in query.results() for row in r.rows.rows())
        return rows, engine.status()


CHAIN = "?k :p ?v . ?j :p ?v . ?j :q ?w"
HEAD = "PREFIX : <http://e/> SELECT {} FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S] "


def formed(session: Any) -> dict[str, Any]:
    """A chain and a count of all of its rows, two at a time and in one step with parts at all
    partitions.
    """
    found: dict[str, Any] = {"rows": [], "steps": []}
    for form in ("binary", "replicated"):
        with levada.Engine(
            spark=session, checkpoint=f"joined {form}", partitions=MACHINES, epoch_rows=300,
            join=form,
        ) as engine:  # fmt: skip
            engine.stream("http://e/s", "s", files="parallel")
            asked = [
                engine.register(f"{HEAD.format(what)} WHERE {{ WINDOW :w {{ {CHAIN} }} }}")
                for what in ("?k ?j ?w", "(COUNT(*) AS ?n)")
            ]
            engine.start(once=True)
            engine.await_end()
            rows = [sorted([r.time, list(row)] for r in query.results() for row in r.rows.rows())
                    for query in asked]  # fmt: skip
            found["rows"].append(rows)
            assert engine._driver is not None and engine._driver.epochs.plan is not None
            nodes = engine._driver.epochs.plan.nodes.values()
            found["steps"].append(sorted({type(node.step).__name__ for node in nodes}))
    return found


def probe() -> dict[str, Any]:
    """What ``levada machine probe`` finds of the cluster, shown again."""
    commands.main(["machine", "probe", "--master", MASTER, "--out", "m.yaml"])
    shown = io.StringIO()
    with redirect_stdout(shown):
        commands.main(["machine", "show", "m.yaml", "--json"])
    told: dict[str, Any] = json.loads(shown.getvalue())
    return told


def main(plans: int, text: str) -> None:
    """All of it on one session."""
    parallelism.MOST_BYTES = -1  # a job in one task sends nothing
    session = start_session(MASTER, config=APART, scratch=Path("spark"))
    session.sparkContext.addPyFile(str(Path(__file__).with_name("spark_jobs.py")))
    executor = SparkExecutor(session)
    seen = Seen(session)
    found: dict[str, Any] = {"plans": [plan(i, executor, seen) for i in range(plans)]}
    found["without"] = without_executors(executor)
    plain, alone = run(session, "a", "", text)
    seen.bytes()
    placed, status = run(session, "b", "p.json", text)
    told, homes = status.placement, alone.executors
    found["engine"] = {
        "same": plain == placed,
        "rows": len(placed),
        "tasks": [told.preferred_tasks, told.displaced_tasks],
        "bytes": [told.remote_bytes, told.read_bytes],
        "blobs": told.remote_blobs,
        "remote": seen.bytes(),
        "carried": asdict(status.transport),
        "edges": sorted({edge.state for edge in read_edges(Path("b"))}),
        "homes": [homes.executors, homes.cores, homes.recurring_tasks, homes.same_executor_tasks],
    }
    found["by file"] = by_file(session, seen)
    found["formed"] = formed(session)
    found["probe"] = probe()
    stop_session(session)
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])

"""``factors``: what each step away from rows brings, BriskStream's Fig. 16 (Zhang et al., SIGMOD
2019, section 6.6: simple, smaller footprint, jumbo tuples, RLAS), for word count and spike
detection, the latter with an aggregate that is joined with its stream.

    rows     PySpark by hand: an object a row, through Spark's shuffle
    frames   by hand: Arrow frames, each row group cut into a blob a target
    jumbo    the same, all row groups of a task as one frame and one blob a target
    levada   the engine, from the query's text, spread; durable state, results written
    placed   the engine, its readers and groups placed by ``refined``
    chosen   the engine as it chooses by itself: one task or spread

Each is a step from that above it; ``by_before`` is how many times its events a CPU-second (driver,
JVMs, workers) those are. All read the same files, by key in 4 of them, in as many epochs over as
many partitions, on one session of four executors, and all have the number of results that plain
Python has. Those by hand keep their state in memory and write nothing. A row group has 1,000 rows,
or as many as ``LEVADA_GROUP`` says: few or many, the second step is good or bad by that.
``LEVADA_MASTER=spark://..`` elsewhere. ``--stepped``: those by hand are only counted.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.mapped import placed, rowwise, runs
from bench.mapped.runs import MACHINES
from bench.mapped.works import WARM, WORKS, Work, Written
from bench.placed import scored
from bench.result import Result, check_count
from levada.engine.placement.measured_send_graph import read_group_send_graph
from levada.placement import placement_file as placements
from levada.placement.placement_file import FINEST
from levada.runtime.cost_model.parallelism_choice import SPREAD

NAMES = tuple(rowwise.HANDS)
STEPS = ("rows", "frames", "jumbo", "levada", "placed")


def place(work: Work, written: Written, root: Path) -> Path:
    """The placement of readers and groups that ``refined`` finds for what a run here counts."""
    counted = f"{placed.SLICE},groups={FINEST}"
    runs.run(work, written, root / "counted", options={"spark": False, "slices": counted})
    graph = read_group_send_graph(root / "counted", None, FINEST)
    _, at = scored(graph, "refined")
    placements.write(root / "place.json", graph, at, MACHINES, "refined")
    return root / "place.json"


def compare(name: str, scale: float, session: Any) -> dict[str, Any]:
    """All steps of an application."""
    work = WORKS[name]
    with tempfile.TemporaryDirectory(prefix="levada-factors-") as folder:
        root = Path(folder)
        written = work.write(root, work.size(scale), True)
        if session is None:
            counts = {way: {"count": rowwise.here(name, way, root)} for way in rowwise.WAYS}
            for way, side in counts.items():
                check_count(f"{name} {way}", side["count"], written.results)
            return counts
        ways = {
            way: partial(_by_hand, name, way, written, root, session) for way in rowwise.WAYS
        } | _engine(work, written, root, session)
        found = {way: runs.together(own).brief() for way, own in runs.in_turns(ways).items()}
    return found | _by_before(found)


def _by_hand(
    name: str, way: str, written: Written, root: Path, session: Any, turn: int
) -> runs.Told:
    """A run by hand."""
    stages = runs.Stages(session)
    told = rowwise.run(name, way, root, session)
    check_count(f"{name} {way}", told.count, written.results)
    told.jobs = stages.more()[WARM:]
    return told


def _engine(
    work: Work, written: Written, root: Path, session: Any
) -> dict[str, Callable[[int], runs.Told]]:
    """The engine's ways."""
    asked = {
        "levada": ("", SPREAD),
        "placed": (place(work, written, root), SPREAD),
        "chosen": ("", ""),
    }

    def once(name: str, turn: int) -> runs.Told:
        at, way = asked[name]
        options, stages = {"spark": session, "place": at}, runs.Stages(session)
        own = root / f"{name}-{turn}"
        return runs.run(work, written, own, way=way, stages=stages, options=options)

    return {name: partial(once, name) for name in asked}


def _by_before(found: dict[str, Any]) -> dict[str, Any]:
    rates = {way: found[way]["rows_per_cpu_s"] for way in STEPS if "cpu" in found.get(way, {})}
    pairs = pairwise(rates)
    return {"by_before": {b: round(rates[b] / max(rates[a], 1), 2) for a, b in pairs}}


def run(scale: float, stepped: bool) -> Result:
    """Both applications on one session."""
    if stepped:
        found = {name: compare(name, scale, None) for name in NAMES}
    else:
        with runs.cluster() as session:
            compare("WC", min(scale, 0.05), session)  # the JVM compiles itself
            found = {name: compare(name, scale, session) for name in NAMES}
    count = sum(side["rows"]["count"] for side in found.values())
    return Result("factors", {"count": count}, more=found)

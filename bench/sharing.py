"""``sharing``: 1 to 10,000 queries that want other rows of a join, in each mode of sharing.

    constants     ?x :p :c . ?x :q ?z                            each query with its own :c
    ranges        ?x :p ?v FILTER(?v >= a && ?v < b) . ?x :q ?z    each with a part of the numbers
    thresholds    ?x :p ?v FILTER(?v > a) . ?x :q ?z               overlapping: up to 100 queries
    istreams      ISTREAM, [RANGE ..] of 10 to 110 s               all results: up to 1,000 queries
    shapes        ?x :r ?y . ?y :p ?z . ?z :q :c                 a hundred :r, of each ten :c

Of the thresholds half of all queries, in the mean, want each result; of the istreams all do, and
one query is that with the shortest window. Of the first two all queries
together have the same results, however many they are: of each window
of 10 s a tenth of the subjects, each with one of the constants, or of the numbers, in turn. So
``cost`` (CPU of a triple, by that with one query of the same mode) and ``state`` (bytes of the
checkpoint's state with a window half full, likewise) tell what queries cost by being many. ``off``
and ``exact`` are left out where they would take minutes (``MOST``). A row is a triple; epochs are
stepped in one process. ``alone`` is what one query costs with ``relax``, by what it costs with
``off``.

Of the shapes two of three patterns are common, and stand where a query alone joins them last:
``shapes`` has 1, 100 and 1,000 of these in each mode, with the joins that they are (asked: 1 + 100)
and CPU of a triple.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from bench.apart import apart
from bench.marks import Marks, triples
from bench.result import Result, check_count
from levada import Engine
from levada.engine.query_request import QueryRequest
from levada.plan.execution.steps import Join

COUNTS = (1, 10, 100, 1000, 10_000)
MOST = {"off": 100, "exact": 100, "relax": 10_000}
QUICK = {"off": 1, "exact": 1, "relax": 1000}
SUBJECTS, WINDOWS, RANGE = 10_000, 12, 10_000
WARM = 2  # windows that do not count
ROUNDS = 3  # of a mode and a number that are quick, the best counts
HIT = 10  # one of so many subjects has both triples
HEAD = "SELECT ?x ?z FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT10S STEP PT10S]\n"
MOST_RESULTS = 100  # queries whose results are as many times those of one
QUERIES = {
    "constants": HEAD + "WHERE {{ WINDOW <e:w> {{ ?x <e:p> <e:c{0}> . ?x <e:q> ?z }} }}",
    "ranges": HEAD
    + """WHERE {{ WINDOW <e:w> {{ ?x <e:p> ?v . ?x <e:q> ?z
        FILTER(?v >= {0} && ?v < {1}) }} }}""",
    "thresholds": HEAD
    + "WHERE {{ WINDOW <e:w> {{ ?x <e:p> ?v . ?x <e:q> ?z FILTER(?v > {0}) }} }}",
    "istreams": "REGISTER ISTREAM <e:o> AS "
    + HEAD.replace("[RANGE PT10S STEP PT10S]", "[RANGE PT{2:.1f}S]")
    + "WHERE {{ WINDOW <e:w> {{ ?x <e:p> ?v . ?x <e:q> ?z }} }}",
}
DEAR = 10  # istreams without ``relax``: 100 cost a hundred times as much
UP_TO = {"thresholds": MOST_RESULTS, "istreams": 1000}
"""So many queries at most of these."""
XSD = "http://www.w3.org/2001/XMLSchema#integer"


def write(path: Path, subjects: int, queries: int, workload: str) -> int:
    """Writes the stream: in each window a triple of each predicate a subject, half of the last one;
    gives the number of results.
    """
    lines, overlapping = [], 0
    for window in range(WINDOWS):
        there = subjects if window + 1 < WINDOWS else subjects // 2
        for i in range(there):
            ts, number = window * RANGE + i * RANGE // subjects, window * subjects + i
            other = number if i % HIT == 0 else f"{number}o"
            turn = number // HIT % queries
            if workload == "thresholds":
                turn = number // HIT % MOST_RESULTS
                overlapping += min(turn, queries) if not i % HIT and window + 1 < WINDOWS else 0
            wanted = f"<e:c{turn}>" if workload == "constants" else f'"{turn}"^^<{XSD}>'
            lines.append(f"<e:{number}> <e:p> {wanted} {ts} .\n")
            lines.append(f"<e:{other}> <e:q> <e:z{i % 100}> {ts} .\n")
    path.write_text("".join(lines))
    if workload == "istreams":  # each as soon as it is there, in the last window, too
        each = (WINDOWS - 1) * len(range(0, subjects, HIT)) + len(range(0, subjects // 2, HIT))
        return queries * each
    return overlapping or (WINDOWS - 1) * len(range(0, subjects, HIT))


def side(path: str, mode: str, queries: int, subjects: int, workload: str) -> dict[str, Any]:
    """One run: results, CPU of a triple after the warm-up, bytes of state."""
    marks = Marks(triples)
    with tempfile.TemporaryDirectory(prefix="levada-sharing-") as folder:
        root = Path(folder) / "c"
        with Engine(
            spark=False,
            checkpoint=root,
            partitions=1,
            seed=7,
            epoch_rows=subjects,
            keep_results=False,
            sharing=mode,
        ) as engine:
            engine.stream("e:s", path)
            with engine._registry.lock:
                for i in range(queries):
                    text = QUERIES[workload].format(i, i + 1, 10 + 100 * i / queries)
                    engine.register(text, name=f"q{i}")
            engine._on_epoch(marks.see)
            engine.start(once=True, keep_open=True)
            engine.await_end()
        state = sum(file.stat().st_size for file in (root / "state").iterdir())
    cost = marks.behind(2 * WARM * subjects)
    return {"count": marks.results, "us": round(cost, 2), "state_kb": round(state / 1000)}


SHAPES, CONSTANTS = 100, 10
SHAPE = HEAD.replace("?x ?z", "?x ?y ?z") + (
    "WHERE {{ WINDOW <e:w> {{ ?x <e:r{0}> ?y . ?y <e:p> ?z . ?z <e:q> <e:c{1}> }} }}"
)


def write_shapes(path: Path, subjects: int) -> None:
    """Writes a stream: of each window a triple of :p and one of :q a subject, of which one in ten
    matches, and as many of the predicates of shapes.
    """
    lines = []
    for window in range(WINDOWS):
        for i in range(subjects):
            ts, number = window * RANGE + i * RANGE // subjects, window * subjects + i
            other = number if i % HIT == 0 else f"{number}o"
            lines.append(f"<e:{number}> <e:p> <e:z{number}> {ts} .\n")
            lines.append(f"<e:z{other}> <e:q> <e:c{i // HIT % CONSTANTS}> {ts} .\n")
            if i % HIT == 0:
                lines.append(f"<e:x{i}> <e:r{i // HIT % SHAPES}> <e:{number}> {ts} .\n")
    path.write_text("".join(lines))


def shapes_side(path: str, mode: str, queries: int, subjects: int) -> dict[str, Any]:
    """One run over shapes: results, joins, CPU of a triple after the warm-up."""
    marks: list[tuple[int, float, int]] = []
    with tempfile.TemporaryDirectory(prefix="levada-sharing-") as folder, Engine(
        spark=False, checkpoint=Path(folder) / "c", partitions=1, seed=7, epoch_rows=subjects,
        keep_results=False, sharing=mode,
    ) as engine:  # fmt: skip
        engine.stream("e:s", path)
        texts = [SHAPE.format(i % SHAPES, i // SHAPES) for i in range(queries)]
        engine.register_all([QueryRequest(text, f"q{i}") for i, text in enumerate(texts)])
        engine._on_epoch(
            lambda m: marks.append(
                (sum(s.triples for s in m.streams.values()), time.process_time(), m.results)
            )
        )
        engine.start(once=True, keep_open=True)
        engine.await_end()
        plan = engine._driver.epochs.plan if engine._driver else None
        joins = sum(
            int(node.alive.sum())
            for node in (plan.nodes.values() if plan else ())
            if isinstance(node.step, Join)
        )
    first = next(mark for mark in marks if mark[0] >= 2 * WARM * subjects)
    cost = (marks[-1][1] - first[1]) / (marks[-1][0] - first[0]) * 1e6
    return {"count": marks[-1][2], "us": round(cost, 2), "joins": joins}


def _shapes(subjects: int) -> dict[str, dict[str, Any]]:
    """Shapes in each mode, in turn; all have the results of ``off``."""
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="levada-sharing-") as folder:
        path = Path(folder) / "shapes.nt"
        write_shapes(path, subjects)
        for queries in (1, SHAPES, SHAPES * CONSTANTS):
            for mode in ("off", "exact", "relax"):
                got = apart(
                    "bench.sharing:shapes_side", path=str(path), mode=mode, queries=queries,
                    subjects=subjects,
                )  # fmt: skip
                found[f"shapes_{mode}_{queries}"] = got
                off = found[f"shapes_off_{queries}"]
                check_count(f"shapes {mode} {queries}", got["count"], off["count"])
                got["of_off"] = round(got["us"] / off["us"], 3)
    return found


def run(scale: float, stepped: bool) -> Result:
    """Each number of queries in each mode, side by side; the ratios to one query."""
    subjects = max(int(SUBJECTS * scale), 100)
    found = {workload: _workload(workload, subjects) for workload in QUERIES}
    more = {
        f"{'' if workload == 'constants' else workload + '_'}{mode}_{queries}": {
            **one,
            "cost": round(one["us"] / sides[1]["us"], 2),
            "state": round(one["state_kb"] / sides[1]["state_kb"], 2),
        }
        for workload, modes in found.items()
        for mode, sides in modes.items()
        for queries, one in sides.items()
    }
    modes = found["constants"]
    relax, exact = modes["relax"][100], modes["exact"][100]
    alone = {"alone": round(modes["relax"][1]["us"] / modes["off"][1]["us"], 3)}
    more |= _shapes(subjects)
    return Result("sharing", relax, exact, round(exact["us"] / relax["us"], 2), more | alone)


def _workload(workload: str, subjects: int) -> dict[str, dict[int, dict[str, Any]]]:
    """What each mode costs, by the number of queries."""
    found: dict[str, dict[int, dict[str, Any]]] = {mode: {} for mode in MOST}
    with tempfile.TemporaryDirectory(prefix="levada-sharing-") as folder:
        for queries in COUNTS:
            if queries > UP_TO.get(workload, queries):
                break
            path = Path(folder) / f"{queries}.nt"
            expected = write(path, subjects, queries, workload)
            for round_ in range(ROUNDS):
                most = QUICK if round_ else MOST
                if workload == "istreams":
                    most = {m: n if m == "relax" else min(n, DEAR) for m, n in most.items()}
                for mode in [m for m in most if queries <= most[m]]:
                    got = apart(
                        "bench.sharing:side", path=str(path), mode=mode, queries=queries,
                        subjects=subjects, workload=workload,
                    )  # fmt: skip
                    check_count(f"{workload} {mode} {queries}", got["count"], expected)
                    before = found[mode].get(queries, got)
                    found[mode][queries] = min(before, got, key=lambda one: float(one["us"]))
    return found

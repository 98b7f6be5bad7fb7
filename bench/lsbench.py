"""``lsbench``: queries over a social network as it happens, whose windows and constants differ.

    q1    what one user does                  ``<user> ?p ?o`` each second
    q4    two posts of a user with one tag    three joins of a stream; user and window drawn
    q5    who likes a post of somebody        two joins of two streams and static data; channel and
          whom they know                      window drawn
    q10   how often a user's posts of a       two joins of two streams and a COUNT by user; channel
          channel are liked                   and window drawn

Q1 and Q4 are LSBench's but for what is drawn. The texts of its Q5 and Q10 are not public. Here they
are patterns of two streams with static data, and with an aggregate, as CQELS Cloud describes them.
Results are counted first by other means: by pairs of posts, and of posts and likes
(``bench/papers/cqels_cloud.py``). A row is a triple; windows have 1 to 60 s.

``figure_7`` has the triples a CPU-second of each workload by the number of queries, for the default
mode, as the paper's Fig. 7 has triples a second of 2 to 32 nodes; ``quoted`` is what its text says.

``rows_per_cpu_s`` is told of each mode that does not take minutes (``MOST``); ``cost`` is CPU of a
triple by that with a tenth of the queries, ``results_a_row`` how many results are in it. Stepped in
one process, one partition, an epoch of five seconds.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from bench.apart import apart
from bench.papers import cqels_cloud as paper
from bench.result import Result, check_count
from levada import Engine, QueryRequest
from levada.checkpoint.manifest import Manifest

COUNTS = {
    "q1": (100, 1000, 10_000, 100_000),
    "q4": (1, 10, 100, 1000, 10_000),
    "q5": (1, 10, 100, 1000, 10_000),
    "q10": (1, 10, 100, 1000, 10_000),
}
MOST = {"off": 10, "exact": 100, "relax": 100_000}
ROUNDS = 3  # the best counts
SLOW = 10_000  # with so many queries, of one round
RATE, SECONDS, EPOCH = 2000, 180, 5  # triples a second; seconds of the streams, of an epoch
WARM = 0.4  # the part of the streams that does not count


def side(folder: str, mode: str, queries: int, workload: str, rate: int) -> dict[str, Any]:
    """One run: results, CPU of a triple behind the first minute, when windows are full."""
    marks: list[tuple[int, float, int]] = []

    def see(manifest: Manifest) -> None:
        rows = sum(s.triples for s in manifest.streams.values())
        marks.append((rows, time.process_time(), manifest.results))

    warnings.simplefilter("ignore", UserWarning)  # windows whose step is longer than the range
    texts = paper.drawn(workload, queries).texts(workload)
    with tempfile.TemporaryDirectory(prefix="levada-lsbench-") as root:
        with Engine(
            spark=False,
            checkpoint=Path(root) / "c",
            partitions=1,
            seed=7,
            epoch_rows=EPOCH * rate,
            keep_results=False,
            sharing=mode,
        ) as engine:
            for name in paper.STREAMS[workload]:
                engine.stream(name, str(Path(folder) / paper.FILES[name]))
            if workload in paper.STATIC:
                engine.static(str(Path(folder) / paper.STATIC[workload]))
            began = time.process_time()
            dialect = paper.DIALECTS[workload]
            engine.register_all([QueryRequest(t, f"q{i}", dialect) for i, t in enumerate(texts)])
            planned = time.process_time() - began
            engine._on_epoch(see)
            engine.start(once=True, keep_open=True)
            engine.await_end()
        state = sum(file.stat().st_size for file in (Path(root) / "c" / "state").iterdir())
    first = next(mark for mark in marks if mark[0] >= marks[-1][0] * WARM)
    rows, cpu = marks[-1][0] - first[0], marks[-1][1] - first[1]
    return {
        "count": marks[-1][2],
        "rows_per_cpu_s": round(rows / cpu),
        "us": round(cpu / rows * 1e6, 2),
        "results_a_row": round((marks[-1][2] - first[2]) / rows, 3),
        "planned_s": round(planned, 2),
        "state_kb": round(state / 1000),
    }


def run(scale: float, stepped: bool) -> Result:
    """Each workload, number of queries and mode."""
    rate = max(int(RATE * scale), 100)
    found = {workload: _workload(workload, rate) for workload in COUNTS}
    more = {
        f"{workload}_{mode}_{queries}": {
            **one,
            "cost": round(one["us"] / sides.get(queries // 10, one)["us"], 2),
        }
        for workload, modes in found.items()
        for mode, sides in modes.items()
        for queries, one in sides.items()
    }
    relax, off = found["q4"]["relax"][10], found["q4"]["off"][10]
    more["figure_7"] = {
        workload: {queries: one["rows_per_cpu_s"] for queries, one in modes["relax"].items()}
        for workload, modes in found.items()
    }
    more["quoted"] = {name: said for name, said in paper.QUOTED.items() if "Fig. 7" in name}
    ratio = round(relax["rows_per_cpu_s"] / off["rows_per_cpu_s"], 2)
    return Result("lsbench", relax, off, ratio, more)


def _workload(workload: str, rate: int) -> dict[str, dict[int, dict[str, Any]]]:
    """What each mode does, by the number of queries."""
    found: dict[str, dict[int, dict[str, Any]]] = {mode: {} for mode in MOST}
    for queries in COUNTS[workload]:
        life = paper.happened(rate, SECONDS, paper.users(workload, queries))
        right = paper.expected(workload, life, paper.drawn(workload, queries))
        with tempfile.TemporaryDirectory(prefix="levada-lsbench-") as folder:
            paper.write(life, Path(folder))
            for _ in range(1 if queries >= SLOW else ROUNDS):
                for mode in [m for m in MOST if queries <= MOST[m]]:
                    got = apart(
                        "bench.lsbench:side", folder=folder, mode=mode, queries=queries,
                        workload=workload, rate=rate,
                    )  # fmt: skip
                    check_count(f"{workload} {mode} {queries}", got["count"], right)
                    before = found[mode].get(queries, got)
                    found[mode][queries] = min(before, got, key=lambda one: float(one["us"]))
    return found

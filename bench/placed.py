"""``placed``: how much goes over the network under a learned placement, in turn, and by Spark.

    w1        W1's streams in 12 + 12 files by key; a fifth of B stands in another file than its key
    lines     the same cut by line: every file has every key, and no placement can help
    stations  SRBench's query 3 as an aggregation over rows, in 12 files by station
    q3        the same over RDF, stars joined where they are read
    opengov   KATTS' OpenGov over RDF, in 12 + 12 files by company: an aggregation, then a join

Each workload is read once in this process, its send graph measured by group, and placed. Then the
same runs on ``local-cluster[4,1,1024]``, always spread over tasks: by Spark's own choice, by the
placer ``round_robin``, and by ``refined``. The bytes are Spark's own (``shuffleRemoteBytesRead``),
with all heads of blobs. Executors of one host read each other's shuffle files over the network
here, as hosts do. ``predicted`` is the share of rows that the send graph has across machines. All
that is compared are bytes: four executors share two cores. ``units`` are predicted, too: what is
left if so many groups are placed, or so many partitions of groups that are dealt out.

``LEVADA_PLACED="w1|opengov"`` runs some, ``LEVADA_PARTITIONS=48`` over other partitions,
``LEVADA_EPOCH=4`` in epochs of four times as many rows. ``LEVADA_WAIT=30s``: so long tasks wait for
their executor, where others have this machine's cores (else what a session has: 1s).
``LEVADA_TABLE=1``: in place of all that, numbers of groups by numbers of partitions, measured.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bench.by_value import by_value
from bench.data import events, pairs_within
from bench.papers import opengov
from bench.papers.opengov import DAY, FACTOR, RANGE, Shape
from bench.result import Result, check_count
from bench.srbench import MINUTE, STREAM, Weather, query
from levada import Engine
from levada.cli.placement.place import quiet
from levada.engine.placement.measured_send_graph import read_group_send_graph
from levada.placement import placement_file as placements
from levada.placement.cost import in_vain, score
from levada.placement.local_search_placer import evenest
from levada.placement.placement_file import FINEST, group_number, is_group
from levada.placement.placers import PLACERS
from levada.placement.problem import BOUND, Problem
from levada.placement.send_graph import SendGraph, add
from levada.runtime.driver import parallelism

MACHINES, FILES = 4, 12
PARTITIONS = int(os.environ.get("LEVADA_PARTITIONS", "8"))
MASTER = f"local-cluster[{MACHINES},1,1024]"
EVENTS, KEYS, WIDTH = 200_000, 5_000, 2_000
STATIONS = 500
W1 = (
    "Istream(Select A.k, A.ts, B.ts, A.v, B.v From A [Range 2001 ms], B [Range 2001 ms] "
    "Where A.k = B.k)"
)
Q3 = "Rstream(Select s, Min(v) From W [Range 3 hours Slide 1 hour] Group By s Having Min(v) >= 74)"


COMPANIES, DAYS, CONTRACTS = 1_000, 60, 250
UNITS = (8, 16, 48)
GROUPS = (64, 4_096, FINEST)
EPOCH = float(os.environ.get("LEVADA_EPOCH", "1"))
TABLE = bool(os.environ.get("LEVADA_TABLE"))
WAIT = os.environ.get("LEVADA_WAIT", "")
COUNTED = f"1mo,groups={FINEST}"


@dataclass(frozen=True, slots=True)
class Work:
    """``write``: the folders of streams, a file a source partition, into a folder; it gives the
    number of results.
    """

    write: Callable[[Path, float], int]
    streams: dict[str, dict[str, Any]]
    text: str
    dialect: str
    rows: int  # in an epoch


def _cut(path: Path, frame: pl.DataFrame, file: Any) -> None:
    path.mkdir()
    for i in range(FILES):
        frame.filter(pl.Series(file == i)).write_csv(path / f"{i:02}.csv")


def _pairs(folder: Path, scale: float, by_key: bool) -> int:
    n, keys = max(int(EVENTS * scale), 1000), max(int(KEYS * scale), 50)
    rng = np.random.default_rng(11)
    home = rng.integers(0, FILES, keys)
    both = [events(seed, n, keys, n / 1_000_000) for seed in (1, 2)]
    for name, stream in zip("AB", both, strict=True):
        file = home[stream.k] if by_key else np.arange(n) % FILES
        if name == "B" and by_key:
            file = np.where(rng.random(n) < 0.2, rng.integers(0, FILES, n), file)
        _cut(folder / name, pl.DataFrame({"k": stream.k, "v": stream.v, "ts": stream.ts}), file)
    return pairs_within(*both, WIDTH)


def _stations(folder: Path, scale: float) -> int:
    weather = _weather(scale)
    speeds = weather.speeds()
    minutes, n = speeds.shape
    station = np.tile(np.arange(n), minutes)
    ts = np.repeat(np.arange(minutes) * MINUTE + MINUTE // 2, n)
    frame = pl.DataFrame({"s": station, "v": speeds.ravel(), "ts": ts})
    _cut(folder / "W", frame, station % FILES)
    return weather.results


def _triples(folder: Path, scale: float) -> int:
    """A file a station's residue: the lines of a day, each with the number of its station."""
    from bench.srbench import write_timed

    weather = _weather(scale)
    write_timed(folder / "all.nt", weather)
    (folder / "w3").mkdir()
    files = [(folder / "w3" / f"{i:02}.nt").open("w") for i in range(FILES)]
    with (folder / "all.nt").open() as whole:
        for line in whole:
            subject = line[: line.index(">")]
            files[int(subject.rpartition("/")[2]) % FILES].write(line)
    for file in files:
        file.close()
    (folder / "all.nt").unlink()
    return weather.results


def _weather(scale: float) -> Weather:
    return Weather(max(int(STATIONS * scale) // FILES * FILES, 4 * FILES))


def _shape(scale: float) -> Shape:
    return Shape(max(int(COMPANIES * scale), 24), DAYS, max(int(CONTRACTS * scale), 10))


def _trades(folder: Path, scale: float) -> int:
    """A company in one file of each stream."""
    shape = _shape(scale)
    opengov.write(folder, shape, 4)
    given = [(p.symbol, p.company, p.price, p.ts) for p in opengov.prices(shape, 4)]
    some = [(c.vendor, c.ts) for c in opengov.contracts(shape, 4)]
    return _volatile(
        pl.DataFrame(given, ["symbol", "company", "price", "ts"], orient="row"),
        pl.DataFrame(some, ["vendor", "ts"], orient="row"),
    )


def _volatile(ticker: pl.DataFrame, contracts: pl.DataFrame) -> int:
    """How many pairs of a share and a contract there are at all midnights."""
    found = 0
    for day in range(1, DAYS + RANGE + 1):
        held = pl.col("ts").is_between((day - RANGE) * DAY, day * DAY, closed="left")
        price, by = pl.col("price"), ["symbol", "company"]
        shares = ticker.filter(held).group_by(by).agg(low=price.min(), high=price.max())
        shares = shares.filter(pl.col("high") > FACTOR * pl.col("low"))
        found += shares.join(contracts.filter(held), left_on="company", right_on="vendor").height
    return found


def _table(name: str, schema: str) -> dict[str, dict[str, Any]]:
    return {name: {"schema": schema, "files": "parallel"}}


PAIRS = _table("A", "k:integer;v:double") | _table("B", "k:integer;v:double")
WORKS = {
    "w1": Work(lambda folder, scale: _pairs(folder, scale, True), PAIRS, W1, "cql", 100_000),
    "lines": Work(lambda folder, scale: _pairs(folder, scale, False), PAIRS, W1, "cql", 100_000),
    "stations": Work(_stations, _table("W", "s:integer;v:double"), Q3, "cql", 240_000),
    "q3": Work(
        _triples,
        {STREAM: {"files": "parallel", "element": "subject", "closed": "element"}},
        query(),
        "rspql",
        80_000,
    ),
    "opengov": Work(
        _trades,
        {
            opengov.NAME + name: {"files": "parallel", "element": "subject", "closed": "element"}
            for name in ("ticker", "contracts")
        },
        opengov.query(),
        "rspql",
        60_000,
    ),
}
WANTED = os.environ.get("LEVADA_PLACED", "|".join(WORKS)).split("|")


def _run(work: Work, folder: Path, root: Path, scale: float, **given: Any) -> tuple[int, Engine]:
    """A run to its end: how many results, and the engine."""
    usual = {"partitions": PARTITIONS, "epoch_rows": max(int(work.rows * scale * EPOCH), 1000)}
    with Engine(checkpoint=root, seed=7, keep_results=False, **(usual | given)) as engine:
        for name, options in work.streams.items():
            last = "w3" if name == STREAM else name.rpartition("/")[2]
            engine.stream(name, folder / last, **options)
        engine.register(work.text, name="q", dialect=work.dialect)
        engine.start(once=True)
        engine.await_end()
        assert engine._driver is not None, "it has been started"
        return engine._driver.last.results, engine


def _placed(work: Work, folder: Path, root: Path, expected: int, scale: float) -> dict[str, Any]:
    """Measures the send graph and writes the placements; what they predict."""
    count, _ = _run(work, folder, root / "learn", scale, spark=False, slices=COUNTED)
    check_count("the run that is measured", count, expected)
    graph = read_group_send_graph(root / "learn", None, FINEST)
    found: dict[str, Any] = {}
    for name in ("round_robin", "refined"):
        found[name], place = scored(graph, name)
        vain = name == "refined" and in_vain(graph, MACHINES, found[name]["predicted"])
        found[name] |= {"vain": True} if vain else {}
        placements.write(root / f"{name}.json", graph, place, MACHINES, name, vain=vain)
    return found


def scored(graph: SendGraph, name: str) -> tuple[dict[str, Any], Any]:
    """What a placer predicts, and its placement."""
    problem = Problem(graph, MACHINES)
    problem = replace(problem, bound=max(BOUND, evenest(problem)))
    with quiet():
        place = PLACERS[name](problem)
    scored = score(graph, place, MACHINES)
    return {"predicted": round(scored.share, 4), "rsd": round(scored.rsd, 4)}, place


def _units(root: Path) -> dict[str, Any]:
    """What ``refined`` predicts where so many groups are placed, and where so many partitions are,
    to which groups are dealt in turn.
    """
    fine = read_group_send_graph(root / "learn", None, FINEST)
    found = {
        f"{groups} groups": scored(read_group_send_graph(root / "learn", None, groups), "refined")[
            0
        ]
        for groups in GROUPS
    }
    for parts in UNITS:
        tasks = tuple(
            f"partition {group_number(name) % parts}" if is_group(name) else name
            for name in fine.tasks
        )
        found[f"{parts} partitions"] = scored(add([replace(fine, tasks=tasks)]), "refined")[0]
    return found


def _table(
    work: Work, root: Path, expected: int, session: Any, remote: Remote, scale: float
) -> dict[str, Any]:
    """Remote MB (and their share of all) by numbers of groups that are placed and of partitions."""
    found: dict[str, Any] = {}
    for groups in (0, *GROUPS):
        place = root / f"{groups}.json" if groups else ""
        if groups:
            graph = read_group_send_graph(root / "learn", None, groups)
            told, at = scored(graph, "refined")
            placements.write(root / f"{groups}.json", graph, at, MACHINES, "refined")
            found[f"{groups} groups"] = told
        for parts in UNITS:
            given = {"spark": session, "place": place, "partitions": parts}
            count, _ = _run(work, root, root / f"{groups}-{parts}", scale, **given)
            check_count(f"{groups} groups, {parts} partitions", count, expected)
            far, near = remote.more()
            cell = {"remote_mb": round(far / 1e6, 3), "share": round(far / max(far + near, 1), 4)}
            found.setdefault(f"{groups} groups" if groups else "spark", {})[str(parts)] = cell
    return found


class Remote:
    """The bytes that Spark has read from shuffles since this was asked last: remote, local."""

    def __init__(self, session: Any) -> None:
        self._context = session.sparkContext
        self._seen = (0, 0)

    def more(self) -> tuple[int, int]:
        """Of the stages since."""
        context = self._context
        context._jsc.sc().listenerBus().waitUntilEmpty()
        none = context._gateway.new_array(context._jvm.double, 0)
        status, empty = context._jsc.sc().statusStore(), context._jvm.java.util.ArrayList()
        stages = status.stageList(None, False, False, none, empty)
        remote = local = 0
        for i in range(stages.size()):
            stage = stages.apply(i)
            remote += int(stage.shuffleRemoteBytesRead())
            local += int(stage.shuffleLocalBytesRead())
        before, self._seen = self._seen, (remote, local)
        return remote - before[0], local - before[1]


def _compare(name: str, session: Any, remote: Remote, scale: float) -> dict[str, Any]:
    """One workload, three ways."""
    work = WORKS[name]
    with tempfile.TemporaryDirectory(prefix="levada-placed-") as folder:
        root = Path(folder)
        expected = work.write(root, scale)
        found: dict[str, Any] = {"spark": {}}
        found |= _placed(work, root, root, expected, scale)
        units = _units(root)
        remote.more()
        if TABLE:
            return _table(work, root, expected, session, remote, scale)
        for way, side in found.items():
            place = "" if way == "spark" else root / f"{way}.json"
            count, engine = _run(work, root, root / way, scale, spark=session, place=place)
            check_count(f"{name} {way}", count, expected)
            far, near = remote.more()
            side |= {"count": count, "remote_mb": round(far / 1e6, 3)}
            side["share"] = round(far / max(far + near, 1), 4)
            assert engine._driver is not None, "it has been started"
            if (told := engine._driver.last.placement) is not None:
                side |= {"tasks": told.preferred_tasks, "missed": told.displaced_tasks}
    placed = found["refined"]["remote_mb"]
    for way in ("spark", "round_robin"):
        found[f"against_{way}"] = round(placed / max(found[way]["remote_mb"], 1e-9) - 1, 3)
    return found | {"units": units}


def run(scale: float, stepped: bool) -> Result:
    """All workloads on one session."""
    from levada.runtime.spark.spark_session import start_session, stop_session

    parallelism.MOST_BYTES = -1  # a job in one task sends nothing
    config = {
        "spark.shuffle.readHostLocalDisk": "false",
        **({"spark.locality.wait.process": WAIT} if WAIT else {}),
        "spark.ui.retainedStages": "100000",
        "spark.ui.retainedJobs": "100000",
        "spark.ui.retainedTasks": "1000000",
    }
    with tempfile.TemporaryDirectory(prefix="levada-placed-spark-") as scratch:
        session = start_session(MASTER, config=config, scratch=Path(scratch))
        try:
            remote = Remote(session)
            with by_value():  # Spark is to see what stays, too
                found = {name: _compare(name, session, remote, scale) for name in WANTED}
        finally:
            stop_session(session)
    first = found[WANTED[0]]
    sides = ({"count": 0}, {"count": 0}) if TABLE else (first["refined"], first["spark"])
    return Result("placed", *sides, more=found)

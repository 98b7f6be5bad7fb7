"""``parse``: N-Triples by reference through Spark to matched frames, validated; the baseline is
pyoxigraph in one process.

The engine runs one query over W3's stream: a pattern that every third triple matches, with a filter
at the intake that hardly any passes. So everything but reading, parsing, matching and value facets
is next to nothing, and what is measured is an epoch's whole cost: driver, JVM and workers. The
baseline parses the same triples (without times), and looks at each one's predicate. A row is a
triple.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyoxigraph as ox

from bench.apart import apart, supplied
from bench.engine import run_engine
from bench.measure import Tree, peak_memory
from bench.meter import side, spread
from bench.result import Result, check_count, ratio
from bench.srbench import OM, STREAM, Weather, supply_of, write_hours, write_rounds
from bench.steady import Supply

LIMIT = 99.9  # of speeds in tenths up to 100; few reach it
EPOCH = 480  # minutes: 1.4 million triples
WARM = 4  # epochs
ROUNDS = 16  # at most, of three epochs
COLD = 6  # files that pyoxigraph reads before it is measured
QUERY = (
    f"SELECT ?v FROM NAMED WINDOW <w> ON <{STREAM}> [RANGE PT1H STEP PT1H] "
    f"WHERE {{ WINDOW <w> {{ ?o <{OM}result> ?v }} FILTER(?v > {LIMIT}) }}"
)


def levada(supply: dict[str, Any], stepped: bool) -> dict[str, Any]:
    """The side ``levada``, in this process."""
    given, queries = Supply.of(supply), {"hot": {"text": QUERY, "dialect": "rspql"}}
    streams = {STREAM: {"source": str(given.into / "w3")}}
    return run_engine(
        streams, queries, epoch_rows=given.epoch, warm=given.warm, stepped=stepped, supply=given
    )


def oxigraph(folder: str) -> dict[str, Any]:
    """The side ``baseline``: terms as objects, the predicate compared, the value of those that
    match read as a number. The first files are read once before; then all are, twice.
    """
    paths = sorted(Path(folder).iterdir())
    _parse(paths[:COLD])
    tree = Tree()
    marks = [(tree.cpu(), time.perf_counter())]
    found = []
    for path in [*paths, *paths]:  # 48 files: of one reading there would be 24
        found.append(_parse([path]))
        marks.append((tree.cpu(), time.perf_counter()))
    rows, count = (sum(column) for column in zip(*found, strict=True))
    (before, began), (after, ended) = marks[0], marks[-1]
    files = [(n, b - a) for (n, _), ((a, _), (b, _)) in zip(found, pairwise(marks), strict=True)]
    told = side(count // 2, rows, ended - began, after - before, memory=peak_memory())
    return told | {"spread": spread(files), "files": len(files)}


def _parse(paths: Sequence[Path]) -> tuple[int, int]:
    """The triples of some files, and how many match."""
    result = ox.NamedNode(f"{OM}result")
    rows = count = 0
    for path in paths:
        for quad in ox.parse(path=str(path), format=ox.RdfFormat.N_TRIPLES):
            rows += 1
            if quad.predicate == result:
                count += float(quad.object.value) > LIMIT
    return rows, count


def run(scale: float, stepped: bool) -> Result:
    """Both sides over a day of 1,000 stations, 4.3 million triples; Levada over as many as it takes
    to be steady.
    """
    weather = Weather(max(int(1000 * scale), 4), warm=WARM * EPOCH)
    expected = int(np.count_nonzero(weather.speeds() > LIMIT))
    with tempfile.TemporaryDirectory(prefix="levada-parse-") as folder:
        root, hours = Path(folder), Path(folder) / "hours"
        rounds = ROUNDS if scale >= 1 else 1
        write_rounds(root, weather, rounds)
        write_hours(hours, weather)
        given = supply_of(weather, rounds, EPOCH)
        ours = supplied("bench.parse:levada", root, given, expected, 0, stepped=stepped)
        theirs = apart("bench.parse:oxigraph", folder=str(hours))
    check_count("pyoxigraph", theirs["count"], expected)
    return Result("parse", ours, theirs, ratio(ours, theirs))

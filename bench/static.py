"""``static``: ten million triples are loaded, a stream is joined with them, beside pyoxigraph.

Five million sensors have a place and a kind each, both skewed; a million observations, by skewed
sensors, meet both patterns: two probes an observation. Every ten seconds the observations of each
kind are counted. ``load_s`` is the first epoch, which reads the file; it does not count as a row's
time. The store holds two million of the triples, is loaded in bulk, and is asked for each
observation of a part of the stream; a row is an observation.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyoxigraph as ox

from bench.apart import apart
from bench.data import SILENCE
from bench.engine import Loading, run_engine
from bench.measure import Tree, peak_memory
from bench.meter import side
from bench.result import Result, check_count, ratio

STEP = 10_000  # ms
KINDS = 100
STREAM = "http://example.org/observations"
CHUNK = 500_000  # sensors
_E = "http://example.org/"


@dataclass(frozen=True, slots=True)
class Shape:
    """Sensors (two triples each), places, observations with as many of warm-up as an epoch,
    observations in an epoch.
    """

    sensors: int = 5_000_000
    places: int = 100_000
    n: int = 1_000_000
    epoch: int = 100_000
    stored: int = 1_000_000  # sensors that the store holds
    asked: int = 100_000  # observations that it is asked for

    def scaled(self, scale: float) -> Shape:
        """The same at another scale."""
        sizes = (self.sensors, self.places, self.n, self.epoch, self.stored)
        return Shape(*(max(int(size * scale), 20) for size in sizes), self.asked)


def kinds(sensors: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The kind of each sensor: few kinds have most of them."""
    spread = (sensors.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)).astype(
        np.float64
    ) / 2**24
    return (spread**3 * KINDS).astype(np.int64)


def write_static(path: Path, shape: Shape) -> None:
    """N-Triples: each sensor's place and kind."""
    rng = np.random.default_rng(1)
    with path.open("wb") as file:
        for first in range(0, shape.sensors, CHUNK):
            s = np.arange(first, min(first + CHUNK, shape.sensors))
            place = (rng.random(len(s)) ** 3 * shape.places).astype(np.int64)
            rows = pl.DataFrame({"s": s, "p": place, "k": kinds(s)})
            line = f"<{_E}s{{}}> <{_E}place> <{_E}p{{}}> .\n<{_E}s{{}}> <{_E}kind> <{_E}k{{}}> ."
            rows.select(pl.format(line, "s", "p", "s", "k")).write_csv(
                file, include_header=False, quote_style="never"
            )


def observations(shape: Shape, n: int, seed: int, sensors: int) -> npt.NDArray[np.int64]:
    """The sensor of each observation; a tenth of the sensors says almost half."""
    return (np.random.default_rng(seed).random(n) ** 3 * sensors).astype(np.int64)


def write_stream(path: Path, shape: Shape) -> int:
    """Two epochs of warm-up, silence, the observations, one a millisecond; returns the results of
    the latter, of the former.
    """
    parts = [(0, observations(shape, 2 * shape.epoch, 2, shape.sensors))]
    start = -(-(2 * shape.epoch + SILENCE) // STEP) * STEP
    parts.append((start, observations(shape, shape.n, 3, shape.sensors)))
    with path.open("wb") as file:
        for first, s in parts:
            rows = pl.DataFrame({"s": s, "v": s % 50, "t": first + np.arange(len(s))})
            line = f'<{_E}s{{}}> <{_E}value> "{{}}" {{}} .'
            rows.select(pl.format(line, "s", "v", "t")).write_csv(
                file, include_header=False, quote_style="never"
            )
    return sum(results(s) for _, s in parts)


def results(sensors: npt.NDArray[np.int64]) -> int:
    """How many kinds there are in each step, of one observation a millisecond from a close on."""
    return len(np.unique(np.arange(len(sensors)) // STEP * KINDS + kinds(sensors)))


def query() -> str:
    """Observations of each kind; the place is only joined."""
    return f"""PREFIX e: <{_E}> SELECT ?k (COUNT(?p) AS ?n)
    FROM NAMED WINDOW e:w ON <{STREAM}> [RANGE PT10S STEP PT10S]
    WHERE {{ WINDOW e:w {{ ?s e:value ?v }} ?s e:place ?p ; e:kind ?k }} GROUP BY ?k"""


def levada(folder: str, epoch: int, warm: int, stepped: bool, replaceable: bool) -> dict[str, Any]:
    """The side ``levada``, in this process."""
    root = Path(folder)
    streams = {STREAM: {"source": str(root / "s.nt"), "unique": True}}
    loading = Loading(str(root / "static.nt"), replaceable)
    queries = {"q": {"text": query(), "dialect": "rspql"}}
    return (
        run_engine(streams, queries, epoch_rows=epoch, warm=warm, stepped=stepped, static=loading)
        | loading.told
    )


def oxigraph(folder: str, stored: int, asked: int) -> dict[str, Any]:
    """The side ``baseline``: the store in memory, asked by patterns, which is its fastest way."""
    tree, began = Tree(), time.perf_counter()
    store = ox.Store()
    store.bulk_load(path=str(Path(folder) / "part.nt"), format=ox.RdfFormat.N_TRIPLES)
    loaded, load_cpu, memory = time.perf_counter() - began, tree.cpu().total, peak_memory()
    s = observations(Shape(), asked, 3, stored)
    place, kind = ox.NamedNode(f"{_E}place"), ox.NamedNode(f"{_E}kind")
    before, began = tree.cpu(), time.perf_counter()
    found: Counter[tuple[int, str]] = Counter()
    for i, sensor in enumerate(s.tolist()):
        node = ox.NamedNode(f"{_E}s{sensor}")
        for _ in store.quads_for_pattern(node, place, None):
            for quad in store.quads_for_pattern(node, kind, None):
                found[i // STEP, str(quad.object)] += 1
    wall, cpu = time.perf_counter() - began, tree.cpu() - before
    told = {
        "triples": 2 * stored,
        "load_s": round(loaded, 2),
        "load_cpu_s": round(load_cpu, 2),
        "loaded_memory_mb": memory // 10**6,
    }
    return side(len(found), asked, wall, cpu, memory=peak_memory()) | told


def compare(
    shape: Shape, *, stepped: bool, replaceable: bool = False
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Levada with data that stay or that may be replaced, and the baseline; counts checked."""
    with tempfile.TemporaryDirectory(prefix="levada-static-") as folder:
        root = Path(folder)
        write_static(root / "static.nt", shape)
        expected = write_stream(root / "s.nt", shape)
        with (root / "static.nt").open() as file, (root / "part.nt").open("w") as part:
            part.writelines(line for line, _ in zip(file, range(2 * shape.stored), strict=False))
        given = {
            "folder": folder,
            "epoch": shape.epoch,
            "warm": 2 * shape.epoch,
            "stepped": stepped,
        }
        fixed, open_ = (apart("bench.static:levada", **given, replaceable=r) for r in (False, True))
        theirs = apart(
            "bench.static:oxigraph", folder=folder, stored=shape.stored, asked=shape.asked
        )
    for name, measured in (("levada", fixed), ("levada, replaceable", open_)):
        check_count(name, measured["count"], expected)
        measured["probes_per_cpu_s"] = 2 * measured["rows_per_cpu_s"]
    check_count(
        "pyoxigraph", theirs["count"], results(observations(shape, shape.asked, 3, shape.stored))
    )
    theirs["probes_per_cpu_s"] = 2 * theirs["rows_per_cpu_s"]
    return fixed, open_, theirs


def run(scale: float, stepped: bool) -> Result:
    """Both sides; ``replaceable``: the same with static data that may be replaced as it runs."""
    shape = Shape().scaled(scale)
    fixed, open_, theirs = compare(shape, stepped=stepped)
    return Result(
        "static",
        fixed,
        theirs,
        ratio(fixed, theirs),
        {"triples": 2 * shape.sensors, "replaceable": open_},
    )

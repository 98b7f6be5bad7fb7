"""``multiway``: joins of three and five streams by one key, two at a time, in one step, and as the
engine chooses while it runs.

    wide     A and B have 20 rows a key in the window, so A join B is ten times as large as both
             together; one row in a hundred of C finds its key there
    even     each of three streams has each key about once in the window: A join B is no larger
             than one of them
    five     five streams, 100,000 rows of each in the window, of which one in a hundred finds
             its key in all the others
    last     four streams of 2,000 rows in the window, then one of 50,000 that finds each of its
             keys about once in each: what the four make is small, and is met by each row
    first    the same with the large stream first, so that two at a time keep most
    skew     three streams of 20,000 rows in the window, whose keys are ever rarer

Chains and circles are in ``linked``, count windows in ``counted``.

A row is one of any stream. ``us``: CPU of a row after the warm-up; ``state_kb``: bytes of the
checkpoint's state at the end. Results are the same and are counted. Epochs are stepped in one
process; the form is the engine's option ``join``. ``chosen``: the engine's choice by the better of
both others.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bench import counted, linked
from bench.apart import apart
from bench.data import Events, write
from bench.marks import Marks
from bench.result import Result, check_count
from levada import Engine

WINDOW = 10_000  # ms
OWN = 1_000_000_000  # keys that one stream alone has begin here
WINDOWS = 6  # of data
WARM = 2  # windows that do not count
FILES = 4  # a window, each an epoch
ROUNDS = 3  # in turn, the best counts
FORMS = ("multiway", "binary", "auto")


@dataclass(frozen=True, slots=True)
class Workload:
    """Of each stream: rows in a window, the share of them that has a key which others have, too,
    and how many such keys there are; ``skew``: keys are a uniform number's power.
    """

    rows: tuple[int, ...]
    share: tuple[float, ...]
    keys: int
    skew: float = 1

    def scaled(self, scale: float) -> Workload:
        """The same with so many times the rows and keys."""
        rows = tuple([max(int(n * scale), FILES) for n in self.rows])
        return Workload(rows, self.share, max(int(self.keys * scale), 1), self.skew)


WORKLOADS = {
    "wide": Workload((20_000, 20_000, 1_000), (1, 1, 0.01), 1_000),
    "even": Workload((50_000,) * 3, (1, 1, 1), 50_000),
    "five": Workload((100_000,) * 5, (0.01,) * 5, 1_000),
    "last": Workload((2_000,) * 4 + (50_000,), (1,) * 5, 2_000),
    "first": Workload((50_000,) + (2_000,) * 4, (1,) * 5, 2_000),
    "skew": Workload((20_000,) * 3, (1,) * 3, 20_000, 1.3),
}


def text(streams: str) -> str:
    """The join of these streams by ``k`` in CQL."""
    first = streams[0]
    shown = ", ".join([f"{first}.k", *(f"{name}.v As v{name}" for name in streams)])
    read = ", ".join(f"{name} [Range {WINDOW} ms]" for name in streams)
    equal = " And ".join(f"{first}.k = {name}.k" for name in streams[1:])
    return f"Istream(Select {shown} From {read} Where {equal})"


def prepare(folder: Path, work: Workload) -> int:
    """Writes the streams; the number of results: one for rows of all streams of one key, of which
    none is a window older than another.
    """
    made = []
    for number, (rows, share) in enumerate(zip(work.rows, work.share, strict=True)):
        rng = np.random.default_rng(number)
        n = rows * WINDOWS
        alone = (number + 1) * OWN + np.arange(n, dtype=np.int64)
        shared = (work.keys * rng.random(n) ** work.skew).astype(np.int64)
        k = np.where(rng.random(n) < share, shared, alone)
        ts = np.arange(n, dtype=np.int64) * WINDOW // rows
        stream = Events(k, rng.random(n), ts)
        write(folder / "ABCDE"[number], stream, max(rows // FILES, 1))
        made.append(stream)
    return combinations(made)


def combinations(streams: list[Events]) -> int:
    """By key, all rows in the order of time, each with those of before that are in the window; of
    the last instant nothing is known yet, since streams do not end.
    """
    last = min(int(s.ts[-1]) for s in streams)
    streams = [Events(s.k[s.ts < last], s.v[s.ts < last], s.ts[s.ts < last]) for s in streams]
    k = np.concatenate([s.k for s in streams])
    ts = np.concatenate([s.ts for s in streams])
    of = np.repeat(np.arange(len(streams)), [s.n for s in streams])
    order = np.lexsort((ts, k))
    k, ts, of = k[order], ts[order], of[order]
    found = 0
    cuts = np.flatnonzero(np.diff(k, prepend=-1, append=-1))
    for a, b in pairwise(cuts.tolist()):
        if len(set(of[a:b].tolist())) == len(streams):
            found += _of_key(ts[a:b], of[a:b], len(streams))
    return found


def _of_key(ts: Any, of: Any, many: int) -> int:
    """The combinations of one key, each by its last row."""
    found, start, counts = 0, 0, np.zeros(many, np.int64)
    for now, stream in zip(ts.tolist(), of.tolist(), strict=True):
        while ts[start] <= now - WINDOW:
            counts[of[start]] -= 1
            start += 1
        found += int(np.delete(counts, stream).prod())
        counts[stream] += 1
    return found


def side(folder: str, form: str, streams: str, epoch: int) -> dict[str, Any]:
    """One run: results, CPU of a row after the warm-up, bytes of state."""
    marks = Marks()
    with tempfile.TemporaryDirectory(prefix="levada-multiway-") as into:
        root = Path(into) / "c"
        with Engine(
            spark=False, checkpoint=root, partitions=1, seed=7, epoch_rows=epoch,
            keep_results=False, join=form,
        ) as engine:  # fmt: skip
            for name in streams:
                engine.stream(name, f"{folder}/{name}", format="parquet")
            engine.register(text(streams), name="q", dialect="cql")
            engine._on_epoch(marks.see)
            engine.start(once=True, keep_open=True)
            engine.await_end()
        state = sum(file.stat().st_size for file in (root / "state").iterdir())
    epochs = len(marks.marks)
    cost = marks.from_epoch(epochs * WARM // WINDOWS)
    return {"count": marks.results, "us": round(cost, 3), "state_kb": round(state / 1000),
            "epochs": epochs, "rows_a_cpu_s": round(1e6 / cost)}  # fmt: skip


def run(scale: float, stepped: bool) -> Result:
    """Each workload in both forms, in turn; the one step by the joins of two."""
    found = {name: _sides(work.scaled(scale)) for name, work in WORKLOADS.items()}
    more = {
        name: {
            **sides,
            "cpu": round(sides["multiway"]["us"] / sides["binary"]["us"], 3),
            "chosen": round(sides["auto"]["us"] / min(s["us"] for s in sides.values()), 3),
            "state": round(sides["multiway"]["state_kb"] / sides["binary"]["state_kb"], 3),
        }
        for name, sides in found.items()
    }
    more |= {f"linked {name}": told for name, told in linked.run(scale).items()}
    more |= {f"counted {name}": told for name, told in counted.run(scale).items()}
    wide = found["wide"]
    both = {form: {"rows_per_cpu_s": side["rows_a_cpu_s"], **side} for form, side in wide.items()}
    times = both["multiway"]["rows_a_cpu_s"] / both["binary"]["rows_a_cpu_s"]
    return Result("multiway", both["multiway"], both["binary"], round(times, 2), more)


def _sides(work: Workload) -> dict[str, dict[str, Any]]:
    streams, epoch = "ABCDE"[: len(work.rows)], sum(work.rows) // FILES
    best: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="levada-multiway-") as folder:
        expected = prepare(Path(folder), work)
        for _ in range(ROUNDS):
            for form in FORMS:
                got = apart(
                    "bench.multiway:side", folder=folder, form=form, streams=streams, epoch=epoch
                )
                check_count(f"{form} of {streams}", got["count"], expected)
                best[form] = min(best.get(form, got), got, key=lambda one: float(one["us"]))
    return best

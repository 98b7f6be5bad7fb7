"""Random queries with functions, aggregates and operators of the user, against naive windows and
the functions of Python on single rows: in all modes of sharing, with partitions, small epochs and
a restart.
"""

from __future__ import annotations

import math
import os
import random
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from levada import Engine
from support import user_functions as f

Row = tuple[int, str, float | None, int | None]
CASES = int(os.environ.get("LEVADA_CASES", "4"))
SCHEMA = "dev:string;v:double;w:integer"
DEVICES = ("a", "bb", "long-one", 'q"x')


def draw_rows(draw: random.Random) -> list[Row]:
    times = sorted(draw.sample(range(30_000), draw.randint(5, 60)))
    return [
        (
            ts,
            draw.choice(DEVICES),
            None if draw.random() < 0.15 else float(draw.randint(-4, 40)),
            None if draw.random() < 0.15 else draw.randint(-4, 40),
        )
        for ts in times
    ]


def one(function: Any, *arguments: Any) -> Any:
    """The value of a function of one row; None where an argument is."""
    if None in arguments:
        return None
    return function(*(pl.Series([argument]) for argument in arguments)).to_list()[0]


def windows(rows: list[Row], width: int, step: int) -> dict[int, list[Row]]:
    """The rows of each window that is not empty, by its report."""
    found: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        first = row[0] // step * step + step
        for report in range(first, row[0] + width + 1, step):
            found[report].append(row)
    return found


class Scalars:
    """Scalar functions in Select and Where."""

    def __init__(self, draw: random.Random) -> None:
        self.step = draw.choice((1000, 2000, 5000))
        self.width, self.least = self.step * draw.randint(1, 3), draw.randint(0, 30)
        self.text = (
            "Rstream(Select dev, Hypot(v, w) As h, Shout(dev) As s, Half(w) As e From T "
            f"[Range {self.width} Milliseconds Slide {self.step} Milliseconds] "
            f"Where Hypot(v, 3) > {self.least})"
        )

    def answers(self, rows: list[Row]) -> list[tuple[Any, ...]]:
        return [
            (report, dev, one(f.hypot, v, float(w)) if w is not None else None,
             one(f.shout, dev), one(f.half, w))
            for report, inside in windows(rows, self.width, self.step).items()
            for _, dev, v, w in inside
            if v is not None and math.sqrt(v * v + 9) > self.least
        ]  # fmt: skip


class Aggregates:
    """An aggregate whose panes are merged, and groups."""

    def __init__(self, draw: random.Random) -> None:
        self.step = draw.choice((1000, 2000, 5000))
        self.width, self.grouped = self.step * draw.randint(1, 4), draw.random() < 0.7
        group, shown = (" Group By dev", "dev, ") if self.grouped else ("", "")
        self.text = (
            f"Rstream(Select {shown}Spread(v) As s, Count(*) As n From T "
            f"[Range {self.width} Milliseconds Slide {self.step} Milliseconds]{group})"
        )

    def answers(self, rows: list[Row]) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for report, inside in windows(rows, self.width, self.step).items():
            groups: dict[str, list[float | None]] = defaultdict(list)
            for _, dev, v, _ in inside:
                groups[dev if self.grouped else ""].append(v)
            for dev, values in groups.items():
                there = [v for v in values if v is not None]
                value = (max(there) - min(there)) * len(there) if there else None
                found.append((report, *([dev] if self.grouped else []), value, len(values)))
        return found


class Running:
    """An operator by key, and one of all rows."""

    def __init__(self, draw: random.Random) -> None:
        self.keyed = draw.random() < 0.7
        key, shown = (" Partition By dev", "dev, ") if self.keyed else ("", "")
        self.text = f"Rstream(Select {shown}n, total From Table(Running(Table T{key})) [Now])"

    def answers(self, rows: list[Row]) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        known: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
        for ts, dev, v, _ in rows:
            key = dev if self.keyed else ""
            if v is not None:
                known[key] = known[key][0] + 1, known[key][1] + v
                found.append((ts, *([dev] if self.keyed else []), *known[key]))
        return found


class LastThree:
    """An operator with several rows of state, which it forgets, under a sliding window."""

    def __init__(self, draw: random.Random) -> None:
        self.step = draw.choice((1000, 2000, 5000))
        self.width = self.step * draw.randint(1, 3)
        self.text = (
            "Rstream(Select dev, Max(mean) As m From Table(LastThree(Table T Partition By dev)) "
            f"[Range {self.width} Milliseconds Slide {self.step} Milliseconds] Group By dev)"
        )

    def answers(self, rows: list[Row]) -> list[tuple[Any, ...]]:
        last: dict[str, list[float]] = defaultdict(list)
        means: list[Row] = []
        for ts, dev, v, _ in rows:
            if v is not None:
                last[dev] = [] if v < 0 else [*last[dev], v][-3:]
                if v >= 0:
                    means.append((ts, dev, sum(last[dev]) / len(last[dev]), None))
        found: list[tuple[Any, ...]] = []
        for report, inside in windows(means, self.width, self.step).items():
            best: dict[str, float] = {}
            for _, dev, mean, _ in inside:
                best[dev] = max(mean or 0.0, best.get(dev, 0.0))
            found += [(report, dev, mean) for dev, mean in best.items()]
        return found


class Chain:
    """Operators one after the other, the first without state."""

    def __init__(self, draw: random.Random) -> None:
        inner = "Table(Letters(Table T))"
        self.text = (
            "Rstream(Select word, Count(*) As n From "
            f"{inner} [Range 4 Seconds Slide 2 Seconds] Group By word)"
        )

    def answers(self, rows: list[Row]) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for report, inside in windows(rows, 4000, 2000).items():
            counts: dict[str, int] = defaultdict(int)
            for _, dev, _, _ in inside:
                for letter in dev:
                    counts[letter] += 1
            found += [(report, letter, n) for letter, n in counts.items()]
        return found


MODES = ("relax", "exact", "off")
KINDS = (Scalars, Aggregates, Running, LastThree, Chain)


def run(
    folder: Path,
    rows: list[Row],
    queries: dict[str, str],
    cuts: list[int],
    *,
    partitions: list[int],
    **options: Any,
) -> dict[str, list[tuple[Any, ...]]]:
    """All reports of runs that continue each other, each with the next part of the rows."""
    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    (folder / "t").mkdir(parents=True)
    bounds = [0, *cuts, len(rows)]
    for i, (first, end) in enumerate(pairwise(bounds)):
        columns = ("ts", "dev", "v", "w")
        types = {"ts": pl.Int64, "dev": pl.String, "v": pl.Float64, "w": pl.Int64}
        part = pl.DataFrame(rows[first:end], schema={c: types[c] for c in columns}, orient="row")
        part.write_parquet(folder / "t" / f"{i}.parquet")
        last = i + 2 == len(bounds)
        options |= {"checkpoint": folder / "checkpoint", "partitions": partitions[i]}
        with Engine(spark=False, **options) as engine:
            engine.stream("T", folder / "t", time="field:ts")
            asked = {
                name: engine.register(text, name=name, dialect="cql")
                for name, text in queries.items()
            }
            engine.start(once=True, keep_open=not last)
            engine.await_end()
            for name, query in asked.items():
                table = query.to_polars()
                if table.height:
                    times = table.with_columns(pl.col("report").dt.epoch("ms"))
                    found[name] += times.rows()
    return found


def norm(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    plain = [tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in rows]
    return sorted(plain, key=repr)


def check(case: int, modes: Sequence[str], each: int, folder: Path) -> None:
    draw = random.Random(7000 + case)
    rows = draw_rows(draw)
    asked = [kind(draw) for kind in KINDS for _ in range(each)]
    queries = {f"q{i}": query.text for i, query in enumerate(asked)}
    queries |= {f"again{i}": text for i, text in enumerate(draw.sample([*queries.values()], each))}
    expected = {query.text: norm(query.answers(rows)) for query in asked}
    for sharing in modes:
        cuts = sorted(draw.sample(range(1, len(rows)), draw.randint(0, 2)))
        partitions = [draw.randint(1, 3) for _ in range(len(cuts) + 1)]
        epoch_rows = draw.choice((3, 17, 1000))
        got = run(
            folder / sharing, rows, queries, cuts,
            sharing=sharing, partitions=partitions, epoch_rows=epoch_rows,
        )  # fmt: skip
        for name, text in queries.items():
            said = (case, sharing, cuts, partitions, epoch_rows, text)
            assert norm(got[name]) == expected[text], said


@pytest.mark.parametrize("sharing", MODES)
def test_functions_in_random_queries_equal_python(sharing: str, tmp_path: Path) -> None:
    check(MODES.index(sharing), (sharing,), 1, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("case", range(CASES))
def test_functions_in_all_modes_of_sharing_equal_python(case: int, tmp_path: Path) -> None:
    check(100 + case, MODES, 2, tmp_path)

"""Linear Road's tolls and accidents, as far as BriskStream runs them: no balances, no expenditures.

    way 0: segment 0 -> 99, way 1: 99 -> 0; a segment is a mile; reports every 30 s of each car

- A car pays where it comes into a segment (its first report there, not on the exit lane), if the
  mean speed of the last five minutes there is below 40, the last minute had more than 50 cars, and
  there is no accident from there to four segments ahead: 2 (cars - 50)^2.
- Two cars whose last four reports are from the same place are an accident, from the fourth such
  report on, until one of them says another place. Who comes into a segment with one there, or up
  to four segments ahead, is told.

The mean speed of a minute is over cars, of each its own mean. The benchmark (Arasu et al., VLDB
2004) tells tolls of 0, too, and lets an accident count from the next minute on; here it counts at
once.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl

from bench.streaming.application import Answer, Application, Frames, text

MILE, EVERY, MINUTE = 5280, 30, 60_000
EXIT, AHEAD, SLOW, FULL, MEMORY = 4, 4, 40.0, 50, 5
REPORTS = 50
"""Of each car, as long as it is on the road."""
FEET = 44
"""That a mile an hour is in 30 s."""
Segment = tuple[int, int, int]
"""Road, way, number."""


def make(n: int, seed: int) -> Frames:
    """About ``n`` reports of cars on one road, half of them in its slow quarter; some stand for a
    while two by two.
    """
    rng = np.random.default_rng(seed)
    cars = max(n // REPORTS, 2) // 2 * 2
    segments = int(np.clip(cars // 60, 6, 100))
    way, begin = rng.integers(0, 2, cars // 2), rng.integers(0, EVERY, cars // 2)
    slow = rng.random(cars // 2) < 0.5
    place = np.where(slow, rng.uniform(0.4, 0.65, cars // 2), rng.random(cars // 2))
    pairs = [np.repeat(one, 2) for one in (way, begin, place * segments * MILE)]
    return {"Reports": _drive(rng, segments, *pairs)}


def _drive(rng: np.random.Generator, segments: int, way: Any, begin: Any, place: Any) -> Any:
    """Every car's reports: each pair of neighbours drives side by side, and some stop there."""
    cars = len(way)
    stop = np.where(rng.random(cars // 2) < 0.03, rng.integers(5, 35, cars // 2), -10).repeat(2)
    parts = []
    for k in range(REPORTS):
        jam = (place >= 0.4 * segments * MILE) & (place < 0.65 * segments * MILE)
        speed = np.where(jam, rng.integers(15, 40, cars), rng.integers(50, 80, cars))
        speed = np.where((k >= stop) & (k < stop + 8), 0, speed[np.arange(cars) // 2 * 2])
        lane = np.where(rng.random(cars) < 0.02, EXIT, 1 + np.arange(cars) // 2 % 3)
        lane = np.where(speed == 0, 2, lane)
        place = place + np.where(way == 0, 1, -1) * speed * FEET
        there = (place >= 0) & (place < segments * MILE)
        parts.append(
            pl.DataFrame(
                {
                    "car": np.arange(cars),
                    "speed": speed.astype(np.float64),
                    "road": np.zeros(cars, np.int64),
                    "lane": lane,
                    "way": way,
                    "segment": (place // MILE).astype(np.int64),
                    "place": place.astype(np.int64),
                    "ts": (begin + EVERY * k) * 1000,
                }
            ).filter(pl.Series(there))
        )
    return pl.concat(parts).sort("ts", "car")


@dataclass
class Road:
    """What is known of the road, report by report."""

    speeds: dict[Segment, dict[int, list[float]]] = field(default_factory=dict)  # of this minute
    minutes: dict[Segment, dict[int, tuple[int, float]]] = field(default_factory=dict)
    last: dict[int, deque[tuple[int, ...]]] = field(default_factory=dict)
    within: dict[int, Segment | None] = field(default_factory=dict)

    def end_minute(self, end: int) -> None:
        """A minute is over: the cars of each segment and their mean speed."""
        for segment, cars in self.speeds.items():
            means = [math.fsum(s) / len(s) for s in cars.values()]
            told = len(means), math.fsum(means) / len(means)
            self.minutes.setdefault(segment, {})[end] = told
        self.speeds = {}

    def take(self, report: tuple[Any, ...]) -> Segment | None:
        """A report: the segment, if the car has come into it."""
        car, speed, road, lane, way, number, place, _ = report
        segment = (road, way, number)
        self.speeds.setdefault(segment, {}).setdefault(car, []).append(speed)
        self.last.setdefault(car, deque(maxlen=4)).append((road, lane, way, number, place))
        before = self.within.get(car)
        self.within[car] = segment if lane != EXIT else None
        return self.within[car] if self.within[car] != before else None

    def toll(self, segment: Segment, ends: int) -> int:
        """What a segment costs, where the last minute ended at ``ends``; without accidents."""
        told = self.minutes.get(segment, {})
        if ends not in told:
            return 0
        speeds = [told[m][1] for i in range(MEMORY) if (m := ends - i * MINUTE) in told]
        slow = math.fsum(speeds) / len(speeds) < SLOW
        cars = told[ends][0]
        return 2 * (cars - FULL) ** 2 if slow and cars > FULL else 0


def _answer(
    rows: list[Any], road: Road, crashes: Crashes, ends: int
) -> Iterator[tuple[str, Answer]]:
    """What an instant's reports are told."""
    entries = []
    for row in rows:
        if (segment := road.take(row)) is not None:
            entries.append((row[0], segment))
        crashes.take(row[0], road.last[row[0]])
    for car, (number, way, at) in entries:
        ahead = range(at, at + AHEAD + 1) if way == 0 else range(at - AHEAD, at + 1)
        struck = [s for s in ahead if crashes.segments[number, way, s] > 0]
        for s in struck:
            yield "alarms", (rows[0][-1], car, number, way, s)
        toll = road.toll((number, way, at), ends)
        if toll and not struck:
            yield "tolls", (rows[0][-1], car, number, way, at, toll)


@dataclass
class Crashes:
    """Where cars stand, and segments with an accident by how many places these have of it."""

    stands: dict[int, tuple[int, ...]] = field(default_factory=dict)
    places: Counter[tuple[int, ...]] = field(default_factory=Counter)
    segments: dict[Segment, int] = field(default_factory=lambda: defaultdict(int))

    def take(self, car: int, last: deque[tuple[int, ...]]) -> None:
        """A car has said where it is."""
        now = last[-1] if len(last) == 4 and len(set(last)) == 1 else None
        before = self.stands.get(car)
        if now == before:
            return
        for place, by in ((before, -1), (now, 1)):
            if place is not None:
                was = self.places[place] > 1
                self.places[place] += by
                self.segments[place[0], place[2], place[3]] += (self.places[place] > 1) - was
        if now is None:
            self.stands.pop(car)
        else:
            self.stands[car] = now


def answers(streams: Frames) -> dict[str, list[Answer]]:
    """Tolls and alarms, instant by instant."""
    road, crashes, ends = Road(), Crashes(), 0
    found: dict[str, list[Answer]] = {"tolls": [], "alarms": []}
    for ts, rows in groupby(streams["Reports"].iter_rows(), key=lambda row: row[-1]):
        while ends + MINUTE <= ts:
            ends += MINUTE
            road.end_minute(ends)
        for query, row in _answer(list(rows), road, crashes, ends):
            found[query].append(row)
    return found


LINEAR_ROAD = Application(
    "LR",
    {
        "tolls": text("road_views", "road_tolls"),
        "alarms": text("road_views", "road_alarms"),
    },
    ("tolls", "alarms"),
    make,
    answers,
    target=0.2,
    brisk=0.06,
    events=1_000_000,
    epoch=100_000,
)

"""W3: stations that tell the wind speed once a minute, as timed N-Triples or plain ones by hour.

A day: each minute at its half every station makes an observation of three triples. A quarter of the
stations blow 74 to 100 from minute 360 to 839, all others stay below 60; so the minimum over three
hours reaches 74 at the six closes of hours 9 to 14, at a quarter of the stations. Before it there
may be a calm warm-up, with half a day of silence between; and days follow one another, so that
there is something to measure: a round (``bench.steady``) has one or, of few stations, some. No
window reaches from a day's winds into the next one's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from bench.steady import END, WARM, name_of
from levada import group_of

Minute = tuple[int, int, npt.NDArray[np.float64]]
"""(event time, serial number, speeds)."""

MINUTE, HOUR = 60_000, 3_600_000
MINUTES = 1440
RANGE = 3  # hours
CLOSES = 6  # with a result
STREAM = "http://example.org/observations"
STATION = "http://example.org/station/"
OM = "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#"
WIND = "http://knoesis.wright.edu/ssw/ont/weather.owl#_WindSpeed"
_DOUBLE = "http://www.w3.org/2001/XMLSchema#double"

PATTERN = f"?o <{OM}procedure> ?sensor ; <{OM}observedProperty> <{WIND}> ; <{OM}result> ?v ."
WINDOW = f"FROM NAMED WINDOW <w> ON <{STREAM}> [RANGE PT3H STEP PT1H]"


def query(threshold: float = 74) -> str:
    """W3: SRBench Q3 as KATTS ran it, in RSP-QL."""
    return (
        f"SELECT ?sensor (MIN(?v) AS ?m) {WINDOW} WHERE {{ WINDOW <w> {{ {PATTERN} }} }} "
        f"GROUP BY ?sensor HAVING (MIN(?v) >= {threshold})"
    )


@dataclass(frozen=True, slots=True)
class Weather:
    """W3 with ``stations`` stations, ``days`` in a round; ``warm`` minutes of calm before."""

    stations: int
    warm: int = 0
    days: int = 1

    @property
    def start(self) -> int:
        """When the first day begins, ms: at a whole hour."""
        hours = -(-self.warm // 60) + 12 if self.warm else 0
        return hours * HOUR

    @property
    def minute_rows(self) -> int:
        """Triples a minute."""
        return 3 * self.stations

    @property
    def results(self) -> int:
        """What W3 gives in a round."""
        return CLOSES * (self.stations // 4) * self.days

    def speeds(self) -> npt.NDArray[np.float64]:
        """A day's speeds in tenths: a row a minute, a column a station."""
        rng = np.random.default_rng(3)
        speeds = np.round(rng.random((MINUTES, self.stations)) * 59, 1)
        hot = slice(0, self.stations // 4)
        speeds[360:840, hot] = np.round(74 + rng.random((480, self.stations // 4)) * 26, 1)
        return speeds

    def calm(self) -> Iterator[Minute]:
        """The warm-up."""
        speeds = np.linspace(0, 59, max(self.stations, 2))[: self.stations].round(1)
        for i in range(self.warm):
            yield i * MINUTE + MINUTE // 2, i, speeds

    def round(self, number: int = 0) -> Iterator[Minute]:
        """The days of a round."""
        day, first = self.speeds(), number * self.days * MINUTES
        for i in range(first, first + self.days * MINUTES):
            yield self.start + i * MINUTE + MINUTE // 2, self.warm + i, day[i % MINUTES]

    def minutes(self) -> Iterator[Minute]:
        """The warm-up and one round."""
        yield from self.calm()
        yield from self.round()


def _triples(serial: int, speeds: npt.NDArray[np.float64]) -> Iterator[str]:
    """A minute's triples one by one, without what ends a line: a few, for other uses."""
    for station, speed in enumerate(speeds.tolist()):
        o = f"<http://example.org/observation/{serial}/{station}>"
        yield f"{o} <{OM}procedure> <{STATION}{station}>"
        yield f"{o} <{OM}observedProperty> <{WIND}>"
        yield f'{o} <{OM}result> "{speed}"^^<{_DOUBLE}>'


def _text(
    minutes: Sequence[Minute], timed: bool, stations: npt.NDArray[np.int64] | None = None
) -> str:
    """The triples of some minutes as ``_triples`` says them, a line each; of some stations, or
    all.
    """
    own = np.arange(len(minutes[0][2])) if stations is None else stations
    ts, serials = (np.repeat(np.array([m[i] for m in minutes]), len(own)) for i in (0, 1))
    frame = pl.DataFrame(
        {
            "i": serials,
            "s": np.tile(own, len(minutes)),
            "v": np.concatenate([m[2][own] for m in minutes]),
            "t": ts,
        }
    )
    o, end = "<http://example.org/observation/{}/{}>", " {} ." if timed else " ."
    time = ["t"] if timed else []
    lines = [
        pl.format(f"{o} <{OM}procedure> <{STATION}{{}}>{end}", "i", "s", "s", *time),
        pl.format(f"{o} <{OM}observedProperty> <{WIND}>{end}", "i", "s", *time),
        pl.format(f'{o} <{OM}result> "{{}}"^^<{_DOUBLE}>{end}', "i", "s", "v", *time),
    ]
    text: str = frame.select(pl.concat_str(lines, separator="\n")).to_series().str.join("\n").item()
    return text + "\n"


def _hours(minutes: Iterable[Minute]) -> Iterator[list[Minute]]:
    """Sixty minutes each."""
    rest = iter(minutes)
    while hour := list(islice(rest, 60)):
        yield hour


def _write(path: Path, minutes: Iterable[Minute]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        file.writelines(_text(hour, timed=True) for hour in _hours(minutes))


def write_timed(path: Path, weather: Weather) -> None:
    """One file of N-Triples with the event time as a further term: the warm-up and one round."""
    _write(path, weather.minutes())


def write_minutes(folder: Path, weather: Weather, minutes: int) -> None:
    """So many minutes of rounds of a day, a file for each day, in the order of names and times."""
    for day in range(-(-minutes // MINUTES)):
        left = minutes - day * MINUTES
        _write(folder / f"{day:05}.nt", islice(weather.round(day), left))


def write_stations(folder: Path, weather: Weather, files: int = 12) -> None:
    """The warm-up and one round in so many files by station (KATTS' cut of SRBench): each file has
    the stations that ``levada.group_of`` puts there, whole.
    """
    folder.mkdir(parents=True)
    place = [group_of(f"<{STATION}{i}>", files) for i in range(weather.stations)]
    own = [np.flatnonzero(np.array(place) == i) for i in range(files)]
    minutes = list(weather.minutes())
    for i, stations in enumerate(own):
        with (folder / f"{i:02}.nt").open("w") as file:
            for hour in _hours(minutes) if len(stations) else ():
                file.write(_text(hour, timed=True, stations=stations))


def write_rounds(folder: Path, weather: Weather, rounds: int) -> None:
    """The stream ``w3`` as ``bench.steady`` reads it. Its end are two elements, of which the first
    is whole when the second begins.
    """
    _write(folder / WARM / "w3" / "00000.nt", weather.calm())
    for i in range(rounds):
        _write(folder / name_of(i) / "w3" / f"{i + 1:05}.nt", weather.round(i))
    end = weather.start + (rounds * weather.days * 24 + RANGE) * HOUR
    (folder / END / "w3").mkdir(parents=True)
    lines = (
        f'<http://example.org/end/{i}> <http://example.org/end> "" {end + i * HOUR} .\n'
        for i in range(2)
    )
    (folder / END / "w3" / f"{rounds + 1:05}.nt").write_text("".join(lines))


def supply_of(weather: Weather, rounds: int, epoch: int) -> dict[str, int]:
    """The sizes of a ``Supply`` of W3 in triples; ``epoch`` in minutes."""
    rows = weather.minute_rows
    day = MINUTES * weather.days * rows
    return {"rounds": rounds, "warm": weather.warm * rows, "rows": day, "epoch": epoch * rows}


def write_hours(folder: Path, weather: Weather) -> None:
    """The same triples without times, a file for each hour of a round; the warm-up is left out."""
    folder.mkdir()
    for i, hour in enumerate(_hours(weather.round())):
        (folder / f"{i:04}.nt").write_text(_text(hour, timed=False))

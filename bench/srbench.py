"""W3 (design, section 8): stations that tell the wind speed once a minute, as timed N-Triples and
as plain ones by the hour.

A day: each minute at its half every station makes an observation of three triples. A quarter of the
stations blow 74 to 100 from minute 360 to 839, all others stay below 60; so the minimum over three
hours reaches 74 at the six closes of hours 9 to 14, at a quarter of the stations. Before it there
may be a calm warm-up, with half a day of silence between; and with few stations the day is
repeated, so that there is something to measure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

MINUTE, HOUR = 60_000, 3_600_000
MINUTES = 1440
CLOSES = 6  # with a result
STREAM = "http://example.org/observations"
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
    """W3 with ``stations`` stations, ``days`` times; ``warm`` minutes of calm before."""

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
        """What W3 gives."""
        return CLOSES * (self.stations // 4) * self.days

    def speeds(self) -> npt.NDArray[np.float64]:
        """A day's speeds in tenths: a row a minute, a column a station."""
        rng = np.random.default_rng(3)
        speeds = np.round(rng.random((MINUTES, self.stations)) * 59, 1)
        hot = slice(0, self.stations // 4)
        speeds[360:840, hot] = np.round(74 + rng.random((480, self.stations // 4)) * 26, 1)
        return speeds

    def minutes(self) -> Iterator[tuple[int, int, npt.NDArray[np.float64]]]:
        """(event time, serial number, speeds) of every minute, the warm-up's first."""
        calm = np.linspace(0, 59, max(self.stations, 2))[: self.stations].round(1)
        for i in range(self.warm):
            yield i * MINUTE + MINUTE // 2, i, calm
        day = self.speeds()
        for i in range(self.days * MINUTES):
            yield self.start + i * MINUTE + MINUTE // 2, self.warm + i, day[i % MINUTES]


def _triples(serial: int, speeds: npt.NDArray[np.float64]) -> Iterator[str]:
    for station, speed in enumerate(speeds.tolist()):
        o = f"<http://example.org/observation/{serial}/{station}>"
        yield f"{o} <{OM}procedure> <http://example.org/station/{station}>"
        yield f"{o} <{OM}observedProperty> <{WIND}>"
        yield f'{o} <{OM}result> "{speed}"^^<{_DOUBLE}>'


def write_timed(path: Path, weather: Weather) -> None:
    """One file of N-Triples with the event time as a further term."""
    with path.open("w") as file:
        for ts, serial, speeds in weather.minutes():
            file.write("".join(f"{t} {ts} .\n" for t in _triples(serial, speeds)))


def write_hours(folder: Path, weather: Weather) -> None:
    """The same triples without times, a file for each hour of the days; the warm-up is left out."""
    folder.mkdir()
    hour: list[str] = []
    for ts, serial, speeds in weather.minutes():
        if ts < weather.start:
            continue
        hour += (f"{t} .\n" for t in _triples(serial, speeds))
        if (ts - weather.start) // MINUTE % 60 == 59:
            (folder / f"{(ts - weather.start) // HOUR:04}.nt").write_text("".join(hour))
            hour.clear()

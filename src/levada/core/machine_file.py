"""Machines: places with cores, the latency of a cache line between places, and bandwidths.

A place is a socket, a host or an executor. A machine file is YAML, and so may be JSON:

    name: two sockets
    clock: 1.2                        # GHz
    line: 64                          # bytes of a cache line
    cores: [18, 18]                   # of each place, or one number for all
    places: [S0, S1]
    latency: [[0, 119.3], [119.3, 0]]          # ns from row to column; to itself 0
    bandwidth: [[55607, 13482], [13482, 55607]]  # MB/s from row to column; to itself: its memory
    processors: [[0, 1], [2, 3]]      # numbers of each place's processors, if workers are bound

Servers A and B of BriskStream come with Levada (``shipped_machine``).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from levada.core.array_types import Doubles
from levada.core.frozen import frozen
from levada.errors import UsageError, near

NEEDED = ("clock", "line", "cores", "places", "latency", "bandwidth")
FIELDS = ("name", *NEEDED, "processors")
_SHIPPED = Path(__file__).parent / "machines"


@frozen
class Machine:
    """``latency`` in ns, ``bandwidth`` in bytes/s, both from row to column; ``clock`` in GHz,
    ``line`` in bytes. ``processors`` of each place, by the kernel's numbers; (): unknown.
    """

    name: str
    clock: float
    line: float
    places: tuple[str, ...]
    cores: tuple[int, ...]
    latency: Doubles
    bandwidth: Doubles
    processors: tuple[tuple[int, ...], ...] = ()


def shipped_machine(name: str) -> Machine:
    """Returns a machine that comes with Levada: ``server-a`` or ``server-b``. Raises
    ``UsageError``.

    >>> a = shipped_machine("server-a")
    >>> a.name, sum(a.cores), float(a.latency[0, 4])
    ('server A', 144, 395.6)
    """
    known = sorted(path.stem for path in _SHIPPED.glob("*.yaml"))
    if name not in known:
        raise UsageError(f"No machine {name} comes with Levada.", hint=near(name, known))
    return read_machine(_SHIPPED / f"{name}.yaml")


def read_machine(path: Path) -> Machine:
    """A machine file, YAML or JSON. Raises ``UsageError`` that names the file and the place."""
    return _Reader(str(path)).machine(_document(path))


def _document(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"The machine file {path} cannot be read: {reason}.") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise UsageError(
            f"The machine file {path}{where} is neither YAML nor JSON: "
            f"{getattr(error, 'problem', error)}."
        ) from error


@frozen
class _Reader:
    """Reads a machine file; errors name the file and the field."""

    path: str

    def machine(self, document: Any) -> Machine:
        if not isinstance(document, dict):
            raise self._wrong("holds no fields", "It needs " + ", ".join(NEEDED) + ".")
        for key in document:
            if key not in FIELDS:
                raise self._wrong(f"has an unknown field {key}", near(str(key), FIELDS))
        for key in NEEDED:
            if key not in document:
                raise self._wrong(f"has no {key}", "Add it; docs/replication.md has an example.")
        places = self._places(document["places"])
        return Machine(
            name=str(document.get("name", Path(self.path).stem)),
            clock=self._number("clock", document["clock"], above=True),
            line=self._number("line", document["line"], above=True),
            places=places,
            cores=self._cores(document["cores"], places),
            latency=self._matrix("latency", document["latency"], places),
            bandwidth=self._matrix("bandwidth", document["bandwidth"], places) * 1e6,
            processors=self._processors(document["processors"], places)
            if "processors" in document
            else (),
        )

    def _places(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not value:
            raise self._wrong("has places that are no list of names", "Write places: [S0, S1].")
        names = tuple(map(str, value))
        for name in names:
            if names.count(name) > 1:
                raise self._wrong(f"has the place {name} twice", "Give each its own name.")
        return names

    def _cores(self, value: Any, places: tuple[str, ...]) -> tuple[int, ...]:
        each = value if isinstance(value, list) else [value] * len(places)
        if len(each) != len(places):
            raise self._wrong(
                f"has {len(each)} numbers of cores for {len(places)} places",
                "Give one for each place, or one number for all.",
            )
        for place, cores in zip(places, each, strict=True):
            if isinstance(cores, bool) or not isinstance(cores, int) or cores < 1:
                raise self._wrong(
                    f"gives the place {place} {cores} cores", "It must be a whole number from 1."
                )
        return tuple(each)

    def _processors(self, lists: Any, places: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
        if not isinstance(lists, list) or len(lists) != len(places):
            count_text = f"{len(lists)} lists" if isinstance(lists, list) else "no lists"
            raise self._wrong(
                f"has {count_text} of processors for {len(places)} places",
                "Give one for each place.",
            )
        owner: dict[int, str] = {}
        for place, processors in zip(places, lists, strict=True):
            if not isinstance(processors, list) or not processors:
                raise self._wrong(
                    f"has no list of processors for {place}", "Write such as [0, 1, 2, 3]."
                )
            for number in processors:
                if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                    raise self._wrong(
                        f"gives {place} the processor {number}", "It is a whole number from 0."
                    )
                if number in owner:
                    raise self._wrong(
                        f"gives processor {number} to {owner[number]} and to {place}",
                        "A processor is in one place, once.",
                    )
                owner[number] = place
        return tuple(map(tuple, lists))

    def _matrix(self, field: str, rows: Any, places: tuple[str, ...]) -> Doubles:
        n = len(places)
        if not isinstance(rows, list) or len(rows) != n:
            count_text = f"{len(rows)} rows" if isinstance(rows, list) else "no rows"
            raise self._wrong(
                f"has {count_text} of {field} for {n} places",
                f"It is a square of {n} by {n} numbers.",
            )
        for place, row in zip(places, rows, strict=True):
            if not isinstance(row, list) or len(row) != n:
                count_text = (
                    f"{len(row)} numbers" if isinstance(row, list) else "no list of numbers"
                )
                raise self._wrong(
                    f"has {count_text} of {field} from {place} for {n} places",
                    f"It is a square of {n} by {n} numbers.",
                )
            for other, value in zip(places, row, strict=True):
                self._number(f"{field} from {place} to {other}", value, above=field == "bandwidth")
                if field == "latency" and place == other and value:
                    raise self._wrong(
                        f"has latency {value} from {place} to itself",
                        "That is 0: an operator's cost has it in it.",
                    )
        return np.array(rows, np.float64)

    def _number(self, what: str, value: Any, *, above: bool) -> float:
        least = "more than 0" if above else "0 or more"
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value < 0 or (above and value == 0):
            shown = "no value" if value is None else str(value)
            raise self._wrong(f"has {shown} as {what}", f"It must be a number, {least}.")
        return float(value)

    def _wrong(self, what: str, hint: str) -> UsageError:
        return UsageError(f"The machine file {self.path} {what}.", hint=hint)

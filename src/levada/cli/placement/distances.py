"""Distances of machines from a file: JSON, a list of numbers for each machine; or the latencies of
a machine file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from levada.core.array_types import Doubles
from levada.core.machine_file import read_machine
from levada.errors import UsageError

MAX_DISTANCE = 1e15
_HINT = "Give a JSON list with a list of numbers for each machine, or a machine file."
_YAML = (".yaml", ".yml")


def read_distances(path: Path, machines: int) -> Doubles:
    """Returns the distance of each machine (a row) from each, a square matrix. Raises
    ``UsageError`` that names the file, the row and the number.
    """
    if path.suffix in _YAML:
        return _latencies(path, machines)
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} holds no table of distances: {error}.", hint=_HINT) from error
    if isinstance(rows, dict):
        return _latencies(path, machines)
    _check_many(rows, machines, f"{path}, the table")
    for i, row in enumerate(rows):
        _check_many(row, machines, f"{path}, row {i}")
        for j, value in enumerate(row):
            _check(value, i == j, f"{path}, row {i}, number {j}")
    return np.array(rows, np.float64).reshape(machines, machines)


def _latencies(path: Path, machines: int) -> Doubles:
    """Returns the latencies of a machine file, place by place in its order."""
    machine = read_machine(path)
    if len(machine.places) != machines:
        raise UsageError(
            f"{path} has {len(machine.places)} places for {machines} machines.",
            hint=f"Say --machines {len(machine.places)}, or give a file of as many places.",
        )
    return machine.latency


def _check_many(value: Any, machines: int, where: str) -> None:
    if not isinstance(value, list):
        raise UsageError(f"{where}: this is no list.", hint=_HINT)
    if len(value) != machines:
        raise UsageError(
            f"{where}: it has {len(value)} entries for {machines} machines.", hint=_HINT
        )


def _check(value: object, is_diagonal: bool, where: str) -> None:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain or not 0 <= value <= MAX_DISTANCE:  # type: ignore[operator]
        raise UsageError(
            f"{where}: {value!r} is no distance.", hint="Give numbers from 0 to 10^15."
        )
    if is_diagonal and value:
        raise UsageError(
            f"{where}: {value!r} is how far a machine is from itself.", hint="That is 0."
        )

"""``levada machine show``: checks a machine file and shows it as tables or as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from levada.core.array_types import Doubles
from levada.core.machine_file import Machine, read_machine, shipped_machine
from levada.errors import UsageError, near

SHIPPED = ("server-a", "server-b")


def show(file: str, *, as_json: bool) -> None:
    """Prints a machine. A file precedes a machine of the same name that comes with Levada."""
    machine = load_machine(file)
    if as_json:
        print(json.dumps(tell(machine)))
        return
    console = Console()
    console.print(
        f"{machine.name}: {len(machine.places)} places, {sum(machine.cores)} cores at "
        f"{machine.clock:g} GHz, cache lines of {machine.line:g} bytes"
    )
    console.print(_table(machine, "latency, ns", machine.latency))
    console.print(_table(machine, "bandwidth, MB/s", machine.bandwidth / 1e6))


def load_machine(file: str) -> Machine:
    """Returns the machine of a file, or the machine of that name that comes with Levada. Raises
    ``UsageError``.
    """
    if Path(file).exists() or Path(file).suffix:
        return read_machine(Path(file))
    if file not in SHIPPED:
        raise UsageError(
            f"There is no machine file {file}, and none of that name comes with Levada.",
            hint=near(file, SHIPPED),
        )
    return shipped_machine(file)


def tell(machine: Machine) -> dict[str, object]:
    """Returns the fields of a machine file, bandwidth in MB/s."""
    return {
        "name": machine.name,
        "clock": machine.clock,
        "line": machine.line,
        "places": list(machine.places),
        "cores": list(machine.cores),
        "latency": machine.latency.tolist(),
        "bandwidth": (machine.bandwidth / 1e6).tolist(),
        **(
            {"processors": [list(place_processors) for place_processors in machine.processors]}
            if machine.processors
            else {}
        ),
    }


def _table(machine: Machine, what: str, matrix: Doubles) -> Table:
    table = Table(title=what, title_justify="left", box=None)
    for head in ("", "cores", *machine.places):
        table.add_column(head, justify="right")
    for place, cores, row in zip(machine.places, machine.cores, matrix, strict=True):
        table.add_row(place, str(cores), *(f"{value:g}" for value in row))
    return table

"""``levada machine probe``: a machine file of this machine.

The places of processors are read from /sys (``placement.hardware.cpu_topology``); costs between
them are measured (``placement.hardware.memory_latency``). Assumptions are warnings, and comments at
the head of the file.
"""

from __future__ import annotations

import json
import os
import platform
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from levada.cli.machine.show_machine import tell
from levada.core.machine_file import Machine
from levada.errors import UsageError
from levada.placement.hardware.cpu_topology import By, Layout, Pin, read_layout
from levada.placement.hardware.memory_latency import Gauge, measure

SYS = Path("/sys")


def probe(out: Path | None, *, as_json: bool, by: By | None = None, root: Path = SYS) -> None:
    """Probes this machine, and writes the machine file or prints it. ``root``: a folder with the
    layout of /sys. Raises ``UsageError``.
    """
    machine, assumed = measure_machine(root, by)
    for sentence in assumed:
        warnings.warn(sentence, stacklevel=2)
    put(out, machine, assumed, as_json=as_json)


def put(out: Path | None, machine: Machine, assumed: Sequence[str], *, as_json: bool) -> None:
    """Writes a machine file or prints it. Raises ``UsageError``."""
    text = _json(machine) if as_json else machine_text(machine, assumed)
    if out is None:
        print(text, end="")
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}.") from error


def measure_machine(
    root: Path, by: By | None = None, gauge: Gauge | None = None
) -> tuple[Machine, tuple[str, ...]]:
    """Returns this machine, and a sentence for each assumption. Raises ``UsageError`` on a system
    other than Linux.
    """
    if not hasattr(os, "sched_getaffinity"):
        raise UsageError(
            f"Probing reads where processors are from Linux, and this is {platform.system()}.",
            hint="Write a machine file by hand; docs/replication.md has an example.",
        )
    layout = read_layout(
        root, os.sched_getaffinity(0), by, group=_group(), cpus=_read(Path("/proc/cpuinfo"))
    )
    with _restored_affinity():
        measured = measure(layout, gauge or Gauge(_pin(), time.perf_counter))
    machine = Machine(
        platform.node() or "this machine",
        layout.clock,
        float(layout.line),
        layout.places,
        layout.cores,
        measured.latency,
        measured.bandwidth * 1e6,
        layout.processors,
    )
    return machine, (*layout.assumed, *_threads(root, layout), *measured.assumed)


def machine_text(machine: Machine, assumed: Sequence[str] = ()) -> str:
    """Returns the YAML text of a machine file, with sentences as comments at its head."""
    lines = ["# Written by levada machine probe.", *(f"# {sentence}" for sentence in assumed)]
    for key, value in tell(machine).items():
        rows = isinstance(value, list) and value and isinstance(value[0], list)
        if rows:
            lines += [f"{key}:", *(f"  - {json.dumps(row)}" for row in value)]  # type: ignore[attr-defined]
        else:
            lines.append(f"{key}: {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def _json(machine: Machine) -> str:
    return json.dumps(tell(machine)) + "\n"


def _pin() -> Pin:
    return lambda processors: os.sched_setaffinity(0, processors)


@contextmanager
def _restored_affinity() -> Iterator[None]:
    """Restores this thread's processors at the end."""
    before = os.sched_getaffinity(0)
    try:
        yield
    finally:
        if os.sched_getaffinity(0) != before:
            os.sched_setaffinity(0, before)


def _group() -> str:
    """Returns the path of this process's control group, of version 2."""
    for line in _read(Path("/proc/self/cgroup")).splitlines():
        if line.startswith("0::/"):
            return line.removeprefix("0::")
    return "/"


def _threads(root: Path, layout: Layout) -> Iterator[str]:
    """Yields a sentence if the processors share cores."""
    numbers = {n for processors in layout.processors for n in processors}
    of = {_read(root / f"devices/system/cpu/cpu{n}/topology/thread_siblings_list") for n in numbers}
    if "" not in of and len(of) < len(numbers):
        cores = f"{len(of)} cores"
        yield f"Of {len(numbers)} processors some share a core ({cores}): each counts as one."


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""

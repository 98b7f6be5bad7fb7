"""The processors that Linux lists below /sys: their places, and how many of them this process may
use.

A *place* is a NUMA node (``devices/system/node``), a socket or a single processor. Only processors
allowed to this process count, and at most as many as its control groups allow at a time. A
processor may be a thread of a core. Missing facts are assumed, and each assumption is a sentence of
``Layout.assumed``. Nothing is measured here.

Formats: the kernel's Documentation/admin-guide/cputopology.rst, ABI/stable/sysfs-devices-node and
admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from levada.core.frozen import frozen
from levada.errors import UsageError

By = Literal["node", "socket", "core"]
MAX_PROCESSORS = 16
"""The most single processors that are compared with each other."""
CLOCK, LINE = 2.0, 64  # defaults in GHz and bytes
_NODES, _CPUS = "devices/system/node", "devices/system/cpu"


@frozen
class Layout:
    """``processors`` of each place, by the kernel's numbers. ``cores``: how many of them can work
    at a time. ``distance``: relative, 10 is a node's local memory; None: unknown. ``clock`` in GHz,
    ``line`` in bytes.
    """

    places: tuple[str, ...]
    processors: tuple[tuple[int, ...], ...]
    cores: tuple[int, ...]
    distance: tuple[tuple[float, ...], ...] | None
    clock: float
    line: int
    assumed: tuple[str, ...]


def read_layout(
    root: Path, allowed: Collection[int], by: By | None = None, *, group: str = "/", cpus: str = ""
) -> Layout:
    """Returns the layout of the ``allowed`` processors by /sys (``root``). ``by``: the kind of
    place; None: nodes, or sockets if there is one node. ``group``: this process's control group.
    ``cpus``: the text of /proc/cpuinfo. Raises ``UsageError``.
    """
    reader = _Reader(root, frozenset(allowed))
    named, distance = reader.places(by)
    named, distance = reader.limit_cores(named, distance, group)
    cores = reader.cores
    return Layout(
        tuple(named),
        tuple(named.values()),
        tuple(cores.get(name, len(processors)) for name, processors in named.items()),
        distance,
        reader.clock(cpus),
        reader.line(),
        tuple(reader.assumed),
    )


def clock_of(root: Path, allowed: Collection[int], cpus: str = "") -> tuple[float, tuple[str, ...]]:
    """Returns the clock of these processors in GHz, as in ``read_layout``, and the assumptions.

    >>> clock_of(Path("/none"), [0], "cpu MHz : 2600.0")[0]
    2.6
    """
    reader = _Reader(root, frozenset(allowed))
    return reader.clock(cpus), tuple(reader.assumed)


def numbers(text: str) -> tuple[int, ...]:
    """Parses the kernel's format of a list of numbers. Raises ``ValueError``.

    >>> numbers("0-2,8")
    (0, 1, 2, 8)
    """
    values: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        values += range(int(first), int(last or first) + 1)
    return tuple(values)


Places = dict[str, tuple[int, ...]]
Distances = tuple[tuple[float, ...], ...] | None


@dataclass
class _Reader:
    root: Path
    allowed: frozenset[int]
    assumed: list[str] = field(default_factory=list)
    cores: dict[str, int] = field(default_factory=dict)

    def places(self, by: By | None) -> tuple[Places, Distances]:
        if by == "core":
            return self._single(), None
        if by == "socket":
            return self._sockets(), None
        nodes = self._nodes()
        if by == "node" and not nodes:
            raise UsageError(
                f"{self.root / _NODES} names no node that this process may run on.",
                hint="Say --by socket or --by core, or nothing.",
            )
        if nodes and (by == "node" or len(nodes) > 1):
            named = {f"node{number}": processors for number, processors in nodes.items()}
            return named, self._distances(list(nodes))
        if not nodes:
            self._assume(f"{self.root / _NODES} is not there: sockets are taken for places.")
        sockets = self._sockets()
        return (sockets if len(sockets) > 1 or not nodes else {"node0": sockets.popitem()[1]}), None

    def _single(self) -> Places:
        if len(self.allowed) > MAX_PROCESSORS:
            raise UsageError(
                f"{len(self.allowed)} processors are too many to compare each with each.",
                hint=f"Allow {MAX_PROCESSORS} at most (taskset -c 0-{MAX_PROCESSORS - 1} "
                "levada ..), or say --by node.",
            )
        return {f"cpu{number}": (number,) for number in sorted(self.allowed)}

    def _nodes(self) -> dict[int, tuple[int, ...]]:
        """Returns the allowed processors of each node that has some."""
        nodes = {}
        for number in self._node_numbers():
            name = f"node{number}"
            try:
                processors = numbers(self._text(f"{_NODES}/{name}/cpulist") or "")
            except ValueError:
                self._assume(f"The list of {name}'s processors cannot be read: it is left out.")
                continue
            if mine := tuple(n for n in processors if n in self.allowed):
                nodes[number] = mine
            else:
                why = "none of its processors is allowed" if processors else "it has no processors"
                self._assume(f"{name} is left out: {why}.")
        return nodes

    def _node_numbers(self) -> list[int]:
        folders = (self.root / _NODES).glob("node[0-9]*")
        return sorted(int(f.name[4:]) for f in folders if f.name[4:].isdigit())

    def _distances(self, kept: list[int]) -> Distances:
        """Returns the distances of the nodes ``kept``, a row each; None if they are incomplete."""
        known = self._node_numbers()
        rows = []
        for number in kept:
            row = _floats((self._text(f"{_NODES}/node{number}/distance") or "").split())
            if len(row) != len(known) or not all(0 < value < math.inf for value in row):
                self._assume(f"node{number} does not tell how far all {len(known)} nodes are.")
                return None
            rows.append(tuple(row[known.index(other)] for other in kept))
        return tuple(rows)

    def _sockets(self) -> Places:
        sockets: dict[str, list[int]] = {}
        for number in sorted(self.allowed):
            package = self._text(f"{_CPUS}/cpu{number}/topology/physical_package_id")
            if package is None or not package.strip().isdigit():
                self._assume(
                    f"{self.root / _CPUS} does not tell in which socket cpu{number} is: all "
                    "processors are taken for one place."
                )
                return {"socket0": tuple(sorted(self.allowed))}
            sockets.setdefault(f"socket{package.strip()}", []).append(number)
        return {name: tuple(processors) for name, processors in sockets.items()}

    def limit_cores(
        self, named: Places, distance: Distances, group: str
    ) -> tuple[Places, Distances]:
        """Limits the cores of places to the quota of the control groups. Cores are dealt out in
        turn; a place without any is left out.
        """
        most = min(self._quotas(group), default=math.inf)
        total = sum(map(len, named.values()))
        if most >= total:
            return named, distance
        left, usable = dict.fromkeys(named, 0), max(1, int(most))
        turns = (
            name for i in range(total) for name, processors in named.items() if len(processors) > i
        )
        for name in _first(turns, usable):
            left[name] += 1
        kept = [i for i, name in enumerate(named) if left[name]]
        self.cores = left
        self._assume(
            f"The control group lets this process use {most:g} of {total} processors at a time: "
            f"places have {usable} cores in all."
        )
        if distance is not None:
            distance = tuple(tuple(distance[i][j] for j in kept) for i in kept)
        return {name: processors for name, processors in named.items() if left[name]}, distance

    def _quotas(self, group: str) -> Iterator[float]:
        """Yields the number of processors that each control group of this process may use."""
        above = [part for part in group.split("/") if part]
        for depth in range(len(above), -1, -1):
            path = "/".join(["fs/cgroup", *above[:depth]])
            pair = _floats((self._text(f"{path}/cpu.max") or "").split())
            if len(pair) == 2 and min(pair) > 0:
                yield pair[0] / pair[1]
        first = "fs/cgroup/cpu/cpu.cfs_"
        old = [self._text(first + name) or "" for name in ("quota_us", "period_us")]
        pair = _floats(old)
        if len(pair) == 2 and min(pair) > 0:
            yield pair[0] / pair[1]

    def clock(self, cpus: str) -> float:
        paths = (f"{_CPUS}/cpu{n}/cpufreq/cpuinfo_max_freq" for n in self.allowed)
        if frequencies := [value for path in paths for value in _floats([self._text(path) or ""])]:
            return round(max(frequencies) / 1e6, 3)
        lines = (line.partition(":") for line in cpus.splitlines())
        said = [text for name, _, text in lines if name.strip() == "cpu MHz"]
        if frequencies := [value for value in _floats(said) if value > 0]:
            self._assume("The clock is that at which processors ran just now (/proc/cpuinfo).")
            return round(max(frequencies) / 1e3, 3)
        self._assume(f"Nothing tells the processors' clock: {CLOCK:g} GHz are assumed.")
        return CLOCK

    def line(self) -> int:
        first = min(self.allowed)
        text = self._text(f"{_CPUS}/cpu{first}/cache/index0/coherency_line_size") or ""
        if text.strip().isdigit() and int(text) > 0:
            return int(text)
        self._assume(f"Nothing tells the size of cache lines: {LINE} bytes are assumed.")
        return LINE

    def _text(self, path: str) -> str | None:
        try:
            return (self.root / path).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError):
            return None

    def _assume(self, sentence: str) -> None:
        self.assumed.append(sentence)


def _floats(texts: Iterable[str]) -> list[float]:
    """Returns the numbers among texts."""
    values = []
    for text in texts:
        try:
            values.append(float(text))
        except ValueError:
            continue
    return values


def _first(names: Iterable[str], many: int) -> list[str]:
    return [name for name, _ in zip(names, range(many), strict=False)]


Pin = Callable[[Collection[int]], None]
"""Binds this thread to these processors. Raises ``OSError``."""

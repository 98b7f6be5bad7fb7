"""How far a run of one process is by each epoch, and what it has taken until then: what a row costs
behind the first ones, which fill windows and load kernels.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from levada.checkpoint.manifest import Manifest


@dataclass
class Marks:
    """Marks of a run, of each epoch: rows so far, CPU seconds so far. ``rows`` counts them in a
    manifest; elements unless given.
    """

    rows: Callable[[Manifest], int] = lambda manifest: sum(
        stream.elements for stream in manifest.streams.values()
    )
    marks: list[tuple[int, float]] = field(default_factory=list)
    results: int = 0

    def see(self, manifest: Manifest) -> None:
        """An epoch that has been committed."""
        self.results = manifest.results
        self.marks.append((self.rows(manifest), time.process_time()))

    def behind(self, rows: int) -> float:
        """The CPU us of a row behind the epoch that has so many rows."""
        return self.from_epoch(next(i for i, mark in enumerate(self.marks) if mark[0] >= rows))

    def from_epoch(self, epoch: int) -> float:
        """The CPU us of a row behind an epoch, counted from 0."""
        (first, began), (last, ended) = self.marks[epoch], self.marks[-1]
        return (ended - began) / (last - first) * 1e6


def triples(manifest: Manifest) -> int:
    """The triples of all streams."""
    return sum(stream.triples for stream in manifest.streams.values())

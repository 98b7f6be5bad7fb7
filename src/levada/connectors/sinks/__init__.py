"""Results -> world: files published whole, standard output, late and dead letters
(docs/architecture.md#commit-and-recovery).

A sink publishes what a manifest names, after the commit, and may be asked to publish the same again
after a crash: what it writes is a function of (query, epoch, part).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from levada.connectors.serialization.serialize import Batch


class Sink(Protocol):
    """Takes the results of one query and one epoch."""

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """Publishes a batch; returns the names of what is now there (if the sink has any)."""

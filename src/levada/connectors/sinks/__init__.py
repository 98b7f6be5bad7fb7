"""Publishes results: files published whole, standard output, late elements and dead letters
(docs/architecture.md#commit-and-recovery).

A sink publishes the results that a manifest names, after the commit. A crash may repeat this, so
the output is a function of (query, epoch, part).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from levada.connectors.serialization.serialize import Batch


class Sink(Protocol):
    """Publishes the results of one query and one epoch."""

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """Publishes a batch; returns the names of the published files (if the sink has any)."""

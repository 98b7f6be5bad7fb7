"""What an engine does with outputs: they are named by a query's handle, and run beside the loop."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from levada.engine.delivery.deliveries import KEEP, Deliveries, Shape
from levada.engine.driver import Driver
from levada.engine.driving.tempo import wall
from levada.engine.query import Query
from levada.errors import UsageError
from levada.runtime.store.checkpoint import Checkpoint
from levada.runtime.store.published import Index, Keep


class Delivers:
    """An engine's outputs, and the index that they read."""

    temporary: bool
    _deliveries: Deliveries
    _driver: Driver | None
    _kept: Keep | None

    if TYPE_CHECKING:

        def _open(self) -> Checkpoint:
            """The checkpoint, taken for the engine."""

    def _deliver(self, query: Query, url: str, options: Mapping[str, Any]) -> None:
        """The query's reports go there, too. Raises ``UsageError``."""
        if self.temporary:
            raise UsageError(
                "An output goes on where it was, which a temporary checkpoint does not survive.",
                hint="Say where the checkpoint is: --checkpoint DIR, or Engine(checkpoint=DIR).",
            )
        if self._driver is not None and self._driver.publication.index is None:
            raise UsageError(
                "The engine keeps no results for outputs that come while it runs.",
                hint="Name them before it starts, or say Engine(keep='256MB').",
            )
        plan = query._query
        shape = Shape(query.name, plan.form, plan.output, tuple(plan.variables))
        self._deliveries.add(shape, url, options, self._open())

    def _index(self, root: Path) -> Index | None:
        """What is kept for other processes, and for outputs; None: nothing is."""
        keep = self._kept or (Keep.of(KEEP) if self._deliveries.all else None)
        return Index(root, keep, wall, self._deliveries.needed) if keep else None

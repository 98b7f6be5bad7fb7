"""The engine's methods for outputs. A query's handle names an output, which runs parallel to the
epoch loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from levada.checkpoint.checkpoint_folder import Checkpoint, plan_of
from levada.checkpoint.result_index import Index, Keep
from levada.core.checkpoint_facts import facts_of
from levada.core.clock import counting_clock
from levada.engine.delivery.delivery_manager import KEEP, Deliveries, Shape
from levada.engine.engine_driver import Driver
from levada.engine.query import Query
from levada.engine.registry import Registry
from levada.errors import UsageError


class DeliveryApi:
    """The outputs of an engine, and the index that they read."""

    temporary: bool
    _deliveries: Deliveries
    _driver: Driver | None
    _kept: Keep | None
    _registry: Registry

    if TYPE_CHECKING:

        def _open(self) -> Checkpoint:
            """Opens the checkpoint for this engine."""

        def _wake(self) -> None:
            """Makes the epoch loop look for changes at once."""

        @property
        def running(self) -> bool:
            """Returns whether more epochs may come."""

    def _deliver(self, query: Query, url: str, options: Mapping[str, Any]) -> None:
        """Sends the query's reports to this URL, too. Raises ``UsageError``."""
        if self._driver is not None and not self.running:
            raise UsageError("The engine has ended; nothing more would go to another output.")
        plan = query._query
        shape = Shape(query.name, plan.form, plan.output, tuple(plan.variables))
        if not self.temporary:
            self._deliveries.open(self._open())
        with self._registry.lock:
            self._registry.get(query.name, query._lifetime)
            self._deliveries.add(shape, query._lifetime, url, options)
        self._wake()

    def _index_on(self, root: Path) -> tuple[Index | None, Callable[[], Index]]:
        """Returns the index of results for other processes and outputs, and a function that opens
        it. The index is None if nothing keeps results yet. The function does not reference the
        engine, which closes when it is garbage-collected.
        """
        plans = partial(plan_of, root, facts_of(root))
        kept = self._kept or Keep.parse(KEEP)
        opened = partial(
            Index, root, kept, counting_clock(), plans, self._deliveries.first_needed_epoch
        )
        return opened() if self._kept or self._deliveries.all else None, opened

"""The inputs of a driver: queries and streams, static data, and spools."""

from __future__ import annotations

from collections.abc import Callable

from levada.core.frozen import frozen
from levada.engine.delivery.delivery_manager import Deliveries
from levada.engine.registry import Registry
from levada.runtime.driver.spool_registry import Spools
from levada.runtime.driver.static_graphs import StaticGraphs
from levada.runtime.publication.registered_query import Registered

Fits = Callable[[Registered, int], None]
"""Raises ``LevadaError`` if the results of a query, one of so many, cannot be written."""


@frozen
class Inputs:
    """The declarations of an engine, the check of results of added queries, and the outputs."""

    registry: Registry
    statics: StaticGraphs
    spools: Spools
    fits: Fits
    deliveries: Deliveries

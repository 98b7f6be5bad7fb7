"""Levada: continuous SPARQL and CQL queries over linked-data streams, on Apache Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from levada.errors import LevadaError, QueryError

if TYPE_CHECKING:
    from levada.engine.engine import Engine
    from levada.engine.query import Query, Report
    from levada.engine.registration import Asked

__all__ = ["Asked", "Engine", "LevadaError", "Query", "QueryError", "Report", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The engine is imported when it is first asked for: ``levada --help`` need not wait for it."""
    if name == "Engine":
        from levada.engine.engine import Engine

        return Engine
    if name in ("Query", "Report"):
        import levada.engine.query

        return getattr(levada.engine.query, name)
    if name == "Asked":
        from levada.engine.registration import Asked

        return Asked
    raise AttributeError(f"module 'levada' has no attribute {name!r}")

"""Levada: continuous SPARQL and CQL queries over linked-data streams, on Apache Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from levada.errors import LevadaError, QueryError, UsageError

if TYPE_CHECKING:
    from levada.algebra.options import QueryOptions, QueryWords
    from levada.engine.asked import Asked
    from levada.engine.engine import Engine
    from levada.engine.python.once import query
    from levada.engine.query import Query, Report, Results
    from levada.engine.telling.status import Status
    from levada.engine.telling.summary import Progress
    from levada.streams.options import StreamOptions
    from levada.terms.group_of import group_of

__all__ = [
    "Asked",
    "Engine",
    "LevadaError",
    "Progress",
    "Query",
    "QueryError",
    "QueryOptions",
    "QueryWords",
    "Report",
    "Results",
    "Status",
    "StreamOptions",
    "UsageError",
    "__version__",
    "group_of",
    "query",
]
__version__ = "0.1.0"

_HOMES = {
    "Asked": "levada.engine.asked",
    "Engine": "levada.engine.engine",
    "Progress": "levada.engine.telling.summary",
    "Query": "levada.engine.query",
    "QueryOptions": "levada.algebra.options",
    "QueryWords": "levada.algebra.options",
    "Report": "levada.engine.query",
    "Results": "levada.engine.query",
    "Status": "levada.engine.telling.status",
    "StreamOptions": "levada.streams.options",
    "group_of": "levada.terms.group_of",
    "query": "levada.engine.python.once",
}


def __getattr__(name: str) -> Any:
    """The engine is imported when it is first asked for: ``levada --help`` need not wait for it."""
    if name in _HOMES:
        from levada.code_loading import load_module  # here: importing the package loads little

        return getattr(load_module(_HOMES[name]), name)
    raise AttributeError(f"module 'levada' has no attribute {name!r}")

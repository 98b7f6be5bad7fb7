"""Levada: continuous SPARQL and CQL queries over linked-data streams, on Apache Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from levada.errors import LevadaError, QueryError, UsageError

if TYPE_CHECKING:
    from levada.connectors.config.stream_options import StreamOptions
    from levada.core.key_groups import group_of
    from levada.core.user_functions import aggregate, function, operator
    from levada.engine.engine import Engine
    from levada.engine.python.query_once import query
    from levada.engine.query import Query, Report, Results
    from levada.engine.query_request import QueryRequest
    from levada.engine.status.status import Status
    from levada.engine.status.summary import Progress
    from levada.plan.logical.query_options import QueryOptions, QueryWords

__all__ = [
    "Engine",
    "LevadaError",
    "Progress",
    "Query",
    "QueryError",
    "QueryOptions",
    "QueryRequest",
    "QueryWords",
    "Report",
    "Results",
    "Status",
    "StreamOptions",
    "UsageError",
    "__version__",
    "aggregate",
    "function",
    "group_of",
    "operator",
    "query",
]
__version__ = "0.1.0"

_HOMES = {
    "QueryRequest": "levada.engine.query_request",
    "Engine": "levada.engine.engine",
    "Progress": "levada.engine.status.summary",
    "Query": "levada.engine.query",
    "QueryOptions": "levada.plan.logical.query_options",
    "QueryWords": "levada.plan.logical.query_options",
    "Report": "levada.engine.query",
    "Results": "levada.engine.query",
    "Status": "levada.engine.status.status",
    "StreamOptions": "levada.connectors.config.stream_options",
    "aggregate": "levada.core.user_functions",
    "function": "levada.core.user_functions",
    "group_of": "levada.core.key_groups",
    "operator": "levada.core.user_functions",
    "query": "levada.engine.python.query_once",
}


def __getattr__(name: str) -> Any:
    """The engine is imported when it is first asked for: ``levada --help`` need not wait for it."""
    if name == "spark":
        from levada.core.code_loading import load_module

        return load_module("levada.spark")
    if name in _HOMES:
        from levada.core.code_loading import load_module  # here: importing the package loads little

        return getattr(load_module(_HOMES[name]), name)
    raise AttributeError(f"module 'levada' has no attribute {name!r}")

"""For testing queries: streams as plain values, what the engine says of them, and what is right.

- ``Element`` and ``Row`` are what streams are made of; ``run_stepped`` runs queries over them, in
  epochs that are stepped in this process; ``MemorySink`` keeps what any engine publishes. Both give
  ``Report``.
- ``evaluate`` is the naive reference: it answers a ``ReferenceQuery`` (SPARQL) or ``ReferenceSql``
  (CQL) over the same streams by collecting each ``Window`` and asking pyoxigraph or SQLite, and
  shares nothing with the engine but ``levada.core``. ``same`` tells the first difference of what
  two of them report.

What ``__all__`` lists is public; the modules below it serve Levada's own tests. Hypothesis is not
needed: random cases are in the tests of the project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from levada.core.event_time import Window, WindowKind
    from levada.testing.compare import same
    from levada.testing.memory_sink import MemorySink
    from levada.testing.reference import evaluate
    from levada.testing.reference_model import (
        Element,
        ReferenceQuery,
        ReferenceSql,
        Report,
        Row,
    )
    from levada.testing.stepped_engine import run_stepped

__all__ = [
    "Element",
    "MemorySink",
    "ReferenceQuery",
    "ReferenceSql",
    "Report",
    "Row",
    "Window",
    "WindowKind",
    "evaluate",
    "run_stepped",
    "same",
]

_HOMES = {
    "Element": "levada.testing.reference_model",
    "MemorySink": "levada.testing.memory_sink",
    "ReferenceQuery": "levada.testing.reference_model",
    "ReferenceSql": "levada.testing.reference_model",
    "Report": "levada.testing.reference_model",
    "Row": "levada.testing.reference_model",
    "Window": "levada.core.event_time",
    "WindowKind": "levada.core.event_time",
    "evaluate": "levada.testing.reference",
    "run_stepped": "levada.testing.stepped_engine",
    "same": "levada.testing.compare",
}


def __getattr__(name: str) -> Any:
    """Each is imported when it is first asked for: the reference alone loads no engine."""
    if name in _HOMES:
        from levada.core.code_loading import load_module  # here: importing the package loads little

        return getattr(load_module(_HOMES[name]), name)
    raise AttributeError(f"module 'levada.testing' has no attribute {name!r}")

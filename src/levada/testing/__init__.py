"""Tools for testing queries: streams as plain values, reports, and a reference.

- ``Element`` and ``Row`` are the elements of streams. ``run_stepped`` runs queries over them, in
  epochs that are stepped in this process. ``MemorySink`` keeps the published results of any engine.
  Both return ``Report``.
- ``evaluate`` is the naive reference. It answers a ``ReferenceQuery`` (SPARQL) or ``ReferenceSql``
  (CQL) over the same streams: it collects each ``Window`` and evaluates the query in pyoxigraph or
  SQLite. It shares only ``levada.core`` with the engine. ``same`` returns the first difference
  between two lists of reports.

- ``check_case`` runs a folder of ``levada test``, and ``find_cases`` finds such folders.

``__all__`` lists the public names; the modules serve Levada's tests. Hypothesis is not needed:
random cases are in the tests of the project.
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
    "check_case",
    "evaluate",
    "find_cases",
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
    "check_case": "levada.cli.case_folders",
    "evaluate": "levada.testing.reference",
    "find_cases": "levada.cli.case_folders",
    "run_stepped": "levada.testing.stepped_engine",
    "same": "levada.testing.compare",
}


def __getattr__(name: str) -> Any:
    """Imports each name at its first use, so that the reference alone does not load an engine."""
    if name in _HOMES:
        from levada.core.code_loading import load_module  # imported here: the package loads little

        return getattr(load_module(_HOMES[name]), name)
    raise AttributeError(f"module 'levada.testing' has no attribute {name!r}")

"""Hand-made CQL cases: a text over the streams of the cases and a relation, in several cuts."""

from __future__ import annotations

from collections.abc import Mapping

from levada.core.event_time import Window, WindowKind
from levada.testing.compare import same
from levada.testing.reference_model import ReferenceSql, Report, Row
from support.generators import Case, CaseQuery
from support.generators.cql import SCHEMAS
from support.stepped_runs import run_case

ALL, NOW = Window(WindowKind.ALL), Window(WindowKind.NOW)
ROWS3, RANGE = Window(WindowKind.COUNT, count=3), Window(WindowKind.RANGE, range=2000)
RELATION = {**SCHEMAS, "R": {"k": "integer", "v": "double"}}
A = tuple(Row(1000 * i, (i % 3, i / 2, "xy"[i % 2])) for i in range(1, 8))


def sql(
    text: str,
    on: Mapping[str, tuple[str, Window]],
    types: Mapping[str, str],
    output: str = "RELATION",
    **more: object,
) -> ReferenceSql:
    """A question over the streams of the cases, the relation R, and views."""
    views: Mapping[str, ReferenceSql] = more.get("views", {})  # type: ignore[assignment]
    schemas = {**RELATION, **{name: view.types for name, view in views.items()}}
    return ReferenceSql(text, on, schemas, types, output, relations=frozenset({"R"}), views=views)


def check(text: str, reference: ReferenceSql, **streams: tuple[Row, ...]) -> list[Report]:
    """Runs a text in several cuts; each equals the reference, which says something."""
    case = Case(
        streams, (CaseQuery("q", text, "cql", {}, reference),), 0, {}, RELATION, frozenset({"R"})
    )
    expected = case.expected()["q"]
    assert expected, "it says nothing"
    for rows, partitions in ((1000, 1), (1, 3)):
        difference = same(expected, run_case(case, epoch_rows=rows, partitions=partitions)["q"])
        assert difference is None, difference
    return expected

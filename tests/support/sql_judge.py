"""Judges CQL texts by DuckDB over each window's rows.

A text has its tables as ``{A a}``: the stream A in a window under the name a. The window's text
goes to Levada, the name alone to DuckDB, which has one table for each name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from levada.core.event_time import Window, WindowKind
from levada.plan.sharing.sharing_modes import DEFAULT
from levada.testing.compare import same
from levada.testing.reference_model import ReferenceSql, Row
from support.generators import Case, CaseQuery
from support.stepped_runs import run_case

SCHEMAS: Mapping[str, Mapping[str, str]] = {
    "A": {"k": "integer", "v": "double", "s": "string"},
    "B": {"k": "integer", "w": "integer", "s": "string"},
}
WINDOWS: Mapping[str, tuple[str, Window]] = {
    "range": ("[Range 3 s]", Window(WindowKind.RANGE, range=3000)),
    "slide": (
        "[Range 4 s Slide 2 s]",
        Window(WindowKind.CLOSE_OPEN, range=4000, step=2000),
    ),
    "all": ("[Range Unbounded]", Window(WindowKind.ALL)),
    "rows": ("[Rows 4]", Window(WindowKind.COUNT, count=4)),
}
_TABLE = re.compile(r"\{(\w+) (\w+)\}")
A_ROWS = (
    (1, 0.5, "ab"), (2, None, "b c"), (None, 2.0, None), (1, 2.5, "Ab%"), (3, -1.5, ""),
    (2, 7.25, "a_b"), (2, 0.5, "ab"), (None, None, "x"), (1, 2.5, "Ab%"), (4, 1e6, "éa"),
)  # fmt: skip
B_ROWS = (
    (1, 10, "ab"), (3, -7, None), (None, 5, "x"), (2, None, "b c"), (2, 3, "ab"), (5, 0, "q"),
    (1, 4, "Ab%"), (1, 10, "ab"),
)  # fmt: skip
STREAMS: Mapping[str, tuple[Row, ...]] = {
    "A": tuple(Row(1000 * (i + 1), row) for i, row in enumerate(A_ROWS)),
    "B": tuple(Row(1100 * (i + 1), row) for i, row in enumerate(B_ROWS)),
}


def case_query(
    name: str, text: str, types: Mapping[str, str], window: str, output: str = "RELATION",
    sql: str = "",
) -> CaseQuery:  # fmt: skip
    """Returns a text in these windows with DuckDB as its judge; ``sql``: where DuckDB writes it
    otherwise.
    """
    words, kind = WINDOWS[window]
    on = {alias: (stream, kind) for stream, alias in _TABLE.findall(text)}
    cql = _TABLE.sub(lambda m: f"{m[1]} {words} As {m[2]}", text)
    cql = cql if output == "RELATION" else f"{output.capitalize()}({cql})"
    judged = _TABLE.sub(lambda m: m[2], sql or text)
    reference = ReferenceSql(judged, on, SCHEMAS, types, output, duckdb=True)
    options = {"bounds": "[)"} if window == "slide" else {}
    return CaseQuery(name, cql, "cql", options, reference)


def check_queries(
    queries: Sequence[CaseQuery],
    *,
    streams: Mapping[str, tuple[Row, ...]] = STREAMS,
    cuts: Sequence[tuple[int, int]] = ((1000, 1), (2, 3)),
    sharing: str = DEFAULT,
) -> None:
    """Runs all queries in one engine, in several cuts (rows in an epoch, partitions)."""
    case = Case(dict(streams), tuple(queries), 0, {}, SCHEMAS, frozenset())
    expected = case.expected()
    for rows, partitions in cuts:
        results = run_case(case, epoch_rows=rows, partitions=partitions, sharing=sharing)
        for query in queries:
            difference = same(expected[query.name], results[query.name])
            assert difference is None, f"{query.text}\n{difference}"

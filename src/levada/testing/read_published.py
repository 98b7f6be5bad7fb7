"""A reader of published files, with independent libraries: it returns reports. It reads all formats
but csv and tsv, which do not contain whole terms.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyoxigraph as ox

from levada.connectors.ingest.parse.documents import document_chunks
from levada.connectors.serialization.result_formats import REPORTS, TABLES, Format
from levada.core.event_time import MIN, parse_time
from levada.testing.compare import read_ndjson
from levada.testing.reference_model import Report, Solution


def read_published(folder: Path, form: Format) -> list[Report]:
    """Returns the reports in a query's folder, by their times; tables are those with ``terms``."""
    files = sorted(folder.glob(f"*.{form}"), key=lambda p: (len(p.name), p.name))
    reports_by_key: dict[tuple[int, str | None], Report] = {}
    for report in (report for file in files for report in _reports(file, form)):
        key = (report.time, report.change)
        reports_by_key[key] = (
            _merge_reports(reports_by_key[key], report)
            if form in TABLES and key in reports_by_key
            else report
        )
    return sorted(reports_by_key.values(), key=lambda r: (r.time, r.change != "insert"))


def _merge_reports(a: Report, b: Report) -> Report:
    """Merges the rows of a report that two files share."""
    graph = None if a.graph is None or b.graph is None else a.graph | b.graph
    return Report(a.time, a.solutions + b.solutions, graph=graph, change=a.change)


def _reports(file: Path, form: Format) -> Iterator[Report]:
    if form is Format.NDJSON:
        for reports in read_ndjson(file.read_bytes().splitlines()).values():
            yield from reports
    elif form in TABLES:
        yield from _table(pl.read_parquet(file) if form is Format.PARQUET else pl.read_ipc(file))
    elif form is Format.NT:
        triples = ox.parse(file.read_bytes(), ox.RdfFormat.N_TRIPLES)
        yield Report(_time_in_name(file.stem), graph=frozenset(str(q.triple) for q in triples))
    elif form in REPORTS:
        yield _results(file, form)
    else:
        yield from _graphs(file, form)


def _results(file: Path, form: Format) -> Report:
    kind = ox.QueryResultsFormat.JSON if form is Format.SRJ else ox.QueryResultsFormat.XML
    results = ox.parse_query_results(file.read_bytes(), kind)
    if isinstance(results, ox.QueryBoolean):
        return Report(_time_in_name(file.stem), boolean=bool(results))
    assert isinstance(results, ox.QuerySolutions), "results are solutions or a boolean"
    names = [v.value for v in results.variables]
    rows = [frozenset((n, str(s[n])) for n in names if s[n] is not None) for s in results]
    return Report(_time_in_name(file.stem), Counter(rows))


def _graphs(file: Path, form: Format) -> Iterator[Report]:
    """Yields each named graph as a report."""
    text = b"".join(document_chunks(lambda: io.BytesIO(file.read_bytes()), str(form), ""))
    graphs: dict[int, set[str]] = {}
    for quad in ox.parse(text, ox.RdfFormat.N_QUADS):
        graphs.setdefault(_time(quad.graph_name), set()).add(str(quad.triple))
    return (Report(time, graph=frozenset(triples)) for time, triples in graphs.items())


def _time(graph: Any) -> int:
    """Returns the report time in a graph's name."""
    word = re.fullmatch(r"urn:levada:[^:]+:(.+)", graph.value)
    assert word is not None, "a report's graph has the query and the time in its name"
    return parse_time(word[1]) if "T" in word[1] else _time_in_name(word[1])


def _time_in_name(word: str) -> int:
    """Returns the report time in a name; MIN for a query without windows."""
    return MIN if word == "static" else int(word)


def _table(frame: pl.DataFrame) -> Iterator[Report]:
    changes = "change" in frame.columns
    for key, rows in frame.group_by(
        ["report", "change"] if changes else ["report"], maintain_order=True
    ):
        time, change = (
            MIN if key[0] is None else int(key[0]),
            {1: "insert", -1: "delete"}[key[1]] if changes else None,
        )
        rest = rows.drop("report", *(["change"] if changes else []))
        if rest.columns == ["boolean"] and rest["boolean"].dtype == pl.Boolean:
            yield Report(time, boolean=rest["boolean"][0])
        elif rest.columns == ["subject", "predicate", "object"]:
            yield Report(time, graph=frozenset(" ".join(row) for row in rest.rows()))
        else:
            yield Report(time, Counter(map(_solution, rest.rows(named=True))), change=change)


def _solution(row: dict[str, str | None]) -> Solution:
    return frozenset((name, text) for name, text in row.items() if text is not None)

"""Writes CONSTRUCT's results as quads: each report is a named graph.

    <urn:levada:QUERY:4000>      the graph of QUERY's report at 4000 ms; before 1970 the time is a
                                 dateTime; <urn:levada:QUERY:static> is the one of a query without
                                 windows

The name ends in the report time, so the output is a stream again (``time=graph,element=graph``).
Cost: vectorised, per line.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import pyoxigraph as ox

from levada.connectors.serialization.result_formats import Format
from levada.connectors.serialization.serialize import Batch
from levada.core.event_time import MIN

Times = npt.NDArray[np.int64]


def graph_iris(query: str, report: Times) -> pl.Series:
    """Returns the names of the graphs of these reports, in angle brackets.

    >>> graph_iris("q", np.array([4000, -2500])).to_list()
    ['<urn:levada:q:4000>', '<urn:levada:q:1969-12-31T23:59:57.500Z>']
    """
    r = pl.col("report")
    before = pl.when(r > MIN).then(r).cast(pl.Datetime("ms")).dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
    time = (
        pl.when(r == MIN)
        .then(pl.lit("static"))
        .when(r < 0)
        .then(before)
        .otherwise(r.cast(pl.String))
    )
    name = pl.concat_str(pl.lit(f"<urn:levada:{query}:"), time, pl.lit(">"))
    return pl.DataFrame({"report": report}).select(name=name)["name"]


def quad_records(form: Format, query: str, batch: Batch) -> pl.Series:
    """Returns each report's triples in its graph, as N-Quads lines or a TriG block; only TriG can
    represent an empty report.
    """
    assert batch.graphs is not None, "a CONSTRUCT batch has graphs"
    report, graphs = batch.report, batch.graphs
    if form is Format.TRIG:
        report = np.concatenate([report, batch.empty])
        order = np.argsort(report, kind="stable")
        texts = pl.concat([graphs, pl.Series([""] * len(batch.empty), dtype=pl.String)])
        frame = pl.DataFrame({"g": graph_iris(query, report), "t": texts})[order]
        return frame.select(record=pl.concat_str("g", pl.lit(" {\n"), "t", pl.lit("}\n")))["record"]
    frame = pl.DataFrame(
        {"n": np.arange(len(report)), "g": graph_iris(query, report), "t": graphs.str.split("\n")}
    )
    lines = frame.explode("t").filter(pl.col("t").str.len_bytes() > 0)
    line = pl.concat_str(pl.col("t").str.strip_suffix("."), pl.col("g"), pl.lit(" .\n"))
    whole = (
        lines.select("n", t=line).group_by("n", maintain_order=True).agg(pl.col("t").str.join(""))
    )
    return whole["t"].alias("record")


def document(form: Format, quads: bytes) -> bytes:
    """Converts N-Quads to one document in JSON-LD or Jelly."""
    statements = ox.parse(quads, ox.RdfFormat.N_QUADS)
    if form is Format.JELLY:
        # imported here: few results are Jelly
        from levada.connectors.serialization.jelly_writer import jelly_bytes

        return jelly_bytes(statements)
    data = ox.serialize(statements, format=ox.RdfFormat.JSON_LD)
    assert data is not None, "without an output file the print is returned"
    return data

"""Results as tables: Arrow and Parquet files of the columns report (ms), change (+1, -1: a
relation's), then the variables.

Terms are their N-Triples texts, null is unbound. ASK has the column ``boolean``, CONSTRUCT a row a
triple. Reports without a result have no row; that of a query without windows has no time. Cost: a
few copies of the columns.
"""

from __future__ import annotations

import io

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from levada.emission.formats import Format
from levada.emission.serialize import Batch, triples_of
from levada.model.query import Form
from levada.model.time import MIN


def table(batch: Batch) -> pl.DataFrame:
    """A batch as a frame.

    >>> import numpy as np
    >>> table(Batch(np.array([5]), columns={"x": pl.Series(["<http://e/a>"])})).rows()
    [(5, '<http://e/a>')]
    """
    if batch.form is Form.CONSTRUCT:
        batch = triples_of(batch)
    report = pl.Series("report", batch.report)
    columns: dict[str, object] = {"report": report.set(report == MIN, None)}
    if batch.change is not None:
        columns["change"] = batch.change
    if batch.form is Form.ASK:
        columns["boolean"] = batch.booleans
    shown = {name: column.cast(pl.String) for name, column in batch.columns.items()}
    return pl.DataFrame({**columns, **shown})


def row_sizes(frame: pl.DataFrame) -> pl.Series:
    """About how many bytes each row takes as text."""
    texts = [
        pl.col(name).str.len_bytes().fill_null(0)
        for name in frame.columns
        if frame[name].dtype == pl.String
    ]
    return frame.select(size=pl.sum_horizontal(pl.col("report").fill_null(0) * 0 + 16, *texts))[
        "size"
    ]


def table_bytes(form: Format, query: str, frame: pl.DataFrame) -> bytes:
    """A frame as the bytes of a file, with the query's name in its metadata."""
    found = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    plain = pa.schema(
        [
            pa.field(f.name, pa.string() if pa.types.is_large_string(f.type) else f.type)
            for f in found.schema
        ]
    )
    found = found.cast(plain.with_metadata({"levada.query": query})).combine_chunks()
    out = io.BytesIO()
    if form is Format.PARQUET:
        pq.write_table(found, out, compression="zstd")
    else:
        with pa.ipc.new_file(out, found.schema) as writer:
            writer.write_table(found)
    return out.getvalue()

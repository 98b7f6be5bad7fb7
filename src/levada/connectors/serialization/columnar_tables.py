"""Writes results as tables: frames, and Arrow and Parquet files, of the columns report, change (+1,
-1: of a relation), then the variables.

Terms are their N-Triples texts and the report's time is ms, or all are values of one type a column
(``connectors.serialization.typed_columns``; the time is an instant). Null is unbound. The metadata
of a field describe its column: ``levada.kind``, and ``levada.said`` with the one datatype or
language. ASK has the column ``boolean``, CONSTRUCT a row a triple. Reports without a result have no
row; that of a query without windows has no time. Cost: a few copies of the columns.
"""

from __future__ import annotations

import io
from collections.abc import Mapping

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from levada.connectors.serialization.result_formats import Format
from levada.connectors.serialization.serialize import Batch, triples_of
from levada.connectors.serialization.typed_columns import Typed
from levada.core.event_time import MIN
from levada.core.query_model import Form


def table(batch: Batch) -> pl.DataFrame:
    """Returns a batch as a frame.

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
    """Estimates the bytes of each row as text."""
    texts = [
        pl.col(name).str.len_bytes().fill_null(0)
        for name in frame.columns
        if frame[name].dtype == pl.String
    ]
    return frame.select(size=pl.sum_horizontal(pl.col("report").fill_null(0) * 0 + 16, *texts))[
        "size"
    ]


def arrow_table(frame: pl.DataFrame, types: Mapping[str, Typed], query: str) -> pa.Table:
    """Returns a frame as a table of Arrow, with the types of its columns.

    >>> from levada.connectors.serialization.typed_columns import typed_frame
    >>> frame, found = typed_frame(pl.DataFrame({"x": ['"a"@en']}))
    >>> field = arrow_table(frame, found, "q").schema.field("x")
    >>> str(field.type), field.metadata
    ('string', {b'levada.kind': b'language', b'levada.said': b'en'})
    """
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    fields = [
        pa.field(
            f.name,
            pa.string() if pa.types.is_large_string(f.type) else f.type,
            metadata=_metadata(types.get(f.name)),
        )
        for f in table.schema
    ]
    return table.cast(pa.schema(fields, {"levada.query": query})).combine_chunks()


def _metadata(column: Typed | None) -> dict[str, str] | None:
    if column is None:
        return None
    return {"levada.kind": column.kind} | ({"levada.said": column.said} if column.said else {})


def table_bytes(form: Format, arrow: pa.Table) -> bytes:
    """Encodes a table as the bytes of a file."""
    out = io.BytesIO()
    if form is Format.PARQUET:
        pq.write_table(arrow, out, compression="zstd")
    else:
        with pa.ipc.new_file(out, arrow.schema) as writer:
            writer.write_table(arrow)
    return out.getvalue()

"""Encodes a batch into files of any format: (report or None, bytes), in order.

Formats with a place for the report time are divided by ``cut``, at records or rows; the others make
a file for each report. Cost: the formats' own; a file a report costs Python (and the caller two
fsyncs) a report.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import polars as pl
import pyoxigraph as ox

from levada.connectors.serialization.columnar_tables import (
    arrow_table,
    row_sizes,
    table,
    table_bytes,
)
from levada.connectors.serialization.construct_quads import document, quad_records
from levada.connectors.serialization.flat_rows import flat_rows
from levada.connectors.serialization.result_formats import REPORTS, TABLES, WHOLE, Format
from levada.connectors.serialization.serialize import Batch, heading, lines
from levada.connectors.serialization.typed_columns import typed_frame
from levada.core.array_types import Longs
from levada.core.event_time import MIN
from levada.core.text_columns import join_lines

Cut = Callable[[Longs], Sequence[tuple[int, int]]]
# control characters, U+FFFE, U+FFFF
_NOT_XML = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
_REPLACEMENT = "\ufffd".encode()
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"')
LONG_TEXT_BYTES = 4 << 20  # bytes of a text that exceed some parsers' limits
_PREFIX = r'^\{"query": "[^"]*", "report": (?:null|-?[0-9]+), '


def records(form: Format, query: str, variables: Sequence[str], batch: Batch) -> pl.Series:
    """Returns the records of a batch in a format of records, as texts with line ends, in report
    order.
    """
    if form in (Format.NQ, Format.TRIG):
        return quad_records(form, query, batch)
    if form is Format.JSON:
        return flat_rows(query, variables, batch)
    return lines(form, query, variables, batch)


def contents(
    form: Format,
    query: str,
    variables: Sequence[str],
    batch: Batch,
    cut: Cut,
    *,
    terms: bool = False,
) -> Iterator[tuple[int | None, bytes]]:
    """Yields the files of a batch; ``cut`` divides records or rows of these sizes (bytes) into
    ranges. ``terms``: tables have texts in place of values.
    """
    if form in REPORTS:
        yield from _by_report(form, query, variables, batch)
    elif form in TABLES:
        texts = table(batch)
        frame, types = (texts, {}) if terms else typed_frame(texts)
        whole = arrow_table(frame, types, query)
        for start, stop in cut(row_sizes(texts).to_numpy()):
            yield None, table_bytes(form, whole[start:stop])
    else:
        encoded = records(Format.NQ if form in WHOLE else form, query, variables, batch)
        for start, stop in cut(encoded.str.len_bytes().to_numpy().astype(np.int64)):
            part = encoded[start:stop]
            if form in WHOLE:
                yield None, document(form, join_lines(part))
            else:
                yield None, heading(form, variables, batch) + join_lines(part)


def _by_report(
    form: Format, query: str, variables: Sequence[str], batch: Batch
) -> Iterator[tuple[int, bytes]]:
    if form is Format.NT:
        assert batch.graphs is not None, "a CONSTRUCT batch has graphs"
        yield from zip(batch.report.tolist(), (text.encode() for text in batch.graphs), strict=True)
        yield from ((report, b"") for report in batch.empty.tolist())
        return
    encoded = lines(Format.NDJSON, query, variables, batch)
    reports = encoded.str.extract(r'"report": (-?[0-9]+)').cast(pl.Int64).fill_null(MIN)
    for report, text in zip(reports, encoded.str.replace(_PREFIX, "{"), strict=True):
        yield report, text.encode() if form is Format.SRJ else _xml(text.encode())


def _xml(srj: bytes) -> bytes:
    """Converts SPARQL JSON results to SPARQL XML results.

    A reader of XML reads a bare carriage return as a line feed, and refuses a document with a
    character that XML 1.0 does not have. The parser of JSON accepts texts of some megabytes at
    most, so longer texts are replaced by names until the document is printed.
    """
    srj, long = _without_long(srj) if len(srj) > LONG_TEXT_BYTES else (srj, {})
    results = ox.parse_query_results(srj, ox.QueryResultsFormat.JSON)
    assert isinstance(results, ox.QuerySolutions | ox.QueryBoolean), (
        "a document of results has solutions or a boolean"
    )
    data = results.serialize(format=ox.QueryResultsFormat.XML)
    assert data is not None, "without an output file the print is returned"
    for name, text in long.items():
        data = data.replace(name, text)
    return _NOT_XML.sub(_REPLACEMENT, data).replace(b"\r", b"&#13;")


def _without_long(srj: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """Returns the document with names in place of long texts, and these texts as XML."""
    mark, texts = b"urn:levada:long-text:", dict[bytes, bytes]()
    while mark in srj:
        mark += b"_"

    def name_text(match: re.Match[bytes]) -> bytes:
        if len(match[0]) <= LONG_TEXT_BYTES:
            return match[0]
        name = b"%b%d-" % (mark, len(texts))
        texts[name] = html.escape(json.loads(match[0]), quote=False).replace('"', "&quot;").encode()
        return b'"%b"' % name

    return _STRING.sub(name_text, srj), texts

"""Lists the names that the rows or triples of a reference have: members of JSON objects, columns of
CSV and Parquet, predicates of RDF. They explain a column or a pattern that nothing matches.

A few rows at the beginning are examined, and only if something has no match. Cost: some tens of
microseconds a reference then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pyarrow as pa

from levada.connectors.ingest.parse.ntriples import Triples
from levada.connectors.sources.read_split import CsvChunk, JsonChunk
from levada.core.stream_facts import MAX_MEMBERS

_LINES, _BYTES, _TRIPLES = 20, 64 << 10, 1000
_DEPTH = 3


def members_of_rows(chunk: CsvChunk | JsonChunk | pa.Table) -> list[str]:
    """Returns the first names of columns or members, in order. A member of an object within an
    object has a dotted name.

    >>> data = np.frombuffer(b'{"id": 1, "reading": {"temp": 2}}', np.uint8)
    >>> members_of_rows(JsonChunk(data))
    ['id', 'reading.temp']
    """
    if isinstance(chunk, CsvChunk):
        return list(chunk.columns[:MAX_MEMBERS])
    if isinstance(chunk, pa.Table):
        return list(chunk.column_names[:MAX_MEMBERS])
    lines = chunk.data[:_BYTES].tobytes().split(b"\n")
    names = (name for line in lines[:_LINES] for name in _names_in(line))
    return list(islice(dict.fromkeys(names), MAX_MEMBERS))


def _names_in(line: bytes) -> Iterator[str]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return
    if isinstance(value, dict):
        yield from _paths(value, "", _DEPTH)


def _paths(value: dict[str, object], before: str, depth: int) -> Iterator[str]:
    for name, inner in value.items():
        if isinstance(inner, dict) and inner and depth > 1:
            yield from _paths(inner, f"{before}{name}.", depth - 1)
        else:
            yield f"{before}{name}"


def predicates_of(triples: Triples) -> list[str]:
    """Returns the distinct predicates of the first triples, in order, as N-Triples has them."""
    _, first = np.unique(triples.p.x[:_TRIPLES], return_index=True)
    return [triples.text(triples.p, row) for row in np.sort(first)[:MAX_MEMBERS].tolist()]

"""The first rows of a stream of files as columns, for its rate and its values.

Sampling takes nothing from the readers of the stream: it reads files as they do. Streams that can
be read only once (topics, feeds, spools of rows), documents and packed files are not sampled. The
readers report files that cannot be read.

Cost: ``SAMPLE_ROWS`` elements of each stream, once: 10 to 80 ms, and 20 us each while the parser is
not compiled.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.elements import elements_of
from levada.connectors.ingest.parse.ntriples import parse
from levada.connectors.ingest.tables.tuple_rows import TupleColumn, tuples_of
from levada.connectors.sources.decompression import is_packed
from levada.connectors.sources.file_listing import list_files
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.source_reader import read
from levada.connectors.sources.splits import FileSplit
from levada.core.array_types import Longs, Words
from levada.core.event_time import MAX, MIN
from levada.core.frozen import frozen
from levada.core.rdf_terms import Kind
from levada.errors import FileFault, LevadaError

SAMPLE_ROWS = 20_000
SEED = 0
TRIPLE = ("s", "p", "o")


@frozen
class RowSample:
    """The rows of a sample in the order of the file. ``ts``: their times (ms). ``columns``: a hash
    of each value, by column; 0 for no value.
    """

    ts: Longs
    columns: dict[str, Words]

    @property
    def seconds(self) -> float:
        """Returns the event time that they span, at least a millisecond."""
        return max(int(self.ts.max()) - int(self.ts.min()), 1) / 1000


def first_rows(config: StreamConfig) -> RowSample | None:
    """Returns the first rows of a stream; None for an empty stream, or for a kind that is not
    sampled.
    """
    outside = config.kafka is not None or config.feed is not None or config.settled
    if outside or config.documents or config.undecided or config.mapping is not None:
        return None
    try:
        files = list_files(config.name, config.path)
        if not files or any(is_packed(file.path) for file in files):
            return None
        with tempfile.TemporaryDirectory(prefix="levada-look-") as scratch:
            source = FileSource(config, Path(scratch))
            source.discover()
            references, _ = source.take({}, SAMPLE_ROWS)
            parts = [_rows(config, reference) for reference in references]
    except (LevadaError, FileFault, OSError):
        return None
    return _together([part for part in parts if len(part.ts)])


def _rows(config: StreamConfig, reference: FileSplit) -> RowSample:
    content = read(reference, config)
    if config.tabular:
        assert content.rows is not None, "a table has rows"
        rows = tuples_of(content.rows, config, reference, late_below=MIN, future_above=MAX)
        return RowSample(rows.ts, {name: _hashes(c) for name, c in rows.columns.items()})
    assert content.text is not None, "RDF is text"
    triples = parse(
        content.text, quads=reference.format == "nq", timed=config.timed, seed=SEED,
        document=reference.document, unit_power=config.unit_power,
    )  # fmt: skip
    elements = elements_of(
        triples, config, reference, late_below=MIN, future_above=MAX, seed=SEED, messages=None
    )
    keep = elements.keep
    terms = zip(TRIPLE, (triples.s, triples.p, triples.o), strict=True)
    return RowSample(elements.ts[keep], {name: term.x[keep] for name, term in terms})


def _hashes(column: TupleColumn) -> Words:
    """Returns a number for each value, equal for equal values of a type."""
    if column.text is not None:
        hashes = column.text.hash(seed=SEED).to_numpy()
    else:
        values = column.man if column.man is not None else column.facet("d").view(np.int64)
        hashes = values.astype(np.uint64) * np.uint64(2) + np.uint64(1)
    return np.where(column.kind == Kind.UNBOUND, np.uint64(0), hashes.astype(np.uint64))


def _together(parts: Sequence[RowSample]) -> RowSample | None:
    if not parts:
        return None
    names = parts[0].columns
    columns = {
        name: np.concatenate([part.columns[name] for part in parts])[:SAMPLE_ROWS] for name in names
    }
    return RowSample(np.concatenate([part.ts for part in parts])[:SAMPLE_ROWS], columns)

"""The statistics of an engine's streams for the planning of a query. A sample of first rows shows
how many rows match and how values are distributed. The rate comes from earlier epochs on the
checkpoint, else from the sample.

They are used when a query is added, and the plan records the choice. So a stream is sampled once,
and neither epochs nor existing queries use them again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
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
from levada.core.array_types import Bools, Longs, Words
from levada.core.event_time import MAX, MIN
from levada.core.expressions import Var
from levada.core.frozen import frozen
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Kind
from levada.errors import FileFault, LevadaError
from levada.kernels.terms.term_ids import identify_one
from levada.plan.statistics.statistics import RowStatistics, Run, Values

# The first rows of a stream of files as columns, for its rate and its values.
#
# Sampling takes nothing from the readers of the stream: it reads files as they do. Streams that can
# be read only once (topics, feeds, spools of rows), documents and packed files are not sampled. The
# readers report files that cannot be read.
#
# Cost: ``SAMPLE_ROWS`` elements of each stream, once: 10 to 80 ms, and 20 us each while the parser
# is not compiled.


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


MIN_SAMPLE_ROWS = 20  # rows below which a sample is too small


class SampledStatistics:
    """The statistics of ``streams``, sampled at their first use."""

    def __init__(self, streams: Mapping[str, StreamConfig], partitions: int = 1) -> None:
        self.partitions = partitions
        self._streams = streams
        self._first: dict[str, tuple[StreamConfig, RowSample | None]] = {}
        self._run: Mapping[str, Run] = {}

    def see(self, run: Mapping[str, Run], partitions: int) -> None:
        """Records the state of a run: the triples or rows read of each stream, up to which time,
        and the number of partitions.
        """
        self._run, self.partitions = run, partitions

    def triples(self, stream: str, pattern: TriplePattern) -> RowStatistics | None:
        """Returns the statistics of the triples that match a pattern; None if the sample is too
        small.
        """
        rows = self._rows(stream)
        if rows is None or TRIPLE[0] not in rows.columns:
            return None
        names: dict[str, Words] = {}
        keep = np.ones(len(rows.ts), np.bool_)
        for place, column in zip(pattern.positions, (rows.columns[c] for c in TRIPLE), strict=True):
            if not isinstance(place, Var):
                keep &= column == np.uint64(identify_one(str(place), SEED)[0])
            elif place.name in names:
                keep &= column == names[place.name]
            else:
                names[place.name] = column
        return self._look(stream, rows, names, keep)

    def tuples(self, stream: str) -> RowStatistics | None:
        """Returns the statistics of the rows of a tuple stream; None if the sample is too small."""
        rows = self._rows(stream)
        if rows is None or not self._streams[stream].tabular:
            return None
        times = rows.ts.view(np.uint64)
        return self._look(
            stream, rows, {**rows.columns, "#time": times}, np.ones(len(rows.ts), np.bool_)
        )

    def _rows(self, stream: str) -> RowSample | None:
        config = self._streams.get(stream)
        if config is None:
            return None
        if stream not in self._first or self._first[stream][0] != config:
            self._first[stream] = config, first_rows(config)
        return self._first[stream][1]

    def _look(
        self, stream: str, rows: RowSample, names: Mapping[str, Words], keep: Bools
    ) -> RowStatistics | None:
        if (many := int(keep.sum())) < MIN_SAMPLE_ROWS:
            return None
        values = {name: _values(column[keep]) for name, column in names.items()}
        return RowStatistics(self._rate(stream, rows) * many / len(rows.ts), values)

    def _rate(self, stream: str, rows: RowSample) -> float:
        """Returns the rows of a stream in a second of event time."""
        read, last = self._run.get(stream, (0, 0))
        seconds = (last - int(rows.ts.min())) / 1000
        if read > len(rows.ts) and seconds > rows.seconds:
            return read / seconds
        return len(rows.ts) / rows.seconds


def _values(column: Words) -> Values:
    """Returns the values of a column. Rows without a value do not count, since they do not join."""
    there = column[column != 0]
    return Values.from_rows(there if len(there) else column)

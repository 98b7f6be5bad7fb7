"""The statistics of an engine's streams for the planning of a query. A sample of first rows shows
how many rows match and how values are distributed. The rate comes from earlier epochs on the
checkpoint, else from the sample.

They are used when a query is added, and the plan records the choice. So a stream is sampled once,
and neither epochs nor existing queries use them again.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from levada.connectors.config.stream_config import StreamConfig
from levada.core.array_types import Bools, Words
from levada.core.expressions import Var
from levada.core.query_model import TriplePattern
from levada.engine.statistics.sample_rows import SEED, TRIPLE, RowSample, first_rows
from levada.kernels.terms.term_ids import identify_one
from levada.plan.statistics.statistics import RowStatistics, Run, Values

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

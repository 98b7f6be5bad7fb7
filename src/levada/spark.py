"""The Spark data source ``levada``: the kept reports of a query as a table, in batches and streams.

    levada.spark.register(session)
    session.read.format("levada").option("checkpoint", "state").option("query", "warm").load()

Offsets are report times. The rows between two offsets, their order and their partitions follow from
the checkpoint alone, so a query of Spark that is killed reads them again as they were. A partition
is a part of the range, of whole epochs; executors read partitions at the same time, as Arrow
batches. The checkpoint must be readable, and Levada be installed, where the tasks run.

Every process opens the checkpoint anew: Spark pickles the classes of this module, which contain
options, columns and ranges.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from levada.checkpoint.object_store.store_url import folder_of
from levada.connectors.config.stream_options import parse_flag
from levada.connectors.serialization.report_tables import (
    DATATYPE,
    Column,
    arrow_type,
    check_type,
    columns_of,
    parse_columns,
)
from levada.connectors.sinks.transactional_sink import skips_of
from levada.core.event_time import MAX, MIN
from levada.engine.status.kept_reports import KeptReports, Range
from levada.errors import CheckpointError, UsageError, near

OPTIONS = ("checkpoint", "query", "columns", "datatypes", "from", "until", "lost")
VIEW = "CREATE TEMPORARY VIEW .. USING levada OPTIONS (checkpoint '..', query '..')"
BATCH_ROWS = 1 << 16
_TYPES: Mapping[str, type[DataType]] = {
    "bigint": LongType, "double": DoubleType, "boolean": BooleanType, "date": DateType,
    "timestamp": TimestampType, "timestamp_ntz": TimestampNTZType, "string": StringType,
}  # fmt: skip


def register(session: Any) -> None:
    """Registers the data source ``levada`` in a Spark session."""
    session.dataSource.register(LevadaSource)


@dataclass(frozen=True)
class SourceOptions:
    """The options of a read. ``columns``: the types by variable, "" if it is inferred."""

    checkpoint: str
    query: str
    columns: dict[str, str]
    datatypes: bool
    first: str
    last: str
    skips: bool

    @staticmethod
    def parse(options: Mapping[str, str]) -> SourceOptions:
        """Parses the options of a user. Raises ``UsageError``.

        >>> SourceOptions.parse({"checkpoint": "state", "query": "q", "from": "5"}).first
        '5'
        """
        words = {name.lower(): value for name, value in options.items()}
        if "provider" in words or not words:  # Spark 4.3 reads a table without its options
            raise UsageError(
                "Spark does not give the options of a table in its catalog to Python data sources: "
                "levada cannot read such a table.",
                hint=f"Say {VIEW}, or .option(..) in a program.",
            )
        for name in words:
            if name not in OPTIONS:
                raise UsageError(
                    f"The data source levada has no option {name}.", hint=near(name, OPTIONS)
                )
        for name in ("checkpoint", "query"):
            if not words.get(name):
                raise UsageError(
                    f"The data source levada needs the option {name}.",
                    hint='Say .option("checkpoint", "state").option("query", "warm").',
                )
        return SourceOptions(
            words["checkpoint"],
            words["query"],
            parse_columns(words["columns"]) if words.get("columns") else {},
            parse_flag(words.get("datatypes", "false")),
            words.get("from", ""),
            words.get("until", ""),
            skips_of("The data source levada", words),
        )

    def open(self) -> KeptReports:
        """Opens the reports of the query. Raises ``UsageError`` and ``CheckpointError``."""
        return KeptReports(folder_of(self.checkpoint), self.query, self.skips)


class LevadaSource(DataSource):  # type: ignore[misc]
    """The data source ``levada``."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._parsed = SourceOptions.parse(dict(options))

    @classmethod
    def name(cls) -> str:
        """Returns the name of the format."""
        return "levada"

    def schema(self) -> StructType:
        """Returns the columns. Types that the option columns does not name are inferred."""
        reports = self._parsed.open()
        bounds = reports.bounds(self._parsed.first, self._parsed.last)
        columns = reports.columns(self._parsed.columns, bounds, datatypes=self._parsed.datatypes)
        return StructType([StructField(c.name, _spark_type(c.type)) for c in columns])

    def reader(self, schema: StructType) -> ReportReader:
        """Returns the reader of a batch."""
        return ReportReader(self._parsed, schema)

    def streamReader(self, schema: StructType) -> ReportStreamReader:  # noqa: N802
        """Returns the reader of a stream."""
        return ReportStreamReader(self._parsed, schema)


def _spark_type(name: str) -> DataType:
    type_ = arrow_type(name)
    if pa.types.is_decimal(type_):
        return DecimalType(type_.precision, type_.scale)
    return _TYPES[name]()


def columns_of_schema(schema: StructType, variables: Sequence[str]) -> tuple[Column, ...]:
    """Returns the columns that a schema names, in its order. Raises ``UsageError``."""
    known = {column.name: column for column in columns_of(variables, {}, datatypes=True)}
    columns = []
    for field in schema.fields:
        column = known.get(field.name)
        if column is None:
            names = [name for name in known if not name.endswith(DATATYPE)]
            raise UsageError(f"There is no column {field.name}.", hint=near(field.name, names))
        type_ = check_type(field.name, field.dataType.simpleString())
        if column.content != "value" and type_ != column.type:
            raise UsageError(f"The column {field.name} has the type {column.type}, not {type_}.")
        columns.append(Column(column.name, column.content, type_, column.variable))
    return tuple(columns)


class ReportPartition(InputPartition):  # type: ignore[misc]
    """A range of reports that one task reads."""

    def __init__(self, part: Range) -> None:
        super().__init__(tuple(part))


class _Reading:
    """The reading of partitions, in a process of an executor."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        reports = options.open()
        self._since = reports.since
        self._columns = columns_of_schema(schema, reports.variables)
        self._bounds = reports.bounds(options.first, options.last)
        self._checked_from = MIN

    def open(self) -> KeptReports:
        """Opens the reports of the same query. Raises ``CheckpointError``."""
        reports = self._options.open()
        if reports.since != self._since:
            raise _replaced_error(self._options.query)
        return reports

    def parts(self, reports: KeptReports, bounds: Range) -> list[ReportPartition]:
        """Returns the partitions of a range."""
        return [ReportPartition(part) for part in reports.parts(bounds)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a partition. Spark reads None if there are no partitions."""
        if partition is None or partition.value is None:
            return
        for table in self.open().tables(self._columns, Range(*partition.value)):
            yield from table.to_batches(max_chunksize=BATCH_ROWS)


class ReportReader(DataSourceReader):  # type: ignore[misc]
    """The reader of a batch: all kept reports, or a range of report times."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._reading = _Reading(options, schema)
        self._bounds, self._has_first = self._reading._bounds, bool(options.first)
        self.pushFilters = _PushedFilters(self)

    def narrow(self, after: int, until: int) -> None:
        """Narrows the range of reports."""
        self._bounds = Range(max(self._bounds.after, after), min(self._bounds.until, until))

    def partitions(self) -> list[ReportPartition]:
        """Returns the partitions. Raises ``CheckpointError`` if reports of a range that begins at
        ``from`` were deleted.
        """
        reports = self._reading.open()
        if self._has_first:
            reports.check_kept(self._bounds)
        return self._reading.parts(reports, self._bounds)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a partition."""
        return self._reading.read(partition)


class _PushedFilters:
    """The method ``pushFilters`` of a reader, for comparisons of the column report.

    Spark refuses a class that overrides the method while its setting
    ``spark.sql.python.filterPushdown.enabled`` is false. It compares ``__func__``, so this object
    has that of the base class: the same reader then works with both values of the setting.
    """

    def __init__(self, reader: ReportReader) -> None:
        self._reader = reader
        self.__func__ = getattr(DataSourceReader, "pushFilters", None)  # PySpark 4.0 has none

    def __call__(self, filters: Sequence[Any]) -> Iterable[Any]:
        """Narrows the range; returns the filters that Spark must still evaluate."""
        names = [c.name for c in self._reader._reading._columns if c.content == "report"]
        timeless = self._reader._reading.open().is_timeless
        for each in filters:
            known = not timeless and getattr(each, "attribute", None) in [(n,) for n in names]
            bounds = filter_range(type(each).__name__, getattr(each, "value", None))
            if known and bounds is not None:
                self._reader.narrow(*bounds)
            else:
                yield each


def filter_range(kind: str, value: object) -> Range | None:
    """Returns the range of report times that a comparison with an instant allows, None if it is
    another filter.

    >>> at = datetime.datetime(1970, 1, 1, 0, 0, 4, tzinfo=datetime.UTC)
    >>> filter_range("GreaterThan", at).after, filter_range("LessThan", at).until
    (4000, 3999)
    """
    if kind == "IsNotNull" and value is None:
        return Range()
    if not isinstance(value, datetime.datetime) or value.tzinfo is None:
        return None
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    us = (value - epoch) // datetime.timedelta(microseconds=1)
    floor, ceiling = us // 1000, -(-us // 1000)
    return {
        "GreaterThan": Range(floor, MAX), "GreaterThanOrEqual": Range(ceiling - 1, MAX),
        "LessThan": Range(MIN, ceiling - 1), "LessThanOrEqual": Range(MIN, floor),
        "EqualTo": Range(ceiling - 1, floor),
    }.get(kind)  # fmt: skip


class ReportStreamReader(DataSourceStreamReader):  # type: ignore[misc]
    """The reader of a stream. An offset has the id of its last report (``report``) and of the
    checkpoint and the query to which it belongs. ``first`` is the oldest report that was kept when
    the stream began: the first batch needs all reports from there.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._reading = _Reading(options, schema)
        self._skips = options.skips
        self._query = options.query

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Returns the offset before the first report of the stream."""
        return self._offset(self._reading.open(), self._reading._bounds.after, None)

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Returns the offset of the last report."""
        reports = self._reading.open()
        bounds = self._reading._bounds
        last = min(max(reports.last(), bounds.after), bounds.until)
        first = reports.last_deleted() + 1
        if start is not None:
            self._check(reports, start)
            last = max(last, start["report"])
            if last == start["report"]:
                return dict(start)
            first = first if start["first"] is None else start["first"]
        return self._offset(reports, last, first)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[ReportPartition]:
        """Returns the partitions between two offsets. Raises ``CheckpointError`` if reports were
        deleted, or the query is another one.
        """
        reports = self._reading.open()
        for offset in (start, end):
            self._check(reports, offset)
        bounds = Range(start["report"], end["report"])
        begins = start["first"] is None and end["first"] is not None and not self._has_first
        needed = max(bounds.after, end["first"] - 1) if begins else bounds.after
        if bounds.until > bounds.after:
            reports.check_kept(Range(needed, bounds.until))
        return self._reading.parts(reports, bounds)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a partition."""
        return self._reading.read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Does nothing: the engine's --keep says how long reports are kept."""

    @property
    def _has_first(self) -> bool:
        return self._reading._bounds.after > MIN

    def _offset(self, reports: KeptReports, report: int, first: int | None) -> dict[str, Any]:
        return {
            "checkpoint": reports.checkpoint, "since": reports.since, "report": report,
            "first": first,
        }  # fmt: skip

    def _check(self, reports: KeptReports, offset: Mapping[str, Any]) -> None:
        if offset["checkpoint"] != reports.checkpoint:
            raise CheckpointError(
                f"{reports.root} is another checkpoint than the one that this stream has read.",
                hint="Start the stream with an empty checkpointLocation.",
            )
        if offset["since"] != reports.since:
            raise _replaced_error(self._query)


def _replaced_error(query: str) -> CheckpointError:
    return CheckpointError(
        f"The query {query} is another one than the one that was read before.",
        hint="Start the stream with an empty checkpointLocation, or the read anew.",
    )

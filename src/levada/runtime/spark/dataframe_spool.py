"""Reads a user's streaming DataFrame as a stream: a Structured Streaming query writes its batches
to the spool, a folder of files.

    DataFrame --foreachBatch--> spool/<stream>/data/000000000007.x..nt --source of files--> epochs

Delivery is exactly once: a batch is one file, named by its number and written completely or not at
all. If Spark runs a batch again after a crash, its file exists and stays. Spark's own checkpoint is
beside the data. RDF batches are N-Triples or N-Quads lines with their times
(``connectors.spool.row_lines``), each file a document (a blank node is one node within its batch);
tuples are Parquet. A file is deleted when the manifest of an epoch has a later position. Cost:
Spark's time to bring a batch to the driver, then a few string operations of Polars a row.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import types as t
from pyspark.sql.streaming import StreamingQuery

from levada.connectors.config.json_path import path_name
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.spool.row_lines import statement_lines, text_lines
from levada.connectors.spool.spool_folder import Batches, spool_folder
from levada.errors import EngineError, UsageError, near

_TYPES: tuple[tuple[tuple[type[t.DataType], ...], str], ...] = (
    ((t.LongType, t.IntegerType, t.ShortType, t.ByteType), "integer"),
    ((t.DoubleType, t.FloatType), "double"),
    ((t.StringType,), "string"),
    ((t.BooleanType,), "boolean"),
)
_TIMES = (*_TYPES[0][0], t.StringType, t.TimestampType, t.TimestampNTZType, t.DateType)
_OWN = ("columns", "text", "tuples")


@dataclass
class Spool:
    """The spool of one DataFrame. ``config`` is the stream of the files that it writes."""

    frame: DataFrame
    folder: Path
    columns: tuple[str, ...]
    text: str | None
    config: StreamConfig
    query: StreamingQuery | None = field(default=None)

    def __post_init__(self) -> None:
        self._batches = Batches(self.folder / "data")

    def open_in(self, folder: Path) -> None:
        """Sets the folder of the batches, before the start."""
        self.folder = folder
        self.config = replace(self.config, path=str(folder / "data"))
        self._batches = Batches(folder / "data")

    def start(self, *, once: bool) -> None:
        """Starts the query; with ``once`` all present input is written before this returns."""
        self._batches.make()
        writer = self.frame.writeStream.foreachBatch(self.write).option(
            "checkpointLocation", str(self.folder / "spark")
        )
        self.query = (writer.trigger(availableNow=True) if once else writer).start()
        if once:
            try:
                self.query.awaitTermination()
            except Exception as error:
                raise EngineError(
                    f"The DataFrame of the stream {self.config.name} failed: {_first_line(error)}"
                ) from error

    @property
    def data(self) -> Path:
        """The folder of the batches."""
        return self.folder / "data"

    def write(self, batch: DataFrame, number: int) -> None:
        """Writes a batch as a file, unless it or a later one exists."""
        form = self.config.format
        stem, last = f"{number:012d}", self._batches.last
        if stem <= last.partition(".")[0]:
            return
        rows = pl.from_arrow(batch.toArrow())
        assert isinstance(rows, pl.DataFrame), "a table is a frame"
        if not rows.height:
            return
        if form == "parquet":
            self._batches.write_rows(stem, f".{form}", rows)
        elif self.text is None:
            self._batches.write_rows(stem, f".{form}", statement_lines(rows, self.columns))
        else:
            self._batches.write_rows(stem, f".{form}", text_lines(rows, self.text))

    def forget(self, position: Mapping[str, Any]) -> None:
        """Deletes the batches before that of a committed position: no epoch reads them again.

        The batch of the position stays. Spark repeats only its last batch, which is not before a
        written one; so a batch below the newest file has been written.
        """
        self._batches.forget(position)

    def check(self) -> None:
        """Raises ``EngineError`` if the query has failed."""
        error = self.query.exception() if self.query is not None else None
        if error is not None:
            raise EngineError(
                f"The DataFrame of the stream {self.config.name} failed: {_first_line(error)}"
            ) from error

    def stop(self) -> None:
        """Stops the query after its current batch."""
        if self.query is not None:
            self.query.stop()


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def spool_of(name: str, frame: DataFrame, root: Path, settings: Mapping[str, Any]) -> Spool:
    """Makes the spool of ``engine.stream(name, frame, columns= | text= | tuples=True, ...)``.
    Raises ``UsageError``.
    """
    if not frame.isStreaming:
        raise UsageError(
            f"The DataFrame of the stream {name} is not a streaming one.",
            hint="Use spark.readStream.",
        )
    ways = [word for word in _OWN if settings.get(word)]
    if len(ways) != 1:
        raise UsageError(f"The stream {name} needs one of columns=, text= and tuples=True.")
    columns = tuple(settings.get("columns") or ())
    if columns and len(columns) not in (4, 5):
        raise UsageError(
            f"columns of the stream {name} are s, p, o, ts or s, p, o, g, ts; "
            f"these are {len(columns)}."
        )
    for column in (*columns, *([settings["text"]] if settings.get("text") else [])):
        if column not in frame.columns:
            raise UsageError(
                f"The DataFrame of the stream {name} has no column {column}.",
                hint=near(column, frame.columns),
            )
    for column, kinds, word in _typed_columns(columns, settings.get("text")):
        if not isinstance(frame.schema[column].dataType, kinds):
            kind = frame.schema[column].dataType.simpleString()
            raise UsageError(
                f"The column {column} of the stream {name} is a {kind}.", hint=f"Make it {word}."
            )
    options = {key: value for key, value in settings.items() if key not in _OWN}
    unfit = (
        ("files", True, "its batches are one sequence"),
        ("format", True, "its batches are written by Levada"),
        ("time", bool(columns), "its last column is the time"),
    )
    for key, wrong, why in unfit:
        if wrong and key in options:
            raise UsageError(f"The stream {name} is a DataFrame, {why}.", hint=f"Leave {key}= out.")
    if settings.get("tuples"):
        options["format"] = "parquet"
        if options.get("mapping") is None:
            options.setdefault("schema", _schema(frame.schema.fields))
    else:
        options["format"] = "nt" if len(columns) == 4 else "nq"
    folder = spool_folder(root, name)
    config = replace(StreamConfig.from_options(name, folder / "data", **options), settled=True)
    return Spool(frame, folder, columns, settings.get("text"), config)


def _typed_columns(
    columns: Sequence[str], text: str | None
) -> Iterator[tuple[str, tuple[type[t.DataType], ...], str]]:
    """Yields the columns whose type matters, with the types that each may have, and a word for
    them.
    """
    for column in [*columns[:-1], *([text] if text else [])]:
        yield column, (t.StringType,), "a string"
    if columns:
        yield columns[-1], _TIMES, "a whole number of ms, a timestamp or an ISO time"


def _schema(
    fields: Sequence[t.StructField], parents: tuple[str, ...] = (), names: Container[str] = ()
) -> dict[str, str]:
    """Returns the columns of the four types, and the fields of structs as paths such as ``a.b``;
    the time's may have another type. A path that is the name of a column (``names``) is left out.

    >>> inner = t.StructType([t.StructField("temp", t.DoubleType())])
    >>> _schema([t.StructField("id", t.LongType()), t.StructField("reading", inner)])
    {'id': 'integer', 'reading.temp': 'double'}
    """
    schema: dict[str, str] = {}
    names = names or {one.name for one in fields}
    for one in fields:
        steps = (*parents, one.name)
        if isinstance(one.dataType, t.StructType):
            schema |= _schema(one.dataType.fields, steps, names)
            continue
        name = path_name(steps) if parents else one.name
        for kinds, word in _TYPES:
            if isinstance(one.dataType, kinds) and not (parents and name in names):
                schema[name] = word
    return schema

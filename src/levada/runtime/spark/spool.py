"""A user's streaming DataFrame as a stream: a Structured Streaming query of its own writes batches to the spool, a folder of files.

    DataFrame --foreachBatch--> spool/<stream>/data/000000000007.nt --source of files--> epochs

Exactly once: a batch is one file, named by its number and there whole or not at all; a batch that Spark runs again after a crash
finds its file and leaves it. Spark's own checkpoint lies beside the data. RDF batches are N-Triples or N-Quads lines with their
times, each file a document (a blank node is one node within its batch); tuples are Parquet. Files stay until the checkpoint goes.
Cost: what Spark takes to bring a batch to the driver, then a few string operations of Polars a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import xxhash
from pyspark.sql import DataFrame
from pyspark.sql import types as t
from pyspark.sql.streaming import StreamingQuery

from levada.config import StreamConfig
from levada.emission.serialize import joined
from levada.errors import EngineError, UsageError, near
from levada.model.term import XSD
from levada.sinks.whole import write_whole

_TYPES: tuple[tuple[tuple[type[t.DataType], ...], str], ...] = (
    ((t.LongType, t.IntegerType, t.ShortType, t.ByteType), "integer"),
    ((t.DoubleType, t.FloatType), "double"),
    ((t.StringType,), "string"),
    ((t.BooleanType,), "boolean"),
)
_OWN = ("columns", "text", "tuples")


@dataclass
class Spool:
    """One DataFrame and its folder; ``config`` is the stream of the files that it writes."""

    frame: DataFrame
    folder: Path
    columns: tuple[str, ...]
    text: str | None
    config: StreamConfig
    query: StreamingQuery | None = field(default=None)

    def start(self, *, once: bool) -> None:
        """Starts the query; with ``once`` what is there now is written before this returns."""
        self.data.mkdir(parents=True, exist_ok=True)
        writer = self.frame.writeStream.foreachBatch(self.write).option(
            "checkpointLocation", str(self.folder / "spark")
        )
        self.query = (writer.trigger(availableNow=True) if once else writer).start()
        if once:
            try:
                self.query.awaitTermination()
            except Exception as error:
                raise EngineError(f"The DataFrame of the stream {self.config.name} failed: {_first(error)}") from error

    @property
    def data(self) -> Path:
        """Where the batches lie."""
        return self.folder / "data"

    def write(self, batch: DataFrame, number: int) -> None:
        """A batch as a file, unless it is there already."""
        form = self.config.format
        path = self.data / f"{number:012d}.{form}"
        if path.exists():
            return
        found = pl.from_arrow(batch.toArrow())
        assert isinstance(found, pl.DataFrame), "a table is a frame"
        if not found.height:
            return
        if form == "parquet":
            beside = path.with_name(f".{path.name}.tmp")
            found.write_parquet(beside)
            write_whole(path, beside.read_bytes())
        else:
            write_whole(path, joined(found.select(line=self._line(found))["line"]))

    def _line(self, found: pl.DataFrame) -> pl.Expr:
        """The N-Triples or N-Quads line of a row, with its time as a further term before the dot."""
        if self.text is not None:
            return pl.concat_str(pl.col(self.text).str.strip_chars("\n\r"), pl.lit("\n"))
        *terms, time = self.columns
        ts = pl.col(time)
        if found[time].dtype.is_temporal():
            ts = ts.dt.epoch("ms")
        elif found[time].dtype == pl.String:
            moment = pl.concat_str(pl.lit('"'), ts, pl.lit(f'"^^<{XSD}dateTime>'))
            ts = pl.when(ts.str.contains(r"^[+-]?[0-9]+$")).then(ts).otherwise(moment)
        parts = [pl.col(name).fill_null("") for name in terms]
        return pl.concat_str(*parts, ts.cast(pl.String).fill_null(""), pl.lit(".\n"), separator=" ")

    def check(self) -> None:
        """Raises ``EngineError`` if the query has failed."""
        error = self.query.exception() if self.query is not None else None
        if error is not None:
            raise EngineError(f"The DataFrame of the stream {self.config.name} failed: {_first(error)}") from error

    def stop(self) -> None:
        """Ends the query after its current batch."""
        if self.query is not None:
            self.query.stop()


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def spool_of(name: str, frame: DataFrame, root: Path, given: Mapping[str, Any]) -> Spool:
    """The spool of ``engine.stream(name, frame, columns= | text= | tuples=True, ...)``. Raises ``UsageError``."""
    if not frame.isStreaming:
        raise UsageError(f"The DataFrame of the stream {name} is not a streaming one.", hint="Use spark.readStream.")
    ways = [word for word in _OWN if given.get(word)]
    if len(ways) != 1:
        raise UsageError(f"The stream {name} needs one of columns=, text= and tuples=True.")
    columns = tuple(given.get("columns") or ())
    if columns and len(columns) not in (4, 5):
        raise UsageError(f"columns of the stream {name} are s, p, o, ts or s, p, o, g, ts; these are {len(columns)}.")
    for column in (*columns, *([given["text"]] if given.get("text") else [])):
        if column not in frame.columns:
            raise UsageError(
                f"The DataFrame of the stream {name} has no column {column}.", hint=near(column, frame.columns)
            )
    options = {key: value for key, value in given.items() if key not in _OWN}
    if given.get("tuples"):
        options = {
            "schema": _schema(frame.schema.fields, options.get("time", "field:ts")),
            **options,
            "format": "parquet",
        }
    else:
        options["format"] = "nt" if len(columns) == 4 else "nq"
    folder = root / "spool" / xxhash.xxh3_64_hexdigest(name.encode())
    return Spool(frame, folder, columns, given.get("text"), StreamConfig.of(name, folder / "data", **options))


def _schema(fields: Sequence[t.StructField], time: str) -> dict[str, str]:
    """The columns of the four types; the time's may have another."""
    found = {}
    for one in fields:
        for kinds, word in _TYPES:
            if isinstance(one.dataType, kinds):
                found[one.name] = word
    return found

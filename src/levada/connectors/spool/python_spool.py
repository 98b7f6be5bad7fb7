"""Spools frames, iterables and pushed rows as a stream: batches that are durable before they count.

The name of a batch contains the number of rows of the stream up to it, and identifies the last
frame (a digest of its content):

    000000000012000-0123456789abcdef.x78af5f94892f3950.parquet

- A frame, graph or list is one batch. If a later engine on the checkpoint receives it again, it
  recognizes it; another one follows it.
- An iterable is pulled on a thread of its own, into a buffer of bounded size; pulled rows are
  written before each epoch. If the source is a function, it is called with the number of rows in
  the spool: so a later engine continues, each row exactly once. An iterable that a later engine
  receives again is pulled from its beginning again.
- ``push`` returns when its rows are durable.
"""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard, cast

import polars as pl
import xxhash

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.spool.row_batches import (
    STATEMENT,
    ArrowFrame,
    RdfGraph,
    Row,
    Rows,
    Shape,
    frame_of,
    schema_of,
)
from levada.connectors.spool.spool_folder import Batches, spool_folder
from levada.core.text_columns import join_lines
from levada.errors import EngineError, LevadaError, UsageError

Batch = pl.DataFrame | pl.Series
Source = Rows | Callable[[int], Iterable[Row]] | None
BUFFER = 100_000  # the most pulled rows that are not written
AGE = 0.05  # s between two batches of an iterable
_NO_FRAME = "0" * 16
_OWN = ("columns", "text", "tuples")


class PythonSpool:
    """The spool of one source; ``config`` is the stream of the files that it writes."""

    def __init__(self, shape: Shape, source: Source) -> None:
        self.config = shape.config
        self._shape, self._source = shape, source
        self._batches = Batches(Path(shape.config.path))
        self._lock = threading.Lock()
        self._waiting: list[Batch] = []  # pushed before the start
        self._started = False
        self._pull: _Pull | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its statements; none for tuples."""
        return self._shape.columns

    @property
    def durable_rows(self) -> int:
        """The number of rows of the stream that have been durable so far."""
        if not self._batches.data.exists():
            return 0
        return _parts(self._batches.last)[0]

    def push(self, rows: Rows) -> None:
        """Adds rows; when this returns they are durable, or will be when the engine starts."""
        batches = list(self._shape.batches(rows))
        with self._lock:
            if not self._started:
                self._waiting += batches
                return
            for batch in batches:
                self._write(batch)

    # -- for the driver --

    def open_in(self, folder: Path) -> None:
        """Sets the folder of the batches, before the start."""
        self.config = replace(self.config, path=str(folder / "data"))
        self._batches = Batches(folder / "data")

    def start(self, *, once: bool) -> None:
        """Writes a complete source; starts to pull an iterable, with ``once`` to its end."""
        self._batches.make()
        source = self._source
        with self._lock:
            if _is_whole(source):
                for batch in self._shape.batches(source, most=None):
                    self._write(batch, frame=True)
            for batch in self._waiting:
                self._write(batch)
            self._waiting, self._started = [], True
        if source is None or _is_whole(source):
            return
        rows = source(self.durable_rows) if callable(source) else cast("Iterable[Row]", source)
        if once:
            for batch in self._shape.batches(self._translated_errors(rows)):
                self._write(batch)
        else:
            self._pull = _Pull(self._translated_errors(rows), self.config.name)

    def check(self) -> None:
        """Writes the pulled rows. Raises ``EngineError`` if the source has failed."""
        if self._pull is None:
            return
        if rows := self._pull.take():
            with self._lock:
                self._write(self._shape.build_batch(rows))
        if self._pull.failure is not None:
            raise self._pull.failure

    def forget(self, position: Mapping[str, Any]) -> None:
        """Deletes the batches before that of a committed position."""
        self._batches.forget(position)

    def stop(self) -> None:
        """Stops pulling; writes the pulled rows."""
        if self._pull is not None:
            self._pull.stop()
            if rows := self._pull.take(now=True):
                with self._lock:
                    self._write(self._shape.build_batch(rows))
            self._pull = None

    def _write(self, batch: Batch, *, frame: bool = False) -> None:
        count, last = _parts(self._batches.last)
        digest = _digest(batch) if frame else last
        if len(batch) and not (frame and digest == last):
            stem = f"{count + len(batch):015d}-{digest}"
            self._batches.write_rows(stem, f".{self.config.format}", batch)

    def _translated_errors(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Turns exceptions of the user's code into errors for users."""
        try:
            yield from rows
        except LevadaError:
            raise
        except Exception as error:
            raise EngineError(
                f"The source of the stream {self.config.name} failed: {error!r}."
            ) from error


def _is_whole(source: Source) -> TypeGuard[Rows]:
    """Whether all rows of a source are present: then it is one batch, which is recognized again."""
    return isinstance(source, ArrowFrame | RdfGraph | Sequence)


class _Pull:
    """Pulls rows from an iterable on a thread, as far ahead as the buffer permits."""

    def __init__(self, rows: Iterator[Row], name: str) -> None:
        self._rows = rows
        self._buffer: list[Row] = []
        self._room = threading.Condition()
        self._stopped = False
        self._taken = 0.0
        self.failure: BaseException | None = None
        threading.Thread(target=self._run, name=f"levada source {name}", daemon=True).start()

    def take(self, *, now: bool = False) -> list[Row]:
        """Returns the rows pulled since the last call, if that is not too recent."""
        if not now and time.monotonic() - self._taken < AGE:
            return []
        with self._room:
            rows, self._buffer = self._buffer, []
            self._taken = time.monotonic()
            self._room.notify()
            return rows

    def stop(self) -> None:
        """Stops pulling."""
        with self._room:
            self._stopped = True
            self._room.notify()

    def _run(self) -> None:
        try:
            for row in self._rows:
                with self._room:
                    if not self._stopped:
                        self._buffer.append(row)
                    self._room.wait_for(lambda: self._stopped or len(self._buffer) < BUFFER)
                    if self._stopped:
                        return
        except BaseException as error:
            self.failure = error


def python_spool(name: str, source: Source, root: Path, settings: Mapping[str, Any]) -> PythonSpool:
    """Makes the spool of ``engine.stream(name, source, columns= | schema=, ...)``. Raises
    ``UsageError``.
    """
    known = (ArrowFrame, RdfGraph, Iterable)
    if source is not None and not callable(source) and not isinstance(source, known):
        raise UsageError(
            f"The source of the stream {name} is {type(source).__name__}.",
            hint="Give a path, a frame, an RDF graph, an iterable of rows, or a function.",
        )
    options = {key: value for key, value in settings.items() if key not in _OWN}
    columns = tuple(settings.get("columns") or ())
    tuples = bool(settings.get("tuples") or options.get("schema") or options.get("mapping")) or (
        isinstance(source, ArrowFrame) and not columns
    )
    _check_given(name, source, settings, tuples)
    if isinstance(source, ArrowFrame):
        frame = frame_of(source)  # pandas' frames are copied again at the start
        if tuples and options.get("mapping") is None:
            options.setdefault("schema", schema_of(frame))
            _check_time(name, frame, str(options.get("time") or "field:ts"))
    if not tuples and str(options.get("time", "")).startswith("predicate:"):
        options.setdefault("element", "subject")
    columns = () if tuples else columns or STATEMENT
    options["format"] = "parquet" if tuples else "nt" if len(columns) == 4 else "nq"
    config = StreamConfig.from_options(name, spool_folder(root, name) / "data", **options)
    return PythonSpool(Shape(replace(config, settled=True), columns), source)


def _check_given(name: str, source: Source, settings: Mapping[str, Any], tuples: bool) -> None:
    columns = settings.get("columns") or ()
    timed = not tuples and not isinstance(source, RdfGraph)
    wrong = (
        (bool(settings.get("text")), "text= is for DataFrames of Spark.", "Rows may be lines."),
        (
            tuples and bool(columns),
            "columns= are of statements, not of tuples.",
            "Say one of them.",
        ),
        (
            bool(columns) and len(columns) not in (4, 5),
            f"these are {len(columns)} columns=.",
            "Say s, p, o, ts or s, p, o, g, ts.",
        ),
        ("format" in settings, "its batches are written by Levada.", "Leave format= out."),
        ("files" in settings, "its batches are one sequence.", "Leave files= out."),
        (
            timed and settings.get("time") is not None,
            "the last column is the time.",
            "Leave time= out.",
        ),
        (
            isinstance(source, RdfGraph)
            and not str(settings.get("time", "")).startswith("predicate:"),
            "an RDF graph has no times.",
            "Say time=predicate:IRI, or give rows (graph, time).",
        ),
        (
            tuples
            and not isinstance(source, ArrowFrame)
            and not settings.get("schema")
            and not settings.get("mapping"),
            "rows that are tuples need a schema.",
            "Say schema={'k': 'integer', ...}.",
        ),
    )
    for broken, message, hint in wrong:
        if broken:
            raise UsageError(f"The stream {name}: {message}", hint=hint)


def _check_time(name: str, frame: pl.DataFrame, time_: str) -> None:
    """Checks that a frame has its time column; without ``time=`` the column ``ts``."""
    column = time_.partition(":")[2]
    if column in frame.columns:
        return
    times = [n for n, kind in frame.schema.items() if kind.is_temporal()] or ["NAME"]
    raise UsageError(
        f"The frame of the stream {name} has no column {column} of times.",
        hint=f"Say time='field:{times[0]}'. Its columns: {', '.join(frame.columns)}.",
    )


def _parts(name: str) -> tuple[int, str]:
    """Returns the number of rows up to a batch, and the digest of the last frame."""
    count, _, rest = name.partition("-")
    return (int(count), rest.partition(".")[0]) if name else (0, _NO_FRAME)


def _digest(batch: Batch) -> str:
    """Returns the digest that identifies a frame."""
    if isinstance(batch, pl.Series):
        return xxhash.xxh3_64_hexdigest(join_lines(batch))
    whole = io.BytesIO()
    batch.write_ipc(whole)
    return xxhash.xxh3_64_hexdigest(whole.getbuffer())

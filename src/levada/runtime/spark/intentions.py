"""Structured Streaming drives the epochs: a streaming source whose offset is the intention (design, section 3).

One streaming query reads our Python data source. Spark asks the source for its latest offset; the source, which runs in a
process of its own, asks this process over a local socket; and the answer is the next *intention* as JSON, or, as long as
there is nothing to do, the offset that Spark has. So

    Spark's offset log is the write-ahead log: an intention is in it before anything of its epoch happens;
    the commit log says which epochs are over;
    an epoch that did not end is run again after a restart, with its own intention from the log.

The query's batches hold no data and are never read: ``foreachBatch`` takes its intention from the offset log and calls
``run_epoch``. Invariants: one epoch at a time; ``next_intention`` is called only after the epoch before is committed, with the
intention of that epoch as it is in the log (JSON with normalised spaces), None at the very first.

Cost: about 25 ms a batch; while there is nothing to do, ``next_intention`` is asked every ``ask_every`` seconds in this process,
and Spark polls about 8 times a second.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from levada.errors import CheckpointError, EngineError
from levada.runtime.spark.executor import cause
from levada.runtime.spark.session import FILE_MANAGER, STREAMING

_SOURCE = "levada"
_HOLD = 0.1  # seconds; the longest that Spark waits for an answer
_NONE_YET: dict[str, int] = {}  # the offset before the first intention


class IntentionSource(DataSource):  # type: ignore[misc]
    """The streaming source; its option ``socket`` is the path of the engine's socket."""

    @classmethod
    def name(cls) -> str:
        """The format name."""
        return _SOURCE

    def schema(self) -> str:
        """One column, in which there is never a row."""
        return "nothing string"

    def streamReader(self, schema: Any) -> IntentionReader:  # noqa: N802 (Spark's name)
        """The reader, which runs in a process of Spark's."""
        return IntentionReader(self.options["socket"])


class IntentionReader(DataSourceStreamReader):  # type: ignore[misc]
    """Asks the engine for the next offset, a line each way."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lines: Any = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
        """The offset before the first intention."""
        return _NONE_YET

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """The next intention, or ``start`` if there is none."""
        if self._lines is None:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.connect(self._path)
            self._lines = connection.makefile("rw", encoding="utf-8")
        self._lines.write(json.dumps(start) + "\n")
        self._lines.flush()
        answer: dict[str, Any] = json.loads(self._lines.readline())
        return answer

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """One split, which nobody reads."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
        """No rows."""
        return iter(())


class SparkLoop:
    """Runs epochs until it is stopped, or one fails.

    ``checkpoint`` is the folder of Spark's logs. ``next_intention(last)`` returns JSON with at least ``{"epoch": n}``, or None
    for now; ``run_epoch(intention)`` does the epoch and returns when it is committed. Both are called in this process, on
    threads of the loop. Epochs start at least ``min_interval_ms`` apart.
    """

    def __init__(
        self,
        session: SparkSession,
        checkpoint: Path,
        next_intention: Callable[[str | None], str | None],
        run_epoch: Callable[[str], None],
        min_interval_ms: int = 0,
        *,
        ask_every: float = 0.01,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session, self._checkpoint = session, checkpoint
        self._next_intention, self._run_epoch = next_intention, run_epoch
        self._interval, self._ask_every, self._clock = min_interval_ms / 1000, ask_every, clock
        self._next_start = clock()
        self._woken, self._stopping = threading.Event(), threading.Event()
        self._quiet, self._started, self._ended = threading.Event(), threading.Event(), threading.Event()
        self._failure: BaseException | None = None
        self._query: Any = None
        self._offsets: Any = None

    @property
    def failure(self) -> BaseException | None:
        """Why the loop ended by itself: what ``run_epoch`` or ``next_intention`` raised, or an ``EngineError``; else None."""
        return self._failure

    def start(self) -> None:
        """Start the streaming query; an epoch that did not end before runs first."""
        folder = tempfile.mkdtemp(prefix="levada-", dir=_short_temporary_folder())
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(f"{folder}/s")
        listener.listen()
        _thread("levada intentions", self._accept, listener)
        try:
            self._query = self._start_query(f"{folder}/s")
        except (Py4JError, PySparkException) as error:
            _close(listener, folder)
            self._ended.set()
            raise CheckpointError(f"Spark cannot keep its logs in {self._checkpoint}: {cause(error)}") from error
        self._offsets = self._query._jsq.streamingQuery().offsetLog()
        self._started.set()
        _thread("levada loop", self._watch, listener, folder)

    def wake(self) -> None:
        """Ask ``next_intention`` at once: something happened."""
        self._woken.set()

    def request_stop(self) -> None:
        """Stop after the current epoch; does not wait, so ``run_epoch`` may call it."""
        self._stopping.set()
        self._woken.set()

    def stop(self, timeout: float | None = None) -> bool:
        """Stop after the current epoch; False if it has not ended within ``timeout`` seconds."""
        self.request_stop()
        return self.await_end(timeout)

    def await_end(self, timeout: float | None = None) -> bool:
        """Wait until the loop has ended, by ``stop`` or a failure; False if not within ``timeout`` seconds."""
        return self._ended.wait(timeout)

    # -- the query ------------------------------------------------------------------------------------------------------------

    def _start_query(self, path: str) -> Any:
        session = self._session
        session.dataSource.register(IntentionSource)
        stream = session.readStream.format(_SOURCE).option("socket", path).load()
        writer = stream.writeStream.option("checkpointLocation", str(self._checkpoint))
        gateway = session.sparkContext._gateway
        helper = gateway.jvm.org.apache.spark.sql.execution.streaming.sources.PythonForeachBatchHelper
        helper.callForeachBatch(writer._jwrite, _Batch(self._on_batch))
        ensure_callback_server_started(gateway)
        with _settings(session, self._local_settings()):
            return writer.start()

    def _local_settings(self) -> dict[str, str]:
        """Settings for the query, also in a session of the user's."""
        local = "://" not in str(self._checkpoint)
        return STREAMING | ({"spark.sql.streaming.checkpointFileManagerClass": FILE_MANAGER} if local else {})

    def _on_batch(self, batch: int) -> None:
        """Run the epoch of a batch. What it raises is kept here; Spark only learns that the batch failed."""
        try:
            self._started.wait()
            self._run_epoch(self._offsets.get(batch).get().offsets().head().get().json())
        except BaseException as error:
            self._failure = error
            raise

    def _watch(self, listener: socket.socket, folder: str) -> None:
        """Stop the query when it is quiet, and keep why it ended otherwise."""
        try:
            _thread("levada stop", self._stop_when_quiet)
            self._query.awaitTermination()
        except Exception as error:
            if self._failure is None and not self._quiet.is_set():
                self._failure = EngineError(f"Spark's streaming query ended: {cause(error)}")
        finally:
            self._stopping.set()
            self._quiet.set()
            _close(listener, folder)
            self._ended.set()

    def _stop_when_quiet(self) -> None:
        self._quiet.wait()
        with contextlib.suppress(Exception):  # it may have ended by itself; then awaitTermination says why
            self._query.stop()

    # -- the socket -----------------------------------------------------------------------------------------------------------

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # closed at the end
            while True:
                connection, _ = listener.accept()
                _thread("levada intention", self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection, connection.makefile("rw", encoding="utf-8") as lines:
            for line in lines:
                lines.write(self._answer(line.rstrip("\n")) + "\n")
                lines.flush()

    def _answer(self, last: str) -> str:
        """The next intention as one line of JSON; ``last`` if there is none within the time that Spark may wait.

        That Spark asks says that the last batch is committed; so when the loop is to stop, this is the moment.
        """
        deadline = self._clock() + _HOLD
        while not self._stopping.is_set():
            try:
                intention = self._due(last)
            except BaseException as error:
                self._failure = error
                self.request_stop()
                break
            if intention is not None:
                return json.dumps(json.loads(intention))
            if self._clock() >= deadline:
                return last
            self._woken.wait(self._ask_every)
            self._woken.clear()
        self._quiet.set()
        return last

    def _due(self, last: str) -> str | None:
        """The next intention, if the least interval is over and there is one."""
        now = self._clock()
        if now < self._next_start:
            return None
        intention = self._next_intention(None if json.loads(last) == _NONE_YET else last)
        if intention is not None:
            self._next_start = now + self._interval
        return intention


class _Batch:
    """The JVM's view of ``foreachBatch``: without pyspark's wrapping of a DataFrame that nobody reads."""

    def __init__(self, run: Callable[[int], None]) -> None:
        self._run = run

    def call(self, frame: Any, batch: int) -> None:
        self._run(batch)

    class Java:
        """The interface that py4j lets this class implement."""

        implements = ("org.apache.spark.sql.execution.streaming.sources.PythonForeachBatchFunction",)


@contextlib.contextmanager
def _settings(session: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Set session settings for a block; a query keeps those of its start."""
    before = {name: session.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)


def _short_temporary_folder() -> str:
    """A folder for sockets, whose paths may have about 100 bytes only."""
    usual = tempfile.gettempdir()
    return usual if len(usual.encode()) <= 60 else "/tmp"


def _thread(name: str, run: Callable[..., None], *args: Any) -> None:
    threading.Thread(target=run, args=args, name=name, daemon=True).start()


def _close(listener: socket.socket, folder: str) -> None:
    with contextlib.suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept, which close alone does not
    listener.close()
    shutil.rmtree(folder, ignore_errors=True)

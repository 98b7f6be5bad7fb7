"""Checks that executors see the files that they will read and write, and run this version of
Levada. Executors are checked when a session on a cluster is ready, before anything is read; later
ones are checked before they receive work (docs/deployment/spark.md#a-cluster-of-spark).

The driver leaves a sign in the checkpoint. Each executor looks for it, writes beside it, and looks
at the files of streams and static data that the driver sees. Equal paths are not enough: another
host may have its own folder under the same path. Files may be deleted meanwhile: an executor that
misses a file which the driver does not see any more, either, is asked again.

A problem is an answer, not a failure: Spark would run a failed task at another executor, which sees
all. An executor without an answer, at which tasks have failed, cannot run them.
"""

from __future__ import annotations

import os
import platform
import secrets
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from py4j.protocol import Py4JJavaError

from levada.checkpoint.executor_affinity import executor_here
from levada.core.checkpoint_files import FORMAT
from levada.core.user_functions import declare_as_driver, places
from levada.errors import (
    SHARED,
    CheckpointError,
    EngineError,
    LevadaError,
    LostTaskError,
    SourceError,
    UsageError,
)
from levada.runtime.executor import OUTCOME, Blob, Executor, Job

HERE = "levada.runtime.spark.executor_checks"
EVERYWHERE = "Every host needs this version under the path of Python that PYSPARK_PYTHON says."
OTHERS = "If its user is another one than the driver's, say --checkpoint-mode group."
TOGETHER = 0.2  # s that a task takes, so that each executor receives one
ROUNDS = 5  # while executors join


class DriverView(msgspec.Struct):
    """The driver's view: the checkpoint with its ``sign``, for each path its size (-1: a folder)
    and the first name in it, and the places and folders of the user's functions.
    """

    root: str
    sign: str
    version: str
    paths: list[tuple[str, int, str]]
    functions: tuple[list[str], list[str]] = ([], [])


class Answer(msgspec.Struct):
    """The answer of an executor: its problem ("": none)."""

    executor: str
    kind: str = ""  # of error
    message: str = ""
    hint: str = ""


KINDS: dict[str, type[LevadaError]] = {
    kind.__name__: kind for kind in (EngineError, CheckpointError, SourceError)
}


class ExecutorChecks:
    """Tracks which executors of a session are checked. ``read``: the paths that are read by now.
    Call it with the present executors before each epoch. Raises like ``probe``.

    Executors that join others are checked beside the epochs: their Python takes as long to answer
    as Levada takes to start. Meanwhile their processors are busy with it, so Spark runs nothing
    else there.
    """

    def __init__(
        self, session: Any, executor: Executor, root: Path, read: Callable[[], Sequence[str]]
    ) -> None:
        self._session, self._executor, self._root, self._read = session, executor, root, read
        self._responding = frozenset[str]()
        self._answer: Future[frozenset[str]] | None = None

    def __call__(self, there: Collection[str], *, wait: bool = False) -> frozenset[str]:
        """Returns the executors that are known to see everything; ``wait``: after checking all of
        them.
        """
        answer = self._answer
        if answer is not None and (wait or answer.done() or self._responding.isdisjoint(there)):
            self._answer = None
            self._responding = answer.result()
        if not self._responding.issuperset(there):
            if wait or self._responding.isdisjoint(there):
                self.ask()
            elif self._answer is None:
                self._answer = self._begin()
        return self._responding.intersection(there)

    def ask(self) -> None:
        """Checks the present executors."""
        self._responding = probe(self._session, self._executor, self._root, self._read())

    def _begin(self) -> Future[frozenset[str]]:
        """Checks executors in a thread of its own, for which the process does not wait when it
        ends.
        """
        answer, paths = Future[frozenset[str]](), self._read()

        def ask() -> None:
            try:
                answer.set_result(probe(self._session, self._executor, self._root, paths))
            except BaseException as error:
                answer.set_exception(error)

        threading.Thread(target=ask, name="levada-sight", daemon=True).start()
        return answer


def probe(session: Any, executor: Executor, root: Path, paths: Sequence[str]) -> frozenset[str]:
    """Checks every present executor and returns their names. Raises ``LevadaError`` with host and
    path.
    """
    spark, sign = session.sparkContext, f".sign.{secrets.token_hex(8)}"
    (root / sign).write_bytes(b"")
    try:
        executors, heard, silent = _executors(spark), set[str](), frozenset[str]()
        failed = {name: _summary(spark, name)[1] for name in executors}
        for _ in range(ROUNDS):
            view = DriverView(str(root.absolute()), sign, version(), _stamps(paths), places())
            answers = _ask(executor, view, 2 * max(spark.defaultParallelism, 1))
            heard |= {answer.executor for answer in answers}
            wrong = next((answer for answer in answers if answer.kind), None)
            if wrong is not None and all(_is_there(*path) for path in view.paths):
                raise KINDS[wrong.kind](wrong.message, hint=wrong.hint)
            executors, before = _executors(spark), executors
            # if no executor has reported
            silent = frozenset[str]() if "" in heard else executors - heard
            if wrong is None and executors and executors <= before and not silent:
                break
        _check_heard(spark, silent, failed)
        return executors
    finally:
        (root / sign).unlink(missing_ok=True)


def _check_heard(spark: Any, silent: Collection[str], failed: Mapping[str, int]) -> None:
    """Raises ``EngineError`` if tasks have failed at one of these executors; others are only
    busy.
    """
    for name in sorted(silent):
        host, now = _summary(spark, name)
        if now > failed.get(name, 0):
            raise EngineError(
                f"The executor on {host} cannot run Levada {version()}: all tasks fail there.",
                hint=EVERYWHERE,
            )


def _executors(spark: Any) -> frozenset[str]:
    """Returns the executors of a session."""
    ids = str(spark._jsc.sc().getExecutorIds().mkString(","))
    return frozenset(filter(None, ids.split(",")))


def _summary(spark: Any, name: str) -> tuple[str, int]:
    """Returns the host of an executor, and the number of failed tasks there; ("", 0): unknown
    yet.
    """
    try:
        summary = spark._jsc.sc().statusStore().executorSummary(name)
        return str(summary.hostPort()).rpartition(":")[0], int(summary.failedTasks())
    except Py4JJavaError:
        return "", 0


def _ask(executor: Executor, view: DriverView, tasks: int) -> list[Answer]:
    functions = (f"{HERE}:look", f"{HERE}:collect_answers")
    try:
        outcomes = executor.run(Job(msgspec.json.encode(view), [b""] * tasks, 1, 1, functions))
        return [
            answer for one in outcomes for answer in msgspec.json.decode(one, type=list[Answer])
        ]
    except LostTaskError as error:  # after the start the epoch runs again
        raise LostTaskError(
            f"An executor cannot run Levada {version()}: {error.message}",
            hint=EVERYWHERE,
        ) from error
    except LevadaError:
        raise
    except Exception as error:  # its code differs
        raise EngineError(
            f"An executor runs another version of Levada than {version()}: {error}.",
            hint="Install the same version on every host.",
        ) from error


def look(context: bytes, payload: bytes) -> list[tuple[int, Blob]]:
    """Checks this executor; returns its answer."""
    answer = Answer(executor_here())
    try:
        _look(msgspec.json.decode(context, type=DriverView), platform.node())
    except LevadaError as error:
        answer = Answer(answer.executor, type(error).__name__, error.message, error.hint)
    time.sleep(TOGETHER)
    return [(0, msgspec.json.encode(answer))]


def collect_answers(
    context: bytes, stage: int, partition: int, blobs: list[Blob]
) -> list[tuple[int, Blob]]:
    """Returns all answers."""
    answers = [msgspec.json.decode(blob, type=Answer) for blob in blobs]
    return [(OUTCOME, msgspec.json.encode(answers))]


def _look(view: DriverView, host: str) -> None:
    """Checks this executor. Raises ``LevadaError``."""
    if version() != view.version:
        raise EngineError(
            f"The executor on {host} runs Levada {version()}, and the driver {view.version}.",
            hint="Install the same version on every host.",
        )
    if not os.path.exists(os.path.join(view.root, view.sign)):
        raise CheckpointError(
            f"The executor on {host} does not see the checkpoint {view.root}.",
            hint=f"{SHARED} {OTHERS}",
        )
    _write(view, host)
    try:
        declare_as_driver(*view.functions)
    except UsageError as error:
        raise EngineError(f"The executor on {host}: {error.message}", hint=error.hint) from error
    for path, size, first in view.paths:
        if not _is_there(path, size, first):
            message = f"The executor on {host} does not see {path}, which the driver reads."
            raise SourceError(message, hint=SHARED)


def version() -> str:
    """Returns this version of Levada, with that of the checkpoint's format."""
    # not imported: the package imports all packages above this one
    levada: Any = sys.modules["levada"]
    return f"{levada.__version__} (format {FORMAT})"


def _write(view: DriverView, host: str) -> None:
    path = os.path.join(view.root, f".sign.{secrets.token_hex(8)}")
    try:
        with open(path, "xb"):
            os.unlink(path)
    except OSError as error:
        raise CheckpointError(
            f"The executor on {host} cannot write to the checkpoint {view.root}: {error.strerror}.",
            hint=OTHERS,
        ) from error


def _stamps(paths: Sequence[str]) -> list[tuple[str, int, str]]:
    """Returns the stamps of the paths that exist."""
    stamps = []
    for path in sorted({os.path.abspath(p) for p in paths}):
        with suppress(OSError):  # it has just been deleted
            stamps.append(_stamp(path))
    return stamps


def _stamp(path: str) -> tuple[str, int, str]:
    if os.path.isdir(path):
        return path, -1, min(os.listdir(path), default="")
    return path, os.path.getsize(path), ""


def _is_there(path: str, size: int, first: str) -> bool:
    """Whether a path is as the driver sees it; files may have grown."""
    try:
        if size < 0:
            return os.path.isdir(path) and (not first or os.path.lexists(os.path.join(path, first)))
        return os.path.getsize(path) >= size
    except OSError:
        return False

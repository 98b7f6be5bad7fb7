"""Starts Spark as an executor: the JVM first, pyspark beside it, then a job that does nothing.

After that job the daemon has been forked and has loaded its modules and kernels, and the JVM its
classes. So the first epoch on Spark costs as much as the next ones. Imports no pyspark before the
JVM is starting.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from levada.errors import LostTaskError
from levada.runtime.executor import Executor, Job
from levada.runtime.spark.jvm_process import STARTING, EndedError, Jvm
from levada.runtime.spark.spark_settings import (
    running_context,
    session_environment,
    session_settings,
    shares_host,
)
from levada.runtime.warmup_executor import WarmupExecutor

ATTEMPTS = 3  # at the first job
_FUNCTIONS = (
    "levada.runtime.spark.spark_tasks:idle_intake",
    "levada.runtime.spark.spark_tasks:idle_stage",
)


def warm(executor: Executor) -> None:
    """Runs a job that does nothing; repeats it if its tasks are lost, like an epoch: a worker that
    was killed while Spark started does not end the engine. Raises ``LostTaskError``.
    """
    for left in reversed(range(ATTEMPTS)):
        try:
            executor.run(Job(b"", [b"", b""], 1, 2, _FUNCTIONS))
            return
        except LostTaskError:
            if not left:
                raise


class SparkStart:
    """The start of a session of our own (``runtime.warmup_executor.ExecutorStartup``).

    ``scratch`` is a local folder for Spark's files and its log. ``lasting``: it is not in a
    temporary checkpoint. ``read``: the paths that will be read. ``conf``: further
    settings of Spark.
    """

    def __init__(
        self,
        master: str,
        scratch: Path,
        *,
        lasting: bool,
        read: Callable[[], Sequence[str]],
        conf: Mapping[str, str] = {},
    ) -> None:
        self._conf = conf
        self._master, self._scratch, self._read, self._lasting = master, scratch, read, lasting
        self._environment: dict[str, str] = {}
        self._jvm = Jvm()
        self._guard = threading.Lock()
        self._session: Any = None

    def find(self) -> None:
        """Looks for a Java. Raises ``JavaError``."""
        if not _has_gateway():
            self._environment = session_environment(self._master, os.environ)

    def start(self) -> Executor:
        """Returns the executor, on a session that has run a job."""
        with STARTING:
            try:
                return self._start_executor()
            except BaseException as error:
                ended = self._jvm.ended
                self._forget()
                if ended:
                    raise EndedError("Spark was ended while it started.") from error
                raise

    def _start_executor(self) -> Executor:
        if not _has_gateway():
            self._scratch.mkdir(parents=True, exist_ok=True)
            settings = session_settings(self._master, self._conf, self._scratch)
            self._jvm.launch(settings, self._environment, self._scratch / "spark.log")
        # here: the JVM starts while this is loaded
        from levada.runtime.spark.spark_executor import SparkExecutor
        from levada.runtime.spark.spark_session import start_session

        session = start_session(
            self._master, config=self._conf, scratch=self._scratch, jvm=self._jvm
        )
        executor = SparkExecutor(session)
        if self._lasting and not shares_host(self._master):
            from levada.runtime.spark.executor_checks import ExecutorChecks

            executor.sight = sight = ExecutorChecks(
                session, executor, self._scratch.parent, self._read
            )
            sight.ask()
        warm(executor)
        self._settle(session)
        return executor

    def _forget(self) -> None:
        """Ends a JVM of ours, and removes pyspark's part of it."""
        if self._jvm.process is None:
            return
        self._jvm.end()
        if "levada.runtime.spark.spark_session" in sys.modules:
            from levada.runtime.spark.spark_session import forget_session

            forget_session()

    def _settle(self, session: Any) -> None:
        """Registers the started session, unless the start was ended meanwhile."""
        from levada.runtime.spark.spark_session import stop_session

        with self._guard:
            if not self._jvm.ended:
                self._session = session
                return
        stop_session(session)
        raise EndedError("Nobody waits for Spark any more.")

    def check(self) -> None:
        """Raises ``EngineError`` if the JVM of the session has ended."""
        session = self._session
        if session is not None:
            from levada.runtime.spark.jvm_failure import check

            check(session.sparkContext)

    def end(self) -> None:
        """Stops the session if nobody else uses it; ends a start in progress."""
        with self._guard:
            session, self._session = self._session, None
            if session is None:
                self._jvm.ended = True
        if session is None:
            self._jvm.end()
            return
        from levada.runtime.spark.spark_session import stop_session

        stop_session(session)


def start_late(
    master: str,
    scratch: Path,
    *,
    lasting: bool,
    read: Callable[[], Sequence[str]],
    conf: Mapping[str, str] = {},
) -> WarmupExecutor:
    """Returns an executor on a session of our own that starts in the background, or on the present
    session (see ``SparkStart``).
    """
    late = WarmupExecutor(
        SparkStart(master, scratch, lasting=lasting, read=read, conf=conf),
        here=shares_host(master),
    )
    if has_session():
        late.await_warm()
    return late


def has_session() -> bool:
    """Whether this process already has a session."""
    return running_context() is not None


def _has_gateway() -> bool:
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return context is not None and context._gateway is not None

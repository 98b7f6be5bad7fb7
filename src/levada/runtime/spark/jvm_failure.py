"""Reports an ended JVM, such as one that the system has killed for lack of memory, as one sentence
without the output of py4j and pyspark.
"""

from __future__ import annotations

import logging
import signal
import subprocess
import warnings
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from levada.errors import EngineError

GONE = (Py4JError, OSError, EOFError)
"""The errors that calls of an ended JVM raise, among others."""
PATIENCE = 2.0  # s until a process whose connection broke has ended


def silence_py4j() -> None:
    """Silences the messages of py4j, on its own and on the root logger: tracebacks of failing
    callbacks, and of calls to an ended JVM.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    root = logging.getLogger()
    if _not_of_py4j not in root.filters:
        root.addFilter(_not_of_py4j)


def keep_quiet(context: SparkContext) -> None:
    """Silences the messages of py4j, and of pyspark's accumulator server (on standard error), about
    an ended JVM, which Levada reports once.
    """
    silence_py4j()
    server: Any = context._accumulatorServer
    server.handle_error = lambda request, address: None


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return record.module not in ("java_gateway", "clientserver")


def check(context: SparkContext) -> None:
    """Raises the error if the context's JVM has ended; does not wait."""
    process: subprocess.Popen[bytes] | None = getattr(context._gateway, "proc", None)
    if (
        process is not None
        and process.poll() is not None
        and (failure := jvm_failure(context)) is not None
    ):
        raise failure


def jvm_failure(context: SparkContext) -> EngineError | None:
    """Returns the error if the context's JVM has ended; None as long as it lives, or is not
    ours.
    """
    gateway = context._gateway
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None:
        return None
    try:
        code = process.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return None
    how = f"with code {code}"
    if code < 0:
        how = f"by signal {-code} ({signal.Signals(-code).name})"
    want = " The system does that when memory runs out." if code == -signal.SIGKILL else ""
    return EngineError(
        f"Spark's Java process was ended {how} in mid-run.{want}",
        hint="Start again: with --checkpoint the run goes on after the last epoch that was "
        "committed.",
    )


def stop(session: SparkSession) -> None:
    """Stops a session; if its JVM has ended, removes Python's part of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the error that reports the ended JVM
        try:
            session.stop()
        except (Py4JError, OSError):
            session.sparkContext.stop()  # from now on without calls into the JVM
            SparkSession._instantiatedSession = SparkSession._activeSession = None

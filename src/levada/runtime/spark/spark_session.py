"""Starts a Spark session for Levada: quiet, with the settings of its path (``spark_settings``), on
a JVM of its own (``jvm_process``).

The output of the JVM and of the Python workers goes to ``spark.log`` in the scratch folder. The
environment of this process stays unchanged, and so does its handler of SIGINT, which pyspark
replaces.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession as SparkSession

from levada.errors import EngineError
from levada.runtime.spark import jvm_failure
from levada.runtime.spark.jvm_process import Jvm
from levada.runtime.spark.spark_executor import cause
from levada.runtime.spark.spark_settings import EXECUTION, session_environment, session_settings

OF_PYSPARK = ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")

GIVEN_UP = (
    # the message of a session whose context has stopped for want of a master
    "stopped SparkContext"
)

_users: Counter[SparkContext] = Counter()  # of the sessions started here, by their contexts


def start_session(
    master: str = "local[*]",
    *,
    config: Mapping[str, str] | None = None,
    scratch: Path,
    jvm: Jvm | None = None,
) -> SparkSession:
    """Starts a Spark session for Levada; ``config`` overrides our settings. ``jvm``: a JVM that is
    already starting.

    ``scratch`` is a local folder for Spark's files and its log. If this process already has a
    session, it is used unchanged, with a warning for each missing setting. Match each call by one
    of ``stop_session``. Raises ``JavaError`` if there is no Java or its JVM does not start.
    """
    if SparkContext._active_spark_context is not None:
        return _running_session()
    scratch.mkdir(parents=True, exist_ok=True)
    settings = session_settings(master, config or {}, scratch)
    jvm_failure.silence_py4j()
    if SparkContext._gateway is None:
        _connect(jvm or _launch(master, settings, scratch))
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with _environment({"PYSPARK_PYTHON": sys.executable}), _sigint_kept():
            session = builder.getOrCreate()
    except (Py4JError, PySparkException) as error:
        reason = cause(error)
        why = "its master does not answer." if GIVEN_UP in reason else reason
        raise EngineError(
            f"Spark did not start on {master}: {why}", hint=f"See {scratch}/spark.log."
        ) from error
    _users[session.sparkContext] += 1
    return session


def _launch(master: str, settings: Mapping[str, str], scratch: Path) -> Jvm:
    jvm = Jvm()
    jvm.launch(settings, session_environment(master, os.environ), scratch / "spark.log")
    return jvm


def _connect(jvm: Jvm) -> None:
    """Connects pyspark to a JVM when it listens; ends a JVM that fails during its start."""
    try:
        with _environment(jvm.await_port()):
            gateway = launch_gateway()
        gateway.proc = jvm.process
        SparkContext._ensure_initialized(gateway=gateway)
    except BaseException:
        jvm.end()
        raise
    jvm.mark_started()


def forget_session() -> None:
    """Removes pyspark's part of a session whose JVM has been ended."""
    _users.clear()
    SparkContext._gateway = SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def _running_session() -> SparkSession:
    session = SparkSession.builder.getOrCreate()
    for sentence in missing_settings(session):
        warnings.warn(sentence, stacklevel=3)
    if session.sparkContext in _users:
        _users[session.sparkContext] += 1
    return session


def stop_session(session: SparkSession) -> None:
    """Stop Spark and its JVM, if ``start_session`` started it and nobody else uses it; a later
    start is a new JVM.
    """
    context = session.sparkContext
    if context not in _users:
        return
    _users[context] -= 1
    if _users[context]:
        return
    del _users[context]
    gateway = context._gateway
    jvm_failure.stop(session)
    process: subprocess.Popen[bytes] | None = gateway.proc
    with contextlib.suppress(Py4JError, OSError):
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    if process is not None and process.stdin is not None:
        process.stdin.close()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()


def missing_settings(session: SparkSession) -> list[str]:
    """Returns a sentence for each important setting that a user's session lacks.

    The session is used unchanged: results are the same, epochs are slower.
    """
    conf = session.sparkContext.getConf()
    return [
        f"The Spark session has {name}={conf.get(name, '(unset)')}; "
        f"Levada's epochs are faster with {name}={value}."
        for name, value in EXECUTION.items()
        if conf.get(name, "true" if name == "spark.python.worker.reuse" else "(unset)") != value
    ]


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a block and the processes that start in it. Removes pyspark's
    own variables, without which it uses the same numbers.
    """
    before = {name: os.environ.get(name) for name in (*variables, *OF_PYSPARK)}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _sigint_kept() -> Iterator[None]:
    """Undo pyspark's handler of SIGINT, which would cancel the epoch in flight."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)

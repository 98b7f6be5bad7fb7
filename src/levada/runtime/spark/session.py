"""Starting Spark for Levada: quietly, with the settings of its path, in its own process group.

What is set and why (measured on 2 cores; docs/decisions/0006-our-own-loop.md):

- Python: sockets in the file system (loopback TCP costs 40 ms a stage), our daemon, workers used
  again, one thread each for Polars, BLAS, Arrow and numba (Spark's cores are the parallelism);
  glibc keeps freed memory instead of fetching zeroed pages for each array anew (15 to 20 % of a
  worker's time);
- JVM: the serial collector and the first compiler only, since it just moves blobs; Spark's own jar
  first on the class path, because each job's closures are looked up along it;
- scheduling: no waiting for locality; shuffle files uncompressed and without checksums (blobs take
  care of themselves).

The JVM starts in a session of its own, so that Ctrl-C reaches this process only; it ends when this
process does, since Spark watches the pipe to it. Its output, with that of the Python workers, goes
to ``spark.log`` in the scratch folder. The environment of this process is left as it was, and so is
its handler of SIGINT, which pyspark replaces.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from levada.errors import EngineError, JavaError
from levada.runtime.spark.executor import cause, shares_host
from levada.runtime.spark.java import find_java

DAEMON = "levada.runtime.spark.daemon"
JVM_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
# bytes; glibc's most
KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(256 << 20)}
ONE_THREAD = dict.fromkeys(
    ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)

EXECUTION = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": DAEMON,
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.shuffle.checksum.enabled": "false",
    "spark.shuffle.reduceLocality.enabled": "false",
    "spark.broadcast.compress": "false",
    "spark.locality.wait": "0",
}
"""What an epoch's job needs to be fast; a session of the user's should have the same."""

QUIET = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "40",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "1",
}

UNSHARED = (
    "The checkpoint is temporary, and hosts beside this one do not see it. "
    "Give one on storage that all of them share."
)

GIVEN_UP = (
    "stopped SparkContext"  # what a session says whose context has stopped for want of a master
)

_users: Counter[str] = Counter()  # of the sessions started here, by Spark's application id


def start_session(
    master: str = "local[*]",
    *,
    config: Mapping[str, str] | None = None,
    scratch: Path,
    kept: bool = True,
) -> SparkSession:
    """A Spark session for Levada; ``config`` is added to our settings and wins.

    ``scratch`` is a local folder for Spark's files and its log; not ``kept``: it is in a temporary
    checkpoint, of which a cluster's user is warned. If this process has a session already, that is
    used as it is, with a warning for each setting that it lacks. Each call is to be matched by one
    of ``stop_session``. Errors: ``JavaError`` if there is no Java or its JVM does not start.
    """
    if SparkContext._active_spark_context is not None:
        return _running_session()
    if not (kept or shares_host(master)):
        warnings.warn(UNSHARED, stacklevel=3)
    scratch.mkdir(parents=True, exist_ok=True)
    settings = session_settings(master, config or {}, scratch)
    environment = session_environment(master, os.environ)
    # it prints the traceback of every failing callback
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    with _environment(environment), _sigint_kept():
        _launch(settings, scratch / "spark.log")
        builder = SparkSession.builder
        for name, value in settings.items():
            builder = builder.config(name, value)
        try:
            session = builder.getOrCreate()
        except (Py4JError, PySparkException) as error:
            said = cause(error)
            why = "its master does not answer." if GIVEN_UP in said else said
            raise EngineError(
                f"Spark did not start on {master}: {why}", hint=f"See {scratch}/spark.log."
            ) from error
    _users[session.sparkContext.applicationId] += 1
    return session


def _running_session() -> SparkSession:
    session = SparkSession.builder.getOrCreate()
    for sentence in missing_settings(session):
        warnings.warn(sentence, stacklevel=3)
    if session.sparkContext.applicationId in _users:
        _users[session.sparkContext.applicationId] += 1
    return session


def stop_session(session: SparkSession) -> None:
    """Stop Spark and its JVM, if ``start_session`` started it and nobody else uses it; a later
    start is a new JVM.
    """
    application = session.sparkContext.applicationId
    if application not in _users:
        return
    _users[application] -= 1
    if _users[application]:
        return
    del _users[application]
    gateway = session.sparkContext._gateway
    session.stop()
    process: subprocess.Popen[bytes] | None = gateway.proc
    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    if process is not None and process.stdin is not None:
        process.stdin.close()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()


def session_settings(master: str, config: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """All settings of a session, the user's on top; JVM options are joined.

    >>> settings = session_settings("local[2]", {"spark.ui.enabled": "true"}, Path("/tmp/s"))
    >>> settings["spark.ui.enabled"]
    'true'
    """
    settings = EXECUTION | QUIET | {"spark.app.name": "levada", "spark.master": master}
    settings["spark.sql.warehouse.dir"] = str(scratch / "warehouse")
    settings["spark.local.dir"] = str(scratch / "spark")
    settings["spark.driver.extraJavaOptions"] = settings["spark.executor.extraJavaOptions"] = (
        JVM_OPTIONS
    )
    core = next((Path(_spark_home()) / "jars").glob("spark-core_*.jar"), None)
    if core is not None:
        settings["spark.driver.extraClassPath"] = str(core)
    for name, value in _worker_environment(os.environ).items():
        settings[f"spark.executorEnv.{name}"] = value
    if shares_host(master):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    for name, value in config.items():
        # a JVM refuses two collectors
        joined = name.endswith(".extraJavaOptions") and "-XX:+Use" not in value
        settings[name] = f"{settings.get(name, '')} {value}".strip() if joined else value
    return settings


def session_environment(master: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that Spark's launcher and JVM need beside what is there."""
    wanted = {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        **_worker_environment(environ),
    }
    wanted["JAVA_HOME"] = str(find_java(environ).path)
    if shares_host(master):
        wanted["SPARK_LOCAL_IP"] = "127.0.0.1"
    return wanted


def missing_settings(session: SparkSession) -> list[str]:
    """A sentence for each setting that a session of the user's lacks and that matters.

    The session is used as it is: results are the same, epochs are slower.
    """
    conf = session.sparkContext.getConf()
    return [
        f"The Spark session has {name}={conf.get(name, '(unset)')}; "
        f"Levada's epochs are faster with {name}={value}."
        for name, value in EXECUTION.items()
        if conf.get(name, "true" if name == "spark.python.worker.reuse" else "(unset)") != value
    ]


def _worker_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What Python workers must see: one thread each, and the kernels' cache that this process uses,
    if one is named.
    """
    shared = {
        name: environ[name] for name in ("NUMBA_CACHE_DIR", "LEVADA_CACHE") if environ.get(name)
    }
    return ONE_THREAD | KEPT_MEMORY | shared


def _spark_home() -> str:
    from pyspark.find_spark_home import _find_spark_home

    return str(_find_spark_home())


class _Settings:
    """The part of ``SparkConf`` that the launcher reads; a real one needs a JVM."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings

    def getAll(self) -> list[tuple[str, str]]:  # noqa: N802 (pyspark's name)
        return list(self._settings.items())


def _launch(settings: Mapping[str, str], log: Path) -> None:
    """Start the JVM in its own session, with its output in ``log``, unless this process has one."""
    if SparkContext._gateway is not None:
        return
    before = psutil.Process().children()
    with open(log, "ab") as output:
        start = output.tell()
        try:
            options = {"start_new_session": True, "stdout": output, "stderr": subprocess.STDOUT}
            gateway = launch_gateway(_Settings(settings), options)
        except (PySparkRuntimeError, OSError) as error:
            raise JavaError(
                f"Spark's JVM did not start: {_complaint(log, start) or error}.", hint=f"See {log}."
            ) from error
        except BaseException:
            # a JVM whose port nobody has read does not watch the pipe yet
            _end_new_children(before)
            raise
    SparkContext._ensure_initialized(gateway=gateway)


def _end_new_children(before: Sequence[psutil.Process]) -> None:
    """Ends the processes that this one has started since."""
    for child in psutil.Process().children():
        if child not in before:
            child.kill()


def _complaint(log: Path, start: int) -> str:
    """What the JVM says first, warnings apart."""
    lines = log.read_bytes()[start:].decode(errors="replace").splitlines()
    return next(
        (line.strip(" .") for line in lines if line.strip() and not line.startswith("WARNING")), ""
    )


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a block; what starts in it inherits them."""
    before = {name: os.environ.get(name) for name in variables}
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

"""Defines the settings and variables with which Spark starts. Imports no pyspark: the JVM starts
before that is loaded.

The settings and their reasons (measured on 2 cores; docs/decisions/0006-our-own-loop.md):

- Python: sockets in the file system (loopback TCP costs 40 ms a stage), our daemon, workers used
  again, one thread each for Polars, BLAS, Arrow and numba (Spark's cores are the parallelism);
  glibc keeps freed memory instead of fetching zeroed pages for each array anew (15 to 20 % of a
  worker's time);
- JVM: the serial collector and the first compiler only, since it just moves blobs; Spark's own jar
  first on the class path, because each job's closures are looked up along it;
- scheduling: no waiting for locality but a placement's; shuffle files uncompressed and without
  checksums (blobs take care of themselves).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from levada.checkpoint.object_store.local_state_cache import VARIABLE, bytes_of
from levada.core import cpu_guard
from levada.runtime.spark.find_java import find_java

DAEMON = "levada.runtime.spark.worker_daemon"
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

PLACED = {"spark.locality.wait.process": "1s"}
"""How long a task that prefers an executor (``placed``) waits for that one to have room before it
runs elsewhere; one that is gone is not waited for. Tasks without a preference never wait.
"""

QUIET = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "40",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "1",
}


def session_settings(master: str, config: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Returns all settings of a session, with the user's on top; JVM options are joined.

    >>> settings = session_settings("local[2]", {"spark.ui.enabled": "true"}, Path("/tmp/s"))
    >>> settings["spark.ui.enabled"]
    'true'
    """
    settings = EXECUTION | PLACED | QUIET | {"spark.app.name": "levada", "spark.master": master}
    settings["spark.sql.warehouse.dir"] = str(scratch / "warehouse")
    settings["spark.local.dir"] = str(scratch / "spark")
    settings["spark.driver.extraJavaOptions"] = settings["spark.executor.extraJavaOptions"] = (
        JVM_OPTIONS
    )
    core = next((spark_home() / "jars").glob("spark-core_*.jar"), None)
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
    """Returns the variables that Spark's launcher and JVM need in addition to the environment."""
    wanted = {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        **_worker_environment(environ),
    }
    wanted["JAVA_HOME"] = str(find_java(environ).path)
    if shares_host(master):
        wanted["SPARK_LOCAL_IP"] = "127.0.0.1"
    return wanted


def spark_home() -> Path:
    """Returns Spark's folder: ``SPARK_HOME``, else the package pyspark, which is not imported for
    it.
    """
    if home := os.environ.get("SPARK_HOME"):
        return Path(home)
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None, "pyspark is installed with Levada"
    return Path(spec.origin).parent


def shares_host(master: str) -> bool:
    """Whether all executors of this master run on this host.

    >>> [shares_host(m) for m in ("local[*]", "local-cluster[2,1,512]", "spark://host:7077")]
    [True, False, False]
    """
    return master == "local" or master.startswith("local[")


def running_context() -> Any:
    """Returns the Spark context that this process already has; None: it has none."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return None if context is None else context._active_spark_context


def _worker_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables of Python workers: one thread each, the kernels' cache of this process,
    if one is named, and the size of the host's state cache. Raises ``UsageError``.
    """
    bytes_of(environ)
    names = ("NUMBA_CACHE_DIR", "LEVADA_CACHE", VARIABLE, cpu_guard.VARIABLE)
    shared = {name: environ[name] for name in names if environ.get(name)}
    return ONE_THREAD | KEPT_MEMORY | shared

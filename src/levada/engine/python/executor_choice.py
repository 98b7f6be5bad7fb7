"""The choice of the executor for an engine's epochs: this process, a session of Spark, or a session
that the engine starts.
"""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from levada.checkpoint.object_store.local_state_cache import bytes_of
from levada.core.distribution import require_pyspark
from levada.engine.registry import Registry
from levada.errors import EngineError, UsageError
from levada.runtime.driver.spool_registry import Spools
from levada.runtime.driver.static_graphs import StaticGraphs
from levada.runtime.executor import Executor, LocalExecutor
from levada.runtime.spark.spark_settings import running_context, shares_host

if TYPE_CHECKING:
    from levada.runtime.spark.spark_session import SparkSession

PATIENCE = 20.0  # s for a master that starts together with this process
_MASTERS = re.compile(r"(?:spark://|,)(.+?):(\d+)(?=,|$)")


def executor_of(
    spark: SparkSession | Literal[False] | None,
    master: str,
    root: Path,
    held: ExitStack,
    spools: Spools,
    *,
    kept: bool,
    read: Callable[[], Sequence[str]],
    conf: Mapping[str, str] = {},
) -> Executor:
    """Returns the executor for the options. ``held``: frees a session that the engine starts.
    ``kept``: the folder survives the run. ``read``: returns the paths that will be read. ``conf``:
    further settings of a session that the engine starts.
    """
    if spark is False:
        return LocalExecutor()
    if spark is not None:
        from levada.runtime.spark.executor_checks import ExecutorChecks
        from levada.runtime.spark.spark_executor import SparkExecutor

        executor = SparkExecutor(spark)
        if kept and executor.homes is not None:
            executor.sight = ExecutorChecks(spark, executor, root, read)
        return executor
    from levada.runtime.spark.spark_startup import start_late

    scratch = root / "spark-local"
    late = start_late(master, scratch, lasting=kept, read=read, conf=conf)
    held.callback(late.end)
    held.callback(spools.stop)
    return late


def check_surroundings(
    spark: object, master: str, environ: Mapping[str, str], *, kept: bool
) -> None:
    """Raises ``UsageError`` for a run on Spark Connect or without PySpark, with an invalid size for
    copies of state, or with a temporary checkpoint on a cluster. ``kept``: the checkpoint is not
    temporary.
    """
    check_classic(spark, master, environ)
    if spark is None:
        require_pyspark(master)
    bytes_of(environ)
    if not kept and spark is not False:
        _check_seen(spark, master)


def _check_seen(spark: object, master: str) -> None:
    context: Any = getattr(spark, "sparkContext", None) or running_context()
    master = master if context is None else str(context.master)
    if not (shares_host(master) or master.startswith("local-cluster[")):
        raise UsageError(
            f"The checkpoint would be temporary, and executors of {master} on other hosts than "
            "this one would not see it.",
            hint="Give one on storage that all of them share (--checkpoint DIR).",
        )


def await_up(spark: object, master: str) -> None:
    """Waits until the master of a standalone cluster accepts a connection, before the checkpoint
    exists. Spark would try for a minute, and start a JVM for that. Raises ``EngineError``.
    """
    wanted = spark is None and running_context() is None and master.startswith("spark://")
    addresses = _MASTERS.findall(master) if wanted else []
    end = time.monotonic() + PATIENCE
    while addresses:
        for host, port in addresses:
            try:
                socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
                return
            except (OSError, OverflowError, UnicodeError) as error:
                why = getattr(error, "strerror", None) or str(error)
        if time.monotonic() > end:
            raise EngineError(
                f"No master of Spark answers at {master}: {why.lower()}.",
                hint="Start it, or say another --master.",
            )
        time.sleep(0.5)


def check_classic(spark: object, master: str, environ: Mapping[str, str]) -> None:
    """Raises ``UsageError`` for Spark Connect, by a session, a master or an environment variable,
    since its clients have no RDDs.

    >>> check_classic(None, "local[2]", {})
    """
    connect = hint = ""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        connect, hint = "this session", "Give a session of a master such as spark://host:7077."
    elif spark is None and master.startswith("sc:"):
        connect, hint = f"the master {master}", "Give such as spark://host:7077, local[*] or none."
    elif spark is None:
        said = (n for n in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED") if n in environ)
        api = "SPARK_API_MODE" if environ.get("SPARK_API_MODE", "").lower() == "connect" else None
        name = next(said, api)
        connect, hint = f"{name} is set" if name else "", f"Unset {name}, or say --master none."
    if connect:
        raise UsageError(
            f"Levada does not run on Spark Connect ({connect}): its epochs are jobs on RDDs, "
            "which are placed on executors, and Connect has neither.",
            hint=hint,
        )


def paths_read(registry: Registry, statics: StaticGraphs) -> list[str]:
    """Returns the existing files and folders of streams and static data."""
    paths = [config.path for config in registry.streams.values()]
    paths += [file.path for file in statics.files]
    return [path for path in paths if path and os.path.exists(path)]

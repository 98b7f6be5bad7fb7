"""What runs an engine's epochs: this process, a session of Spark, or one of our own on its way."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from levada.engine.registry import Registry
from levada.runtime.driver.spools import Spools
from levada.runtime.driver.statics import Statics
from levada.runtime.local import Executor, LocalExecutor

if TYPE_CHECKING:
    from levada.runtime.spark.session import SparkSession


def executor_of(
    spark: SparkSession | Literal[False] | None,
    master: str,
    root: Path,
    held: ExitStack,
    spools: Spools,
    *,
    kept: bool,
    read: Callable[[], Sequence[str]],
) -> Executor:
    """The executor that was asked for; ``held`` frees a session of our own. ``kept``: the folder
    survives the run. ``read``: the paths that will be read.
    """
    if spark is False:
        return LocalExecutor()
    if spark is not None:
        from levada.runtime.spark.executor import SparkExecutor

        return SparkExecutor(spark)
    from levada.runtime.spark.start import start_late

    late = start_late(master, root / "spark-local", kept=kept, read=read)
    held.callback(late.end)
    held.callback(spools.stop)
    return late


def paths_read(registry: Registry, statics: Statics) -> list[str]:
    """The files and folders that are there by now, of streams and static data."""
    paths = [config.path for config in registry.streams.values()]
    paths += [file.path for file in statics.files]
    return [path for path in paths if path and os.path.exists(path)]

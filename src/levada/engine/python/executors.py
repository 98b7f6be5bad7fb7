"""What runs an engine's epochs: this process, a session of Spark, or one of our own on its way."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from levada.runtime.driver.spools import Spools
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
) -> Executor:
    """The executor that was asked for; ``held`` frees a session of our own. ``kept``: the folder
    survives the run.
    """
    if spark is False:
        return LocalExecutor()
    if spark is not None:
        from levada.runtime.spark.executor import SparkExecutor

        return SparkExecutor(spark)
    from levada.runtime.spark.start import start_late

    late = start_late(master, root / "spark-local", kept=kept)
    held.callback(late.end)
    held.callback(spools.stop)
    return late

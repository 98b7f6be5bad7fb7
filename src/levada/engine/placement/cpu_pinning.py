"""The processors that tasks are bound to, from a machine file, checked before a run begins.

Workers are bound only if all of them are on this host. A Spark worker does not know its executor,
and a file has the numbers of one host's processors. Epochs in the driver's process are not bound.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path

from levada.checkpoint.manifest import Bound
from levada.core.machine_file import Machine, read_machine
from levada.errors import UsageError
from levada.runtime.spark.cpu_pinning import Processors
from levada.runtime.spark.spark_settings import shares_host

OFF = "off"


def read_pinning(pin: str | os.PathLike[str], spark: object, master: str) -> Bound | None:
    """Reads the processors of each place of the machine file ``pin``; None if that is "" or
    ``off``. Warns with the binding. Raises ``UsageError``.
    """
    if pin in ("", OFF):
        return None
    _check_host(pin, spark, master)
    machine = read_machine(Path(pin))
    if not machine.processors:
        raise UsageError(
            f"The machine file {pin} has no processors, so tasks cannot be bound to them.",
            hint="levada machine probe writes them, for the machine that it runs on.",
        )
    if not hasattr(os, "sched_setaffinity"):
        raise UsageError("This system binds no process to processors.", hint="Leave --pin out.")
    allowed = os.sched_getaffinity(0)
    check_allowed(machine, pin, allowed)
    try:
        os.sched_setaffinity(0, allowed)  # changes nothing; fails if binding is forbidden
    except OSError as error:
        raise UsageError(
            f"Processes may not be bound to processors here: {error.strerror}.",
            hint="Leave --pin out.",
        ) from error
    places = dict(zip(machine.places, map(list, machine.processors), strict=True))
    warnings.warn(
        f"Tasks are bound to processors: {describe_pinning(places)}. "
        "Epochs in the driver's process are not.",
        stacklevel=4,
    )
    return Bound(Path(pin).name, places)


def processors_of(bound: Bound | None) -> Processors:
    """Returns the processors that the executor binds tasks to; () for no binding.

    >>> processors_of(Bound("m.yaml", {"left": [0, 1], "right": [2]})), processors_of(None)
    (((0, 1), (2,)), ())
    """
    return () if bound is None else tuple(map(tuple, bound.places.values()))


def _check_host(pin: str | os.PathLike[str], spark: object, master: str) -> None:
    if spark is False:
        raise UsageError(
            f"{pin} is to bind Spark's workers, and the master none has none.",
            hint="Start this process by taskset -c 0-1, for example, or say --master 'local[*]'.",
        )
    if spark is not None:
        master = str(spark.sparkContext.master)  # type: ignore[attr-defined]
    if not shares_host(master):
        raise UsageError(
            f"Workers of {master} cannot be bound by {pin}: Spark does not tell a worker where it "
            "is.",
            hint="Start each of Spark's workers by taskset or numactl, or say --master 'local[*]'.",
        )


def check_allowed(machine: Machine, pin: str | os.PathLike[str], allowed: Collection[int]) -> None:
    """Raises ``UsageError``, with the processors on which this process may not run."""
    for place, processors in zip(machine.places, machine.processors, strict=True):
        if gone := [number for number in processors if number not in allowed]:
            raise UsageError(
                f"The machine file {pin} has processors in {place} on which this process may not "
                f"run: {_list(gone)}. It may on {_list(sorted(allowed))}.",
                hint="levada machine probe writes a file of those that it may.",
            )


def describe_pinning(places: Mapping[str, Collection[int]]) -> str:
    """Describes which partitions go to the processors of which place.

    >>> describe_pinning({"left": [0, 1], "right": [2]})
    'partitions 0, 2, .. to 0, 1 (left); partitions 1, 3, .. to 2 (right)'
    """
    n = len(places)
    parts = [
        f"partitions {i}, {i + n}, .. to {_list(processors)} ({place})"
        for i, (place, processors) in enumerate(places.items())
    ]
    return "; ".join(parts)


def _list(numbers: Collection[int]) -> str:
    return ", ".join(map(str, numbers))

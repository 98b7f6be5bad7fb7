"""Functions of jobs for the tests; Spark's workers import this module by name."""

import gc
import json
import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

from levada.errors import PromiseError, SourceError


def intake(context: Any, payload: Any) -> list[Any]:
    """Each payload to all partitions, blown up to the asked size."""
    asked = json.loads(context)
    return [
        (p, payload.ljust(asked["size"], b".") + b">%d" % p) for p in range(asked["partitions"])
    ]


def stage(context: Any, number: Any, partition: Any, blobs: Any) -> Any:
    """Says what came, to all partitions or as the outcome."""
    asked = json.loads(context)
    said = b"[%d.%d: %s]" % (number, partition, b" ".join(bytes(b) for b in blobs))
    return (
        [(-1, said)]
        if number == asked["stages"]
        else [(p, said) for p in range(asked["partitions"])]
    )


def failing_stage(context: Any, number: Any, partition: Any, blobs: Any) -> list[Any]:
    if partition == 1:
        errors = {
            b"value": ValueError("bad value"),
            b"user": SourceError("The disk is full.", hint="Free some."),
        }
        raise errors.get(context) or UnpicklableError("no pickle")
    return [(-1, b"")]


def quoting_stage(context: Any, number: Any, partition: Any, blobs: Any) -> list[Any]:
    """Fails in each partition with an error that quotes the context."""
    raise PromiseError(context.decode(), hint=context.decode())


def bound_stage(context: Any, number: Any, partition: Any, blobs: Any) -> list[Any]:
    """The processors that a task may run on."""
    return [(-1, json.dumps(sorted(os.sched_getaffinity(0))).encode())]


def stray_intake(context: Any, payload: Any) -> list[Any]:
    return [(7, b"")]


def describing_stage(context: Any, number: Any, partition: Any, blobs: Any) -> list[Any]:
    """What a task sees of its process."""
    seen = {
        "pid": os.getpid(),
        "frozen": gc.get_freeze_count(),
        "threads": threading.active_count(),
        "polars": os.environ.get("POLARS_MAX_THREADS"),
    }
    return [(-1, json.dumps(seen).encode())]


def slow_stage(context: Any, number: Any, partition: Any, blobs: Any) -> list[Any]:
    time.sleep(float(context))
    return [(-1, b"slept")]


class UnpicklableError(Exception):
    def __reduce__(self) -> str:
        raise TypeError("not this one")


def matrix_intake(context: Any, payload: Any) -> list[Any]:
    """To each partition as many bytes as the first matrix says."""
    row = json.loads(context)["first"][int(payload)]
    return [(p, bytes(size)) for p, size in enumerate(row)]


def matrix_stage(context: Any, number: Any, partition: Any, blobs: Any) -> list[Any]:
    """To each partition as many bytes as the second matrix says, or how many came."""
    asked = json.loads(context)
    if number < asked["stages"]:
        return [(p, bytes(size)) for p, size in enumerate(asked["later"][partition])]
    return [(-1, json.dumps([partition, [len(b) for b in blobs]]).encode())]


def losing_stage(context: Any, number: Any, partition: Any, blobs: Any) -> Any:
    """As ``matrix_stage``; but the first that runs takes away all files of the exchange."""
    told = Path(json.loads(context)["lost"])
    if not told.exists():
        told.touch()
        for folder in told.parent.rglob("levada-xfer"):
            shutil.rmtree(folder)
    return matrix_stage(context, number, partition, blobs)

"""Whether executors see what they will read and write, and run this version of Levada: asked once,
when a session on a cluster is there, before anything is read
(docs/deployment.md#a-cluster-of-spark).

The driver leaves a sign in the checkpoint; each executor looks for it, writes beside it, and looks
at the files of streams and static data that the driver sees. Paths alone would not do: another
host may have a folder of its own under the same one. Executors that join later are not asked.
"""

from __future__ import annotations

import os
import platform
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from levada.errors import CheckpointError, EngineError, LevadaError, LostTaskError, SourceError
from levada.runtime.local import OUTCOME, Blob, Executor, Job
from levada.runtime.store.checkpoint import FORMAT

HERE = "levada.runtime.spark.sight"
SHARED = "Every host must see it under this path: put it on storage that all of them share."
EVERYWHERE = "Every host needs this version under the path of Python that PYSPARK_PYTHON says."
TOGETHER = 0.2  # s that a task takes, so that each executor gets one
ROUNDS = 5  # as long as executors come


class Seen(msgspec.Struct):
    """What the driver sees: the checkpoint with its ``sign``, and of each path its size (-1: a
    folder) and the first name in it.
    """

    root: str
    sign: str
    version: str
    paths: list[tuple[str, int, str]]


def probe(session: Any, executor: Executor, root: Path, paths: Sequence[str]) -> None:
    """Asks every executor that is there. Raises ``LevadaError`` with host and path."""
    context, sign = session.sparkContext, f".sign.{secrets.token_hex(8)}"
    seen = Seen(str(root.absolute()), sign, version(), [_seen(p) for p in sorted(set(paths))])
    (root / sign).write_bytes(b"")
    try:
        asked = 0
        for _ in range(ROUNDS):
            _ask(executor, msgspec.json.encode(seen), 2 * max(context.defaultParallelism, 1))
            there = context._jsc.sc().getExecutorIds().size()
            if there <= asked:
                return
            asked = there
    finally:
        (root / sign).unlink(missing_ok=True)


def _ask(executor: Executor, seen: bytes, tasks: int) -> None:
    functions = (f"{HERE}:look", f"{HERE}:told")
    try:
        executor.run(Job(seen, [b""] * tasks, 1, 1, functions))
    except LostTaskError as error:
        raise EngineError(
            f"An executor cannot run Levada {version()}: {error.message}",
            hint=EVERYWHERE,
        ) from error
    except LevadaError:
        raise
    except Exception as error:  # its code is another one
        raise EngineError(
            f"An executor runs another version of Levada than {version()}: {error}.",
            hint="Install the same version on every host.",
        ) from error


def look(context: bytes, payload: bytes) -> list[tuple[int, Blob]]:
    """Looks, on an executor. Raises ``LevadaError``."""
    seen, host = msgspec.json.decode(context, type=Seen), platform.node()
    if version() != seen.version:
        raise EngineError(
            f"The executor on {host} runs Levada {version()}, and the driver {seen.version}.",
            hint="Install the same version on every host.",
        )
    if not os.path.exists(os.path.join(seen.root, seen.sign)):
        raise CheckpointError(
            f"The executor on {host} does not see the checkpoint {seen.root}.", hint=SHARED
        )
    _write(seen, host)
    for path, size, first in seen.paths:
        if not _is_there(path, size, first):
            message = f"The executor on {host} does not see {path}, which the driver reads."
            raise SourceError(message, hint=SHARED)
    time.sleep(TOGETHER)
    return [(0, b"")]


def told(context: bytes, stage: int, partition: int, blobs: list[Blob]) -> list[tuple[int, Blob]]:
    """How many have looked."""
    return [(OUTCOME, str(len(blobs)).encode())]


def version() -> str:
    """This version of Levada, with that of the checkpoint's format."""
    # not imported: the package knows all that stands above this room
    levada: Any = sys.modules["levada"]
    return f"{levada.__version__} (format {FORMAT})"


def _write(seen: Seen, host: str) -> None:
    path = os.path.join(seen.root, f".sign.{secrets.token_hex(8)}")
    try:
        with open(path, "xb"):
            os.unlink(path)
    except OSError as error:
        raise CheckpointError(
            f"The executor on {host} cannot write to the checkpoint {seen.root}: {error.strerror}."
        ) from error


def _seen(path: str) -> tuple[str, int, str]:
    path = os.path.abspath(path)
    if os.path.isdir(path):
        return path, -1, min(os.listdir(path), default="")
    return path, os.path.getsize(path), ""


def _is_there(path: str, size: int, first: str) -> bool:
    """Whether a path is what the driver sees; files may have grown."""
    try:
        if size < 0:
            return os.path.isdir(path) and (not first or os.path.lexists(os.path.join(path, first)))
        return os.path.getsize(path) >= size
    except OSError:
        return False

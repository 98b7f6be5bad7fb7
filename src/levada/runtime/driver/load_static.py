"""Large static files, read by many tasks: a job of its own before that of the epoch.

    pieces of files --gather--> rows, by the hash of the whole row --settle--> a file a partition,
    in which each row is once

A static graph is a set, and the difference that a replacement makes is one of sets: both need equal
rows together, which the epoch's own exchange, by the keys of joins, does not promise. The files
live as long as the epoch; it reads them at its intake as if it had made the rows itself. Small
files are read in one task of the epoch (``runtime/task/intake``). Cost: each row is written and
read once more than there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from levada.plan.sealed.plan import Plan
from levada.runtime.context import Context, encode
from levada.runtime.local import Executor, Job
from levada.runtime.store.verify import check_copy
from levada.runtime.task.static.static_rows import StaticPart, parts, readings

LARGE = 48 << 20  # bytes from which on files are read apart
PIECE = 32 << 20
FUNCTIONS = (
    "levada.runtime.task.static.gather_static:gather",
    "levada.runtime.task.static.gather_static:settle",
)


def check_copies(context: Context, plan: Plan, wanted: Sequence[StaticPart]) -> None:
    """Checks the copies in the checkpoint of which an epoch reads these pieces. Raises
    ``CheckpointError``.
    """
    of = {reading.sign < 0: reading.files for reading in readings(context, plan)}
    files = {of[part.before][part.file] for part in wanted}
    for path in sorted({f.path for f in files if f.replaceable}):
        check_copy(Path(path))


def gather(context: Context, plan: Plan, size: int, executor: Executor) -> list[str]:
    """The files with the static rows of an epoch that reads ``size`` bytes; none if few."""
    if size < LARGE:
        return []
    every = parts(context, plan, PIECE)
    tasks = np.array_split(np.arange(len(every)), min(len(every), -(-2 * size // PIECE)))
    payloads = [msgspec.json.encode([every[i] for i in task.tolist()]) for task in tasks]
    outcomes = executor.run(Job(encode(context), payloads, 1, context.partitions, FUNCTIONS))
    return [name for outcome in outcomes for name in msgspec.json.decode(outcome, type=list[str])]

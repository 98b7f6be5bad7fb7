"""A process that checks texts, one after the other: ``python -m
levada.server.checks.check_process``.

    standard input    a line of JSON (``Start``), then one a task (``Order``)
    standard output   an empty line when the process is warm, then a line of JSON a task (``Reply``)

The system ends the process when a task has used its seconds of CPU. A task that exceeds its memory
gets an error, and the process ends itself. The process also ends with the server.
"""

from __future__ import annotations

import math
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from levada.engine.name_scope import NameScope
from levada.server.checkpoint_catalog import Facts
from levada.server.checks.check_tasks import Task, answer
from levada.server.problem_json import problem_of
from levada.server.sparql.query_worker import end_with


class Start(msgspec.Struct, frozen=True):
    """The checkpoint, the folders whose paths no client may see, and the server's process id."""

    root: str
    folders: list[str]
    server: int


class Order(msgspec.Struct, frozen=True):
    """A task with its limits: seconds of CPU and bytes of memory."""

    task: Task
    seconds: float
    memory: int


class Reply(msgspec.Struct, frozen=True):
    """The answer to a task, or a refusal: ``status``, ``detail``, and in ``said`` further fields.
    ``log``: sentences for the server's log. ``fault``: the traceback of a fault of Levada.
    ``ends``: the process ends after this reply.
    """

    answer: Any = None
    status: int = 0
    detail: str = ""
    said: dict[str, Any] = {}
    headers: dict[str, str] = {}
    log: str = ""
    fault: str = ""
    ends: bool = False


def main() -> None:
    """Answers tasks until standard input ends or a task has exceeded its memory."""
    start = msgspec.json.decode(sys.stdin.buffer.readline(), type=Start)
    end_with(start.server)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # from the terminal: the server ends this process
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    facts, folders = _Facts(Path(start.root)), [*map(Path, start.folders)]
    with suppress(Exception):  # the first task reports it
        facts.name_scope()
    _write_line(b"")
    for line in sys.stdin.buffer:
        reply = _reply(msgspec.json.decode(line, type=Order), facts.name_scope, folders)
        _write_line(msgspec.json.encode(reply))
        if reply.ends:
            return


class _Facts:
    """The facts of a checkpoint, read late because the checkpoint can be damaged at the start."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._facts: Facts | None = None

    def name_scope(self) -> NameScope:
        """Returns the names that a text can use now. Raises ``CheckpointError``."""
        if self._facts is None:
            self._facts = Facts(self._root)
        return self._facts.name_scope()


def _write_line(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def _reply(order: Order, known: Callable[[], NameScope], folders: list[Path]) -> Reply:
    try:
        names = None if order.task.kind == "sparql" else known()  # the task's limits begin here
        limit_process(order.seconds, order.memory)
        try:
            return Reply(answer(order.task, lambda: names or NameScope()))
        finally:
            limit_process()
    except MemoryError:
        return Reply(ends=True)
    except Exception as error:
        if isinstance(error.__cause__, MemoryError):
            return Reply(ends=True)
        if (problem := problem_of(error, *folders)) is None:
            return Reply(fault=traceback.format_exc())
        log = str(error) if problem.status >= 500 else ""
        return Reply(None, problem.status, problem.detail, problem.said, problem.headers, log)


def limit_process(seconds: float | None = None, memory: int = 0) -> None:
    """Allows this process ``seconds`` more of CPU and ``memory`` more bytes; None removes the
    limits.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = None if seconds is None else math.ceil(used.ru_utime + used.ru_stime + seconds)
    _lower(resource.RLIMIT_CPU, cpu)
    _lower(resource.RLIMIT_AS, None if seconds is None else _address_space() + memory)


def _lower(limit: int, most: int | None) -> None:
    """Sets a soft limit, at most the hard one. None sets the hard one."""
    _, hard = resource.getrlimit(limit)
    if most is None:
        most = hard
    elif hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(limit, (most, hard))


def _address_space() -> int:
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
    return 1 << 40  # a system without this file has no such limit, either


if __name__ == "__main__":
    main()

"""The pool of processes that check texts: warm, and replaced when they end.

The caller of a task holds one of the server's slots for checks, and there are as many processes as
slots. A process that ends with its task is replaced before the slot is free again. So a token that
ends processes waits for them itself. One idle process stays warm while slots last.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import resource
import signal
import sys
import traceback
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from levada.core.user_functions import declare_as_driver, places
from levada.engine.name_resolution import NameScope
from levada.errors import LevadaError
from levada.server.checkpoint_catalog import Facts
from levada.server.checks.check_tasks import Task, answer
from levada.server.problem_json import Problem, problem_of
from levada.server.settings import Limits
from levada.server.sparql.query_worker import subordinate_to

# A process that checks texts, one after the other: ``python -m
# levada.server.checks.check_workers``.
#
#     standard input    a line of JSON (``Start``), then one a task (``Order``)
#     standard output   an empty line when the process is warm, then a line of JSON a task
#     (``Reply``)
#
# The system ends the process when a task has used its seconds of CPU. A task that exceeds its
# memory gets an error, and the process ends itself. The process also ends with the server.


class Start(msgspec.Struct, frozen=True):
    """The checkpoint, the folders whose paths no client may see, the server's process id, and the
    places and folders of the user's functions, which the server declares.
    """

    root: str
    folders: list[str]
    server: int
    functions: tuple[list[str], list[str]] = ([], [])


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
    subordinate_to(start.server)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # from the terminal: the server ends this process
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(LevadaError):  # a text that calls them is refused
        declare_as_driver(*start.functions)
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


MAX_ANSWER = 64 << 20  # bytes
WALL = 6  # seconds for each second of CPU, on a busy machine
HINT = "Write a simpler text."
_ENVIRONMENT = (
    "PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "HOME", "TMPDIR", "PYTHONPATH", "LEVADA_CACHE",
    "NUMBA_CACHE_DIR",
)  # fmt: skip  # no secret is among them


class CheckWorkers:
    """A pool of at most ``most`` processes that check texts for a checkpoint."""

    def __init__(self, root: Path, folders: Sequence[Path], most: int) -> None:
        self._root, self._folders, self._most = root, [*map(str, folders)], most
        self._idle: asyncio.LifoQueue[Process | None] = asyncio.LifoQueue()
        self._count = self._starting = 0  # ``_count``: processes that run or start
        self._waiters = 0
        self._processes: set[Process] = set()
        self._starts: set[asyncio.Task[None]] = set()

    async def run(self, task: Task, limits: Limits) -> Any:
        """Runs a task in a process. Returns the answer. Raises ``Problem``. Ends the process if
        cancelled.
        """
        worker = await self._take()
        reply = None
        try:
            reply = await _ask(worker, task, limits)
        finally:
            if reply is not None and not reply.ends:
                self._idle.put_nowait(worker)
            else:
                await asyncio.wait({self._begin(self._replace(worker))})
        return _answer(reply)

    def warm(self) -> None:
        """Starts a process for each waiting request, and one more, up to the limit."""
        while self._count < self._most and self._idle.qsize() + self._starting <= self._waiters:
            self._count += 1
            self._begin(self._start())

    async def close(self) -> None:
        """Ends the processes."""
        for start in self._starts:
            start.cancel()
        await asyncio.gather(*self._starts, return_exceptions=True)
        for process in [*self._processes]:
            await self._end(process)

    async def _take(self) -> Process:
        while True:
            self._waiters += 1
            try:
                self.warm()
                worker = await self._idle.get()
            finally:
                self._waiters -= 1
            if worker is None:
                raise Problem(
                    503, "The server cannot check texts now.", headers={"Retry-After": "10"}
                )
            if worker.returncode is None:
                self.warm()
                return worker
            await self._end(worker)  # it died while idle
            self._count -= 1

    def _begin(self, start: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        async def begin() -> None:
            try:
                await start
            finally:
                self._starting -= 1

        self._starting += 1
        task = asyncio.create_task(begin())
        self._starts.add(task)
        task.add_done_callback(self._starts.discard)
        return task

    async def _replace(self, worker: Process) -> None:
        await self._end(worker)
        await self._start()

    async def _start(self) -> None:
        """Starts a process and puts it into the idle queue once it is warm. Puts None there for
        each waiting request if the start fails.
        """
        try:
            worker = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "levada.server.checks.check_workers"),
                stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=MAX_ANSWER,
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            )  # fmt: skip
        except OSError as error:
            logging.getLogger("levada.server").error("No process can check texts: %s", error)
            self._note_failed_start()
            return
        self._processes.add(worker)
        start = Start(str(self._root), self._folders, os.getpid(), places())
        if await _line(worker, msgspec.json.encode(start)):
            self._idle.put_nowait(worker)
        else:
            await self._end(worker)
            self._note_failed_start()

    def _note_failed_start(self) -> None:
        self._count -= 1
        for _ in range(self._waiters):
            self._idle.put_nowait(None)

    async def _end(self, worker: Process) -> None:
        if worker.returncode is None:
            with suppress(ProcessLookupError):
                worker.kill()
        await worker.wait()
        self._processes.discard(worker)


async def _ask(worker: Process, task: Task, limits: Limits) -> Reply:
    """Sends a task to a process. Returns its reply. Raises ``Problem`` 503 if the task takes too
    long, 413 if the answer is too large.
    """
    order = Order(task, limits.check_seconds, limits.check_memory)
    try:
        async with asyncio.timeout(WALL * limits.check_seconds):
            line = await _line(worker, msgspec.json.encode(order))
            if not line:
                await worker.wait()
    except TimeoutError:
        raise _too_long(limits, "") from None
    except ValueError:
        raise Problem(413, f"The answer has more than {MAX_ANSWER:,} bytes.") from None
    if line:
        return msgspec.json.decode(line, type=Reply)
    if worker.returncode == -signal.SIGXCPU:
        raise _too_long(limits, " of CPU")
    return Reply(ends=True)


async def _line(worker: Process, line: bytes) -> bytes:
    """Sends a line. Returns the line that answers it, b"" if the process has ended."""
    assert worker.stdin is not None and worker.stdout is not None, "they are pipes"
    with suppress(BrokenPipeError, ConnectionResetError):
        worker.stdin.write(line + b"\n")
        await worker.stdin.drain()
    return await worker.stdout.readline()


def _too_long(limits: Limits, of_what: str) -> Problem:
    most = f"{limits.check_seconds:g} s{of_what}"
    message = f"The check of the text took more than {most}, and was ended."
    return Problem(503, message, hint=HINT, limit="seconds")


def _answer(reply: Reply) -> Any:
    if reply.log:
        logging.getLogger("levada.server").error("%s", reply.log)
    if reply.fault:
        raise RuntimeError(f"A check failed in its process.\n{reply.fault}")
    if reply.ends:
        message = "The check of the text took more memory than it may have, and was ended."
        raise Problem(503, message, hint=HINT, limit="memory")
    if reply.status:
        raise Problem(reply.status, reply.detail, headers=reply.headers, **reply.said)
    return reply.answer

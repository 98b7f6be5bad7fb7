"""The pool of processes that check texts: warm, and replaced when they end.

The caller of a task holds one of the server's slots for checks, and there are as many processes as
slots. A process that ends with its task is replaced before the slot is free again. So a token that
ends processes waits for them itself. One idle process stays warm while slots last.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from levada.server.checks.check_process import Order, Reply, Start
from levada.server.checks.check_tasks import Task
from levada.server.problem_json import Problem
from levada.server.settings import Limits

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
                *(sys.executable, "-m", "levada.server.checks.check_process"),
                stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=MAX_ANSWER,
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            )  # fmt: skip
        except OSError as error:
            logging.getLogger("levada.server").error("No process can check texts: %s", error)
            self._note_failed_start()
            return
        self._processes.add(worker)
        start = Start(str(self._root), self._folders, os.getpid())
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

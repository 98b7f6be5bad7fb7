"""What came within some milliseconds is one file and one wait for the disk."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from levada.runtime.spool.push import PushLog

TOGETHER = 0.005  # s
LOOK = 0.1  # s for which it is known how much waits for the engine
PART = 8  # a bound is gone beyond by at most one such part of it
LARGEST = 8 << 20  # bytes of a file, unless one body is larger


@dataclass(frozen=True, slots=True)
class Waiting:
    """A body that is to be durable; ``complete``: as of ``PushLog.append``."""

    data: bytes
    key: str
    complete: int
    done: asyncio.Future[None]

    @property
    def alone(self) -> bool:
        """Whether it is a document of its own: its blank nodes are."""
        return b"_:" in self.data


class Pusher:
    """The writer of one stream."""

    def __init__(self, log: PushLog) -> None:
        self.log = log
        self._waiting: list[Waiting] = []
        self._by_key: dict[str, asyncio.Future[None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._behind, self._added, self._looked = 0, 0, -LOOK

    async def is_full(self, most: int) -> bool:
        """Whether more than so many bytes wait for the engine. The folder is not looked at for each
        request: now and then, and when much has been added.
        """
        now = asyncio.get_running_loop().time()
        if now - self._looked >= LOOK or self._added * PART >= most:
            self._looked, self._added = now, 0
            self._behind = await asyncio.to_thread(self.log.backlog)
        return self._behind > most

    async def add(self, data: bytes, key: str, complete: int) -> bool:
        """Returns when it is durable; False for one whose key has been here. Raises
        ``SinkError``.
        """
        if key and key in self.log.seen:
            return False
        if key and key in self._by_key:
            await asyncio.shield(self._by_key[key])
            return False
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(Waiting(data, key, complete, done))
        self._added += len(data)
        if key:
            self._by_key[key] = done
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write())
        await asyncio.shield(done)  # a client that goes does not take the others' with it
        return True

    async def _write(self) -> None:
        await asyncio.sleep(TOGETHER)
        while self._waiting:
            batch = self._next()
            data, keys = b"".join(w.data for w in batch), [w.key for w in batch if w.key]
            complete = max(w.complete for w in batch)
            failed: BaseException | None = None
            try:
                await asyncio.to_thread(self.log.append, data, keys, complete)
            except Exception as error:
                failed = error
            for each in batch:
                self._by_key.pop(each.key, None)
                if failed is not None:
                    each.done.set_exception(failed)
                else:
                    each.done.set_result(None)

    def _next(self) -> list[Waiting]:
        """What is written together."""
        size = n = 0
        for each in self._waiting:
            if n and (each.alone or self._waiting[0].alone or size + len(each.data) > LARGEST):
                break
            size += len(each.data)
            n += 1
        taken, self._waiting = self._waiting[:n], self._waiting[n:]
        return taken

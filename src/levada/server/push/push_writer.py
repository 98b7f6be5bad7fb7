"""The writer of pushed rows. Bodies that arrive within some milliseconds, or during a write, are
parsed together and become one file with one wait for the disk. Another thread does all of that in
one call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.spool.push_spool import MAX_KEYS, PushLog
from levada.core.event_time import MIN
from levada.core.frozen import frozen
from levada.server.problem_json import Problem
from levada.server.push.push_validation import rows_of_each

TOGETHER = 0.005  # s
LOOK = 0.1  # s for which a measured backlog is valid
PART = 8  # the backlog exceeds its bound by at most this fraction (1/8) of it
LARGEST = 8 << 20  # bytes of a file, unless one body is larger


@frozen
class Body:
    """A body to store. ``complete``: as in ``PushLog.append``. ``rows``: its elements, None before
    the check. ``sent``: a digest of the body as it was sent, "" without a key.
    """

    config: StreamConfig
    data: bytes
    key: str
    complete: int
    rows: int | None = None
    sent: str = ""

    @property
    def alone(self) -> bool:
        """Returns whether it needs a separate file, because it has blank nodes."""
        return b"_:" in self.data

    def goes_with(self, first: Body) -> bool:
        """Returns whether it may share a file with that file's first body."""
        return self.config is first.config and not (self.alone or first.alone)


class Pusher:
    """The writer of one stream."""

    def __init__(self, log: PushLog) -> None:
        self.log = log
        self._waiting: list[tuple[Body, asyncio.Future[int]]] = []
        self._by_key: dict[str, asyncio.Future[int]] = {}
        self._task: asyncio.Task[None] | None = None
        self._behind, self._added, self._looked = 0, 0, -LOOK

    async def is_full(self, most: int) -> bool:
        """Returns whether more than ``most`` bytes wait for the engine. Measures the folder every
        ``LOOK`` seconds and after large additions only.
        """
        now = asyncio.get_running_loop().time()
        if now - self._looked >= LOOK or self._added * PART >= most:
            self._looked, self._added = now, 0
            self._behind = await asyncio.to_thread(self.log.backlog)
        return self._behind > most

    async def add(self, body: Body) -> int | None:
        """Stores a body durably. Returns its number of elements; None for a body whose key is
        stored already. Raises ``Problem`` 400, 422 (the key belongs to another body),
        ``SinkError``.
        """
        if body.key and await self._is_durable(body):
            return None
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((body, done))
        self._added += len(body.data)
        if body.key:
            self._by_key[body.key] = done
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write())
        return await asyncio.shield(done)  # a cancelled client must not cancel the shared write

    async def _is_durable(self, body: Body) -> bool:
        """Returns whether the body is durable, by its key. Waits for a write of the same key.
        Raises ``Problem`` 422 if the key belongs to another body.
        """
        while (sent := self.log.find_by_key(body.key)) is None:
            if body.key not in self._by_key:
                return False
            with suppress(Problem):  # that body was rejected
                await asyncio.shield(self._by_key[body.key])
        if sent != body.sent:
            raise Problem(
                422,
                "This Idempotency-Key was that of another body.",
                hint="A key is for one body, also when that is sent again.",
            )
        return True

    async def _write(self) -> None:
        await asyncio.sleep(TOGETHER)
        while self._waiting:
            batch = self._next()
            try:
                outcomes = await asyncio.to_thread(self._commit, [body for body, _ in batch])
            except Exception as error:
                outcomes = [error] * len(batch)
            for (body, done), each in zip(batch, outcomes, strict=True):
                self._by_key.pop(body.key, None)
                if isinstance(each, Exception):
                    done.set_exception(each)
                else:
                    done.set_result(each)

    def _commit(self, bodies: Sequence[Body]) -> Sequence[int | Exception]:
        """Stores bodies durably. Returns the number of elements of each, or its error."""
        outcomes: list[int | Exception] = [*_rows(bodies)]
        if not self.log.has_room_for_keys():
            outcomes = [
                _many_keys() if body.key else rows
                for body, rows in zip(bodies, outcomes, strict=True)
            ]
        taken = [
            body
            for body, rows in zip(bodies, outcomes, strict=True)
            if not isinstance(rows, Exception) and (rows or body.complete > MIN)
        ]
        if taken:
            data, keys = b"".join(b.data for b in taken), {b.key: b.sent for b in taken if b.key}
            self.log.append(data, keys, max(b.complete for b in taken))
        return outcomes

    def _next(self) -> list[tuple[Body, asyncio.Future[int]]]:
        """Takes the bodies of the next file from the queue."""
        size = n = 0
        for each, _ in self._waiting:
            if n and (not each.goes_with(self._waiting[0][0]) or size + len(each.data) > LARGEST):
                break
            size += len(each.data)
            n += 1
        taken, self._waiting = self._waiting[:n], self._waiting[n:]
        return taken


def _many_keys() -> Problem:
    message = f"The stream remembers {MAX_KEYS:,} Idempotency-Keys of the last ten minutes."
    return Problem(429, message, headers={"Retry-After": "60"}, hint="Send fewer, larger bodies.")


def _rows(bodies: Sequence[Body]) -> list[int | Problem]:
    """Returns the number of elements of each body, or its error."""
    unknown = [body for body in bodies if body.rows is None]
    if not unknown:
        return [body.rows or 0 for body in bodies]
    looked = iter(rows_of_each(bodies[0].config, [body.data for body in unknown]))
    return [next(looked) if body.rows is None else body.rows for body in bodies]

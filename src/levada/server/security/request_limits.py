"""Slots for slow work, shared fairly by token.

Requests wait in a queue of their token, and free slots go to the tokens in turn. The last free slot
is reserved for a token without one. So one token's work delays another token's only while several
tokens fill all slots.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from levada.server.problem_json import Problem


class FairSlots:
    """A number of slots, of which a token has at most ``per_token``.

    >>> async def first_of_others() -> list[str]:
    ...     slots, order = FairSlots(1, 1), []
    ...     async def work(token: str) -> None:
    ...         await slots.enter(token)
    ...         order.append(token)
    ...         await asyncio.sleep(0)
    ...         slots.leave(token)
    ...     await asyncio.gather(*map(work, ["a", "a", "a", "b"]))
    ...     return order
    >>> asyncio.run(first_of_others())
    ['a', 'a', 'b', 'a']
    """

    def __init__(self, slots: int, per_token: int) -> None:
        self._free, self._per_token = slots, per_token
        self._running: Counter[str] = Counter()
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}  # the next token's is the first

    @asynccontextmanager
    async def slot(self, token: str, most: int | None = None) -> AsyncIterator[None]:
        """Takes a slot while the block runs. Raises ``Problem`` 429 as ``enter`` does."""
        await self.enter(token, most)
        try:
            yield
        finally:
            self.leave(token)

    def enter_now(self, token: str) -> bool:
        """Takes a slot if one is free and no request waits. Returns whether it did."""
        if self._queues or not self._may_run(token):
            return False
        self._take(token)
        return True

    def _take(self, token: str) -> None:
        self._free -= 1
        self._running[token] += 1

    async def enter(self, token: str, most: int | None = None) -> None:
        """Waits for a slot, which ``leave`` gives back. Raises ``Problem`` 429 if the token has
        ``most`` requests here already. A cancelled request leaves the queue.
        """
        queue = self._queues.setdefault(token, deque())
        if most is not None and self._running[token] + len(queue) >= most:
            self._forget_empty(token)
            whose = f" of the token {token}" if token else ""
            raise Problem(
                429,
                f"{most:,} requests{whose} wait or run here, which is all.",
                headers={"Retry-After": "1"},
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self._grant()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # the slot came at the same instant
                self.leave(token)
            elif turn in queue:
                queue.remove(turn)
                self._forget_empty(token)
            raise

    def leave(self, token: str) -> None:
        """Gives a slot back, to the next request if one waits."""
        self._free += 1
        self._running[token] -= 1
        if not self._running[token]:
            del self._running[token]
        self._grant()

    def _grant(self) -> None:
        while (token := next(filter(self._may_run, self._queues), None)) is not None:
            queue = self._queues.pop(token)
            turn = queue.popleft()
            if queue:
                self._queues[token] = queue  # behind all others
            if not turn.done():
                self._take(token)
                turn.set_result(None)

    def _may_run(self, token: str) -> bool:
        running = self._running[token]
        return self._free > (1 if running else 0) and running < self._per_token

    def _forget_empty(self, token: str) -> None:
        if not self._queues.get(token, True):
            del self._queues[token]

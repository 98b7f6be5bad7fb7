"""A budget for the memory of requests: the bytes of incoming bodies and of large answers. Its limit
is global, so slow readers and slow senders cost other clients no more than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.types import Message, Scope, Send

from levada.server.problem_json import Problem
from levada.server.security.bounded_http import EVENTS

PIECE = 64 << 10  # bytes of an answer that are sent at once


@dataclass
class MemoryBudget:
    """The bytes of all bodies, or of all answers, that are in memory, at most ``most``. ``what``
    and ``becoming``: words of the error message.
    """

    most: int
    what: str
    becoming: str
    bytes: int = 0

    def take(self, size: int) -> None:
        """Adds ``size`` bytes. Raises ``Problem`` 503 if they are too many."""
        self.bytes += size
        if self.bytes > self.most:
            raise Problem(
                503,
                f"{self.what} of {self.most:,} bytes are being {self.becoming}, and no more are.",
                headers={"Retry-After": "1"},
            )


class TooMuch(Exception):  # noqa: N818  # ``problem``: the answer, if none has begun
    """An error that ends an answer, because too many bytes wait to be sent. No layer between
    handles it, so it reaches the guard.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


class Answer:
    """An answer in transit. ``taken``: its bytes in the budget while they are in memory."""

    def __init__(self, scope: Scope, send: Send, unsent: MemoryBudget) -> None:
        self._scope, self._send, self._unsent = scope, send, unsent
        self.taken = 0
        self._sized = False

    def begin(self, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Takes the bytes of a large answer from the budget, by its headers. Raises ``TooMuch``."""
        said = dict(headers)
        size = int(said.get(b"content-length", b"0"))
        self._sized = size > PIECE
        if self._sized:
            self._take(size)
        if said.get(b"content-type", b"").startswith(b"text/event-stream"):
            self._scope.setdefault("state", {})[EVENTS] = True

    def _take(self, size: int) -> None:
        self.taken += size
        try:
            self._unsent.take(size)
        except Problem as problem:
            raise TooMuch(problem) from None

    async def send(self, message: Message) -> None:
        """Sends a part, a large one in pieces. Sent pieces free their memory. Raises
        ``TooMuch``.
        """
        data = message.get("body") or message.get("text") or b""
        if len(data) <= PIECE:
            await self._send(message)
            return
        before = self.taken
        if not self._sized:
            self._take(len(data))
        if "body" in message:
            for at in range(0, len(data), PIECE):
                more = message.get("more_body", False) or at + PIECE < len(data)
                await self._send({**message, "body": data[at : at + PIECE], "more_body": more})
        else:
            await self._send(message)
        self._unsent.bytes -= self.taken - before
        self.taken = before

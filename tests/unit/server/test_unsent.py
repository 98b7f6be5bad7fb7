"""Large answers: sent in pieces, counted until they are, not waited for when they are not read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from levada.server.security.bounded_http import EVENTS, MIN_READ_BYTES, BoundedHttpProtocol, Bounds
from levada.server.security.request_guard import PIECE, Answer, MemoryBudget, TooMuch


def head(size: int | None, media: str = "text/csv") -> list[tuple[bytes, bytes]]:
    sized = [] if size is None else [(b"content-length", b"%d" % size)]
    return [(b"content-type", media.encode()), *sized]


def test_pieces_that_are_counted_until_they_are_sent() -> None:
    held, data = MemoryBudget(10 * PIECE, "Answers", "sent"), bytes(3 * PIECE + 1)
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append((len(message["body"]), message["more_body"], held.bytes))

    async def go() -> None:
        sized = Answer({}, send, held)
        sized.begin(head(len(data)))
        assert held.bytes == len(data)
        await sized.send({"type": "http.response.body", "body": data})
        assert held.bytes == sized.taken == len(data), "until the request is over"
        going_on = Answer({}, send, held)
        going_on.begin(head(None))
        await going_on.send({"type": "http.response.body", "body": data, "more_body": True})
        assert going_on.taken == 0

    asyncio.run(go())
    first, last = [PIECE, PIECE, PIECE], 1
    assert [n for n, _, _ in sent] == [*first, last] * 2
    assert [more for _, more, _ in sent] == [True, True, True, False] + [True] * 4
    assert [n for _, _, n in sent] == [len(data)] * 4 + [2 * len(data)] * 4


def test_too_much_is_not_sent() -> None:
    async def send(message: Any) -> None:
        raise AssertionError("nothing is sent")

    answer = Answer({}, send, MemoryBudget(2 * PIECE, "Answers", "sent"))
    with pytest.raises(TooMuch) as full:
        answer.begin(head(3 * PIECE))
    assert full.value.problem.status == 503
    event = {"type": "http.response.body", "body": bytes(3 * PIECE), "more_body": True}
    with pytest.raises(TooMuch):
        asyncio.run(Answer({}, send, MemoryBudget(2 * PIECE, "Answers", "sent")).send(event))


class Transport:
    """One whose buffer is as it is told."""

    def __init__(self) -> None:
        self.left, self.aborted = 10 * MIN_READ_BYTES, False

    def get_write_buffer_size(self) -> int:
        return self.left

    def abort(self) -> None:
        self.aborted = True


@pytest.mark.parametrize("events", [False, True])
def test_who_does_not_read_on_is_not_waited_for(events: bool) -> None:
    scope: dict[str, Any] = {}
    Answer(scope, None, MemoryBudget(1, "", "")).begin(  # type: ignore[arg-type]
        head(None, "text/event-stream" if events else "text/csv")
    )
    assert scope.get("state", {}).get(EVENTS, False) is events
    later: list[Any] = []

    class Loop:
        def call_later(self, seconds: float, call: Any) -> Any:
            later.append(call)
            return asyncio.TimerHandle(0, call, (), self)  # type: ignore[arg-type]

        def get_debug(self) -> bool:
            return False

        def _timer_handle_cancelled(self, handle: Any) -> None:
            pass

    made, transport = BoundedHttpProtocol.__new__(BoundedHttpProtocol), Transport()
    made.bounds, made.loop = Bounds(1, 1.0, 1, 1.0), Loop()  # type: ignore[assignment]
    made.transport = transport  # type: ignore[assignment]
    made.cycle = type("Cycle", (), {"scope": {"state": scope.get("state", {})}})()
    made._look(transport.left)
    transport.left -= MIN_READ_BYTES
    later.pop()()
    assert not transport.aborted, "it reads on"
    later.pop()()
    assert transport.aborted is not events, "events wait"

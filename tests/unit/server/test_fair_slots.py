"""Slots are shared fairly by token."""

from __future__ import annotations

import asyncio

import pytest

from levada.server.problem_json import Problem
from levada.server.security.request_limits import FairSlots


class Queue:
    """Requests at some slots: those that have one, in the order in which they came to it."""

    def __init__(self, slots: int, per_token: int) -> None:
        self.slots = FairSlots(slots, per_token)
        self.granted: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, *names: str, most: int | None = None) -> None:
        """Requests named by the letter of their token and a number."""
        for name in names:
            self.tasks[name] = asyncio.create_task(self._run(name, most))
        await settle()

    async def _run(self, name: str, most: int | None) -> None:
        await self.slots.enter(name[0], most)
        self.granted.append(name)

    async def finish(self, name: str) -> None:
        self.slots.leave(name[0])
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_token_takes_its_share_and_leaves_the_last_slot_to_others() -> None:
    async def run() -> None:
        queue = Queue(4, 2)
        await queue.ask("a1", "a2", "a3")
        assert queue.granted == ["a1", "a2"]
        await queue.ask("b1", "b2")
        assert queue.granted == ["a1", "a2", "b1"], "the last slot is for a token without one"
        await queue.ask("c1")
        assert queue.granted == ["a1", "a2", "b1", "c1"]
        await queue.finish("a1")
        assert queue.granted[4:] == [], "the last free slot stays free"
        await queue.ask("d1")
        assert queue.granted[4:] == ["d1"]

    asyncio.run(run())


def test_waiting_tokens_take_turns() -> None:
    async def run() -> None:
        queue = Queue(1, 1)
        await queue.ask("a1", "a2", "a3", "a4", "b1", "b2", "c1")
        for name in ("a1", "a2", "b1", "c1", "a3", "b2"):
            assert queue.granted[-1] == name
            await queue.finish(name)
        assert queue.granted[-1] == "a4"

    asyncio.run(run())


def test_too_many_requests_are_refused_for_their_token_alone() -> None:
    async def run() -> None:
        queue = Queue(1, 1)
        await queue.ask("a1", "a2", "a3", most=2)
        with pytest.raises(Problem, match="2 requests of the token a") as refusal:
            await queue.tasks["a3"]
        assert refusal.value.status == 429
        assert refusal.value.headers["Retry-After"] == "1"
        await queue.ask("b1", most=2)
        assert not queue.tasks["b1"].done()
        await queue.finish("a1")
        await queue.finish("a2")
        assert queue.granted == ["a1", "a2", "b1"]

    asyncio.run(run())


def test_a_cancelled_request_leaves_the_queue() -> None:
    async def run() -> None:
        queue = Queue(1, 1)
        await queue.ask("a1", "a2", "b1")
        queue.tasks["a2"].cancel()
        await settle()
        await queue.finish("a1")
        assert queue.granted == ["a1", "b1"]
        await queue.finish("b1")
        assert queue.slots.enter_now("c")

    asyncio.run(run())


def test_a_request_cancelled_as_it_gets_its_slot_gives_it_back() -> None:
    async def run() -> None:
        queue = Queue(1, 1)
        await queue.ask("a1", "b1")
        queue.slots.leave("a")  # b1 has the slot, and has not run since
        queue.tasks["b1"].cancel()
        await settle()
        assert queue.granted == ["a1"]
        assert queue.slots.enter_now("c")

    asyncio.run(run())

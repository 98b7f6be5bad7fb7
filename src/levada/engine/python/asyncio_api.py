"""The engine for asyncio: ``async with`` and ``await engine.ended()``."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Self

from levada.engine.python.publish_signal import PublishSignal, set_or_later


class AsyncioApi:
    """The engine's methods for asyncio."""

    _publish_signal: PublishSignal

    @property
    @abstractmethod
    def _begun(self) -> bool:
        """Returns whether the engine was started or closed."""

    @abstractmethod
    def await_end(self, timeout: float | None = None) -> bool:
        """Waits until the epochs end. Raises the engine's failure."""

    @abstractmethod
    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        """Stops the engine and frees its resources."""

    async def ended(self) -> None:
        """Waits for the start and the end without a thread, as ``await_end()`` for asyncio. Raises
        the engine's failure.
        """
        async with self._publish_signal.subscribe() as event:
            while not self._begun or not self.await_end(0):
                await set_or_later(event)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        await asyncio.to_thread(self.__exit__, kind, *exc)

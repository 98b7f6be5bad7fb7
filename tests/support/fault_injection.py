"""A process that is killed before its k-th change of the disk: some of its writes are done, and
none of the later ones. What a restart reads to find out what the process died of, it reads here.
"""

import os
import threading
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from levada.checkpoint.epoch_context import decode_context
from levada.errors import EngineError
from levada.runtime import epoch_pipeline
from levada.runtime.driver import stream_progress
from levada.runtime.task.ingest_task import IntakeTask, Payload

HEART = "levada heart"
CALLS = ("link", "replace", "fsync", "fdatasync", "unlink")


class Killed(BaseException):
    """What the doomed process sees in place of its end."""


class Fate:
    """Counts the calls that change the disk; from the k-th on nothing is done any more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.calls = None, 0
        for name in CALLS:
            monkeypatch.setattr(os, name, self._doomed(getattr(os, name)))
        monkeypatch.setattr(stream_progress, "find_crashes", nobody)
        monkeypatch.setattr(epoch_pipeline, "rehearse", lambda job: None)

    def _doomed(self, call: Any) -> Any:
        def step(*args: Any, **kwargs: Any) -> Any:
            if threading.current_thread().name == HEART:  # it goes by the clock
                return None if self.left == 0 else call(*args, **kwargs)
            self.calls += 1
            if self.left is not None:
                if self.left <= 0:  # type: ignore[unreachable]
                    raise Killed
                self.left -= 1
            return call(*args, **kwargs)

        return step


def nobody(context: bytes, payloads: Sequence[bytes]) -> dict[int, str]:
    """As ``probe.deaths`` where nobody is guilty, in this process: a start of Python a kill is too
    much for hundreds of kills.
    """
    for payload in payloads:
        IntakeTask(decode_context(context)).read(msgspec.json.decode(payload, type=Payload))
    return {}


def survived(engine: Any, kills: Any, fate: Any, *, keep_open: bool = False) -> bool:
    """Runs an engine to its end, killed before its change number ``kills`` (None: never); whether
    it came there.
    """
    if fate is not None:
        fate.left, fate.calls = kills, 0
    try:
        engine.start(once=True, keep_open=keep_open)
        engine.await_end()
        return True
    except (Killed, EngineError) as error:
        assert isinstance(error, Killed) or isinstance(error.__cause__, Killed), error
        return False
    finally:
        counted = 0 if fate is None else fate.calls
        if fate is not None:
            fate.left = None
        engine.close()  # frees the lock, as the system does
        if fate is not None:
            fate.calls = counted  # nobody is killed in what a clean end does


def published(root: Any) -> dict[Any, Any]:
    """All files below ``out`` that have a name, with their content."""
    return {
        str(p.relative_to(root)): p.read_text() for p in sorted((root / "out").rglob("[!.]*.*json"))
    }

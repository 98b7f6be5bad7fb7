"""Requests to the engine on a checkpoint from another process, and their answers.

The engine answers between two epochs. If it ends before, the request is withdrawn, so that no later
run executes it. A request that was executed before the end gets its answer.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path

from levada.checkpoint.request_files import (
    Answer,
    Request,
    engine_runs,
    place,
    place_content,
    take_answer,
    withdraw,
    without_engine,
)
from levada.core.checkpoint_files import facts_of
from levada.errors import EngineError, LevadaError

RUNS = 0.5  # s between two looks at whether the engine runs


class RefusedError(LevadaError):
    """A request that the engine refused, with its sentence. ``errno``: as in ``Answer``."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.refusal)
        self.exit_code, self.errno = answer.exit_code, answer.errno
        for note in answer.notes:
            self.add_note(note)


def new_id() -> str:
    """Returns an id for a request. Ids sort by time."""
    return f"{time.time_ns():020d}-{secrets.token_hex(4)}"


def ask(
    root: Path, request: Request, wait: Callable[[], None], lines: bytes | None = None
) -> Answer:
    """Sends a request to the engine and returns its answer. ``wait``: called between two looks.
    ``lines``: N-Triples of the request. Raises ``EngineError`` if no engine runs, or if it ends
    first; then the request is withdrawn.
    """
    facts_of(root)
    if not engine_runs(root):
        raise EngineError(
            f"No engine runs on the checkpoint {root}.",
            hint=f"Start one with levada run --checkpoint {root}: a query is given to it there.",
        )
    if lines is None:
        place(root, request)
    else:
        place_content(root, request, lines)
    looked = time.monotonic()
    while (answer := take_answer(root, request.id)) is None:
        wait()
        if time.monotonic() - looked >= RUNS:
            looked = time.monotonic()
            with without_engine(root) as alone:
                if alone:
                    return _withdraw(root, request.id)
    return answer


def _withdraw(root: Path, name: str) -> Answer:
    """Returns the answer of an engine that has ended, if there is one. Raises ``EngineError``
    otherwise.
    """
    answer = withdraw(root, name) if root.is_dir() else None
    if answer is None:
        raise EngineError(
            f"The engine on {root} ended before it took up the request.",
            hint="The request has been withdrawn; start the engine again, and ask again.",
        )
    return answer

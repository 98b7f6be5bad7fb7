"""``levada add`` and ``levada drop``: a request to the engine of a checkpoint, and its answer.

The engine answers between two epochs. If it ends before, the request is withdrawn, so that no
later run does what nobody waits for; one that was done before the end is told as done.
"""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from levada.algebra.options import options_of
from levada.app.app_file import read_query
from levada.cli.scripts import statements
from levada.errors import EngineError, LevadaError, UsageError
from levada.model.names import check_query_name
from levada.runtime.store.checkpoint import facts_of
from levada.runtime.store.requests import (
    Answer,
    Asking,
    Request,
    engine_runs,
    place,
    take_answer,
    withdraw,
    without_engine,
)

LOOK = 0.02  # s
RUNS = 0.5  # s between two looks at whether the engine runs


class RefusedError(LevadaError):
    """What the engine said to a request that it refused."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.refused)
        self.exit_code = answer.exit_code
        for note in answer.notes:
            self.add_note(note)


def add(
    checkpoint: Path,
    paths: Sequence[str],
    *,
    name: str | None,
    dialect: str | None,
    said: dict[str, Any],
) -> None:
    """Adds the queries of these files to the engine that runs, all or none."""
    sources = [read_query(Path(path), dialect) for path in paths]
    found = [query for source in sources for query in statements(source)]
    if name is not None and len(found) != 1:
        raise UsageError(f"--name is for one query, these are {len(found)}.")
    asked = [Asking(check_query_name(name or q.name), q.text, q.dialect, said) for q in found]
    _tell(checkpoint, Request(_new_id(), asked))


def drop(checkpoint: Path, names: Sequence[str]) -> None:
    """Takes queries out of the engine that runs, one after the other; raises at the first that is
    refused.
    """
    for name in names:
        _tell(checkpoint, Request(_new_id(), drop=name))


def _new_id() -> str:
    return f"{time.time_ns():020d}-{secrets.token_hex(4)}"


def _tell(checkpoint: Path, request: Request) -> None:
    """Prints what became of a request. Raises ``RefusedError``, ``EngineError``."""
    answer = ask(checkpoint, request, _wait)
    if answer.refused:
        raise RefusedError(answer)
    for sentence in answer.told:
        print(sentence)
    sys.stdout.flush()


def ask(root: Path, request: Request, wait: Callable[[], None]) -> Answer:
    """What the engine answers to a request; ``wait`` is called between two looks. Raises
    ``EngineError`` where none runs, or it ends before; then the request is withdrawn.
    """
    facts_of(root)
    if not engine_runs(root):
        raise EngineError(
            f"No engine runs on the checkpoint {root}.",
            hint=f"Start one with levada run --checkpoint {root}: a query is given to it there.",
        )
    place(root, request)
    looked = time.monotonic()
    while (answer := take_answer(root, request.id)) is None:
        wait()
        if time.monotonic() - looked >= RUNS:
            looked = time.monotonic()
            with without_engine(root) as alone:
                if alone:
                    return _withdrawn(root, request.id)
    return answer


def _withdrawn(root: Path, name: str) -> Answer:
    """The answer of an engine that has ended, if it gave one."""
    answer = withdraw(root, name) if root.is_dir() else None
    if answer is None:
        raise EngineError(
            f"The engine on {root} ended before it took up the request.",
            hint="The request has been withdrawn; start the engine again, and ask again.",
        )
    return answer


def _wait() -> None:
    time.sleep(LOOK)


def said_of(
    bounds: str | None,
    t0: str | None,
    report: str | None,
    *,
    empty_reports: bool,
    entailment: str | None,
) -> dict[str, Any]:
    """The options of a query by their words; those that are wrong are told before anybody asks."""
    said = {"bounds": bounds, "t0": t0, "report": report, "entailment": entailment}
    given: dict[str, Any] = {word: value for word, value in said.items() if value is not None}
    if empty_reports:
        given["empty_reports"] = True
    options_of(given)
    return given

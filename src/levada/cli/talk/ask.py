"""``levada add`` and ``levada drop``: a request to the engine of a checkpoint, and its answer."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from levada.algebra.options import options_of
from levada.app.app_file import read_query
from levada.cli.scripts import statements
from levada.engine.telling.asking import RefusedError, ask, new_id
from levada.errors import UsageError
from levada.model.names import check_query_name
from levada.runtime.store.requests import Asking, Request

LOOK = 0.02  # s


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
    tell(checkpoint, Request(new_id(), asked))


def drop(checkpoint: Path, names: Sequence[str]) -> None:
    """Takes queries out of the engine that runs, one after the other; raises at the first that is
    refused.
    """
    for name in names:
        tell(checkpoint, Request(new_id(), drop=name))


def tell(checkpoint: Path, request: Request) -> None:
    """Prints what became of a request. Raises ``RefusedError``, ``EngineError``."""
    answer = ask(checkpoint, request, _wait)
    if answer.refused:
        raise RefusedError(answer)
    for sentence in answer.told:
        print(sentence)
    sys.stdout.flush()


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

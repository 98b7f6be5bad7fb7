"""``levada add`` and ``levada drop``: a request to the engine of a checkpoint, and its answer."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from levada.checkpoint.request_files import OutputSpec, QuerySpec, Request
from levada.cli.app.app_file import To, read_query
from levada.cli.argument_parsing import parse_outputs
from levada.cli.cql_scripts import statements
from levada.connectors.config.kafka_config import TLS_FILES, is_kafka
from levada.connectors.config.secret_reference import password_place
from levada.connectors.sinks.sink_url import Destination
from levada.core.names import check_query_name
from levada.engine.status.request_client import RefusedError, ask, new_id
from levada.errors import UsageError
from levada.plan.logical.query_options import options_of

LOOK = 0.02  # s


def add(
    checkpoint: Path,
    paths: Sequence[str],
    *,
    name: str | None,
    dialect: str | None,
    said: dict[str, Any],
    to: Sequence[str] = (),
) -> None:
    """Adds the queries of these files to the running engine, all or none, with outputs ``to``.
    Raises ``UsageError``, ``RefusedError`` and ``EngineError``.
    """
    sources = [read_query(Path(path), dialect) for path in paths]
    queries = [query for source in sources for query in statements(source)]
    if name is not None and len(queries) != 1:
        raise UsageError(f"--name is for one query, these are {len(queries)}.")
    names = [check_query_name(name or query.name) for query in queries]
    outputs = {
        query: list(map(destination_of, outs)) for query, outs in parse_outputs(to, names).items()
    }
    for query, goings in outputs.items():
        for one in goings:  # raises before the request writes a secret
            Destination(one.url, one.options).target(query, "")
    asked = [
        QuerySpec(at, query.text, query.dialect, said, outputs[at])
        for at, query in zip(names, queries, strict=True)
    ]
    tell(checkpoint, Request(new_id(), asked))


def destination_of(to: To) -> OutputSpec:
    """Returns an output with absolute paths, since the engine may run in another folder.

    >>> destination_of(To("kafka://a:9092/hot", {"password": "env:WORD"})).options
    {'password': 'env:WORD'}
    """
    said = dict(to.options)
    for key in said.keys() & TLS_FILES if is_kafka(to.url) else ():
        said[key] = os.path.abspath(os.path.expanduser(said[key]))
    if "password" in said:
        said["password"] = password_place(said["password"])
    return OutputSpec(to.url, said)


def drop(checkpoint: Path, names: Sequence[str]) -> None:
    """Removes queries from the running engine, one after the other. Raises ``RefusedError`` at the
    first refusal.
    """
    for name in names:
        tell(checkpoint, Request(new_id(), drop=name))


def tell(checkpoint: Path, request: Request) -> None:
    """Sends a request and prints its answer. Raises ``RefusedError``, ``EngineError``."""
    answer = ask(checkpoint, request, _wait)
    if answer.refusal:
        raise RefusedError(answer)
    for sentence in answer.messages:
        print(sentence)
    sys.stdout.flush()


def _wait() -> None:
    time.sleep(LOOK)


def parse_options(said: Mapping[str, str | None], *, empty_reports: bool) -> dict[str, Any]:
    """Returns the options of a query by their words. Raises ``UsageError`` for a wrong value,
    before any request.
    """
    options: dict[str, Any] = {word: value for word, value in said.items() if value is not None}
    if empty_reports:
        options["empty_reports"] = True
    options_of(options)
    return options

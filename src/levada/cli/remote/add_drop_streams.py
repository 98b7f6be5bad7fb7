"""``levada add-stream`` and ``levada drop-stream``: requests to the engine of a checkpoint.

Paths in requests are absolute, since the engine may run in another folder.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from levada.checkpoint.request_files import NewStream, Request
from levada.cli.argument_parsing import stream_words
from levada.cli.remote.add_drop import tell
from levada.connectors.config.connector_options import is_way
from levada.connectors.config.input_formats import PUSH, STDIN
from levada.connectors.config.stream_config import StreamConfig
from levada.core.names import check_stream_name
from levada.engine.status.request_client import new_id
from levada.errors import UsageError

FILES = ("mapping", "tls_ca", "tls_cert", "tls_key")  # options that name files
_FILE = "file:"


def add_streams(checkpoint: Path, texts: Sequence[str]) -> None:
    """Adds streams, one after the other. Raises ``RefusedError`` at the first refusal."""
    for asked in [asked_for(text) for text in texts]:
        tell(checkpoint, Request(new_id(), add_stream=asked))


def drop_streams(checkpoint: Path, names: Sequence[str]) -> None:
    """Removes streams, one after the other. Raises ``RefusedError`` at the first refusal."""
    for name in [check_stream_name(name) for name in names]:
        tell(checkpoint, Request(new_id(), remove_stream=name))


def asked_for(text: str) -> NewStream:
    """Returns the stream of one argument, with absolute paths. Raises ``UsageError``.

    >>> asked_for("obs=push:,lateness=1s")
    NewStream(name='obs', path='push:', options={'lateness': '1s'})
    """
    name, path, said = stream_words(text)
    StreamConfig.from_options(name, path, **said)  # raises before any request
    if path == STDIN:
        raise UsageError("The engine that runs has a standard input of its own.")
    for key in FILES:
        if key in said:
            said[key] = os.path.abspath(os.path.expanduser(said[key]))
    if (password := said.get("password", "")).startswith(_FILE):
        said["password"] = _FILE + os.path.abspath(password.removeprefix(_FILE))
    if path != PUSH and not is_way(path):
        path = os.path.abspath(os.path.expanduser(path))
    return NewStream(name, path, said)

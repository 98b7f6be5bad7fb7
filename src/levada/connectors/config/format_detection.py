"""Detects the format of a stream without ``format=``: by the extensions of its files, else by its
other options.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from levada.connectors.config.connector_options import is_way
from levada.connectors.config.input_formats import PUSH, STDIN, format_of
from levada.connectors.config.stream_options import FORMATS, say_one_of
from levada.errors import UsageError

_PREFERRED = (
    "nq",
    "nt",
    "trig",
    "ttl",
    "jsonld",
    "rdf",
    "jelly",
    "csv",
    "ndjson",
    "json",
    "parquet",
)


def format_at(name: str, path: str, values: Mapping[str, Any]) -> str:
    """Returns the format by extension; of a directory by its files, else by the other options."""
    if not is_way(path) and (path_format := format_of(path)):
        return path_format
    if path == STDIN:
        return "nt"
    if path == PUSH:
        return "ndjson" if "schema" in values or "mapping" in values else "nq"
    if os.path.isdir(path):
        endings = {format_of(entry) for entry in os.listdir(path) if not entry.startswith(".")}
        if known := [word for word in _PREFERRED if word in endings]:
            return known[0]
        if "schema" in values:
            return "csv"
        return "nq" if "graph" in (values.get("time"), values.get("element")) else "nt"
    if is_way(path):
        raise UsageError(
            f"The stream {name}: messages do not say their format.",
            hint="Say format=nq, for example.",
        )
    raise UsageError(
        f"The format of the stream {name} does not show in its path {path}.",
        hint=say_one_of(FORMATS, "format="),
    )

"""The file formats of send graphs, each with a reader and a writer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from levada.core.frozen import frozen
from levada.errors import UsageError, near
from levada.placement import json_file, metis_file
from levada.placement.send_graph import SendGraph


@frozen
class Format:
    """A format. ``read``: text and name of a file to a graph; ``write``: the reverse."""

    read: Callable[[str, str], SendGraph]
    write: Callable[[SendGraph], str]


FORMATS = {
    "json": Format(json_file.read, json_file.write),
    "metis": Format(metis_file.read, metis_file.write),
}


def read_graph(path: Path, name: str | None = None) -> SendGraph:
    """Reads the graph of a file, in the format ``name``, else in that of its extension. Raises
    ``UsageError`` that names the wrong place.
    """
    kind = FORMATS[name or format_of(path)]
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no text in UTF-8 (byte {error.start}).") from error
    return kind.read(text, str(path))


def format_of(path: Path) -> str:
    """Returns the format of a file's extension. Raises ``UsageError`` without one.

    >>> format_of(Path("jan.metis"))
    'metis'
    """
    ending = path.suffix.removeprefix(".")
    if ending not in FORMATS:
        raise UsageError(
            f"The ending of {path} says no format of send graphs.",
            hint=f"Say --format. {near(ending, FORMATS)}",
        )
    return ending

"""Finds the file of a logical source.

A mapping names files in its own folder. Other files need a folder that the user allows, so a
mapping from elsewhere opens nothing that nobody named.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from levada.connectors.config.rml.logical_source import MAPPING, WORKING, LogicalSource
from levada.errors import MissingError, UsageError


def find_file(source: LogicalSource, folder: Path, allowed: Sequence[Path] = ()) -> Path:
    """Returns the path of a source of a mapping in ``folder``. Raises ``UsageError`` for one that
    is outside of the folder and of those ``allowed``, or that is missing.
    """
    if "\0" in source.path + source.root:
        raise UsageError(f"The source {source.path!r} is not a path: it has a NUL.")
    roots = {MAPPING: [folder], WORKING: [Path.cwd(), folder]}.get(source.root)
    candidates = [root / source.path for root in roots or [Path(source.root)]]
    path = next((each for each in candidates if each.exists()), candidates[-1])
    near = [folder, *allowed, *([Path.cwd()] if source.root == WORKING else [])]
    real = path.resolve()
    if not any(real.is_relative_to(each.resolve()) for each in near):
        raise UsageError(
            f"The source {source.path} is outside of the mapping's folder {folder}.",
            hint=f"Say --allow {real.parent} if the mapping may read there.",
        )
    if not path.is_file():
        raise MissingError(f"The source {source.path} names no file: {path} does not exist.")
    return path

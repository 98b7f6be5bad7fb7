"""The files of incomplete attempts in a checkpoint, which nothing names.

An overtaken driver may be in any phase of its work. So a driver first lists the files to delete,
then checks that it still leads, and only then deletes the listed files. They existed before any
takeover, and no later driver names them. Files of committed epochs need no such check: if the last
two manifests do not name a file, no later one does.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import suppress
from pathlib import Path

import msgspec

from levada.checkpoint.file_read_log import logs_of
from levada.checkpoint.manifest import EpochIntent, Manifest, read_manifest
from levada.core.checksummed_files import read_sealed
from levada.core.durable_files import HIDDEN
from levada.errors import CheckpointError

MADE = ("state", "side", "graph")
"""The folders of the files that tasks write; names begin with the epoch."""
_WRITTEN = ("", "standby", "commits", "manifests", "plans", "intentions", "positions", "tables")


def find_leftovers(
    root: Path, last: Manifest | None, before: Manifest | None, named: Set[str]
) -> list[Path]:
    """Returns the leftovers that a driver finds when its leadership begins after this manifest,
    except old manifests. ``named``: the files that it and the previous manifest name
    (``checkpoint``).
    """
    kept = named | _letters(last) | _letters(before)
    orphans = [path for path in _task_files(root) if f"{path.parent.name}/{path.name}" not in kept]
    for folder in _WRITTEN:
        with suppress(OSError):
            orphans += [p for p in (root / folder).iterdir() if HIDDEN.fullmatch(p.name)]
    ahead = _open_intention(root)
    known = [m.positions for m in (last, before, ahead) if m is not None]
    logs = {name for positions in known for name in logs_of(positions)}
    with suppress(OSError):
        there = (root / "positions").glob("*.*")
        orphans += [p for p in there if p.name[0] != "." and f"positions/{p.name}" not in logs]
    return orphans


def orphans(root: Path, last: Manifest, named: Set[str]) -> list[Path]:
    """Returns the files of failed attempts at committed epochs."""
    kept = named | _letters(last) | _letters(previous(root, last))
    return [
        path
        for path in _task_files(root)
        if f"{path.parent.name}/{path.name}" not in kept and _epoch(path.name) <= last.epoch
    ]


def previous(root: Path, last: Manifest | None) -> Manifest | None:
    """Returns the previous manifest, if it is present and intact."""
    if last is not None:
        with suppress(CheckpointError):
            return read_manifest(root / "manifests" / str(last.epoch - 1))
    return None


def _letters(manifest: Manifest | None) -> set[str]:
    return set() if manifest is None else {name for _, name, _ in manifest.letter_files}


def _task_files(root: Path) -> Iterator[Path]:
    for folder in MADE:
        yield from (root / folder).iterdir()


def _epoch(name: str) -> int:
    number = name.split("-", 1)[0]
    return int(number) if number.isdigit() else 0


def _open_intention(root: Path) -> EpochIntent | None:
    """Returns the open intention, if it is present and intact."""
    with suppress(CheckpointError, msgspec.MsgspecError):
        return msgspec.json.decode(read_sealed(root / "intentions" / "open"), type=EpochIntent)
    return None

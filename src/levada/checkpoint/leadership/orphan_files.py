"""What attempts have left in a checkpoint that did not come to an end, and nobody names.

A driver that was overtaken may stand anywhere in what it does. So what is to be deleted is listed
first, then the driver looks whether it still reigns, and only then deletes what it has listed: that
was there before anybody could take over, and a later driver names none of it. Files of epochs that
are committed need no such look: what the last two manifests do not name, no later one does.
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
"""The folders of what tasks make, by names that begin with the epoch."""
_WRITTEN = ("", "standby", "commits", "manifests", "plans", "intentions", "positions", "tables")


def find_leftovers(
    root: Path, last: Manifest | None, before: Manifest | None, named: Set[str]
) -> list[Path]:
    """What a driver finds that begins its reign after this manifest; but for old manifests.
    ``named``: the files that it and the one before name (``checkpoint``).
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
    """What failed attempts at committed epochs have left."""
    kept = named | _letters(last) | _letters(previous(root, last))
    return [
        path
        for path in _task_files(root)
        if f"{path.parent.name}/{path.name}" not in kept and _epoch(path.name) <= last.epoch
    ]


def previous(root: Path, last: Manifest | None) -> Manifest | None:
    """The manifest before, if it is there and whole."""
    if last is not None:
        with suppress(CheckpointError):
            return read_manifest(root / "manifests" / str(last.epoch - 1))
    return None


def _letters(manifest: Manifest | None) -> set[str]:
    return set() if manifest is None else {name for _, name, _ in manifest.side}


def _task_files(root: Path) -> Iterator[Path]:
    for folder in MADE:
        yield from (root / folder).iterdir()


def _epoch(name: str) -> int:
    number = name.split("-", 1)[0]
    return int(number) if number.isdigit() else 0


def _open_intention(root: Path) -> EpochIntent | None:
    """The open intention, if it is there and whole."""
    with suppress(CheckpointError, msgspec.MsgspecError):
        return msgspec.json.decode(read_sealed(root / "intentions" / "open"), type=EpochIntent)
    return None

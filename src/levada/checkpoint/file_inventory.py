"""The names in a manifest: the files that it needs, and the owner of each state file.

    inventory  a file with all names of an earlier epoch ("": none)
    files      the names added since; without an inventory all of them
    gone       the names of the inventory that are no longer needed
    state      "STAGE.PARTITION" -> its state's file, if it has changed since ("": it has no state
               any more); without an inventory all of them

So the names of a manifest are in itself and in one other file, and an epoch writes the changes
since that file. A manifest with few names contains them all (``live_files.MAX_INLINE_NAMES``). An
inventory is durable before the manifest that names it. It is named like all other files, so it is
deleted when neither of the last two manifests names it.

Use ``names_of`` to read the names of a manifest.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
from xxhash import xxh3_64_hexdigest

from levada.checkpoint import state_files
from levada.checkpoint.manifest import Manifest
from levada.core.checksummed_files import OTHER, read_sealed
from levada.core.msgspec_warmup import prepare_structs
from levada.errors import unreadable

FOLDER, NAME = "state", "names"


class Inventory(msgspec.Struct):
    """The names at one epoch."""

    files: list[str]
    state: dict[str, str]


class Named(NamedTuple):
    """All files that a manifest names, and the state file of each "STAGE.PARTITION" with state."""

    files: set[str]
    state: dict[str, str]


def names_of(root: Path, manifest: Manifest) -> Named:
    """Returns the files that a manifest names, including the inventory, except dead letters and
    results. Reads a file if there is an inventory. Raises ``CheckpointError``.
    """
    if not manifest.inventory:
        return Named({*manifest.files}, dict(manifest.state))
    before = read_inventory(root / manifest.inventory)
    files = {*before.files}.difference(manifest.unneeded_files)
    files.update(manifest.files, (manifest.inventory,))
    state = before.state | manifest.state
    return Named(files, {key: file for key, file in state.items() if file})


def read_inventory(path: Path) -> Inventory:
    """Reads an inventory from its file. Raises ``CheckpointError``, also for an intact file under
    the name of another.
    """
    data = read_sealed(path)
    if xxh3_64_hexdigest(data) not in path.name:
        raise unreadable(path, OTHER)
    try:
        return msgspec.json.decode(data, type=Inventory)
    except msgspec.MsgspecError as error:
        raise unreadable(path, str(error)) from error


def write_inventory(root: Path, epoch: int, inventory: Inventory) -> str:
    """Writes an inventory durably; returns its name, which contains the hash of its content."""
    data = msgspec.json.encode(inventory)
    stem = f"{epoch}-{NAME}-{xxh3_64_hexdigest(data)}"
    return state_files.write_sealed(str(root), FOLDER, stem, data)


prepare_structs(Inventory)

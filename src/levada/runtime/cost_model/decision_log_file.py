"""The file of a topology's journal (``plan/topology/choices/journal``): written with a plan that
has something new to tell, read when a run goes on.

Nothing goes by it, so one that cannot be read is begun anew.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from levada.checkpoint.verify import SHARING
from levada.core.checksummed_files import read_sealed, seal
from levada.core.durable_files import replace_file
from levada.errors import CheckpointError, unreadable
from levada.plan.sharing.decision_log import Journal, Kept


def write(root: Path, journal: Journal) -> None:
    """Writes what is new, if anything is."""
    if journal.new:
        replace_file(root / SHARING, seal(msgspec.json.encode(journal.kept)))
        journal.new = False


def open_journal(root: Path) -> Journal:
    """The journal of the run before."""
    try:
        return Journal(read(root))
    except CheckpointError:
        return Journal()


def read(root: Path) -> Kept:
    """What the file on a checkpoint has. Raises ``CheckpointError``."""
    path = root / SHARING
    if not path.exists():
        return Kept()
    try:
        return msgspec.json.decode(read_sealed(path), type=Kept)
    except msgspec.MsgspecError as error:
        raise unreadable(path, str(error)) from error

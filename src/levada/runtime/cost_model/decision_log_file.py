"""Stores the decision log of a topology (``plan/topology``). A plan with new decisions writes it; a
run that continues reads it.

No decision depends on the log, so a damaged one is begun anew.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from levada.checkpoint.verify import SHARING
from levada.core.checksummed_files import read_sealed, seal
from levada.core.durable_files import replace_file
from levada.errors import CheckpointError, unreadable
from levada.plan.sharing.decision_log import Journal, StoredDecisions


def write(root: Path, journal: Journal) -> None:
    """Writes the log if it has new decisions."""
    if journal.new:
        replace_file(root / SHARING, seal(msgspec.json.encode(journal.kept)))
        journal.new = False


def open_journal(root: Path) -> Journal:
    """Returns the log of the previous run."""
    try:
        return Journal(read(root))
    except CheckpointError:
        return Journal()


def read(root: Path) -> StoredDecisions:
    """Reads the log file of a checkpoint. Raises ``CheckpointError``."""
    path = root / SHARING
    if not path.exists():
        return StoredDecisions()
    try:
        return msgspec.json.decode(read_sealed(path), type=StoredDecisions)
    except msgspec.MsgspecError as error:
        raise unreadable(path, str(error)) from error

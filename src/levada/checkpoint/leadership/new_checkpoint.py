"""The check of the place of a new checkpoint: a folder that is empty, except for files of processes
that look for a checkpoint there, or wait for one.
"""

from __future__ import annotations

from pathlib import Path

from levada.checkpoint.leadership.heartbeat import FOLDER
from levada.checkpoint.object_store.folder_mirror import MARK
from levada.errors import CheckpointError

OURS = ("lock", ".levada.json.", MARK, f".{MARK}.")


def check_free(root: Path) -> None:
    """Raises ``CheckpointError`` if a folder without a checkpoint contains anything else."""
    names = (path.name for path in root.iterdir())
    strange = min((n for n in names if n != FOLDER and not n.startswith(OURS)), default="")
    if strange:
        raise CheckpointError(
            f"{root} is not a checkpoint of Levada: it holds {strange}.",
            hint="Choose an empty folder.",
        )

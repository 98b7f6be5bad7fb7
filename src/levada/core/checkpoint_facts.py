"""The facts that are fixed for a checkpoint, in its file ``levada.json``."""

from __future__ import annotations

from pathlib import Path

import msgspec

from levada.core.checksum_messages import ALTERED
from levada.core.checksummed_files import unseal
from levada.errors import CheckpointError, unreadable

FORMAT = 25
_UPGRADE = (
    "Install the version that wrote it and run it with --once, which publishes all results. "
    "Then start this version with an empty folder: docs/upgrade.md."
)


class Facts(msgspec.Struct):
    """The fixed facts of a checkpoint."""

    format: int
    seed: int
    id: str


class _Version(msgspec.Struct):
    """The fields that every format of ``levada.json`` has."""

    format: int


def facts_of(root: Path) -> Facts:
    """Returns the fixed facts of the checkpoint in this folder. Raises ``CheckpointError`` if the
    folder is not a checkpoint, or has another format.
    """
    path = root / "levada.json"
    try:
        data = path.read_bytes()
        facts = unseal(data)
        made = msgspec.json.decode(data if facts is None else facts, type=_Version).format
        # formats before 9 are one line without a seal
        if made != FORMAT and (facts is not None or b"\n" not in data):
            raise CheckpointError(
                f"The checkpoint {root} has format {made}, and this version of Levada reads format "
                f"{FORMAT}: go on with the version that made it, or start anew in an empty folder.",
                hint="" if made > FORMAT else _UPGRADE,
            )
        if facts is None:
            raise unreadable(path, ALTERED)
        return msgspec.json.decode(facts, type=Facts)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CheckpointError(f"{root} is not a checkpoint of Levada.") from error
    except PermissionError as error:
        raise CheckpointError(
            f"The checkpoint {root} may not be read: it is somebody else's.",
            hint="Its owner opens it: levada run --checkpoint-mode group, or all.",
        ) from error
    except OSError as error:
        raise unreadable(path, str(error.strerror)) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise unreadable(path, ALTERED) from error

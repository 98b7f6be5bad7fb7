"""How often an epoch has ended its process and nothing that it reads was to blame
(docs/decisions/0016-what-kills-is-set-aside.md): ``intentions/deaths``, written after a death only.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from levada.errors import unreadable
from levada.runtime.store.durable import replace_file
from levada.runtime.store.sealed import read_sealed, seal

DEATHS = "intentions/deaths"


class Deaths(msgspec.Struct):
    """``times``: how often this epoch died."""

    epoch: int
    times: int


def one_more(root: Path, epoch: int) -> int:
    """Notes a death of an epoch, durably; how many that makes. Raises ``CheckpointError``."""
    path, known = root / DEATHS, Deaths(epoch, 0)
    if path.exists():
        try:
            known = msgspec.json.decode(read_sealed(path), type=Deaths)
        except msgspec.MsgspecError as error:
            raise unreadable(path, str(error)) from error
    times = known.times + 1 if known.epoch == epoch else 1
    replace_file(path, seal(msgspec.json.encode(Deaths(epoch, times))))
    return times


def forget(root: Path) -> None:
    """The epoch is dropped."""
    (root / DEATHS).unlink(missing_ok=True)

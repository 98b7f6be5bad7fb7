"""What a checkpoint knows of its outputs: how far each is at least, and why one is away.

    deliveries.json    sealed; written anew at most once a second while it changes

How far an output is stands in its target, with what was written; here is a place before that or at
it, for what must be known without asking the target: which epochs the index has to keep, and what
``levada status`` tells.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from levada.core.checksummed_files import read_sealed, seal
from levada.core.durable_files import replace_file
from levada.core.event_time import MAX
from levada.core.msgspec_warmup import prepare_structs
from levada.errors import unreadable

DELIVERIES = "deliveries.json"


class Delivered(msgspec.Struct, frozen=True):
    """An output. ``to``: its URL for people; ``epoch``, ``report``, ``since``: where it is
    (``connectors.sinks.transactional_sink.Position``); ``reached``: up to this epoch nothing is
    left for it; ``why`` it is away; ``holds``: the intake waits for it. Of the epochs after
    ``begins`` up to ``ends`` the reports are its: a query that has gone, or had the name before, is
    another one.
    """

    query: str
    to: str
    epoch: int
    report: int
    since: int
    reached: int
    why: str = ""
    holds: bool = False
    begins: int = 0
    ends: int = MAX


def read_deliveries(root: Path) -> list[Delivered]:
    """The outputs of a checkpoint. Raises ``CheckpointError``."""
    path = root / DELIVERIES
    if not path.exists():
        return []
    try:
        return msgspec.json.decode(read_sealed(path), type=list[Delivered])
    except msgspec.MsgspecError as error:
        raise unreadable(path, str(error)) from error


def write_deliveries(root: Path, deliveries: list[Delivered]) -> None:
    """Keeps them. Raises ``CheckpointError``."""
    replace_file(root / DELIVERIES, seal(msgspec.json.encode(deliveries)))


def forget_deliveries(root: Path) -> None:
    """A run without an index: how far outputs are is not known any more."""
    (root / DELIVERIES).unlink(missing_ok=True)


prepare_structs(Delivered)

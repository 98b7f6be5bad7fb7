"""The progress of a checkpoint's outputs: a lower bound of the position of each, and why one is
unavailable.

    deliveries.json    sealed; written at most once a second while it changes

The exact position of an output is in its target, with the written data. Here is a position at or
before it, for uses that cannot ask the target: the epochs that the index must keep, and ``levada
status``.
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
    """An output. ``target``: its URL for people. ``epoch``, ``report``, ``since``: its position
    (``connectors.sinks.transactional_sink.Position``). ``delivered_epoch``: all epochs up to this
    one are delivered. ``reason``: the reason why it is unavailable. ``blocks_intake``: the intake
    waits for it. The output has the reports of the epochs after ``after_epoch`` up to
    ``last_epoch``: a removed query, or an earlier one of the name, is another one.
    """

    query: str
    target: str
    epoch: int
    report: int
    since: int
    delivered_epoch: int
    reason: str = ""
    blocks_intake: bool = False
    after_epoch: int = 0
    last_epoch: int = MAX


def read_deliveries(root: Path) -> list[Delivered]:
    """Returns the outputs of a checkpoint. Raises ``CheckpointError``."""
    path = root / DELIVERIES
    if not path.exists():
        return []
    try:
        return msgspec.json.decode(read_sealed(path), type=list[Delivered])
    except msgspec.MsgspecError as error:
        raise unreadable(path, str(error)) from error


def write_deliveries(root: Path, deliveries: list[Delivered]) -> None:
    """Saves the outputs. Raises ``CheckpointError``."""
    replace_file(root / DELIVERIES, seal(msgspec.json.encode(deliveries)))


def forget_deliveries(root: Path) -> None:
    """Deletes the outputs: in a run without an index their progress becomes unknown."""
    (root / DELIVERIES).unlink(missing_ok=True)


prepare_structs(Delivered)

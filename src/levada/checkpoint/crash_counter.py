"""Two counts. ``intentions/deaths``, written only after a crash: how often an epoch has crashed its
process without guilty input (docs/decisions/0016-what-kills-is-set-aside.md). ``intentions/lost``,
for status reports: how often the last epoch with lost tasks has lost them.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from levada.core.checksummed_files import read_sealed, seal
from levada.core.durable_files import replace_file
from levada.core.msgspec_warmup import prepare_structs
from levada.errors import CheckpointError, unreadable

DEATHS, LOST = "intentions/deaths", "intentions/lost"


class CrashCount(msgspec.Struct):
    """The number of ``times`` that an epoch has crashed."""

    epoch: int
    times: int


def increment_crash_count(root: Path, epoch: int) -> int:
    """Counts a crash of an epoch, durably; returns the new count. Raises ``CheckpointError``."""
    path, known = root / DEATHS, CrashCount(epoch, 0)
    if path.exists():
        try:
            known = msgspec.json.decode(read_sealed(path), type=CrashCount)
        except msgspec.MsgspecError as error:
            raise unreadable(path, str(error)) from error
    times = known.times + 1 if known.epoch == epoch else 1
    replace_file(path, seal(msgspec.json.encode(CrashCount(epoch, times))))
    return times


def forget(root: Path) -> None:
    """Deletes the count: the epoch is dropped."""
    (root / DEATHS).unlink(missing_ok=True)


class Losses(msgspec.Struct, frozen=True):
    """An epoch that has lost tasks so many ``times``, the last time for this reason.
    ``runs_again``: it runs again; otherwise the engine has ended.
    """

    epoch: int
    times: int
    reason: str
    runs_again: bool

    def __str__(self) -> str:
        times = "once" if self.times == 1 else f"{self.times} times"
        then = "and is run again" if self.runs_again else "and has ended the engine"
        return f"Epoch {self.epoch} has lost tasks {times}, {then}: {self.reason}"


def note_loss(root: Path, epoch: int, why: str, *, again: bool) -> Losses:
    """Counts that an epoch has lost tasks; returns the new count. Raises ``CheckpointError``."""
    known = read_losses(root)
    times = known.times + 1 if known is not None and known.epoch == epoch else 1
    losses = Losses(epoch, times, why, again)
    replace_file(root / LOST, seal(msgspec.json.encode(losses)))
    return losses


def read_losses(root: Path) -> Losses | None:
    """Returns the last epoch that has lost tasks; None: there is none, or it is unknown."""
    with suppress(CheckpointError, msgspec.MsgspecError):
        return msgspec.json.decode(read_sealed(root / LOST), type=Losses)
    return None


prepare_structs(CrashCount, Losses)

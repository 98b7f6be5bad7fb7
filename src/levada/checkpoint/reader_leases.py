"""Epochs that are kept for readers in other processes (``levada tail``).

    tails/ID    the next epoch that a reader needs, sealed; written again as it advances or waits

A reader reads manifest after manifest. So manifests, results and plans are kept from the least
needed epoch on (``RetainedEpochs``), as long as the reader renews its lease, and up to
``MOST_BYTES`` and ``MOST_EPOCHS`` in all. A slower reader misses epochs, and sees it by their
numbers. A reader writes its file before it looks for the newest manifest, so no later manifest is
deleted.

Without a reader this costs one call of ``stat`` an epoch (``watched_folder``).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from levada.checkpoint.manifest import Manifest, read_manifest
from levada.checkpoint.watched_folder import WatchedFolder
from levada.core.checkpoint_files import create
from levada.core.checksummed_files import seal, unseal
from levada.core.durable_files import make_folder
from levada.errors import CheckpointError

FOLDER = "tails"
ALIVE = 30.0  # s without a sign after which a reader is given up
SIGN = 5.0  # s between two signs of a reader that waits
MOST_BYTES = 256 << 20
MOST_EPOCHS = 10_000


class KeptEpoch(NamedTuple):
    """An epoch that is kept for readers. ``size``: the bytes of its results."""

    epoch: int
    plan: int
    size: int


@dataclass
class RetainedEpochs:
    """The epochs that an engine keeps for readers. ``clock`` is in seconds."""

    root: Path
    clock: Callable[[], float]
    most_bytes: int = MOST_BYTES
    _epochs: deque[KeptEpoch] = field(default_factory=deque)
    _signs: dict[str, tuple[tuple[int, str], float]] = field(default_factory=dict)
    _begun: bool = False
    _folder: WatchedFolder = field(init=False)

    def __post_init__(self) -> None:
        self._folder = WatchedFolder(f"{self.root}/{FOLDER}")

    def follow(self, manifest: Manifest) -> KeptEpoch | None:
        """Returns the oldest epoch that is kept after this one was committed; None: no reader needs
        any.

        Deletes earlier manifests that are no longer kept.
        """
        least = self._first_needed_epoch()
        if least is None and not self._epochs and self._begun:
            return None
        if not self._epochs:
            self._begin(manifest.epoch)
        if not self._epochs or self._epochs[-1].epoch < manifest.epoch:
            self._epochs.append(_kept_epoch(self.root, manifest))
        self._drop(manifest.epoch + 1 if least is None else least, manifest.epoch - 2)
        return self._epochs[0] if self._epochs else None

    def _begin(self, newest: int) -> None:
        """Collects the present epochs, of this run or of a previous one."""
        self._begun = True
        for epoch in sorted(e for e in epochs_there(self.root) if e < newest):
            with suppress(CheckpointError):
                self._epochs.append(
                    _kept_epoch(self.root, read_manifest(self.root / "manifests" / str(epoch)))
                )

    def _drop(self, least: int, older: int) -> None:
        """Drops epochs that are not needed, or exceed the limits. The engine still needs the
        manifest ``older`` and those after it.
        """
        kept = self._epochs
        size = sum(k.size for k in kept)
        while kept and (kept[0].epoch < least or size > self.most_bytes or len(kept) > MOST_EPOCHS):
            gone = kept.popleft()
            size -= gone.size
            if gone.epoch < older:
                (self.root / "manifests" / str(gone.epoch)).unlink(missing_ok=True)

    def _first_needed_epoch(self) -> int | None:
        """Returns the first epoch that a live reader needs."""
        now = self.clock()
        if not self._folder.may_have_changed(now) and not self._signs:
            return None
        signs = read_leases(self.root)
        if not signs and not self._signs:
            return None
        before, self._signs = self._signs, {}
        for name, sign in signs.items():
            last, since = before.get(name, (sign, now))
            since = now if last != sign else since
            if now - since > ALIVE:
                (self.root / FOLDER / name).unlink(missing_ok=True)
            else:
                self._signs[name] = sign, since
        needed = [int(text) for (_, text), _ in self._signs.values() if text.isdigit()]
        return min(needed, default=None)


def read_leases(root: Path) -> dict[str, tuple[int, str]]:
    """Returns the readers of a checkpoint, with the time of the last renewal and the epoch that
    each needs.
    """
    signs = {}
    try:
        names = os.listdir(root / FOLDER)
    except OSError:
        return {}  # nobody has read yet
    for name in names:
        path = root / FOLDER / name
        if not name.startswith("."):
            with suppress(OSError):
                said = unseal(path.read_bytes()) or b""  # one that is damaged says nothing
                signs[name] = path.stat().st_mtime_ns, said.decode()
    return signs


def needed_from(root: Path) -> int | None:
    """Returns the first epoch in any lease, also of a dead reader; None without one."""
    texts = [text for _, text in read_leases(root).values()]
    return min((int(text) for text in texts if text.isdigit()), default=None)


def epochs_there(root: Path) -> list[int]:
    """Returns the epochs with manifests."""
    return [int(name) for name in os.listdir(root / "manifests") if name.isdigit()]


class ReaderLease:
    """The file of a reader, with the next epoch that it needs. ``clock`` is in seconds."""

    def __init__(self, root: Path, name: str, clock: Callable[[], float]) -> None:
        self._path, self._clock = root / FOLDER / name, clock
        self._said, self._when = -1, 0.0

    def require_epoch(self, epoch: int) -> None:
        """Writes the epoch if it has changed or the last renewal was long ago. Raises
        ``CheckpointError``.
        """
        now = self._clock()
        if epoch == self._said and now - self._when < SIGN:
            return
        hidden = self._path.with_name(f".{self._path.name}")
        try:
            make_folder(self._path.parent)
            with create(hidden) as file:
                file.write(seal(str(epoch).encode()))
            hidden.replace(self._path)
        except OSError as error:
            raise CheckpointError(
                f"The results of {self._path.parent.parent} cannot be followed: {error.strerror}.",
                hint="Who may write to the checkpoint's folder may follow them.",
            ) from error
        self._said, self._when = epoch, now

    def close(self) -> None:
        """Deletes the lease."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


def _kept_epoch(root: Path, manifest: Manifest) -> KeptEpoch:
    size = 0
    for name in manifest.segments:
        with suppress(OSError):
            size += os.stat(root / name).st_size
    return KeptEpoch(manifest.epoch, manifest.plan, size)

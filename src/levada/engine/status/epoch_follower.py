"""A reader in another process: the results of a checkpoint, epoch by epoch, as they are committed.

It follows the manifests, and records the next epoch that it needs in a file of the checkpoint
(``checkpoint.reader_leases``), so that the engine keeps it. Each epoch comes once, in order.
``missed`` counts the epochs that were deleted before the reader reached them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from levada.checkpoint.checkpoint_folder import newest_manifest, plan_of
from levada.checkpoint.manifest import Manifest, read_manifest
from levada.checkpoint.reader_leases import ReaderLease, epochs_there
from levada.checkpoint.request_files import read_ledger
from levada.connectors.serialization.serialize import Batch
from levada.core.checkpoint_files import facts_of
from levada.engine.suspended_queries import read_suspended
from levada.errors import CheckpointError
from levada.plan.execution.plan import QueryPlan
from levada.runtime.task.read_results import read_epoch

ATTEMPTS = 5
EpochResults = tuple[int, list[tuple[QueryPlan, Batch]]]


class Reader:
    """A reader of the epochs of a checkpoint, from now on or from the first kept one."""

    def __init__(self, root: Path, sign: ReaderLease, *, from_start: bool) -> None:
        self._root, self._facts, self._sign = root, facts_of(root), sign
        self.missed = 0
        sign.require_epoch(0)  # keeps all epochs until the next one is chosen
        there = epochs_there(root)
        self._next = min(there, default=1) if from_start else max(there, default=0) + 1
        self._begun = not from_start
        sign.require_epoch(self._next)

    def epochs(self) -> Iterator[EpochResults]:
        """Yields the unread epochs with their numbers."""
        newest = max(epochs_there(self._root), default=0)
        while self._next <= newest:
            results = self._read(self._next)
            if results is None and self._begun:
                self.missed += 1
            elif results is not None:
                self._begun = True
                yield self._next, results
            self._next += 1
            self._sign.require_epoch(self._next)
        self._sign.require_epoch(self._next)

    def _read(self, epoch: int) -> list[tuple[QueryPlan, Batch]] | None:
        """Returns the results of an epoch; None if they were deleted."""
        try:
            manifest = read_manifest(self._root / "manifests" / str(epoch))
            if not manifest.segments and not manifest.shown_reports:
                return []
            plan = plan_of(self._root, self._facts, manifest.plan)
            return list(read_epoch(str(self._root), plan, manifest))
        except CheckpointError:
            if self._whole(epoch):
                raise
            return None

    def _whole(self, epoch: int) -> bool:
        """Returns whether all files of an epoch exist: then one of them is damaged."""
        path = self._root / "manifests" / str(epoch)
        try:
            manifest = read_manifest(path)
        except CheckpointError:
            return path.exists()
        plan = self._root / "plans" / f"{manifest.plan}-{self._facts.id}.plan"
        return plan.exists() and all((self._root / name).exists() for name in manifest.segments)

    def queries(self) -> set[str] | None:
        """Returns the current queries; None before the first epoch."""
        for attempt in range(ATTEMPTS):
            try:
                manifest = newest_manifest(self._root)
                return None if manifest is None else self._query_names(manifest)
            except (CheckpointError, OSError):
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _query_names(self, manifest: Manifest) -> set[str]:
        plan = plan_of(self._root, self._facts, manifest.plan)
        added = {added.name for added in read_ledger(self._root).added_queries}
        return {*plan.queries, *read_suspended(self._root), *added}

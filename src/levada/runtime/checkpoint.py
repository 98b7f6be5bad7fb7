"""The checkpoint folder: who may use it, its plans, manifests and files.

levada.json    format version, seed, groups, partitions: fixed when the folder is made
lock           held while an engine runs on it
plans/         a sealed plan and the catalog that it came from, per version; setup
manifests/     one per epoch, the last two kept
state/ results/ side/    files that manifests name; what none names is deleted
spark/         Spark's own logs: the intentions
"""

from __future__ import annotations

import pickle
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path

import filelock
import msgspec

from levada.errors import CheckpointError
from levada.plan.topology import Plan, Topology
from levada.runtime.manifest import Manifest, read_manifest, write_once

FORMAT = 1
FOLDERS = ("plans", "manifests", "state", "results", "side")


class Facts(msgspec.Struct):
    """What is fixed for a checkpoint."""

    format: int
    seed: int
    groups: int
    partitions: int


class Checkpoint:
    """An open checkpoint; ``close`` gives it free."""

    def __init__(self, root: Path, *, partitions: int, groups: int = 64, seed: int | None = None) -> None:
        self.root = root
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(f"The checkpoint {root} cannot be made: {error.strerror}.") from error
        self._lock = filelock.FileLock(str(root / "lock"))
        try:
            self._lock.acquire(timeout=0)
        except filelock.Timeout as error:
            raise CheckpointError(f"Another engine is running on the checkpoint {root}.") from error
        except OSError as error:
            raise CheckpointError(f"The checkpoint {root} cannot be used: {error.strerror}.") from error
        try:
            self.facts = self._facts(partitions, groups, seed)
            for folder in FOLDERS:
                (root / folder).mkdir(exist_ok=True)
            self.last = self._last()
            self._sweep()
        except BaseException:
            self._lock.release()
            raise

    def _facts(self, partitions: int, groups: int, seed: int | None) -> Facts:
        path = self.root / "levada.json"
        if not path.exists():
            strangers = [p.name for p in self.root.iterdir() if p.name != "lock"]
            if strangers:
                raise CheckpointError(
                    f"{self.root} is not a checkpoint of Levada: it holds {strangers[0]}.",
                    hint="Choose an empty folder.",
                )
            facts = Facts(FORMAT, secrets.randbits(63) if seed is None else seed, groups, partitions)
            write_once(path, msgspec.json.encode(facts))
            return facts
        try:
            facts = msgspec.json.decode(path.read_bytes(), type=Facts)
        except (OSError, msgspec.MsgspecError) as error:
            raise CheckpointError(f"The checkpoint {self.root} cannot be read: levada.json is damaged.") from error
        if facts.format != FORMAT:
            raise CheckpointError(
                f"The checkpoint {self.root} has format {facts.format}, this version of Levada writes format {FORMAT}.",
                hint="Use the version that made it, or a new folder.",
            )
        return facts

    def _last(self) -> Manifest | None:
        epochs = sorted(int(p.name) for p in (self.root / "manifests").iterdir() if p.name.isdigit())
        return read_manifest(self.root / "manifests" / str(epochs[-1])) if epochs else None

    def _sweep(self) -> None:
        """Deletes what no manifest names: leavings of attempts that did not come to an end."""
        named = (
            set(self.last.files) | set(self.last.segments) | {f for _, f, _ in self.last.side} if self.last else set()
        )
        previous = self.root / "manifests" / str(self.last.epoch - 1) if self.last else None
        if previous is not None and previous.exists():
            named |= set(read_manifest(previous).files)
        for folder in ("state", "side"):
            for path in (self.root / folder).iterdir():
                if f"{folder}/{path.name}" not in named:
                    path.unlink(missing_ok=True)

    def commit(self, manifest: Manifest) -> None:
        """The commit of an epoch. Refused if the epoch has a manifest: then another engine is at work here."""
        path = self.root / "manifests" / str(manifest.epoch)
        if not write_once(path, msgspec.json.encode(manifest)):
            raise CheckpointError(f"Another engine has committed epoch {manifest.epoch} in the checkpoint {self.root}.")
        self.last = manifest

    def forget(self, epoch: int, files: Iterable[str]) -> None:
        """Deletes a manifest of long ago and files that no later one names."""
        (self.root / "manifests" / str(epoch)).unlink(missing_ok=True)
        for name in files:
            (self.root / name).unlink(missing_ok=True)

    def plan_path(self, version: int) -> Path:
        """The file of a sealed plan."""
        return self.root / "plans" / f"{version}.plan"

    def save_plan(self, plan: Plan, topology: Topology) -> None:
        """Keeps a plan version and its catalog."""
        self.save(self.plan_path(plan.version), plan)
        self.save(self.root / "plans" / f"{plan.version}.topology", topology)

    def load_topology(self, version: int) -> Topology:
        """The catalog of a plan version."""
        path = self.root / "plans" / f"{version}.topology"
        try:
            topology = pickle.loads(path.read_bytes())
        except (OSError, pickle.UnpicklingError, AttributeError, EOFError) as error:
            raise CheckpointError(f"The checkpoint's plan {path} cannot be read.", hint=str(error)) from error
        assert isinstance(topology, Topology), "a catalog"
        return topology

    def save(self, path: Path, value: object) -> None:
        """Pickles a value into a file of its own."""
        path.unlink(missing_ok=True)
        write_once(path, pickle.dumps(value, protocol=5))

    def close(self, *, delete: bool = False) -> None:
        """Gives the checkpoint free; ``delete`` removes it (a temporary one)."""
        self._lock.release()
        if delete:
            shutil.rmtree(self.root, ignore_errors=True)

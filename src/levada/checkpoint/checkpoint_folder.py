"""The checkpoint folder: its lock, plans, manifests and files.

    levada.json    format version, id, seed: fixed when the folder is made
    lock           held while an engine runs on it
    plans/         a sealed plan and its catalog, per version: whole, or the difference to the
                   version before; group tables; setups
    commits/       takeovers and manifests in one sequence (``checkpoint.leadership.commit_log``)
    manifests/     one per epoch, the last two kept: for readers
    state/ results/ side/ graph/    files that manifests name; others are deleted
    static/        static triples that the Python API received as lines; static files that may be
                   replaced, by their content
    positions/     the read positions of many files, as far as positions in manifests say
    intentions/    the intention that is written ahead and open; a mark that it failed with an
                   error; the last done one; those whose results are still being published
    requests/      requests of other processes to the engine (``request_files``)
    tails/         the epochs that they still read (``reader_leases``)

Processes cache plans, group tables and setups by path. So their names contain the id of the
checkpoint: a new checkpoint in the same place has other names.
"""

from __future__ import annotations

import os
import platform
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import filelock
import msgspec
import xxhash

from levada.checkpoint.epoch_context import Setup, encode_setup, load_plan, load_setup
from levada.checkpoint.key_group_tables import GroupTables
from levada.checkpoint.leadership.commit_log import Driver, Leadership
from levada.checkpoint.leadership.heartbeat import FOLDER
from levada.checkpoint.live_files import LiveFiles, find_leftovers, orphans, previous
from levada.checkpoint.manifest import Manifest, read_manifest
from levada.checkpoint.object_store.folder_mirror import MARK, mirror_of
from levada.checkpoint.object_store.object_client import Objects
from levada.checkpoint.reader_leases import epochs_there, needed_from
from levada.core.checkpoint_files import FORMAT, MODES, Facts, facts_of, set_mode, sync_folder
from levada.core.checksummed_files import seal
from levada.core.durable_files import (
    delete,
    make_alike,
    make_folders,
    replace_file,
    unwritable_error,
    write_once,
)
from levada.core.frozen import frozen
from levada.core.names import is_derived
from levada.core.size_thresholds import register
from levada.errors import CheckpointError, unreadable
from levada.plan.encoding.plan_codec import encode_plan
from levada.plan.execution.plan import Plan
from levada.plan.execution.plan_delta import PlanChange
from levada.plan.topology.catalog_file import encode_catalog, read_catalog
from levada.plan.topology.topology import Topology

# epochs between two searches for unknown leftovers of attempts
SWEEP = register(f"{__name__}.SWEEP", 256)
CHAIN = register(f"{__name__}.CHAIN", 128)  # versions of the plan after one that is written whole
SHARE = 2  # a chain is at most so many times smaller than that
LOOKED_AT = 1.0  # s that an engine waits for the lock: others hold it while they check its owner
TABLES = "tables"  # relations that are published as states
FOLDERS = ("plans", "manifests", "commits", "state", "results", "side", "graph")


@frozen
class _Chain:
    """The plan versions that are written as differences to a previous version: the last version,
    the bytes of the whole one, the number of differences, and their bytes.
    """

    version: int
    whole: int
    length: int = 0
    size: int = 0

    def with_version(self, version: int, size: int) -> _Chain:
        """Returns the chain with one more version."""
        return _Chain(version, self.whole, self.length + 1, self.size + size)

    @property
    def needs_whole_version(self) -> bool:
        """Whether the next version must be written whole."""
        return self.length >= CHAIN or self.size * SHARE > self.whole


class Checkpoint:
    """An open checkpoint, taken over at the instant ``wall`` (ms); ``close`` releases it. A new one
    begins with so many ``partitions``. ``locked``: open it only if nobody has its lock. ``behind``
    (see ``Leadership``): only if it is this driver's turn. ``objects``: the object store of the
    checkpoint, if ``root`` is only its working folder. ``mends``: for a rollback; the last
    manifest's files may be damaged, and none is swept. ``mode``: of its folders (``model.modes``);
    None: unchanged, and a new one is private to its owner.
    """

    def __init__(
        self,
        root: Path,
        *,
        partitions: int,
        seed: int | None = None,
        wall: int = 0,
        locked: bool = True,
        behind: int | None = None,
        objects: Objects | None = None,
        mends: bool = False,
        mode: int | None = None,
    ) -> None:
        self.root = root
        self._wholes: list[int] = []  # plan versions that are written whole, of this run
        self._chain: _Chain | None = None
        try:
            make_folders(root)
        except OSError as error:
            message = f"The checkpoint {root} cannot be made: {error.strerror}."
            raise CheckpointError(message) from error
        # any thread may close it
        self._lock = filelock.FileLock(str(root / "lock"), thread_local=False)
        self.lock(LOOKED_AT, needed=locked)
        try:
            driver = Driver(platform.node(), os.getpid(), wall)
            mirror = mirror_of(root, objects, str(driver))
            self._set_mode(mode)
            self._facts(seed)
            self._make_folders()
            self.reign = Leadership(root, driver, mirror, behind)  # before anything is deleted
            self.facts = facts_of(root)
            self.reign.expose_manifest()
            self.tables = GroupTables(
                root, self.facts.id, self.last.group_table_version if self.last else 0
            )
            if not self.tables.current:
                self.tables.deal(partitions)
            self.has_orphans = False  # an attempt has failed since the last commit
            self.kept_from = needed_from(root)  # the first epoch that is kept for readers
            self.indexed = 0  # the last epoch in the index, if there is one
            if not mends:
                self._sweep()
            if mirror is not None:
                mirror.sweep()
        except BaseException:
            self._lock.release()
            raise
        self.root = root.absolute()  # tasks may have another working directory

    @property
    def last(self) -> Manifest | None:
        """The last manifest; None before the first."""
        return self.reign.last

    def lock(self, patience: float, *, needed: bool) -> None:
        """Takes the lock, if it is ``needed`` or free. Raises ``CheckpointError``."""
        if self._lock.is_locked:
            return
        try:
            self._lock.acquire(timeout=patience)
        except filelock.Timeout as error:
            if needed:
                raise CheckpointError(
                    f"Another engine is running on the checkpoint {self.root}."
                ) from error
        except OSError as error:
            raise CheckpointError(
                f"The checkpoint {self.root} cannot be used: {error.filename}: {error.strerror}."
            ) from error

    def _facts(self, seed: int | None) -> Facts:
        path = self.root / "levada.json"
        if not path.exists():
            check_free(self.root)
            seed = secrets.randbits(63) if seed is None else seed
            facts = Facts(FORMAT, seed, secrets.token_hex(8))
            write_once(path, seal(msgspec.json.encode(facts)))
        return facts_of(self.root)

    def _set_mode(self, mode: int | None) -> None:
        if not (self.root / "levada.json").exists():
            check_free(self.root)  # otherwise it is not a folder of ours
            mode = mode or MODES["owner"]
        if mode is not None:
            set_mode(self.root, mode)

    def _make_folders(self) -> None:
        try:
            for folder in FOLDERS:
                make_alike(self.root / folder)
            sync_folder(self.root)  # also the files of a killed run
        except OSError as error:
            raise unwritable_error(self.root, error) from error

    def _sweep(self) -> None:
        """Deletes files that no manifest names: those of incomplete attempts."""
        before = previous(self.root, self.last)
        try:
            self.names = LiveFiles(self.root, self.last, before)
        except CheckpointError as error:
            raise self.reign.takeover_error() or error from error
        orphans = find_leftovers(self.root, self.last, before, self.names.last_two_manifests)
        oldest = 0 if self.last is None else self.last.epoch - 1
        old = (e for e in epochs_there(self.root) if e < oldest and not self._is_kept(e))
        orphans += [self.root / "manifests" / str(epoch) for epoch in old]
        self.reign.check()
        for path in orphans:
            delete(path)

    def commit(self, manifest: Manifest) -> None:
        """Commits an epoch. Raises ``OvertakenError`` if another engine has taken over."""
        before, manifest.previous_indexed_epoch = self.last, self.indexed
        self._sync(self.names.folders(manifest))
        try:
            self.reign.commit(manifest, lambda: self._needed_files(manifest))
        finally:
            if self.last is manifest:  # also if something fails after the commit
                self.names.commit(manifest)
        if before is not None and before.group_table_version < manifest.group_table_version:
            self.tables.forget(before.group_table_version)
        if self.has_orphans or manifest.epoch % SWEEP == 0:
            self.has_orphans = False
            self.unlink(orphans(self.root, manifest, self.names.last_two_manifests))

    def _needed_files(self, manifest: Manifest) -> set[str]:
        plan, groups = self.plan_path(manifest.plan), self.tables.path(manifest.group_table_version)
        return self.names.needed_files(manifest, plan, groups)

    def _sync(self, folders: Iterable[str]) -> None:
        """Makes the names of files that tasks have written durable, like their content."""
        try:
            for folder in folders:
                sync_folder(f"{self.root}/{folder}")
        except OSError as error:
            raise self.reign.takeover_error() or unwritable_error(self.root, error) from error

    def check_follows(self, epoch: int) -> None:
        """Raises ``CheckpointError`` for an epoch that does not follow the last committed one: its
        intention begins after epochs without a manifest.
        """
        last = self.last.epoch if self.last is not None else 0
        if epoch != last + 1:
            raise unreadable(self.root / "manifests" / str(epoch - 1), "it is missing")

    def forget_before(self, manifest: Manifest) -> None:
        """Deletes the manifest before the last two, unless a reader needs it
        (``checkpoint.live_files``).
        """
        if not self._is_kept(manifest.epoch - 2):
            delete(f"{self.root}/manifests/{manifest.epoch - 2}")

    def _is_kept(self, epoch: int) -> bool:
        return self.kept_from is not None and epoch >= self.kept_from

    def unlink(self, files: Iterable[str | Path]) -> None:
        """Deletes files of the checkpoint."""
        for name in files:
            delete(f"{self.root}/{name}" if isinstance(name, str) else name)

    def forget_plans(self, before: int) -> None:
        """Deletes the plan versions before this one that nothing to be run or published needs, also
        not as the base of a difference.
        """
        wholes = [version for version in self._wholes if version <= before]
        if not wholes:
            return  # it returns to a version of a previous run
        self._wholes = [version for version in self._wholes if version >= wholes[-1]]
        for path in (self.root / "plans").glob("[0-9]*"):
            if int(path.name.split("-", 1)[0]) < wholes[-1]:
                delete(path)

    def plan_path(self, version: int) -> Path:
        """Returns the file of a sealed plan."""
        return _plan_path(self.root, self.facts, version)

    def _catalog_path(self, version: int) -> Path:
        return self.plan_path(version).with_suffix(".catalog")

    def save_plan(self, plan: Plan, topology: Topology, identities: Mapping[str, str]) -> bool:
        """Saves a plan version and its catalog with the identity of each query: as a difference to
        the previous version if this driver saved that, else whole, and whole now and then. Returns
        False if the number exists already, since processes may have cached it.
        """
        change = self._change(topology)
        sealed = encode_plan(change or plan)
        if not write_once(self.plan_path(plan.version), sealed):
            return False
        catalog = encode_catalog(topology, identities, change)
        replace_file(self._catalog_path(plan.version), catalog)
        size = len(sealed) + len(catalog)
        if change is None:
            self._wholes.append(plan.version)
            self._chain = _Chain(plan.version, size)
        elif self._chain is not None:
            self._chain = self._chain.with_version(plan.version, size)
        return True

    def _change(self, topology: Topology) -> PlanChange | None:
        """Returns the difference of a version to the previous one, if it is to be written as
        such.
        """
        change, chain = topology.change, self._chain
        if (
            change is None
            or chain is None
            or chain.needs_whole_version
            or change.base != chain.version
        ):
            return None
        return change

    def load_plan(self, version: int) -> Plan:
        """Loads a sealed plan."""
        return plan_of(self.root, self.facts, version)

    def load_topology(self, version: int) -> tuple[Topology, dict[str, str]]:
        """Loads the catalog of a plan version, and the identities of its queries."""
        return catalog_of(self.root, self.facts, version)

    def streams(self) -> tuple[str, ...]:
        """Returns the streams with numbers here: those of the last catalog, except catalogs that an
        overtaken driver wrote after a deleted version.
        """
        named = self.last.plan if self.last is not None else 0
        for version in sorted(self._catalogs(), reverse=True):
            try:
                return self.load_topology(version)[0].streams.names
            except CheckpointError:
                if version <= named:
                    raise
        return ()

    def newest_plan(self) -> int:
        """Returns the last plan version that was written, with or without an epoch; 0: none."""
        return max(self._catalogs(), default=0)

    def _catalogs(self) -> Iterator[int]:
        for path in (self.root / "plans").glob("[0-9]*.catalog"):
            yield int(path.name.split("-", 1)[0])

    def order_streams(self, streams: Iterable[str], left: Collection[str] = ()) -> list[str]:
        """Returns these streams in the order of the plans, which number them; new ones last. Raises
        ``CheckpointError`` if a stream is missing that has not ``left``.
        """
        names, known = list(streams), [n for n in self.streams() if not is_derived(n)]
        missing = [n for n in known if n not in names and n not in left]
        if missing:
            raise CheckpointError(
                f"The checkpoint {self.root} has a stream {missing[0]}, which is not named now."
            )
        return [*(n for n in known if n in names), *(n for n in names if n not in known)]

    def save_setup(self, setup: Setup) -> str:
        """Saves the streams and static files of a run. Returns the path in the folder, which
        depends on the content.
        """
        data = encode_setup(setup)
        digest = xxhash.xxh3_64_hexdigest(data)
        # of this leader: an overtaken driver deletes none of them
        name = f"plans/setup-{self.facts.id}-{digest}-{self.reign.number}"
        replace_file(self.root / name, data)
        return name

    def setup(self, name: str) -> Setup:
        """Loads a saved setup."""
        return load_setup(str(self.root / name))

    def forget_setups(self, *kept: str) -> None:
        """Deletes all setups of this leader and previous ones, except these."""
        for path in (self.root / "plans").glob("setup-*"):
            ours = int(path.name.rpartition("-")[2]) <= self.reign.number
            if ours and f"plans/{path.name}" not in kept:
                delete(path)

    def close(self) -> None:
        """Releases the checkpoint."""
        self._lock.release()


def newest_manifest(root: Path) -> Manifest | None:
    """Returns the manifest of a checkpoint's last epoch; None before the first."""
    epochs = [int(p.name) for p in (root / "manifests").glob("*") if p.name.isdigit()]
    return read_manifest(root / "manifests" / str(max(epochs))) if epochs else None


def catalog_of(root: Path, facts: Facts, version: int) -> tuple[Topology, dict[str, str]]:
    """Loads the catalog of a plan version, and the identities of its queries."""
    return read_catalog(_plan_path(root, facts, version).with_suffix(".catalog"))


def plan_of(root: Path, facts: Facts, version: int) -> Plan:
    """Loads a sealed plan of a checkpoint."""
    return load_plan(str(_plan_path(root, facts, version)))


def _plan_path(root: Path, facts: Facts, version: int) -> Path:
    return root / "plans" / f"{version}-{facts.id}.plan"


# The check of the place of a new checkpoint: a folder that is empty, except for files of processes
# that look for a checkpoint there, or wait for one.


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

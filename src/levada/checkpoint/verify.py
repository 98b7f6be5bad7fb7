"""The verification of a checkpoint: every file is read to its end and its hash checked. It covers
the files that the last two manifests, the result index and the open intention name, and those that
wait or serve other processes (spools, requests, readers).

It does not check files that nothing names: those of crashed attempts, the lock, unpacked copies,
dead letters, and Spark's files of a DataFrame.

While an engine runs, files appear and disappear. A file that a newer manifest no longer names is
not missing. Cost: reading all of the checkpoint once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import filelock
import msgspec
import xxhash

from levada.checkpoint.checkpoint_folder import TABLES, newest_manifest
from levada.checkpoint.crash_counter import DEATHS, LOST
from levada.checkpoint.delivery_progress import DELIVERIES
from levada.checkpoint.epoch_context import SETUPS, Setup
from levada.checkpoint.file_inventory import names_of, read_inventory
from levada.checkpoint.file_read_log import check as check_log
from levada.checkpoint.file_read_log import logs_of
from levada.checkpoint.key_group_tables import name_of
from levada.checkpoint.leadership.commit_log import check_newest, newest_number, read_commit
from levada.checkpoint.manifest import PUBLISHING, EpochIntent, Manifest, read_manifest
from levada.checkpoint.request_files import LEDGER, read_ledger
from levada.checkpoint.result_index import FILE as INDEX
from levada.checkpoint.result_index import check_index, indexed_epoch, kept_entries
from levada.checkpoint.state_files import map_
from levada.connectors.sources.spooled_files import GIVEN_UP, check_file
from levada.core.checkpoint_files import Facts, facts_of
from levada.core.checksummed_files import ALTERED, read_sealed
from levada.core.frozen import frozen
from levada.errors import CheckpointError, SourceError, unreadable
from levada.operators.state.state_parts import read_head
from levada.plan.encoding.plan_codec import read_file, read_groups, read_plan
from levada.plan.topology.catalog_file import read_catalog

BLOCK = 1 << 20
Tell = Callable[[int], None]


class Item(NamedTuple):
    """A file, by its name in the folder, and its kind."""

    kind: str
    name: str


SHARING = "sharing.json"  # the decision log (``runtime.cost_model.decision_log_file``)
SUSPENDED = "suspended.json"  # queries that ask for too much (``runtime.driver.suspended``)
FILES = {
    SUSPENDED: "suspended",
    SHARING: "sharing",
    LEDGER: "requested",
    DELIVERIES: "outputs",
    "static-stamps.json": "stamps",
    "static-tables.json": "stamps",
    "owners.json": "owners",
    "engine.json": "engine",
    "pulse": "engine",
    "standby/*": "standby",
    DEATHS: "deaths",
    LOST: "deaths",
    "intentions/done": "intention",
    f"{TABLES}/*": "table",
    "requests/*": "request",
    "tails/*": "reader",
    "spool/*/data/*": "spool",
    "spool/*/keys/*": "keys",
    "commits/*": "commit",
    "manifests/*": "manifest",
}
"""Files that are checked if they exist, by pattern, and their kinds."""
SEALED = (
    "letters", "suspended", "sharing", "outputs", "stamps", "owners", "engine", "standby", "deaths",
    "table", "graph", "request", "reader", "keys",
)  # fmt: skip
OF_NO_MANIFEST = frozenset(("index", "results", "spool", "keys", "request", "reader"))
"""The kinds of files that a rollback does not repair."""


@frozen
class CheckedItem:
    """The result for a file: its bytes, and its fault ("": none)."""

    item: Item
    size: int
    fault: str = ""


@frozen
class Report:
    """The result for a checkpoint. ``running``: an engine was running on it."""

    epoch: int
    files: tuple[CheckedItem, ...]
    running: bool

    @property
    def damaged(self) -> list[CheckedItem]:
        """The files with a fault."""
        return [f for f in self.files if f.fault]


def verify(root: Path, tell: Tell = lambda size: None) -> Report:
    """Verifies the checkpoint in a folder. Calls ``tell`` with the bytes that have been read since.
    Raises ``CheckpointError`` if it is not a checkpoint, or has another format.
    """
    facts = facts_of(root)
    lock = filelock.FileLock(str(root / "lock"))
    try:
        lock.acquire(timeout=0)
        running = False
    except filelock.Timeout:
        running = True
    except OSError:
        running = False  # the folder is read-only
    try:
        return _verify(root, facts, tell, running=running)
    finally:
        if lock.is_locked:
            lock.release()


def _verify(root: Path, facts: Facts, tell: Tell, *, running: bool) -> Report:
    items = list(_items(root, facts))
    findings = [_look(root, item, tell) for item in items]
    for _ in range(5 if running else 0):  # a file may go, and come again, between two looks
        if not any(f.fault for f in findings):
            break
        still = set(_items(root, facts))
        findings = [
            _look(root, f.item, tell) if f.fault else f
            for f in findings
            if not f.fault or f.item in still
        ]
    epochs = [int(f.item.name.rsplit("/", 1)[1]) for f in findings if f.item.kind == "manifest"]
    return Report(max(epochs, default=0), tuple(findings), running)


def _items(root: Path, facts: Facts) -> Iterator[Item]:
    """Yields the named files, each once."""
    yield Item("facts", "levada.json")
    for pattern, kind in FILES.items():
        paths = (path for path in root.glob(pattern) if path.is_file())
        there = (p for p in paths if p.name[0] != "." and not p.name.endswith(GIVEN_UP))
        yield from (Item(kind, f"{path.relative_to(root)}") for path in sorted(there))
    if (root / INDEX).exists() or _names_index(root):
        yield Item("index", INDEX)
    items: dict[Item, None] = {}
    with suppress(CheckpointError):  # reported when the file is checked
        manifest = newest_manifest(root)
        items |= dict.fromkeys(named_files(root, facts, manifest) if manifest else ())
    items |= dict.fromkeys(_of_intention(root, facts))
    items |= dict.fromkeys(_of_before(root, facts))
    with suppress(CheckpointError):
        kept = (name for entry in kept_entries(root) for name in entry.segments)
        items |= dict.fromkeys(Item("results", name) for name in kept)
    yield from items


def missing_files(root: Path) -> list[str]:
    """Returns the named files that are not there. Reads no other files to their ends."""
    return [item.name for item in _items(root, facts_of(root)) if not (root / item.name).exists()]


def _names_index(root: Path) -> bool:
    with suppress(CheckpointError):
        return indexed_epoch(root) > 0
    return False


def _of_before(root: Path, facts: Facts) -> Iterator[Item]:
    """Yields the files that the manifest before the last one names, if a rollback may need them."""
    with suppress(CheckpointError):  # reported when the files are checked
        last = newest_manifest(root)
        path = root / "manifests" / str(last.epoch - 1 if last is not None else 0)
        if path.exists():
            items = named_files(root, facts, read_manifest(path))
            yield from (i for i in items if i.kind not in ("letters", "results", "positions"))


def named_files(root: Path, facts: Facts, manifest: Manifest) -> Iterator[Item]:
    """Yields the files that a manifest names."""
    for version in sorted(
        {
            manifest.plan,
            *(h.plan for h in (*manifest.waiting_results, *manifest.results_to_publish)),
        }
    ):
        yield from _of_plan(facts, version)
    yield Item("groups", name_of(facts.id, manifest.group_table_version))
    yield from _of_setup(root, manifest.setup)
    kinds = dict.fromkeys(manifest.slices.values(), "graph")
    kinds |= {
        name: "groups sent" for files in manifest.group_count_files.values() for name in files
    }
    kinds |= {name: "totals" for name, _ in manifest.total_files}
    if manifest.inventory:
        yield Item("names", manifest.inventory)
    with suppress(CheckpointError):  # reported when the inventory is checked
        files = names_of(root, manifest).files - {manifest.inventory}
        yield from (Item(kinds.get(name, "state"), name) for name in sorted(files))
    segments = [
        s for h in (*manifest.waiting_results, *manifest.results_to_publish) for s in h.segments
    ]
    yield from (Item("results", name) for name in (*segments, *manifest.segments))
    yield from (Item("letters", name) for _, name, _ in manifest.letter_files)
    yield from (Item("positions", name) for name in logs_of(manifest.positions))


def _of_intention(root: Path, facts: Facts) -> Iterator[Item]:
    for path in (root / "intentions").glob(PUBLISHING):  # the manifest names the same files
        yield Item("intention", f"intentions/{path.name}")
    item = Item("intention", "intentions/open")
    if not (root / item.name).exists():
        return
    yield item
    try:
        intention = _intention(root / item.name)
    except CheckpointError:
        return  # reported when the file is checked
    yield from intention_files(root, facts, intention)


def intention_files(root: Path, facts: Facts, intention: EpochIntent) -> Iterator[Item]:
    """Yields the files that an intention names."""
    yield from (Item("positions", name) for name in logs_of(intention.positions))
    if intention.plan:
        yield from _of_plan(facts, intention.plan)
    yield Item("groups", name_of(facts.id, intention.group_table_version))
    yield from _of_setup(root, intention.setup)
    if intention.replacement is not None:
        yield from _of_setup(root, intention.replacement.previous_setup)


def _of_plan(facts: Facts, version: int) -> Iterator[Item]:
    if version:
        yield Item("plan", f"plans/{version}-{facts.id}.plan")
        yield Item("catalog", f"plans/{version}-{facts.id}.catalog")


def _of_setup(root: Path, name: str) -> Iterator[Item]:
    """Yields a setup, and the copies of static files that it names."""
    if not name:
        return
    yield Item("setup", name)
    try:
        setup = read_file(root / name, Setup, SETUPS)
    except CheckpointError:
        return  # reported when the file is checked
    yield from (
        Item("static", f"static/{Path(f.path).name}") for f in setup.static if f.replaceable
    )


def _look(root: Path, item: Item, tell: Tell) -> CheckedItem:
    path = root / item.name
    try:
        size = path.stat().st_size
    except OSError as error:
        return CheckedItem(item, 0, str(unreadable(path, str(error.strerror))))
    try:
        check(root, item, tell)
    except (CheckpointError, SourceError) as error:
        return CheckedItem(item, size, str(error))
    return CheckedItem(item, size)


def check(root: Path, item: Item, tell: Tell = lambda size: None) -> None:
    """Reads a file to its end. Raises ``CheckpointError``."""
    path = root / item.name
    if item.kind in OF_ROOT:
        OF_ROOT[item.kind](root)
    elif item.kind in OF_PATH:
        OF_PATH[item.kind](path)
    elif item.kind == "positions":
        _check_log(root, item.name)
    elif item.kind in BY_BLOCKS:
        BY_BLOCKS[item.kind](path, tell)
    else:
        _frames(root, item.name, tell)


def _check_manifest(path: Path) -> None:
    manifest, root = read_manifest(path), path.parents[1]
    last = newest_manifest(root)
    if last is not None and manifest.epoch == last.epoch:
        pieces_are_there(root, manifest)


def _check_commit(path: Path) -> None:
    root, number = path.parents[1], int(path.name)
    epoch = read_commit(root, number).epoch
    if number == newest_number(root):
        check_newest(root, epoch)


def _check_spooled(path: Path, tell: Tell) -> None:
    tell(check_file(str(path)))


def _intention(path: Path) -> EpochIntent:
    try:
        return msgspec.json.decode(read_sealed(path), type=EpochIntent)
    except msgspec.MsgspecError as error:
        raise unreadable(path, str(error)) from error


def _check_log(root: Path, name: str) -> None:
    """Checks a read log, up to the marks of the newest manifest and the open intention."""
    newest, ahead = newest_manifest(root), root / "intentions/open"
    said = [newest.positions] if newest is not None else []
    said += [_intention(ahead).positions] if ahead.exists() else []
    for mark in (logs[name] for logs in map(logs_of, said) if name in logs):
        check_log(root / name, (root / name).read_bytes(), mark)


def _frames(root: Path, name: str, tell: Tell) -> None:
    frames, _ = map_(str(root), name)
    for frame in frames:
        tell(sum(column.nbytes for column in frames[frame].columns.values()))


def pieces_are_there(root: Path, manifest: Manifest) -> None:
    """Checks that each part of state is in the file that its partition's list names."""
    there: dict[str, set[str]] = {}
    for name in names_of(root, manifest).state.values():
        for pieces in read_head(map_(str(root), name)[1]).pieces.values():
            for piece in pieces:
                file = piece.file or name
                if file not in there:
                    there[file] = {frame.split(".", 1)[0] for frame in map_(str(root), file)[0]}
                if piece.name not in there[file]:
                    raise unreadable(root / file, f"the piece {piece.name} is missing")


def check_copy(path: Path, tell: Tell = lambda size: None) -> None:
    """Checks the copy of a static file, whose name is its hash. Raises ``CheckpointError``."""
    digest = xxhash.xxh3_128()
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
                tell(len(block))
    except OSError as error:
        raise unreadable(path, str(error.strerror)) from error
    if digest.hexdigest() != path.name.split(".", 1)[0]:
        raise unreadable(path, ALTERED)


OF_ROOT: dict[str, Callable[[Path], object]] = {
    "facts": facts_of,
    "index": check_index,
    "requested": read_ledger,
}
OF_PATH: dict[str, Callable[[Path], object]] = {
    "plan": read_plan,
    "catalog": read_catalog,
    "groups": read_groups,
    "setup": lambda path: read_file(path, Setup, SETUPS),
    "intention": _intention,
    "names": read_inventory,
    "manifest": _check_manifest,
    "commit": _check_commit,
    **dict.fromkeys(SEALED, read_sealed),
}
BY_BLOCKS: dict[str, Callable[[Path, Tell], None]] = {
    "static": check_copy,
    "spool": _check_spooled,
}
"""The functions that read a file of each kind to its end, by the checkpoint's folder or the
path.
"""

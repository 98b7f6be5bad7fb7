"""Whether a checkpoint is sound: every file that the newest manifest and the open intention name,
read to its end and checked against its hashes.

While an engine runs, files come and go: a file that is missed is none that is missing if a newer
manifest names it no more. Cost: reading all of the checkpoint once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import filelock
import msgspec
import xxhash

from levada.errors import CheckpointError, unreadable
from levada.frozen import frozen
from levada.model.checked import ALTERED
from levada.plan.encoding.document import read_file
from levada.plan.encoding.plans import read_groups, read_plan
from levada.plan.topology.catalog_file import read_catalog
from levada.runtime.context import SETUPS, Setup
from levada.runtime.store.checkpoint import (
    TABLES,
    Facts,
    facts_of,
    newest_manifest,
)
from levada.runtime.store.deaths import DEATHS
from levada.runtime.store.deliveries import DELIVERIES
from levada.runtime.store.group_tables import name_of
from levada.runtime.store.manifest import PUBLISHING, Intention, Manifest, read_manifest
from levada.runtime.store.names.inventory import names_of, read_inventory
from levada.runtime.store.read_log import check as check_log
from levada.runtime.store.read_log import logs_of
from levada.runtime.store.reign.commits import check_newest, read_commit
from levada.runtime.store.requests import LEDGER, read_ledger
from levada.runtime.store.sealed import read_sealed
from levada.runtime.store.state_files import map_
from levada.windows.state.pieces import read_head

BLOCK = 1 << 20
Tell = Callable[[int], None]


class Item(NamedTuple):
    """A file, by its name in the folder, and what it is."""

    kind: str
    name: str


OF_PLANS: dict[str, Callable[[Path], object]] = {
    "plan": read_plan,
    "catalog": read_catalog,
    "groups": read_groups,
}
SHARING = "sharing.json"  # what was chosen for queries that came (``store.journals``)
SUSPENDED = "suspended.json"  # queries that ask for too much (``runtime.driver.suspended``)


@frozen
class Found:
    """What a look at a file gave: its bytes, and what is wrong with it ("": nothing)."""

    item: Item
    size: int
    wrong: str = ""


@frozen
class Report:
    """What a look at a checkpoint gave. ``running``: an engine was at work on it."""

    epoch: int
    found: tuple[Found, ...]
    running: bool

    @property
    def damaged(self) -> list[Found]:
        """The files with which something is wrong."""
        return [f for f in self.found if f.wrong]


def verify(root: Path, tell: Tell = lambda size: None) -> Report:
    """Looks at all files of the checkpoint in a folder; ``tell`` is called with the bytes that have
    been read since. Raises ``CheckpointError`` if it is none, or of another format.
    """
    facts = facts_of(root)
    lock = filelock.FileLock(str(root / "lock"))
    try:
        lock.acquire(timeout=0)
        running = False
    except filelock.Timeout:
        running = True
    except OSError:
        running = False  # a folder that may only be read
    try:
        return _verify(root, facts, tell, running=running)
    finally:
        if lock.is_locked:
            lock.release()


def _verify(root: Path, facts: Facts, tell: Tell, *, running: bool) -> Report:
    items = list(_items(root, facts))
    found = [_look(root, item, tell) for item in items]
    if running and any(f.wrong for f in found):
        still = set(_items(root, facts))
        found = [f for f in found if not f.wrong or f.item in still]
    epochs = [int(f.item.name.rsplit("/", 1)[1]) for f in found if f.item.kind == "manifest"]
    return Report(max(epochs, default=0), tuple(found), running)


def _items(root: Path, facts: Facts) -> Iterator[Item]:
    """The files that are named, each once."""
    yield Item("facts", "levada.json")
    if (root / SUSPENDED).exists():
        yield Item("suspended", SUSPENDED)
    if (root / SHARING).exists():
        yield Item("sharing", SHARING)
    if (root / LEDGER).exists():
        yield Item("requested", LEDGER)
    if (root / DELIVERIES).exists():
        yield Item("outputs", DELIVERIES)
    if (root / DEATHS).exists():
        yield Item("deaths", DEATHS)
    if (root / TABLES).exists():
        there = sorted(p.name for p in (root / TABLES).iterdir() if p.name[0] != ".")
        yield from (Item("table", f"{TABLES}/{name}") for name in there)
    found: dict[Item, None] = {}
    commits = [int(p.name) for p in (root / "commits").glob("*") if p.name.isdigit()]
    if commits:
        found[Item("commit", f"commits/{max(commits)}")] = None
    epochs = [int(p.name) for p in (root / "manifests").glob("*") if p.name.isdigit()]
    if epochs:
        found[Item("manifest", f"manifests/{max(epochs)}")] = None
    try:
        manifest = newest_manifest(root) if epochs else None
        found |= dict.fromkeys(named(root, facts, manifest) if manifest else ())
    except CheckpointError:
        pass  # told where the file is looked at
    found |= dict.fromkeys(_of_intention(root, facts))
    yield from found


def named(root: Path, facts: Facts, manifest: Manifest) -> Iterator[Item]:
    """The files that a manifest names."""
    for version in sorted({manifest.plan, *(h.plan for h in (*manifest.held, *manifest.rolled))}):
        yield from _of_plan(facts, version)
    yield Item("groups", name_of(facts.id, manifest.groups))
    yield from _of_setup(root, manifest.setup)
    kinds = dict.fromkeys(manifest.slices.values(), "graph")
    kinds |= {name: "groups sent" for files in manifest.by_group.values() for name in files}
    kinds |= {name: "totals" for name, _ in manifest.totalled}
    if manifest.inventory:
        yield Item("names", manifest.inventory)
    with suppress(CheckpointError):  # told where the inventory is looked at
        files = names_of(root, manifest).files - {manifest.inventory}
        yield from (Item(kinds.get(name, "state"), name) for name in sorted(files))
    segments = [s for h in (*manifest.held, *manifest.rolled) for s in h.segments]
    yield from (Item("results", name) for name in (*segments, *manifest.segments))
    yield from (Item("letters", name) for _, name, _ in manifest.side)
    yield from (Item("positions", name) for name in logs_of(manifest.positions))


def _of_intention(root: Path, facts: Facts) -> Iterator[Item]:
    for path in (root / "intentions").glob(PUBLISHING):  # what it names the manifest does, too
        yield Item("intention", f"intentions/{path.name}")
    item = Item("intention", "intentions/open")
    if not (root / item.name).exists():
        return
    yield item
    try:
        intention = _intention(root / item.name)
    except CheckpointError:
        return  # told where the file is looked at
    yield from of(root, facts, intention)


def of(root: Path, facts: Facts, intention: Intention) -> Iterator[Item]:
    """The files that an intention names."""
    yield from (Item("positions", name) for name in logs_of(intention.positions))
    if intention.plan:
        yield from _of_plan(facts, intention.plan)
    yield Item("groups", name_of(facts.id, intention.groups))
    yield from _of_setup(root, intention.setup)
    if intention.replacement is not None:
        yield from _of_setup(root, intention.replacement.before)


def _of_plan(facts: Facts, version: int) -> Iterator[Item]:
    if version:
        yield Item("plan", f"plans/{version}-{facts.id}.plan")
        yield Item("catalog", f"plans/{version}-{facts.id}.catalog")


def _of_setup(root: Path, name: str) -> Iterator[Item]:
    """A setup, and the copies of static files that it names."""
    if not name:
        return
    yield Item("setup", name)
    try:
        setup = read_file(root / name, Setup, SETUPS)
    except CheckpointError:
        return  # told where the file is looked at
    yield from (
        Item("static", f"static/{Path(f.path).name}") for f in setup.static if f.replaceable
    )


def _look(root: Path, item: Item, tell: Tell) -> Found:
    path = root / item.name
    try:
        size = path.stat().st_size
    except OSError as error:
        return Found(item, 0, str(unreadable(path, str(error.strerror))))
    try:
        check(root, item, tell)
    except CheckpointError as error:
        return Found(item, size, str(error))
    return Found(item, size)


def check(root: Path, item: Item, tell: Tell = lambda size: None) -> None:
    """Reads a file to its end. Raises ``CheckpointError``."""
    path = root / item.name
    match item.kind:
        case "facts":
            facts_of(root)
        case "manifest":
            pieces_are_there(root, read_manifest(path))
        case "commit":
            check_newest(root, read_commit(root, int(path.name)).epoch)
        case "intention":
            _intention(path)
        case "plan" | "catalog" | "groups":
            OF_PLANS[item.kind](path)
        case "setup":
            read_file(path, Setup, SETUPS)
        case "letters" | "suspended" | "sharing" | "outputs" | "deaths" | "table" | "graph":
            read_sealed(path)
        case "requested":
            read_ledger(root)
        case "static":
            check_copy(path, tell)
        case "names":
            read_inventory(path)
        case "positions":
            _check_log(root, item.name)
        case _:
            _frames(root, item.name, tell)


def _intention(path: Path) -> Intention:
    try:
        return msgspec.json.decode(read_sealed(path), type=Intention)
    except msgspec.MsgspecError as error:
        raise unreadable(path, str(error)) from error


def _check_log(root: Path, name: str) -> None:
    """Checks a log of what is read, as far as the newest manifest and the open intention say."""
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
    """Whether each piece of state lies in the file that its partition's list says."""
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

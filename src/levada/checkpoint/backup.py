"""The backup of a checkpoint, also while an engine runs on it: a copy that a run can start on.

A killed engine leaves a folder that a start understands, so a copy may be as a kill would leave it.
Two rules make it so:

- No commit comes between the first and the last file. Files that never change are linked meanwhile,
  which is fast, and copied afterwards. If a commit came, the links are made anew.
- The files are taken in an order that is opposed to that of their writing (``ORDER``). So a file
  that says that something was done is never older than the thing.

The copy is verified before it gets its name. Cost: a link for each file and attempt; reading and
writing all bytes once, and reading the copy.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import filelock

from levada.checkpoint.checkpoint_folder import FOLDERS
from levada.checkpoint.leadership.commit_log import newest_number
from levada.checkpoint.object_store.folder_mirror import APART, kept_at
from levada.checkpoint.request_files import without_engine
from levada.checkpoint.verify import Report, Tell, missing_files, verify
from levada.core.checkpoint_files import create, facts_of, sync_folder
from levada.core.durable_files import HIDDEN, make_alike, unwritable_error
from levada.errors import CheckpointError

STAGE = ".backup"
PATIENCE = 60.0  # s in which a moment without a commit must be found
ORDER = ("intentions", "", *(folder for folder in FOLDERS if folder != "results"), "results")
"""The folders that are taken first; "" has the files beside them, all others come last."""
_FIXED = frozenset({"commits", "manifests", "state", "results", "side", "graph", "plans", "static"})
_APART = frozenset({"standby", "requests", "tails"})


def backup(root: Path, destination: Path, tell: Tell = lambda size: None) -> Report:
    """Copies a checkpoint to a folder that is empty or missing. Calls ``tell`` with the bytes that
    were copied or verified since. Raises ``CheckpointError``.
    """
    facts_of(root)
    if address := kept_at(root):
        raise CheckpointError(
            f"{root} is where the checkpoint {address} is worked on.",
            hint="The object store has all of it: copy its objects.",
        )
    part = destination.with_name(f".{destination.name}.part")
    if (destination.exists() and any(destination.iterdir())) or part.is_relative_to(root):
        raise CheckpointError(
            f"{destination} is no place for a backup.",
            hint="Name a folder outside the checkpoint that is empty, or does not exist.",
        )
    try:
        shutil.rmtree(part, ignore_errors=True)
        with without_engine(root) as is_alone, _source(root, is_alone=is_alone) as source:
            _copy(source, part, tell)
        report = verify(part, tell)
        if report.damaged:
            raise CheckpointError(report.damaged[0].fault)
        part.rename(destination)
        sync_folder(destination.parent)
    except OSError as error:
        raise unwritable_error(destination, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return report


@contextmanager
def _source(root: Path, *, is_alone: bool) -> Iterator[Path]:
    """Yields a folder that has the files of one moment: the checkpoint, or links to it."""
    if is_alone:
        yield root
        return
    stage, lock = root / STAGE, filelock.FileLock(str(root / f"{STAGE}.lock"))
    try:
        with lock.acquire(timeout=0):
            try:
                _stage(root, stage, time.monotonic)
                yield stage
            finally:
                shutil.rmtree(stage, ignore_errors=True)
    except filelock.Timeout as error:
        raise CheckpointError(f"Another backup of {root} is being made.") from error


def _stage(root: Path, stage: Path, clock: Callable[[], float]) -> None:
    """Links or copies the files of one moment. Raises ``CheckpointError`` if none was found."""
    end = clock() + PATIENCE
    while clock() < end:
        shutil.rmtree(stage, ignore_errors=True)
        before = newest_number(root)
        for path in _files(root):
            name = path.relative_to(root)
            _take(path, stage / name, is_fixed=name.parts[0] in _FIXED)
        if newest_number(root) == before and not missing_files(stage):
            return
    raise CheckpointError(
        f"The engine on {root} commits faster than its files can be linked.",
        hint="Try again when it has less to do, or give it a longer --epoch.",
    )


def _files(root: Path) -> Iterator[Path]:
    """Yields the files of a checkpoint in the order in which they are taken."""
    folders = [path.name for path in root.iterdir() if path.is_dir() and path.name[0] != "."]
    known = [name for name in ORDER if not name or name in folders]
    for name in (*known, *sorted({*folders} - {*known} - _APART)):
        for path in (root / name).rglob("*") if name else root.iterdir():
            is_ours = path.name not in APART and path.name[0] != "." if not name else True
            if is_ours and not HIDDEN.fullmatch(path.name) and path.is_file():
                yield path


def _take(path: Path, target: Path, *, is_fixed: bool) -> None:
    """Links a file that never changes, and copies another. One that has gone meanwhile is left
    out.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        if is_fixed:
            try:
                os.link(path, target)
            except FileNotFoundError:
                raise
            except OSError:  # no links: another file system, or a file of another user
                shutil.copyfile(path, target)
        else:
            shutil.copyfile(path, target)


def _copy(source: Path, target: Path, tell: Tell) -> None:
    """Copies a folder durably, with the mode of the checkpoint."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.mkdir(mode=0o700)
    root = source.parent if source.name == STAGE else source
    target.chmod(root.stat().st_mode & 0o777)
    for folder in FOLDERS:
        make_alike(target / folder)
    for path in _files(source):
        place = target / path.relative_to(source)
        for parent in reversed(place.relative_to(target).parents[:-1]):
            make_alike(target / parent)
        with path.open("rb") as file, create(place) as copied:
            shutil.copyfileobj(file, copied, 1 << 20)
            copied.flush()
            os.fsync(copied.fileno())
            tell(copied.tell())
    for folder, _, _ in os.walk(target):
        sync_folder(folder)

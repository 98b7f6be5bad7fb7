"""``levada ps``: the running engines and the checkpoints below a folder."""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console

from levada.checkpoint.checkpoint_folder import newest_manifest, plan_of
from levada.checkpoint.request_files import engine_runs, read_presence
from levada.core.checkpoint_files import facts_of
from levada.core.frozen import frozen
from levada.core.names import is_derived
from levada.engine.status.summary import table
from levada.errors import CheckpointError, UsageError

DEPTH, MOST_FOLDERS = 4, 20_000
FACTS = "levada.json"
_WIDTH = 100_000
_MAX_NAME = 24


@frozen
class Entry:
    """A checkpoint. ``state``: running, stopped, ended, or damaged. ``age``: seconds since its last
    epoch. ``pid`` and ``host``: of the process that runs it.
    """

    checkpoint: str
    state: str
    epoch: int = 0
    queries: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    age: float | None = None
    pid: int | None = None
    host: str | None = None


def ps(folder: Path | None, *, as_json: bool) -> None:
    """Prints the checkpoints. Without a folder: those below the working directory, and running
    engines on temporary checkpoints.
    """
    if folder is not None and not folder.is_dir():
        raise UsageError(f"There is no folder {folder}.")
    entries = [entry(path, time.time()) for path in checkpoints(folder or Path())]
    if folder is None:
        temporary_folders = Path(tempfile.gettempdir()).glob("levada-*")
        temporary = [
            entry(p, time.time()) for p in sorted(temporary_folders) if os.path.exists(p / FACTS)
        ]
        entries += [e for e in temporary if e.state == "running"]
    if as_json:
        print(json.dumps([asdict(e) for e in entries], indent=2, ensure_ascii=False))
        return
    heads = ("checkpoint", "state", "epoch", "queries", "streams", "last epoch", "process")
    # the terminal wraps long lines: a narrower table would cut the checkpoints' names
    Console(width=_WIDTH, highlight=False).print(table(heads, [_row(e) for e in entries]))


def checkpoints(folder: Path) -> Iterator[Path]:
    """Yields the checkpoints in a folder and up to ``DEPTH`` levels below it, without following
    links.
    """
    waiting, looked = [(folder, 0)], 0
    while waiting and looked < MOST_FOLDERS:
        at, depth = waiting.pop()
        looked += 1
        if os.path.exists(at / FACTS):  # False without permission
            yield at
        elif depth < DEPTH:
            waiting += [(path, depth + 1) for path in reversed(_folders(at))]


def _folders(at: Path) -> Sequence[Path]:
    with suppress(OSError), os.scandir(at) as listing:
        names = [e.name for e in listing if e.is_dir(follow_symlinks=False)]
        return [at / name for name in sorted(names) if not name.startswith(".")]
    return []


def entry(root: Path, now: float) -> Entry:
    """Returns the state of a checkpoint."""
    runs = engine_runs(root)
    presence = read_presence(root) if runs else None
    who = (None, None) if presence is None else (presence.pid, presence.host)
    checkpoint_entry = _entry(root, now, runs=runs)
    return replace(checkpoint_entry, pid=who[0], host=who[1])


def _entry(root: Path, now: float, *, runs: bool) -> Entry:
    state = "running" if runs else "stopped"
    try:
        facts = facts_of(root)
        manifest = newest_manifest(root)
        if manifest is None:
            return Entry(str(root), state)
        queries = tuple(plan_of(root, facts, manifest.plan).queries)
        age = now - os.stat(root / "manifests" / str(manifest.epoch)).st_mtime
        streams = tuple(name for name in manifest.streams if not is_derived(name))
        if manifest.has_ended and not runs:
            state = "ended"
        return Entry(str(root), state, manifest.epoch, queries, streams, max(age, 0.0))
    except (CheckpointError, OSError):
        return Entry(str(root), state if runs else "damaged")


def _row(e: Entry) -> tuple[str, ...]:
    age = "-" if e.age is None else f"{_span(e.age)} ago"
    process = "-" if e.pid is None else f"{e.pid} on {e.host}"
    counts = _names_text(e.queries), _names_text(e.streams)
    return e.checkpoint, e.state, f"{e.epoch:,}", *counts, age, process


def _names_text(names: Sequence[str]) -> str:
    """Returns up to three names, or their number; the last words of IRIs.

    >>> _names_text(["http://www.example.org/streams/obs#weather", "taxis"]), _names_text("abcd")
    ('weather, taxis', '4')
    """
    words = [re.split(r"[/#]", name.rstrip("/#"))[-1] for name in names]
    shown = [word if len(word) <= _MAX_NAME else f"{word[:_MAX_NAME]}.." for word in words]
    return ", ".join(shown) if 0 < len(names) <= 3 else str(len(names))


def _span(seconds: float) -> str:
    """Returns a time span for people.

    >>> _span(5), _span(600), _span(7200), _span(10**6)
    ('5 s', '10 min', '2 h', '11 d')
    """
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size or (unit == "min" and seconds >= size):
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"

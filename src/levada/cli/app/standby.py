"""``levada run --standby``: waits while an engine is at work, and takes over when that engine has
been silent for a lease (docs/reliability.md#two-drivers).
"""

from __future__ import annotations

import os
import platform
import time
import warnings
from contextlib import suppress
from functools import partial
from pathlib import Path

from levada.checkpoint.checkpoint_folder import Checkpoint, catalog_of, newest_manifest
from levada.checkpoint.leadership.commit_log import (
    Driver,
    ElectionLostError,
    last_takeover,
    newest_number,
)
from levada.checkpoint.leadership.heartbeat import INTERVAL, LeaderWatch, Sign
from levada.checkpoint.leadership.new_checkpoint import check_free
from levada.checkpoint.request_files import read_ledger
from levada.cli.app.app_file import App
from levada.cli.app.signals import Stopped
from levada.core.atomic_file import make_folders
from levada.core.checkpoint_facts import facts_of
from levada.core.names import is_derived
from levada.engine.driver.epoch_pacing import wall_clock_ms
from levada.engine.engine import Engine
from levada.engine.registry import Registry
from levada.engine.restart_checks import check_streams
from levada.engine.suspended_queries import read_suspended
from levada.errors import UsageError, near

LOOK = 0.1  # s between two looks at the heartbeat


def take_turn(
    engine: Engine, lease: float, stopped: Stopped, *, accept_changes: bool = False
) -> Checkpoint | None:
    """Returns the checkpoint when it is this process's turn; None if a signal stops it before. If
    several wait, one wins and the others wait for that one. Raises as ``await_turn``.
    """
    wait = partial(await_turn, accept_changes=accept_changes)
    while (at := wait(engine.root, engine._registry, lease, stopped)) is not None:
        with suppress(ElectionLostError):
            return engine._open(locked=False, behind=at)
    return None


def await_turn(
    root: Path, registry: Registry, lease: float, stopped: Stopped, *, accept_changes: bool = False
) -> int | None:
    """Waits until the engine on the checkpoint has left or been silent for ``lease`` seconds by
    this process's clock.

    Returns the number of the newest commit at that moment; None if ``stopped`` is set before.
    Raises ``UsageError`` or ``CheckpointError`` if this process could not continue that run.
    """
    make_folders(root)
    check_same(root, registry, accept_changes=accept_changes)
    _say_waiting(root, lease)
    watch, sign = LeaderWatch(root, lease, time.monotonic), _sign(root)
    signed = -INTERVAL
    try:
        while True:
            at = newest_number(root)  # a later commit is by an engine at work
            if watch.is_due():
                break
            if stopped.wait(LOOK):
                return None
            if time.monotonic() - signed >= INTERVAL:
                signed = time.monotonic()
                with suppress(OSError):  # invisible then, but it still takes over
                    sign.renew()
        check_same(root, registry, accept_changes=accept_changes)
        return at
    finally:
        sign.close()


def _sign(root: Path) -> Sign:
    return Sign(root, Driver(platform.node(), os.getpid(), wall_clock_ms()))


def _say_waiting(root: Path, lease: float) -> None:
    by = last_takeover(root)
    who = "an engine" if by is None else f"the engine ({by})"
    warnings.warn(
        f"This is a standby on the checkpoint {root}: it goes on when {who} has left, or has been "
        f"silent for {lease:g} s.",
        stacklevel=2,
    )


def check_same(root: Path, registry: Registry, *, accept_changes: bool = False) -> None:
    """Raises ``UsageError`` if the engine on the checkpoint has other queries, streams or
    conflicting options. Raises ``CheckpointError`` if the format of the checkpoint differs.
    """
    if not (root / "levada.json").exists():
        check_free(root)
        return
    facts, manifest = facts_of(root), newest_manifest(root)
    if manifest is None:
        return
    topology, known = catalog_of(root, facts, manifest.plan)
    ledger = read_ledger(root)
    for query in ledger.added_queries:
        known.pop(query.name, None)
    known |= ledger.dropped_queries | {
        n: s.identity for n, s in read_suspended(root).items() if not s.is_absent
    }
    identities = {name: query.identity for name, query in registry.queries.items()}
    _check("query", known, identities)
    came = {named.name for named in ledger.added_streams}
    kept = [name for name in topology.streams.names if not is_derived(name) and name not in came]
    streams = dict.fromkeys(
        [*kept, *(n for n, left in ledger.removed_streams.items() if left.declaration)], ""
    )
    _check("stream", streams, dict.fromkeys(registry.streams, ""))
    if not accept_changes:
        check_streams(root, manifest, registry.streams.values(), ())


def _check(kind: str, known: dict[str, str], identities: dict[str, str]) -> None:
    for name in sorted(known.keys() | identities.keys()):
        if name in identities and known.get(name) == identities[name]:
            continue
        if name not in known:
            what, hint = f"has a {kind} {name}, which that one has not", near(name, known)
        elif name not in identities:
            what, hint = f"lacks the {kind} {name}, which that one has", near(name, identities)
        else:
            what, hint = f"has another {kind} {name} than that one (its text or its options)", ""
        raise UsageError(f"A standby runs what the engine at work runs, and this one {what}.",
                         hint=hint)  # fmt: skip


def check_columns(app: App) -> None:
    """Raises ``UsageError`` for a stream whose columns only the checkpoint knows, since a standby
    cannot read it yet.
    """
    for config in app.streams:
        if config.undecided:
            raise UsageError(
                f"A standby must know the columns of the stream {config.name} before it has the "
                "checkpoint, and schema=auto looks for them there.",
                hint="Name them: levada sample FILE prints the option.",
            )

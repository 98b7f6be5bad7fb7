"""Fuller files: results of several epochs are held back and published as one file a query
(``connectors.sinks.file_sink.Roll``).

What is held back, and what an epoch publishes, is decided once and stands in its manifest:
publishing again after a crash gives the same files, and a file is never changed once it is there. A
file is named by the first of its epochs that has results of its query. The segments of held epochs
stay in the checkpoint until the manifest after the one that publishes them is committed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from levada.checkpoint.manifest import Manifest, UnpublishedResults

Due = Callable[[int, int], bool]


def at_once(size: int, age: int) -> bool:
    """Never holds anything back."""
    return True


def hold(
    manifest: Manifest,
    before: Sequence[UnpublishedResults],
    due: Due,
    wall: int,
    root: str,
    *,
    flush: bool,
) -> None:
    """Says in a new manifest what it publishes and holds; ``before``: held by the one before."""
    waiting = list(before)
    if manifest.segments or manifest.shown_reports:
        size = sum(os.stat(Path(root) / name).st_size for name in manifest.segments)
        waiting.append(
            UnpublishedResults(
                manifest.epoch, manifest.plan, manifest.segments, manifest.shown_reports, wall, size
            )
        )
    if waiting and (flush or manifest.ended or is_due(waiting, due, wall)):
        manifest.rolled = waiting
    else:
        manifest.held = waiting


def is_due(held: Sequence[UnpublishedResults], due: Due, wall: int) -> bool:
    """Whether what is held is to be published now; also if the clock has gone back behind it."""
    if not held:
        return False
    age = wall - held[0].wall
    return age < 0 or due(sum(h.size for h in held), age)


def oldest(manifest: Manifest) -> int:
    """The first epoch whose segments this manifest, or one after it, may still read."""
    return min([manifest.epoch, *(h.epoch for h in (*manifest.rolled, *manifest.held))])

"""Makes fuller files: results of several epochs are held back and published as one file a query
(``connectors.sinks.file_sink.Roll``).

The manifest of an epoch states what it holds back and what it publishes. The decision is made once,
so publishing again after a crash writes the same files, and a file never changes. A file is named
by the first of its epochs with results of its query. The segments of held epochs stay in the
checkpoint until the manifest after the one that publishes them is committed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from levada.checkpoint.manifest import Manifest, UnpublishedResults

Due = Callable[[int, int], bool]


def at_once(size: int, age: int) -> bool:
    """Returns True: nothing is held back."""
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
    """Writes into a new manifest what it publishes and holds. ``before``: results held by the
    previous manifest.
    """
    waiting = list(before)
    if manifest.segments or manifest.shown_reports:
        size = sum([os.stat(f"{root}/{name}").st_size for name in manifest.segments])
        waiting.append(
            UnpublishedResults(
                manifest.epoch, manifest.plan, manifest.segments, manifest.shown_reports, wall, size
            )
        )
    if waiting and (flush or manifest.has_ended or is_due(waiting, due, wall)):
        manifest.results_to_publish = waiting
    else:
        manifest.waiting_results = waiting


def is_due(held: Sequence[UnpublishedResults], due: Due, wall: int) -> bool:
    """Whether to publish the held results now; also if the clock has gone back before their
    time.
    """
    if not held:
        return False
    age = wall - held[0].wall_ms
    return age < 0 or due(sum(h.segment_bytes for h in held), age)


def oldest(manifest: Manifest) -> int:
    """Returns the first epoch whose segments this manifest, or a later one, may still read."""
    return min(
        [
            manifest.epoch,
            *(h.epoch for h in (*manifest.results_to_publish, *manifest.waiting_results)),
        ]
    )

"""Publication: what a manifest names reaches the world, repeatably
(docs/architecture.md#commit-and-recovery).

Results go to a sink per query (files, standard output) and stay as segments for readers of the
Python API as long as somebody may read them: a slow reader costs disk, not memory. Late elements
and dead letters become files. Names are functions of the epoch, so publishing twice changes
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from levada.emission.segments import batch_of, batches, empty_batch, with_empty
from levada.emission.serialize import Batch
from levada.plan.sealed.plan import QueryPlan
from levada.runtime.driver.lifetime import Lifetime
from levada.runtime.driver.rolling import Due, at_once, oldest, together
from levada.runtime.store import state_files as files
from levada.runtime.store.checkpoint import Checkpoint
from levada.runtime.store.manifest import Held, Manifest
from levada.sinks import Sink
from levada.sinks.files import FileSink
from levada.sinks.letters import Letter, LetterFiles


@dataclass(frozen=True, slots=True)
class Published:
    """What readers must know of an epoch with results: a few dozen bytes, so that a slow reader
    costs disk and not memory.
    """

    plan: int
    segments: Sequence[str]
    every: Mapping[str, list[int]]


@dataclass
class Publication:
    """Publishes manifests. ``sink`` None: results are only kept for readers; ``keep``: segments
    stay after publishing.
    """

    checkpoint: Checkpoint
    sink: Sink | None
    letters: Path
    keep: bool
    kept: list[Published] = field(default_factory=list)
    reports: dict[str, int] = field(default_factory=dict)
    results: dict[str, int] = field(default_factory=dict)
    oldest_plan: int = 0

    @property
    def due(self) -> Due:
        """When what is held is to be published: by the files' ``Roll``; without files at once."""
        return self.sink.roll.due if isinstance(self.sink, FileSink) else at_once

    def publish(self, manifest: Manifest) -> None:
        """Everything that an epoch made, and what was held back until it."""
        root = str(self.checkpoint.root)
        for name, counts in manifest.counts.items():
            self.results[name] = self.results.get(name, 0) + counts[0]
            if self.sink is None:
                self.reports[name] = self.reports.get(name, 0) + counts[3]
        if self.sink is not None:
            self._to_sink(self.sink, manifest)
        self._publish_letters(manifest, root)
        self._forget_plans(manifest)
        if not self.keep:
            self._forget(manifest)
        elif manifest.segments or manifest.every:
            self.kept.append(Published(manifest.plan, manifest.segments, manifest.every))

    def _to_sink(self, sink: Sink, manifest: Manifest) -> None:
        """What the manifest says is to be published now. Reports are counted here, where those of
        all tasks are together.
        """
        found = (
            (held.epoch, query, batch)
            for held in manifest.rolled
            for query, batch in self.read(held)
        )
        for epoch, query, batch in together(found):
            sink.publish(query.name, query.variables, epoch, batch)
            self.reports[query.name] = self.reports.get(query.name, 0) + len(
                np.unique(batch.report)
            )

    def read_one(self, epoch: Published, lifetime: Lifetime) -> Iterator[Batch]:
        """The batch of one query, if it has results in an epoch, or empty reports that it shows."""
        query, layout = lifetime.query, lifetime.layout
        if query is None or layout is None or not lifetime.has(epoch.plan):
            return
        root = str(self.checkpoint.root)
        times = np.array(epoch.every.get(query.name, []), np.int64)
        batch = batch_of(query, layout, epoch.segments, lambda name: files.map_(root, name))
        if batch is not None:
            yield with_empty(batch, times)
        elif len(times):
            yield empty_batch(query, times)

    def read(self, epoch: Held | Published) -> Iterator[tuple[QueryPlan, Batch]]:
        """The batches of an epoch, decoded; with the empty reports of queries that show them."""
        if not epoch.segments and not epoch.every:
            return
        root = str(self.checkpoint.root)
        plan = self.checkpoint.load_plan(epoch.plan)
        left = dict(epoch.every)
        for query, batch in batches(plan, epoch.segments, lambda name: files.map_(root, name)):
            yield query, with_empty(batch, np.array(left.pop(query.name, []), np.int64))
        for name, times in left.items():
            if name in plan.queries:
                yield plan.queries[name], empty_batch(plan.queries[name], np.array(times, np.int64))

    def _publish_letters(self, manifest: Manifest, root: str) -> None:
        sink = LetterFiles(self.letters)
        for part, (kind, name, _) in enumerate(manifest.side):
            path = Path(root) / name
            if path.exists():
                # str.splitlines also cuts within texts, such as at U+2028
                lines = path.read_bytes().split(b"\n")
                sink.publish(
                    Letter(kind), manifest.epoch, [json.loads(line) for line in lines if line], part
                )

    def _forget_plans(self, manifest: Manifest) -> None:
        """Plans older than what is held or published; readers of queries need none."""
        plan = min([manifest.plan, *(h.plan for h in (*manifest.rolled, *manifest.held))])
        if plan > self.oldest_plan:
            self.checkpoint.forget_plans(plan)
            self.oldest_plan = plan

    def _forget(self, manifest: Manifest) -> None:
        """What no publication will read any more: segments older than what is held or published,
        letters of before.
        """
        for folder, least in (("results", oldest(manifest)), ("side", manifest.epoch)):
            for path in (self.checkpoint.root / folder).iterdir():
                if int(path.name.split("-", 1)[0]) < least:
                    path.unlink(missing_ok=True)

"""Writes ``--as state``: a relation as one file, ``DIR/q/state.<format>``, with its present rows.

    batch of changes  + and -, per report     what an epoch made of a relation
    rows              with how often each     the relation after it, kept in the checkpoint
    state.csv         replaced as a whole     only if an epoch has changed the relation

A relation is a multiset: a row that is removed and added at once is not a change, and a row with
multiplicity two has two lines. The checkpoint keeps the rows in ``tables/q``, with their epoch. So
publishing an epoch again changes nothing, and the file can be written anew from them. The rows are
sorted by their texts. ``report`` is the last instant at which the relation changed.

Cost: writing is linear in the size of the relation, and writes two files. So changes are held back
until ``PAUSE_RATIO`` times the duration of the last writing has passed. At most
one part in ``PAUSE + 1`` of the time is spent on it, whatever the size of the relation.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import polars as pl

from levada.checkpoint.checkpoint_folder import TABLES, Checkpoint
from levada.checkpoint.manifest import Manifest, UnpublishedResults, read_manifest
from levada.connectors.serialization.encode_batch import contents
from levada.connectors.serialization.result_formats import Format
from levada.connectors.serialization.serialize import Batch
from levada.connectors.sinks import Sink
from levada.connectors.sinks.file_sink import OWNER, Roll
from levada.core.checksummed_files import read_sealed, seal
from levada.core.durable_files import replace_file, write_atomic
from levada.core.event_time import MIN
from levada.core.query_model import Form
from levada.errors import CheckpointError, SinkError, UsageError
from levada.plan.execution.plan import QueryPlan

PAUSE_RATIO = 9
TIMES = "#"  # the multiplicity of a row; no variable has such a name


class RelationState(msgspec.Struct, frozen=True):
    """A relation after an epoch: ``since`` is the plan version that first has the query, ``report``
    the last change (MIN: none), ``rows`` Arrow's own bytes.
    """

    since: int
    epoch: int
    report: int
    rows: bytes


class Relation(NamedTuple):
    """A kept relation as a frame: a column of N-Triples texts for each variable, and ``TIMES``."""

    since: int
    epoch: int
    report: int
    rows: pl.DataFrame


@dataclass
class StateFiles:
    """Publishes states below ``out``, from the relations that ``checkpoint`` keeps."""

    out: Path
    format: Format
    terms: bool = False
    checkpoint: Path | None = None  # set when the engine has opened it
    before: int = -1  # the last plan version of runs before
    roll: Roll = field(default_factory=Roll)
    clock: Callable[[], float] = time.monotonic
    _relations: dict[str, Relation] = field(default_factory=dict)
    _rests_until: float = 0.0

    def is_due(self, size: int, age: int) -> bool:
        """Whether changes of ``size`` bytes, the oldest ``age`` ms old, are to be written now."""
        rested = self.clock() >= self._rests_until and age >= self.roll.age
        return rested or size >= self.roll.bytes

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """Returns no files: a batch without changes has no state; ``apply`` handles batches with
        changes.
        """
        raise SinkError(f"The results of the query {query} are no relation: they have no state.")

    def begin(self, query: QueryPlan, epoch: int) -> None:
        """Begins the state of a query in the plan of this epoch: the file of a new query is empty,
        that of an earlier one unchanged.
        """
        relation = self._load(query)
        if relation is None:
            self._check_known(query)
            relation = Relation(query.since, epoch - 1, MIN, _rows(query, _nothing(query)))
            self._keep(query, relation)
        elif query.name in self._relations:
            return
        self._relations[query.name] = relation
        self._write(query, relation)

    def apply(self, query: QueryPlan, epoch: int, batch: Batch) -> None:
        """Applies the changes of an epoch, unless another query has the name by now. Raises
        ``SinkError``, ``CheckpointError``.
        """
        now = self._relations.get(query.name)
        if now is not None and now.since > query.since:
            return
        self.begin(query, epoch)
        before = self._relations[query.name]
        if epoch <= before.epoch or not len(batch.report):
            return
        changed = _rows(query, batch).filter(pl.col(TIMES) != 0)
        if not len(changed):
            return
        began = self.clock()
        rows = _apply_changes(query, before.rows, changed)
        after = Relation(query.since, epoch, int(batch.report[-1]), rows)
        self._keep(query, after)
        self._relations[query.name] = after
        self._write(query, after)
        ended = self.clock()
        self._rests_until = max(self._rests_until, ended) + PAUSE_RATIO * (ended - began)

    def _load(self, query: QueryPlan) -> Relation | None:
        """Returns the kept relation of this query; None if there is none, or of another query of
        the name.
        """
        relation = self._relations.get(query.name)
        if relation is None and (path := self._path(query)).exists():
            stored = msgspec.msgpack.decode(read_sealed(path), type=RelationState)
            rows = pl.read_ipc(io.BytesIO(stored.rows))
            relation = Relation(stored.since, stored.epoch, stored.report, rows)
        return relation if relation is not None and relation.since == query.since else None

    def _check_known(self, query: QueryPlan) -> None:
        if query.since <= self.before:
            raise UsageError(
                f"What the relation {query.name} holds is not known: a run before on the "
                "checkpoint has written its changes, and no state.",
                hint="Start on an empty checkpoint, or leave --as state out.",
            )

    def _keep(self, query: QueryPlan, relation: Relation) -> None:
        data = io.BytesIO()
        relation.rows.write_ipc(data)
        stored = RelationState(relation.since, relation.epoch, relation.report, data.getvalue())
        replace_file(self._path(query), seal(msgspec.msgpack.encode(stored)))

    def _path(self, query: QueryPlan) -> Path:
        assert self.checkpoint is not None, "the checkpoint is open when an epoch is published"
        return self.checkpoint / TABLES / query.name

    def _write(self, query: QueryPlan, relation: Relation) -> None:
        """Writes the whole file, unless it is up to date."""
        if not (self.out / OWNER).exists():
            raise SinkError(
                f"The folder {self.out} is gone: it was deleted or moved while results were "
                "written to it.",
                hint="Start again on the same checkpoint: the state is written anew.",
            )
        batch = _as_batch(query, relation)
        content = contents(
            self.format,
            query.name,
            query.variables,
            batch,
            lambda sizes: [(0, len(sizes))],
            terms=self.terms,
        )
        path = self.out / query.name / f"state.{self.format}"
        for _, data in content:
            if not path.exists() or path.read_bytes() != data:
                write_atomic(path, data)


def _nothing(query: QueryPlan) -> Batch:
    columns = {name: pl.Series([], dtype=pl.String) for name in query.variables}
    return Batch(np.zeros(0, np.int64), columns=columns, change=np.zeros(0, np.int8))


def _rows(query: QueryPlan, batch: Batch) -> pl.DataFrame:
    """Returns the rows that a batch changes, each once, with the sum of its signs."""
    assert batch.change is not None, "changes have signs"
    texts = {name: batch.columns[name].cast(pl.String) for name in query.variables}
    changes = pl.DataFrame({**texts, TIMES: batch.change.astype(np.int64)})
    return _sum_times(query, changes)


def _sum_times(query: QueryPlan, rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by(query.variables).agg(pl.col(TIMES).sum())


def _apply_changes(query: QueryPlan, before: pl.DataFrame, changed: pl.DataFrame) -> pl.DataFrame:
    """Returns a relation after changes, sorted by the texts of its rows."""
    rows = _sum_times(query, pl.concat([before, changed])).filter(pl.col(TIMES) != 0)
    if (rows[TIMES] < 0).any():
        raise SinkError(f"More rows of the relation {query.name} go than are there.")
    return rows.sort(*query.variables)


def _as_batch(query: QueryPlan, relation: Relation) -> Batch:
    """Returns a relation as one report, of its last change."""
    times = relation.rows[TIMES].to_numpy()
    place = np.repeat(np.arange(len(times)), times)
    columns = {name: relation.rows[name][place] for name in query.variables}
    report = np.full(len(place), relation.report, np.int64)
    empty = _nothing(query).report if len(place) else np.array([relation.report], np.int64)
    return Batch(report, Form.SELECT, columns, empty=empty)


def prepare_states(
    checkpoint: Checkpoint, sink: Sink | None, files: Mapping[str, Sink]
) -> Mapping[str, Sink]:
    """Prepares the sinks of states from the checkpoint when a run begins. Deletes states that this
    run does not maintain, since a later run would continue from outdated rows.
    """
    folder = checkpoint.root / TABLES
    before = _plan_before(checkpoint)
    for each in (sink, *files.values()):
        if isinstance(each, StateFiles):
            each.checkpoint, each.before = checkpoint.root, before
    if not isinstance(sink, StateFiles) and folder.exists():
        for path in folder.iterdir():
            if not isinstance(files.get(path.name), StateFiles):
                path.unlink(missing_ok=True)
    return files


def _plan_before(checkpoint: Checkpoint) -> int:
    """Returns the plan of the last epoch that is certainly published: the one before the newest;
    -1: none. A query in that plan without a kept state was not written as one.
    """
    last = checkpoint.last
    if last is None or last.epoch == 1:
        return -1
    try:
        return read_manifest(checkpoint.root / "manifests" / str(last.epoch - 1)).plan
    except CheckpointError:
        return last.plan


def publish_batch(sink: Sink, query: QueryPlan, epoch: int, batch: Batch) -> None:
    """Passes a batch to a sink. Sinks of states also receive the query."""
    if isinstance(sink, StateFiles):
        sink.apply(query, epoch, batch)
    else:
        sink.publish(query.name, query.variables, epoch, batch)


# Makes fuller files: results of several epochs are held back and published as one file a query
# (``connectors.sinks.file_sink.Roll``).
#
# The manifest of an epoch states what it holds back and what it publishes. The decision is made
# once, so publishing again after a crash writes the same files, and a file never changes. A file is
# named by the first of its epochs with results of its query. The segments of held epochs stay in
# the checkpoint until the manifest after the one that publishes them is committed.


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


def is_due(unpublished: Sequence[UnpublishedResults], due: Due, wall: int) -> bool:
    """Whether to publish the held results now; also if the clock has gone back before their
    time.
    """
    if not unpublished:
        return False
    age = wall - unpublished[0].wall_ms
    return age < 0 or due(sum(h.segment_bytes for h in unpublished), age)


def oldest(manifest: Manifest) -> int:
    """Returns the first epoch whose segments this manifest, or a later one, may still read."""
    return min(
        [
            manifest.epoch,
            *(h.epoch for h in (*manifest.results_to_publish, *manifest.waiting_results)),
        ]
    )

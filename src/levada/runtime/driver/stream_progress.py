"""The progress of each stream after an epoch: how far it is read, and the fates of its elements."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence

import msgspec
import numpy as np

from levada.checkpoint import state_files
from levada.checkpoint.epoch_context import (
    EpochContext,
    SourceReport,
    TaskOutcome,
    advance_watermarks,
    column_of,
    encode,
    load_setup,
)
from levada.checkpoint.manifest import (
    EpochIntent,
    Manifest,
    Preferences,
    StreamRecord,
    TransportStats,
)
from levada.connectors.sources.fingerprint import check_same
from levada.connectors.sources.read_split import read_range
from levada.connectors.sources.splits import AnyReference, FileSplit
from levada.core.event_time import MAX, MIN
from levada.core.names import is_derived, is_left
from levada.core.query_limits import TOLD
from levada.errors import SHARED, EngineError, LostTaskError, SourceError
from levada.plan.execution.plan import Plan
from levada.runtime.executor import Executor
from levada.runtime.placement import key_group_counters, send_graph
from levada.runtime.placement.send_graph import slice_of
from levada.runtime.placement.task_placement import TaskPlacement, record_locality
from levada.runtime.preferred_locations import LocalityStats
from levada.runtime.task.crash_probe import find_crashes
from levada.runtime.task.ingest_task import Payload
from levada.runtime.task.static_reader import StaticPart
from levada.runtime.warmup_executor import homes_of, missed_by


class _Outcome(msgspec.Struct):
    """The report of a task of the last stage to the driver."""

    controls: list[SourceReport]
    done: list[TaskOutcome]


_OUTCOMES = msgspec.json.Decoder(_Outcome)


def carry_over(last: Manifest, streams: Sequence[str]) -> Manifest:
    """Returns a manifest for the streams of a later plan, with the records of streams by number. A
    new stream has a new record, whatever stream had its name. A removed stream keeps its progress,
    and nothing of it is read again.
    """
    names = streams[: len(last.streams)]
    if tuple(names) == tuple(last.streams):
        return last
    records: dict[str, StreamRecord] = {}
    for name, (was, record) in zip(names, last.streams.items(), strict=True):
        known = record if name == was else _record_of_removed(was, record)
        records[name] = known
    same = {name for name in names if name in last.streams and records[name] is last.streams[name]}
    return msgspec.structs.replace(
        last,
        streams=records,
        positions={name: at for name, at in last.positions.items() if name in same},
        pattern_matches={
            name: pattern_hits
            for name, pattern_hits in last.pattern_matches.items()
            if name in same
        },
    )


def _record_of_removed(stream: str, record: StreamRecord) -> StreamRecord:
    """Returns the record of a removed stream: no later instant is below its largest time."""
    latest = largest_time(stream, record)
    return msgspec.structs.replace(record, partitions={}, max_ts=latest, has_ended=True)


def records_of(
    last: Manifest,
    intention: EpochIntent,
    context: EpochContext,
    controls: Sequence[SourceReport],
    plan: Plan,
) -> dict[str, StreamRecord]:
    """Returns the records of all streams, from those of the previous epoch and the reports of
    tasks.
    """
    _, new, complete = advance_watermarks(context, controls)
    records: dict[str, StreamRecord] = {}
    skips = bool(
        intention.late_files
        or intention.deleted_files
        or intention.unreadable_files
        or intention.crashing_splits
    )
    for i, (name, state) in enumerate(zip(plan.streams, intention.streams, strict=True)):
        before = last.streams.get(name, StreamRecord())
        stream_reports = [c for c in controls if c.stream == i]
        record = before.add(
            stream_reports, intention.finished_partitions.get(name, []), context.wall_ms
        )
        if skips:
            _count_skipped_files(record, intention, name)
        record.replaced_files = intention.positions.get(name, {}).get("replaced", 0)
        record.unaccounted_elements += _missing(name, intention, stream_reports)
        record.watermark, record.complete_until = int(new[i]), int(complete[i])
        record.partitions = _leading_partitions(record, state.lateness)
        record.has_ended = state.has_ended and not record.complete_until > record.watermark
        read = sum([c.elements for c in stream_reports])
        slowest = (
            min((int(new[j]) for j in context.related_streams[i]), default=MAX)
            if i < len(context.related_streams)
            else MAX
        )
        record.ahead = 0 if record.watermark <= slowest else before.ahead + read
        records[name] = record
    return records


def decode_outcomes(
    outcomes: Sequence[bytes], references: Sequence[AnyReference], plan: Plan
) -> tuple[list[SourceReport], list[TaskOutcome]]:
    """Decodes the reports of tasks about the intake and about themselves. Raises ``LostTaskError``
    if they are based on different input, or on other files than the driver's.

    If an executor is lost with the data that its tasks have sent, Spark runs these tasks again,
    while other tasks have used their first output. Spark does not notify Python of a stage that it
    runs again. An intake task has other output if a file was modified meanwhile.
    """
    decoded = [_OUTCOMES.decode(outcome) for outcome in outcomes]
    controls = _count_reports_once([control for outcome in decoded for control in outcome.controls])
    done = [outcome_task for outcome in decoded for outcome_task in outcome.done]
    if len({outcome_task.input_digest for outcome_task in done if outcome_task.stage}) > 1:
        raise LostTaskError("A file was written into while tasks were begun again.")
    check_alike(controls, references, plan)
    return controls, done


def _count_reports_once(controls: list[SourceReport]) -> list[SourceReport]:
    """Counts each report of a derived stream as one element, whichever tasks have read it."""
    by_stream: dict[int, list[SourceReport]] = {}
    for control in controls:
        if control.reports:
            by_stream.setdefault(control.stream, []).append(control)
    for first, *others in by_stream.values():
        columns = [column_of(control.reports, 8) for control in (first, *others)]
        first.elements = first.passed = len(np.unique(np.concatenate(columns)))
        for control in others:
            control.elements = control.passed = 0
    return controls


def _leading_partitions(record: StreamRecord, lateness: int) -> dict[str, int]:
    """Returns the largest times of the partitions that may raise the watermark. A partition that is
    not beyond the completeness delays the watermark or not, like one without data.
    """
    least = max(record.watermark, record.complete_until) + lateness
    return {name: ts for name, ts in record.partitions.items() if ts > least}


def count_passed(
    intention: EpochIntent, controls: Sequence[SourceReport], plan: Plan, late: Collection[str]
) -> None:
    """Adds the late elements that passed to the positions of streams whose late elements count
    (``late``).
    """
    for c in controls:
        name = plan.streams[c.stream]
        position = intention.positions.get(name)
        if position is not None and name in late:
            position["passed"] = position.get("passed", 0) + c.passed


def _count_skipped_files(record: StreamRecord, intention: EpochIntent, name: str) -> None:
    """Counts the files that the epoch reports as not read."""
    overtaken, deleted = (
        len(of.get(name, ())) for of in (intention.late_files, intention.deleted_files)
    )
    record.late_files, record.deleted_files = (
        record.late_files + overtaken,
        record.deleted_files + deleted,
    )
    record.dead_letters += overtaken + deleted + len(intention.unreadable_files.get(name, ()))
    record.dead_letters += sum(
        reference.stream == name for reference, _ in intention.crashing_splits
    )
    record.dead_letter_reasons = [*record.dead_letter_reasons, *reasons_of(intention, name)][:TOLD]


def _missing(name: str, intention: EpochIntent, stream_reports: Sequence[SourceReport]) -> int:
    """Returns the difference between the elements of a stream's references and those with a
    reported fate.
    """
    element_count = sum(0 if c.measured is None else c.measured.elements for c in stream_reports)
    element_count += sum(
        r.elements
        for r in intention.references
        if r.stream == name and (not isinstance(r, FileSplit) or r.counted)
    )
    return abs(element_count - sum(c.accounted for c in stream_reports))


def largest_time(name: str, record: StreamRecord) -> int:
    """Returns the largest event time of a stream so far. The progress of a derived stream, or of
    one that follows the clock, may exceed its elements.
    """
    if is_derived(name) and not is_left(name) and record.has_ended:
        return MIN
    known = record.watermark < MAX  # else it has ended
    return max(record.max_ts, record.watermark) if known else record.max_ts


def record_placement(
    manifest: Manifest,
    last: Manifest,
    placed: TaskPlacement | None,
    tally: LocalityStats,
    done: Sequence[TaskOutcome],
) -> None:
    """Records how many placement preferences were met since the beginning of this run."""
    manifest.placement = last.placement
    if placed is not None:
        record_locality(tally, done)
        manifest.placement = Preferences(
            placed.name,
            placed.machines,
            tally.wanted,
            tally.missed,
            tally.remote,
            tally.read,
            list(tally.executors),
            list(placed.lessons),
            placed.predicted,
            tally.blobs,
            [list(row) for row in placed.between],
        )


def tell_executors(
    manifest: Manifest, last: Manifest, executor: Executor, done: Sequence[TaskOutcome]
) -> None:
    """Records where stage tasks have run, since the beginning of this run on a cluster, and how
    blobs were transported to them.
    """
    manifest.executors, before = last.executors, last.transport or TransportStats()
    stages = {stage: list(counts) for stage, counts in before.stages.items()}
    for outcome in done:
        if outcome.transport:
            counts = stages.get(outcome.stage, [0] * 4)
            stages[outcome.stage] = [a + b for a, b in zip(counts, outcome.transport, strict=True)]
    missed, rest = missed_by(executor)
    manifest.transport = TransportStats(stages, before.repeated_jobs + missed, rest)
    if (homes := homes_of(executor)) is not None:
        homes.record_run((d.stage, d.partition, d.executor) for d in done if d.stage)
        manifest.executors = msgspec.structs.replace(homes.stats)


def count_sent(
    manifest: Manifest,
    last: Manifest,
    intention: EpochIntent,
    done: Sequence[TaskOutcome],
    root: str,
) -> None:
    """Adds the rows that tasks have sent to the send graph of the epoch's slice, and to its counts
    of groups.
    """
    manifest.slices, manifest.slice_counts = dict(last.slices), last.slice_counts
    manifest.group_count_files, manifest.pending_group_counts = (
        dict(last.group_count_files),
        last.pending_group_counts,
    )
    if intention.slices:
        latest = max((r.max_ts for r in manifest.streams.values()), default=MIN)
        at = slice_of(latest, intention.slicing.length)
        epoch = intention.epoch
        manifest.slices, manifest.slice_counts = send_graph.add_to_slices(
            root, epoch, last, at, done
        )
        manifest.group_count_files, manifest.pending_group_counts = (
            key_group_counters.add_to_slices(root, epoch, last, at, done)
        )


def auxiliary_files(manifest: Manifest) -> set[str]:
    """Returns the files that a manifest needs besides those of its partitions."""
    counts = {name for files in manifest.group_count_files.values() for name in files}
    graphs = {name for name in manifest.slices.values() if name}
    return {*counts, *graphs, *(name for name, _ in manifest.total_files)}


# Files that are not read, or not completely: broken files, files that arrived too late (their
# names precede one that is being read), files that were deleted before, and files that crash the
# process that reads them.
#
# The driver alone knows these files, so it writes the dead letters: one for each file, in a side
# file of its epoch. Input that crashes a process is found after the crash
# (``runtime.task.crash_probe``) and replaces the references in the epoch's intention
# (docs/decisions/0016-what-kills-is-set-aside.md).


REASON = "The file came when one with a later name was being read already: it is not read."
GONE = "The file was deleted, or replaced by another, before all of it was read."
DEADLY = "Reading it ended the process with {}: it is set aside."
Side = list[tuple[str, str, int]]


def without_crashing_input(
    intention: EpochIntent, context: EpochContext, parts: Sequence[StaticPart]
) -> EpochIntent:
    """Returns the intention without the references that crash a process. Raises ``SourceError`` for
    a part of static data that does: without it results would be wrong.
    """
    references = intention.references
    payloads = [
        *(Payload(references=[reference]) for reference in references),
        *(Payload(static=[part]) for part in parts),
    ]
    crashes = find_crashes(encode(context), [msgspec.json.encode(payload) for payload in payloads])
    for number in (k for k in crashes if k >= len(references)):
        file = load_setup(context.setup).static[parts[number - len(references)].file]
        raise SourceError(
            f"Reading the static file {file.name} ended the process with {crashes[number]}.",
            hint="Take it out, or write it in another format.",
        )
    if not crashes:
        return intention
    return msgspec.structs.replace(
        intention,
        references=[r for k, r in enumerate(references) if k not in crashes],
        crashing_splits=intention.crashing_splits
        + [(references[k], how) for k, how in crashes.items()],
    )


def check_alike(
    controls: Sequence[SourceReport], references: Sequence[AnyReference], plan: Plan
) -> None:
    """Raises ``LostTaskError`` if a task did not find a file that is here unchanged. Its host has
    another folder under the path, or does not see new files yet.
    """
    missed = [control for control in controls if control.mismatching_host]
    for control in missed:
        stream, partition_missed = (
            plan.streams[control.stream],
            [c for c in missed if _partition_key(c) == _partition_key(control)],
        )
        partition_references = [
            r for r in references if (r.stream, r.partition) == (stream, control.partition)
        ]
        here = [r for r in partition_references if isinstance(r, FileSplit) and _is_as_found(r)]
        if len(partition_references) - len(here) < len(partition_missed):
            raise LostTaskError(
                f"The executor on {control.mismatching_host} does not see {here[0].path} as the "
                "driver does.",
                hint=SHARED,
            )


def _partition_key(control: SourceReport) -> tuple[int, str]:
    return control.stream, control.partition


def _is_as_found(reference: FileSplit) -> bool:
    """Whether a reference can be read here."""
    try:
        text = reference.format != "parquet"
        stop = reference.stop if text else 0
        check_same(reference, read_range(reference.path, reference.start if text else 0, stop))
        return True
    except SourceError:
        return False


def letters_of(context: EpochContext, intention: EpochIntent) -> Side:
    """Writes the dead letters. Returns the side file for the manifest, if there is one."""
    letters = [
        {"stream": stream, "source": name, "offset": at, "reason": reason, "text": ""}
        for stream, name, at, reason in _unread(intention)
    ]
    if not letters:
        return []
    lines = "".join(json.dumps(letter, ensure_ascii=False) + "\n" for letter in letters)
    name = state_files.write_sealed(
        context.root, "side", f"{context.epoch}-overtaken", lines.encode()
    )
    return [("dead-letter", name, len(letters))]


def reasons_of(intention: EpochIntent, stream: str) -> list[str]:
    """Returns the files of a stream that are not read, with the reasons."""
    return [f"{name}: {reason}" for of, name, _, reason in _unread(intention) if of == stream]


def _unread(intention: EpochIntent) -> Iterator[tuple[str, str, int, str]]:
    for stream, names in intention.late_files.items():
        yield from ((stream, name, 0, REASON) for name in names)
    for stream, names in intention.deleted_files.items():
        yield from ((stream, name, 0, GONE) for name in names)
    for stream, reasons in intention.unreadable_files.items():
        yield from ((stream, name, 0, reason) for name, reason in reasons.items())
    for reference, how in intention.crashing_splits:
        yield reference.stream, reference.name, reference.start, DEADLY.format(how)


def ended_twice(plan: Plan, epoch: int, at: int, how: str) -> EngineError:
    """Describes an epoch that crashes every process that runs it, in a node (-1: none)."""
    where = f" in the operator {type(plan.nodes[at].step).__name__}" if at >= 0 else ""
    return EngineError(
        f"Epoch {epoch} ended the process twice, and a process apart{where}: {how}. Neither what "
        "it reads nor a query alone is to blame; nothing of it is published.",
        hint="Start without the query that is new: the others go on from there. Please report it.",
    )

"""Files that are not read, or not completely: broken files, files that arrived too late (their
names precede one that is being read), files that were deleted before, and files that crash the
process that reads them.

The driver alone knows these files, so it writes the dead letters: one for each file, in a side file
of its epoch. Input that crashes a process is found after the crash (``runtime.task.crash_probe``)
and replaces the references in the epoch's intention
(docs/decisions/0016-what-kills-is-set-aside.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import msgspec

from levada.checkpoint import state_files
from levada.checkpoint.epoch_context import EpochContext, SourceReport, encode, load_setup
from levada.checkpoint.manifest import EpochIntent
from levada.connectors.sources.fingerprint import check_same
from levada.connectors.sources.read_split import read_range
from levada.connectors.sources.splits import AnyReference, FileSplit
from levada.errors import SHARED, EngineError, LostTaskError, SourceError
from levada.plan.execution.plan import Plan
from levada.runtime.task.crash_probe import find_crashes
from levada.runtime.task.ingest_task import Payload
from levada.runtime.task.static_reader import StaticPart

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

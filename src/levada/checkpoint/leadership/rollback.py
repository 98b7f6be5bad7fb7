"""The return to the manifest before the last one, if the state of the last one is damaged
(docs/decisions/0050-state-that-moves.md).

Commits are one sequence, so a rollback is a commit: the manifest of epoch E - 1 takes the next
number. The intention of E, kept until the next one is done, becomes the open one again. The files
of its references must be unchanged (``FileSplit.sure``). So the next start repeats E and publishes
the same results, names and report times before it reads new input. An engine that crashes between
the two steps publishes E again, as after any crash. Older manifests are out of reach: their files
are deleted. Cost: reading the state and the input of E once.

If E has ended the streams, ``reopen`` opens them again: the state, the positions and the watermarks
of E - 1 get the number E, and nothing is repeated. The results of E stay published.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from levada.checkpoint import verify
from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.file_read_log import check as check_log
from levada.checkpoint.file_read_log import logs_of
from levada.checkpoint.leadership.commit_log import check_newest, newest
from levada.checkpoint.manifest import PUBLISHING, EpochIntent, Manifest, read_manifest
from levada.checkpoint.object_store.folder_mirror import kept_at
from levada.connectors.sources.fingerprint import check_same
from levada.connectors.sources.read_split import read_range
from levada.connectors.sources.splits import AnyReference, DerivedSplit, FileSplit
from levada.core.checkpoint_files import facts_of, file_mode
from levada.core.checksummed_files import read_sealed, seal
from levada.core.durable_files import delete, replace_file
from levada.errors import CheckpointError, DamagedError, LevadaError

DONE_INTENT, OPEN_INTENT, ROLLBACK_NOTICE = (
    "intentions/done",
    "intentions/open",
    "intentions/notice",
)


def rollback(root: Path, to: int | None, *, wall: int) -> int:
    """Makes the manifest before the last one the last; returns its epoch. ``to``: the expected
    epoch. Raises ``CheckpointError``, and then nothing has changed.
    """
    facts_of(root)
    checkpoint = Checkpoint(root, partitions=1, wall=wall, mends=True)
    try:
        last = checkpoint.last
        if last is None:
            raise CheckpointError(f"No epoch of the checkpoint {root} is committed.")
        before, intention = _read_previous(root, last)
        if to not in (None, before.epoch):
            raise CheckpointError(
                f"The checkpoint {root} can go back to epoch {before.epoch} alone, not to {to}.",
                hint="What older manifests name is deleted.",
            )
        _check(root, before, intention)
        sure = [_sure(r) if isinstance(r, FileSplit) else r for r in intention.references]
        again = msgspec.structs.replace(intention, references=sure)
        (root / ROLLBACK_NOTICE).touch(file_mode(root))  # nothing can be found out about it
        replace_file(root / OPEN_INTENT, seal(msgspec.json.encode(again)))
        delete(root / "manifests" / str(last.epoch))
        checkpoint.reign.commit(before)
        delete(root / DONE_INTENT)
        return before.epoch
    finally:
        checkpoint.close()


def reopen(root: Path, *, wall: int) -> bool:
    """Opens the streams again that the last epoch has ended. Returns whether it could: the streams
    have ended, and no file of the last two manifests is damaged.
    """
    facts = facts_of(root)
    checkpoint = Checkpoint(root, partitions=1, wall=wall, mends=True)
    try:
        last = checkpoint.last
        if last is None or not last.has_ended:
            return False
        with suppress(CheckpointError):
            before = _read_manifest_before(root, last)
            for manifest in (before, last):
                for item in verify.named_files(root, facts, manifest):
                    if item.kind not in ("letters", "results"):  # these are published
                        verify.check(root, item)
            delete(root / "manifests" / str(last.epoch))
            checkpoint.reign.commit(
                msgspec.structs.replace(
                    before, epoch=last.epoch, results_to_publish=last.results_to_publish,
                    waiting_results=last.waiting_results, results=last.results,
                )
            )  # fmt: skip
            delete(root / DONE_INTENT)
            return True
        return False
    finally:
        checkpoint.close()


def rollback_hint(root: Path) -> str:
    """Returns a hint for a damaged file of the last manifest; "" if the previous manifest is
    damaged too, or the intention since is unknown.
    """
    with suppress(LevadaError, OSError, ValueError):
        if there := kept_at(root):
            return f"Start again with --checkpoint {there}: it is brought from there anew."
        newest_commit = newest(root)  # a rollback is a commit after it
        check_newest(root, 0 if newest_commit is None else newest_commit[1].epoch)
        last = max(int(p.name) for p in (root / "manifests").iterdir() if p.name.isdigit())
        before, intention = _read_previous(root, read_manifest(root / "manifests" / str(last)))
        _check(root, before, intention)
        return (
            f"The manifest before, of epoch {before.epoch}, is whole: "
            f"`levada rollback {shlex.quote(str(root))}` goes back to it."
        )
    return ""


def with_rollback_hint(root: Path, error: DamagedError) -> DamagedError:
    """Returns the error, with a hint if a rollback is possible."""
    hint = rollback_hint(root)
    return DamagedError(error.message, hint=hint) if hint else error


def _read_previous(root: Path, last: Manifest) -> tuple[Manifest, EpochIntent]:
    """Returns the manifest before the last one, and the intention since."""
    before = _read_manifest_before(root, last)
    beside = (f"intentions/{path.name}" for path in (root / OPEN_INTENT).parent.glob(PUBLISHING))
    for name in (OPEN_INTENT, DONE_INTENT, *beside):
        with suppress(CheckpointError, msgspec.MsgspecError):
            intention = msgspec.json.decode(read_sealed(root / name), type=EpochIntent)
            if intention.epoch == last.epoch:
                return before, _as_read(intention, last)
    raise CheckpointError(
        f"The checkpoint {root} cannot go back to epoch {before.epoch}: it is not kept what epoch "
        f"{last.epoch} has read."
    )


def _read_manifest_before(root: Path, last: Manifest) -> Manifest:
    try:
        return read_manifest(root / "manifests" / str(last.epoch - 1))
    except CheckpointError as error:
        raise CheckpointError(
            f"The checkpoint {root} has no whole manifest before that of epoch {last.epoch}: "
            "there is nothing to go back to."
        ) from error


def _as_read(intention: EpochIntent, last: Manifest) -> EpochIntent:
    """Returns an intention with the hashes of the data that tasks have read of its references."""
    read = {
        (stream, m.name, m.start): m.digest
        for stream, measured in last.measured_splits.items()
        for m in measured
    }
    references = list[AnyReference]()
    for r in intention.references:
        if isinstance(r, FileSplit) and (digest := read.get((r.stream, r.name, r.start))):
            r = msgspec.structs.replace(r, pieces=((r.start, r.stop, digest),))
        references.append(r)
    return msgspec.structs.replace(intention, references=references)


def _check(root: Path, before: Manifest, intention: EpochIntent) -> None:
    """Raises ``CheckpointError`` unless the epoch can be repeated."""
    facts = facts_of(root)
    items = dict.fromkeys(
        [*verify.named_files(root, facts, before), *verify.intention_files(root, facts, intention)]
    )
    marks = logs_of(before.positions) | logs_of(intention.positions)
    try:
        for item in items:
            if item.kind == "positions":
                check_log(root / item.name, (root / item.name).read_bytes(), marks[item.name])
            elif item.kind not in ("letters", "results"):  # these are published
                verify.check(root, item)
        verify.pieces_are_there(root, before)
        for name in _read_again(before, intention):
            verify.check(root, verify.Item("results", name))
        for reference in intention.references:
            _check_reference(reference)
    except (LevadaError, OSError) as error:
        said = error.message if isinstance(error, LevadaError) else str(error)
        raise CheckpointError(
            f"The checkpoint {root} cannot go back to epoch {before.epoch}: {said}"
        ) from error


def _read_again(before: Manifest, intention: EpochIntent) -> Iterator[str]:
    """Yields results that are not published yet, or that queries have produced for others."""
    for held in before.waiting_results:
        yield from held.segments
    for reference in intention.references:
        if isinstance(reference, DerivedSplit):
            yield from reference.segments


def _check_reference(reference: AnyReference) -> None:
    """Raises ``SourceError`` if the read part of a file has changed; does not ask brokers."""
    if isinstance(reference, FileSplit):
        text = reference.format != "parquet"
        stop = reference.stop if text else 0
        check_same(
            _sure(reference), read_range(reference.path, reference.start if text else 0, stop)
        )


def _sure(reference: FileSplit) -> FileSplit:
    return msgspec.structs.replace(reference, sure=True)

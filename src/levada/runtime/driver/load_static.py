"""The load of an epoch's static data: from imprints if they exist, else from files, of which
imprints are made. Large files are read by many tasks, in a job of its own before that of the epoch.

    pieces --gather_rows--> rows, by the hash of the row --settle_rows--> a file a partition,
    in which each row is once

A static graph is a set, and a replacement is a difference of sets. Both need equal rows in one
place. The exchange of the epoch, by the keys of joins, does not guarantee that. The files live as
long as the epoch. The intake reads them like rows that it made itself. Small files are read in one
task of the epoch (``runtime/task/ingest_task``). Cost: each row is written and read once more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.epoch_context import EpochContext, TaskOutcome, encode, load_setup
from levada.checkpoint.state_files import map_
from levada.checkpoint.verify import check_copy
from levada.connectors.ingest.static_file_stamps import read_stamp
from levada.connectors.ingest.static_files import StaticFile
from levada.connectors.ingest.static_load_report import Loaded, merge_loads
from levada.core.size_thresholds import register
from levada.errors import SourceError
from levada.plan.execution.plan import Plan
from levada.runtime.executor import Executor, Job
from levada.runtime.task.ingest_task import Payload
from levada.runtime.task.static_reader import MARK, Source, StaticPart, key_of, sources_in
from levada.runtime.task.static_rows import Pieces, parts, readings, to_read

# The index of the imprints of static data: the existing ones, and the part of each to read
# (docs/decisions/0101-static-files-once.md).
#
# A manifest names the files of imprints. So an imprint counts from the commit of the epoch that
# made it, goes back with ``levada rollback``, and is swept like any file. The file itself contains
# the key of its source. An imprint represents its source as long as the source is unchanged: a copy
# in the checkpoint, whose name depends on its content, or another file with the same size and time.
# A deleted source counts as unchanged. If a source was read again, the newest imprint counts.


Key = tuple[str, str, str]


class Imprints:
    """The imprints of a checkpoint, by the file names in its last manifest."""

    def __init__(self, root: Path, named: Iterable[str]) -> None:
        self._root = root
        self.names = frozenset(name for name in named if f"-{MARK}-" in name)
        self._known: dict[str, list[Source]] = {}
        self._of: dict[Key, list[tuple[str, int, Source]]] | None = None

    def find(self, file: StaticFile) -> Pieces | None:
        """Returns the imprint of a file; None: the file has no imprint of its present content."""
        imprints = self._index().get(key_of(file), [])
        if not imprints or not _is_as_read(file, imprints[0][2].seen):
            return None
        return Pieces(tuple((name, number, source.size) for name, number, source in imprints))

    def needed_files(self, new: Sequence[str], files: Collection[StaticFile]) -> Imprints:
        """Returns the present imprints with ``new`` ones. Omits files whose imprints are all older
        than others, or of sources that are not in ``files``.
        """
        after = Imprints(self._root, [*self.names, *new])
        after._known = dict(self._known)
        index, keys = after._index(), {key_of(file) for file in files}
        names_in_use = {name for key in keys for name, _, _ in index.get(key, [])}
        if names_in_use != after.names:
            after.names, after._of = frozenset(names_in_use), None
        return after

    def _index(self) -> dict[Key, list[tuple[str, int, Source]]]:
        """Returns the newest imprint of each source, part by part."""
        if self._of is None:
            index: dict[Key, list[tuple[str, int, Source]]] = {}
            for name in sorted(self.names, key=lambda name: (_epoch(name), name)):
                for number, source in enumerate(self._sources(name)):
                    newest = index.setdefault(source.key, [])
                    if newest and _epoch(newest[0][0]) < _epoch(name):
                        newest.clear()
                    newest.append((name, number, source))
            self._of = index
        return self._of

    def _sources(self, name: str) -> list[Source]:
        if name not in self._known:
            self._known[name] = sources_in(map_(str(self._root), name)[1])
        return self._known[name]


def _epoch(name: str) -> int:
    return int(name.rpartition("/")[2].split("-", 1)[0])


def _is_as_read(file: StaticFile, stamp: tuple[int, int]) -> bool:
    if file.replaceable:
        return True
    try:
        return read_stamp(file) == stamp
    except SourceError:
        return True


# bytes from which on files are read by a separate job
LARGE_FILE_BYTES = register(f"{__name__}.LARGE_FILE_BYTES", 48 << 20)
PIECE = register(f"{__name__}.PIECE", 32 << 20)
FUNCTIONS = (
    "levada.runtime.task.static_rows:gather_rows",
    "levada.runtime.task.static_rows:settle_rows",
)
_OUTCOMES = msgspec.json.Decoder(tuple[str, Loaded])


class StaticLoads:
    """Loads static data for the epochs of a checkpoint."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self.imprints = Imprints(checkpoint.root, checkpoint.names.named_files)
        self._ahead = self.imprints
        self._rows, self._loaded = list[str](), list[Loaded]()
        self._of: tuple[str, str] = ("", "")  # the setups with known needs

    def payloads(
        self, context: EpochContext, plan: Plan, executor: Executor, *, last: bool
    ) -> list[Payload]:
        """Returns the payloads for constants and static data: in one task, or read by a job of its
        own if the data are large. ``last``: no epoch follows, so imprints are not made.
        """
        self.forget_rows()
        find, press = self.imprints.find, not last
        pieces, size = to_read(context, plan, find, press=press)
        check_copies(context, plan, pieces)
        if size < LARGE_FILE_BYTES:
            return [Payload(constants=True, static=pieces)]
        every = parts(context, plan, PIECE, find, press=press)
        gathered = gather(context, every, size, executor)
        self._rows, self._loaded = (
            [name for name, _ in gathered],
            [loaded for _, loaded in gathered],
        )
        return [Payload(constants=True), *(Payload(gathered=name) for name in self._rows)]

    def list_file_parts(self, context: EpochContext, plan: Plan) -> list[StaticPart]:
        """Returns the parts of files that an epoch reads, to be examined one by one."""
        pieces = parts(context, plan, PIECE, self.imprints.find, press=False)
        return [part for part in pieces if not part.before and not part.imprint]

    def record_load(
        self, context: EpochContext, done: Iterable[TaskOutcome], before: Loaded | None
    ) -> Loaded | None:
        """Returns the static data that an epoch has read, for its manifest, or those read
        ``before``. Sets the imprints that are needed afterwards (``needed_files``); they count
        after ``commit``.
        """
        loaded = merge_loads(
            [*self._loaded, *(d.static_load for d in done if d.static_load is not None)]
        )
        setups = context.setup, context.replacement.previous_setup if context.replacement else ""
        self._ahead = self.imprints
        if loaded.new_imprints or setups != self._of:
            self._ahead = self.imprints.needed_files(loaded.new_imprints, _files(context.setup))
        self._of = setups
        return loaded if loaded.epoch else before

    @property
    def needed_files(self) -> frozenset[str]:
        """The files of imprints that are needed after the last recorded epoch."""
        return self._ahead.names

    def commit(self) -> None:
        """Notes that the last recorded epoch is committed."""
        self.imprints = self._ahead

    def forget_rows(self) -> None:
        """Deletes the rows that were gathered for an epoch."""
        self._checkpoint.unlink(self._rows)
        self._rows, self._loaded = [], []


def _files(setup: str) -> Sequence[StaticFile]:
    return load_setup(setup).static


def check_copies(context: EpochContext, plan: Plan, parts: Sequence[StaticPart]) -> None:
    """Checks the copies in the checkpoint of the parts that an epoch reads. Raises
    ``CheckpointError``.
    """
    of = {reading.sign < 0: reading.files for reading in readings(context, plan)}
    files = {of[part.before][part.file] for part in parts if not part.imprint}
    for path in sorted({f.path for f in files if f.replaceable}):
        check_copy(Path(path))


def gather(
    context: EpochContext, every: Sequence[StaticPart], size: int, executor: Executor
) -> list[tuple[str, Loaded]]:
    """Returns the files with the static rows of an epoch that reads these parts (``size`` bytes),
    and the report of what was read.
    """
    tasks = np.array_split(np.arange(len(every)), min(len(every), -(-2 * size // PIECE)))
    payloads = [msgspec.json.encode([every[i] for i in task.tolist()]) for task in tasks]
    outcomes = executor.run(Job(encode(context), payloads, 1, context.partitions, FUNCTIONS))
    return [_OUTCOMES.decode(outcome) for outcome in outcomes]

"""The index of the imprints of static data: the existing ones, and the part of each to read
(docs/decisions/0101-static-files-once.md).

A manifest names the files of imprints. So an imprint counts from the commit of the epoch that made
it, goes back with ``levada rollback``, and is swept like any file. The file itself contains the key
of its source. An imprint represents its source as long as the source is unchanged: a copy in the
checkpoint, whose name depends on its content, or another file with the same size and time. A
deleted source counts as unchanged. If a source was read again, the newest imprint counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from levada.checkpoint.state_files import map_
from levada.connectors.ingest.static_file_stamps import read_stamp
from levada.connectors.ingest.static_files import StaticFile
from levada.errors import SourceError
from levada.runtime.task.static_reader import MARK, Source, key_of, sources_in
from levada.runtime.task.static_rows import Pieces

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
        kept = {name for key in keys for name, _, _ in index.get(key, [])}
        if kept != after.names:
            after.names, after._of = frozenset(kept), None
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


def _is_as_read(file: StaticFile, seen: tuple[int, int]) -> bool:
    if file.replaceable:
        return True
    try:
        return read_stamp(file) == seen
    except SourceError:
        return True

"""A stream of files, seen from the driver: what is there, and which references come next.

    discover  -> which files there are and how long they are (the only method that looks at the
                 directory)
    take      -> the next references from a position, and the position behind them
    freeze    -> what is there now is all there will be (``--once``)

``take`` is a function of the position and of what was discovered: the caller writes the new
position ahead and a replay gives the same references. A position is JSON; ``{}`` is the beginning.
Its keys:

    file, at   files=sequence: the file and the offset in it up to which the stream is read
    files      files=parallel: the same for each file
    rows       with a mapping only: records of each file given out (files=sequence: of the current
               one)
    after      files=parallel: the file after which the next round begins
    taken      elements given out so far, well-formed or not (those within a document: guessed by
               its size)
    passed     with a limit that only tasks can count up to (``counted_late``: from or to is set, or
               elements are parts of documents): elements that passed. One reference is given at a
               time with ``limit_left`` on it, and the CALLER adds what the task counted before it
               takes again. Otherwise ``limit`` counts ``taken``.
    broken     files of which it has been told that they cannot be read (the CALLER adds them when
               an epoch tells)

A file is finished when a later name exists or the source is frozen. The files of a directory are
one sequence in the order of their names (a name that comes up before one that is being read comes
too late: ``overtaken``, until it is told), or a partition each. A file of a folder that cannot be
read (damaged, without the columns) is passed over, and is in ``broken`` until it is told; the first
of all, before anything was read, raises what is wrong, as a single file does: it is a wrong use.
Cost: a look at the directory a discovery (``sources/listing``) and a ``stat`` of each file that may
grow; an ``open`` and one pass over the bytes at several GB a second a take.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from levada.errors import CheckpointError, FileFault, SourceError
from levada.sources.listing import Listing, is_glob
from levada.sources.pieces import WINDOW, Cutter, Piece, SourceFile
from levada.sources.reference import Reference, document_id
from levada.streams.stream_config import StreamConfig

Position = dict[str, Any]
_Taken = tuple[SourceFile, Piece]


class FileSource:
    """The files of one stream. ``scratch`` is a folder for unpacked copies; it may be removed when
    the stream ended.
    """

    def __init__(self, config: StreamConfig, scratch: Path) -> None:
        self.config = config
        self.frozen = False
        self.overtaken: list[str] = []
        self.broken: dict[str, str] = {}
        self._told: set[str] = set()
        self._begun = False
        self._cutter = Cutter(config, scratch)
        self._files: dict[str, SourceFile] = {}
        self._names: list[str] = []
        self._growing: set[str] = set()  # files that are not finished
        self._listing = Listing(config.name, config.path)
        self._frontier = ""
        self._peeked: dict[str, tuple[tuple[int, bool], bool]] = {}

    def discover(self, final: bool = False, position: Position | None = None) -> None:
        """Looks what is there; ``final`` freezes it. Raises ``SourceError`` for a missing path.

        ``position``: how far the stream has been read, before which a new file comes too late.
        """
        if self.frozen:
            return
        self._frontier = max(self._frontier, (position or {}).get("file", ""))
        first = not self._names
        new, gone = self._listing.look()
        for name in gone:
            self._drop(name)
        if gone:
            self._names = [name for name in self._names if name in self._files]
        paths = {entry.name: entry.path for entry in new}
        last = max([*self._names[-1:], *paths], default="")
        for name in sorted(self._growing | paths.keys()):
            self._look_at(
                name, paths[name] if name in paths else self._files[name].path, later=name < last
            )
        if final and not self._files and is_glob(self.config.path):
            raise SourceError(
                f"The stream {self.config.name} has no data: no file matches {self.config.path}."
            )
        if new or len(self._names) != len(self._files):
            self._names = sorted(self._files)
        if not first:
            self.overtaken += [
                name for name in paths if name < self._frontier and name in self._files
            ]
        if final:
            self.freeze()

    def freeze(self) -> None:
        """Fixes the files and sizes as found: each file is finished, later growth is not read."""
        self.frozen = True
        for file in self._files.values():
            file.finished = True

    def take(self, position: Position, rows: int) -> tuple[list[Reference], Position]:
        """The references of the next elements, at most ``rows``, and the position behind them."""
        assert rows > 0, "an epoch takes at least one element"
        self._frontier = max(self._frontier, position.get("file", ""))
        self._remember(position)
        rows = self._allowed(position, rows)
        if rows <= 0:
            return [], position
        one = self.config.counted_late
        sequence = self.config.files == "sequence"
        taken, moved = (
            self._take_sequence(position, rows, one)
            if sequence
            else self._take_parallel(position, rows)
        )
        if not taken:
            return [], position
        counted = position.get("taken", 0) + sum(piece.elements for _, piece in taken)
        numbers = self._rows(taken, position) if self.config.mapping is not None else {}
        return self._references(taken, position), {**moved, **numbers, "taken": counted}

    def backlog(self, position: Position) -> bool:
        """Whether a take would give anything."""
        return bool(self.take(position, 1)[0])

    def ended(self, position: Position) -> bool:
        """Whether everything is read and nothing more will come."""
        return self.frozen and not self.backlog(position)

    def known(self, position: Position) -> dict[str, bool]:
        """The partitions that have held data, and whether each has unread data.

        One that was never read although it has data holds the watermark back at minus infinity.
        """
        if self.config.files == "sequence":
            unread = self.backlog(position)
            return {self.config.name: unread} if unread or "file" in position else {}
        self._remember(position)
        read = position.get("files", {})
        partitions = dict.fromkeys(read, False)
        for name, file in self._files.items():
            if self._has_unread(file, read.get(name, 0)):
                partitions[name] = True
        return partitions

    def finished(self, partition: str) -> bool:
        """Whether a partition gets nothing more than is there: it then holds no watermark back."""
        if self.config.files == "sequence":
            return self.frozen
        file = self._files.get(partition)
        return file is None or file.finished

    def check_grown(self, position: Position) -> None:
        """Raises ``CheckpointError`` if there is data behind where the stream once ended."""
        self.discover(final=True)
        if self.backlog(position):
            where = position.get("file", self.config.path)
            message = (
                f"The stream {self.config.name} has grown behind {where} since "
                "the run on this checkpoint ended."
            )
            if not position:
                message = (
                    "The run on this checkpoint has ended, "
                    f"and has read nothing of the stream {self.config.name}."
                )
            raise CheckpointError(
                message, hint="Use a new checkpoint, or run with --keep-open from the beginning."
            )

    # -- discovery --

    def _look_at(self, name: str, path: str, *, later: bool) -> None:
        """The file as it is now, new or maybe grown; a finished one is not looked at again."""
        try:
            size = os.stat(path).st_size
        except FileNotFoundError:  # it has just vanished
            self._drop(name)
            self._listing.forget(name)
            return
        closed = self.config.files == "sequence" or self.config.whole_files
        finished = self.config.settled or (later and closed)
        file = self._files.setdefault(name, SourceFile(name, path, size, finished))
        file.size, file.finished = size, finished
        (self._growing.discard if finished else self._growing.add)(name)

    def _drop(self, name: str) -> None:
        self._files.pop(name, None)
        self._growing.discard(name)

    # -- taking --

    def _allowed(self, position: Position, rows: int) -> int:
        """``rows``, or what the limit leaves of them; what only tasks count is for them to cut."""
        if self.config.limit is None:
            return rows
        late = self.config.counted_late
        left = self.config.limit - int(position.get("passed" if late else "taken", 0))
        return min(rows, left) if left <= 0 or not late else rows

    def _drain(self, file: SourceFile, at: int, rows: int, one: bool = False) -> Iterator[Piece]:
        """The pieces of a file from ``at`` on, until ``rows`` elements are there (or one piece is,
        or no more data).
        """
        while rows > 0 and (piece := self._next(file, at, rows)) is not None:
            if piece.elements:
                yield piece
                if one:
                    return
            at = piece.stop
            rows -= piece.elements

    def _next(self, file: SourceFile, at: int, rows: int) -> Piece | None:
        try:
            return self._cutter.next(file, at, rows)
        except FileFault as fault:
            self._pass_over(file, fault)
            return None

    def _size(self, file: SourceFile) -> int:
        try:
            return self._cutter.content(file)[1]
        except FileFault as fault:
            self._pass_over(file, fault)
            return 0

    def _pass_over(self, file: SourceFile, fault: FileFault) -> None:
        """A broken file holds nothing, and is told of once; the first one raises."""
        single = not (os.path.isdir(self.config.path) or is_glob(self.config.path))
        if single or (file.name == self._names[0] and not self._begun):
            raise fault
        file.fault = str(fault)
        if file.name not in self._told:
            self.broken[file.name] = file.fault

    def _remember(self, position: Position) -> None:
        """What a position says of the runs before this one."""
        self._begun = self._begun or "file" in position or "files" in position
        self._told.update(position.get("broken", ()))
        for name in self._told & self.broken.keys():
            del self.broken[name]

    def _take_sequence(
        self, position: Position, rows: int, one: bool
    ) -> tuple[list[_Taken], Position]:
        taken: list[_Taken] = []
        current = position.get("file", "")
        for name in self._names[bisect_left(self._names, current) :]:
            file = self._files[name]
            at = position.get("at", 0) if name == current else 0
            for piece in self._drain(file, at, rows, one):
                taken.append((file, piece))
                rows -= piece.elements
            if rows <= 0 or not file.finished or (one and taken):
                break
        if not taken:
            return [], position
        file, piece = taken[-1]
        return taken, {**position, "file": file.name, "at": piece.stop}

    def _take_parallel(self, position: Position, rows: int) -> tuple[list[_Taken], Position]:
        """Shares ``rows`` among the files with data, in rounds, from that after the last served."""
        ats: dict[str, int] = dict(position.get("files", {}))
        first = bisect_left(self._names, position.get("after", "") + "\0")
        active = [self._files[name] for name in self._names[first:] + self._names[:first]]
        active = [file for file in active if self._size(file) != ats.get(file.name, 0)]
        taken: list[_Taken] = []
        while active and rows > 0:
            share = max(rows // len(active), 1)
            lively = []
            for file in active:
                wanted = min(share, rows)
                got = 0
                for piece in self._drain(file, ats.get(file.name, 0), wanted):
                    taken.append((file, piece))
                    ats[file.name] = piece.stop
                    got += piece.elements
                rows -= got
                if got == wanted:
                    lively.append(file)
                if rows <= 0:
                    break
            active = lively
        after = taken[-1][0].name if taken else ""
        return taken, {**position, "files": ats, "after": after}

    def _has_unread(self, file: SourceFile, at: int) -> bool:
        """Whether a whole element lies behind ``at``; what was found at the beginning of a file is
        kept in mind.
        """
        if self._size(file) == at:
            return False
        seen = self._peeked.get(file.name)
        if at == 0 and seen is not None and seen[0] == file.state:
            return seen[1]
        unread = next(self._drain(file, at, 1), None) is not None
        if at == 0:
            self._peeked[file.name] = (file.state, unread)
        return unread

    def _rows(self, taken: list[_Taken], position: Position) -> Position:
        """How many records of each file are given out; of a sequence, of the one being read."""
        rows: dict[str, int] = dict(position.get("rows", {}))
        for file, piece in taken:
            rows[file.name] = rows.get(file.name, 0) + piece.elements
        last = taken[-1][0].name
        return {"rows": rows if self.config.files == "parallel" else {last: rows[last]}}

    def _references(self, taken: list[_Taken], position: Position) -> list[Reference]:
        config = self.config
        left = (
            config.limit - int(position.get("passed", 0))
            if config.counted_late and config.limit is not None
            else None
        )
        counts: dict[str, int] = {}
        rows: dict[str, int] = dict(position.get("rows", {}))
        references = []
        for file, piece in _merge(taken, by_bytes=config.format != "parquet"):
            partition = config.name if config.files == "sequence" else file.name
            index = counts[partition] = counts.get(partition, -1) + 1
            references.append(
                Reference(
                    stream=config.name,
                    partition=partition,
                    name=file.name,
                    # a task may stand in another directory
                    path=os.path.abspath(self._cutter.content(file)[0]),
                    format=self._cutter.format(file),
                    start=piece.start,
                    stop=piece.stop,
                    index=index,
                    document=document_id(config.name, file.name),
                    elements=piece.elements,
                    limit_left=left,
                    row=rows.get(file.name, 0),
                    base=Path(file.path).absolute().as_uri() if config.documents else "",
                )
            )
            rows[file.name] = rows.get(file.name, 0) + piece.elements
        return references


def _merge(taken: list[_Taken], *, by_bytes: bool) -> list[_Taken]:
    """Neighbouring small pieces of a file as one, each file's in order and the files in order of
    first appearance.
    """
    by_file: dict[str, list[_Taken]] = {}
    for file, piece in taken:
        pieces = by_file.setdefault(file.name, [])
        if pieces and by_bytes and piece.stop - pieces[-1][1].start <= WINDOW:
            first = pieces[-1][1]
            pieces[-1] = (file, Piece(first.start, piece.stop, first.elements + piece.elements))
        else:
            pieces.append((file, piece))
    return [entry for pieces in by_file.values() for entry in pieces]

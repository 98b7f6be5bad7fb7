"""Enumerates the splits of a stream of files, for the driver.

    discover  -> which files there are and how long they are (the only method that looks at the
                 directory)
    take      -> the next references from a position, and the position behind them
    freeze    -> what is there now is all there will be (``--once``)

``take`` is a function of the position and of the discovered files: the caller writes the new
position ahead, and a replay returns the same references. A position is JSON; ``{}`` is the
beginning. Its keys:

    file, at   files=sequence: the file and the offset in it up to which the stream is read
    files      files=parallel: the same for each file
    numbered   with a mapping that numbers rows only: the next number that no record has
    rows       files=parallel, with such a mapping: the number of each file's next record
    after      files=parallel: the file after which the next round begins
    taken      elements given out so far, well-formed or not (those within a document: guessed by
               its size)
    each       the bytes of an element, as the last elements had them that tasks have counted
    passed     with a limit that only tasks can count up to (``counted_late``: from or to is set, or
               elements are parts of documents): elements that passed. One reference is given at a
               time with ``limit_left`` on it, and the CALLER adds what the task counted before it
               takes again. Otherwise ``limit`` counts ``taken``.
    fingerprints
               which file it was that is read so far (``Fingerprints``), as
               ``files``
    lives      how often a file was replaced by another of its name, where it was
    replaced   how often that was in all
    broken     files of which it has been told that they cannot be read (the CALLER adds them when
               an epoch tells)

If a file has the name of a read one but another fingerprint, it is read from its beginning. A file
that was deleted before it was read is in ``gone``, until it is reported.

A file is finished when a later name exists or the source is frozen. The files of a directory are
one sequence in the order of their names, or a partition each. In a sequence, a new name before the
one that is being read is too late: it is in ``overtaken``, until it is reported. A file of a folder
that cannot be read (damaged, without the columns, with a name that is not UTF-8) is skipped, and is
in ``broken`` until it is reported. The very first file, before anything was read, raises its error
like a single file does: this is a usage error. Cost: a look at the directory a discovery
(``file_listing``) and a ``stat`` of each file that may grow. A take reads its elements or, if they
are many (and ``element_boundaries.cuts_by_size``), some kilobytes for each 4 MB.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import TypeVar

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.decompression import is_packed
from levada.connectors.sources.file_errors import shown
from levada.connectors.sources.file_listing import ListedFile, Listing, is_glob
from levada.connectors.sources.file_splitter import (
    FileRange,
    FileSplitter,
    Position,
    SourceFile,
    Taken,
    number_records,
    references_of,
)
from levada.connectors.sources.fingerprint import Fingerprint, open_descriptor
from levada.connectors.sources.regular_files import is_foreign_link
from levada.connectors.sources.splits import FileSplit, Measured
from levada.connectors.sources.spooled_files import is_next
from levada.connectors.sources.unread_input import ArrivalTimes, Unread
from levada.errors import FileFault, MissingError, SourceError

_T = TypeVar("_T")


class FileSource:
    """The files of one stream. ``scratch`` is a folder for unpacked copies; it may be removed when
    the stream has ended.
    """

    def __init__(self, config: StreamConfig, scratch: Path) -> None:
        if shown(config.path) != config.path:
            message = f"The path {shown(config.path)} of the stream {config.name} is not UTF-8."
            raise SourceError(message, hint="Rename it.")
        self.config = config
        self.frozen = False
        self.overtaken: list[str] = []
        self.gone: list[str] = []
        self.broken: dict[str, str] = {}
        self.away = ""
        self._reported_files: set[str] = set()
        self._begun = False
        self._cutter = FileSplitter(config, scratch)
        self._prints = Fingerprints(self._cutter)
        self._files: dict[str, SourceFile] = {}
        self._names: list[str] = []
        self._growing: set[str] = set()  # unfinished files
        self._listing = Listing(config.name, config.path)
        self._single = not (os.path.isdir(config.path) or is_glob(config.path))
        self._frontier = ""
        self._position: Position = {}
        self._last_references: list[FileSplit] = []
        self._arrivals, self._each = ArrivalTimes(), 0.0  # bytes of an element
        self._peeked: dict[str, tuple[tuple[int, int, bool], bool]] = {}
        self._backlog: tuple[Position, bool] | None = None  # at a position, for the present files

    def discover(self, final: bool = False, position: Position | None = None) -> None:
        """Looks for files; ``final`` freezes them. Raises ``SourceError`` for a missing path.

        ``position``: how far the stream has been read; a new file before it is too late.
        """
        self._backlog = None
        if self.frozen:
            return
        self._position = position or {}
        self._frontier = max(self._frontier, self._position.get("file", ""))
        first = not self._names
        new, gone = self._listing.look()
        self._miss(gone)
        if gone:
            self._names = [name for name in self._names if name in self._files]
        paths = {entry.name: entry.path for entry in new if self._is_readable(entry)}
        last = max([*self._names[-1:], *paths], default="")
        for name in sorted(self._growing | paths.keys()):
            self._look_at(
                name, paths[name] if name in paths else self._files[name].path, later=name < last
            )
        if final and not self._files and is_glob(self.config.path):
            raise MissingError(
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
        self.frozen, self._backlog = True, None
        for file in self._files.values():
            file.finished = True

    def take(self, position: Position, rows: int) -> tuple[list[FileSplit], Position]:
        """Returns the references of the next elements, at most ``rows``, and the position after
        them.
        """
        old = position
        taken, position, moved = self._take(position, rows)
        if not taken:
            return [], old
        prints = self._prints.make(taken, position)
        after = {**moved, **self._prints.after_take(prints, position)}
        after["taken"] = position.get("taken", 0) + sum(piece.elements for _, piece in taken)
        after |= number_records(taken, position, self.config)[1]
        self._last_references = references_of(taken, position, self._cutter, prints)
        return self._last_references, after

    def complete(
        self, position: Position, references: Sequence[FileSplit], measured: Sequence[Measured]
    ) -> None:
        """Adds the measurements of tasks to the position after these references."""
        looked = self._backlog is not None and self._backlog[0] == position
        prints: dict[str, str] = position.get("fingerprints", {})
        for name, text in prints.items():
            file_references = [r for r in references if r.name == name]
            blocks_at = {m.start: m.blocks for m in measured if m.name == name}
            digests = "".join(blocks_at.get(r.start, "") for r in file_references)
            prints[name] = self._prints.complete(name, text, file_references, digests)
        guessed = [r for r in references if not r.counted]
        if guessed:
            elements = sum(m.elements for m in measured)
            position["taken"] += elements - sum(r.elements for r in guessed)
            position["each"] = round(sum(r.size for r in guessed) / max(elements, 1), 3)
        if looked and self._backlog is not None and self.config.limit is None:
            self._backlog = dict(position), self._backlog[1]  # what is measured is read

    def start_position(self, position: Position) -> Position:
        """Returns the position unchanged: files are read from their beginnings."""
        return position

    def read(self, position: Position) -> Collection[str]:
        """Returns the partitions that have been read from: the files of a stream with a partition
        for each.
        """
        files: dict[str, int] = position.get("files", {})
        return files

    def backlog(self, position: Position) -> bool:
        """Whether a take would return anything; files are read once for each position."""
        if self._backlog is None or self._backlog[0] != position:
            self._backlog = dict(position), bool(self._take(position, 1)[0])
        return self._backlog[1]

    def is_ended(self, position: Position) -> bool:
        """Whether everything is read and nothing follows."""
        return self.frozen and not self.backlog(position)

    def partition_states(self, position: Position) -> dict[str, bool]:
        """Returns the partitions that have contained data, and whether each has unread data.

        A partition with data that was never read holds the watermark back at minus infinity.
        """
        if self.config.files == "sequence":
            unread = self.backlog(position)
            return {self.config.name: unread} if unread or "file" in position else {}
        self._remember(position)
        position = self._prints.current(position, self._files)
        read = position.get("files", {})
        partitions = dict.fromkeys(read, False)
        for name, file in list(self._files.items()):
            if not self._prints.is_whole(file, position) and self._has_unread(
                file, read.get(name, 0)
            ):
                partitions[name] = True
        return partitions

    def forget(self, position: Position) -> None:
        """Deletes unpacked copies that are read completely, after the commit of an epoch that ended
        at ``position``.
        """
        self._position = position
        for name in self._cutter.unpacked_names():
            file = self._files.get(name)
            passed = name < position.get("file", "") and self.config.files == "sequence"
            read = file is None or passed or self._prints.is_whole(file, position)
            self._cutter.clear(None if read else file, name)

    def copies(self) -> set[str]:
        """Returns the unpacked copies that may still be read."""
        return self._cutter.copies()

    def unread(self, now: int) -> Unread:
        """Returns the unread bytes of all files after the last committed position, and the elements
        that they are, by the mean size of those that were read. Costs a microsecond for each file
        of the rest.
        """
        position, names, files = self._position, self._names, self._files
        begun, read = position.get("file", ""), position.get("files", {})
        is_sequence = self.config.files == "sequence"
        rest = names[bisect_left(names, begun) :] if is_sequence else names
        parts = [
            (file, self._cutter.unread_size(file, at))
            for name in rest
            if (file := files.get(name)) is not None and not file.fault
            for at in [position.get("at", 0) if name == begun else read.get(name, 0)]
        ]
        looked = self._backlog  # an incomplete last line is not unread
        if (looked == (position, False)) or self._within_limit(position, 1) <= 0:
            parts = []
        size = sum(left for _, left in parts)
        each = position.get("each") or self._mean_size(parts)
        oldest = [file.time // 1_000_000 for file, left in parts if left]
        if parts and is_sequence:
            first, left = parts[0]
            self._arrivals.note(now, (parts[-1][0].name, parts[-1][0].size))
            at = (first.name, first.size - left)
            arrived = self._arrivals.arrival(at, lambda: oldest[0] if oldest else None)
        else:
            arrived = min(oldest, default=None)
        return Unread(
            int(size / each) if each else None if size else 0,
            size,
            arrived if size else None,
            position.get("taken", 0),
        )

    def _mean_size(self, parts: Sequence[tuple[SourceFile, int]]) -> float:
        """Returns the mean bytes of an element: of the last references, or of Parquet's rows."""
        if self.config.format == "parquet":
            known = [file for file, _ in parts if file.content is not None and file.content[2]]
            rows = sum(file.content[2] for file in known if file.content is not None)
            self._each = sum(file.size for file in known) / rows if rows else self._each
        elif elements := sum(r.elements for r in self._last_references):
            self._each = sum(r.size for r in self._last_references) / elements
        return self._each

    def is_finished(self, partition: str) -> bool:
        """Whether a partition receives no more data: then it does not hold the watermark back."""
        if self.config.files == "sequence":
            return self.frozen
        file = self._files.get(partition)
        return file is None or file.finished

    # -- discovery --

    def _look_at(self, name: str, path: str, *, later: bool) -> None:
        """Examines a file, new or possibly grown. Finished files are not examined again."""
        try:
            stat = os.stat(path)
        except FileNotFoundError:  # deleted meanwhile
            self._vanish(name)
            return
        if not S_ISREG(stat.st_mode):  # as good as deleted
            self._vanish(name)
            return
        size = stat.st_size
        closed = self.config.files == "sequence" or self.config.whole_files
        finished = self.config.settled or (later and closed)
        file = self._files.setdefault(name, SourceFile(name, path, size, finished))
        rest = file.number not in (0, stat.st_ino) and self._has_rest(file)
        if stat.st_ino != file.number or size < file.size:
            file.header, file.layout, file.fault = None, None, ""
        file.size, file.finished, file.number = size, finished, stat.st_ino
        file.time = stat.st_mtime_ns
        (self._growing.discard if finished else self._growing.add)(name)
        if rest and self._prints.current(self._position, {name: file}) is not self._position:
            self.gone.append(name)

    def _is_readable(self, file: ListedFile) -> bool:
        """Whether the name of a file can be written down, and leads to no file that only this
        process can read. Other files are reported.
        """
        said = shown(file.name)
        several = os.path.isdir(self.config.path) or is_glob(self.config.path)
        if said != file.name:
            reason = f"The name of the file {said} is not UTF-8: it is not read."
        elif several and is_foreign_link(file.path):
            reason = f"The file {said} is a link of another user: it is not read."
        else:
            return True
        if not several:
            raise FileFault(reason)
        if said not in self._reported_files:
            self.broken[said] = reason
        return False

    def _drop(self, name: str) -> None:
        self._backlog = None
        self._files.pop(name, None)
        self._growing.discard(name)

    def _vanish(self, name: str) -> None:
        """Removes a deleted file. If it appears again, it is new."""
        self._miss([name])
        self._listing.forget(name)
        self._names = [known for known in self._names if known in self._files]

    def _miss(self, names: Collection[str]) -> None:
        """Removes deleted files; those that were not read to their end are reported."""
        for name in names:
            file = self._files.get(name)
            if file is not None and self._has_rest(file):
                self.gone.append(name)
            self._drop(name)

    def _has_rest(self, file: SourceFile) -> bool:
        """Whether a deleted file contained unread data, as it was last seen."""
        position = self._position
        if file.fault or file.name in self.overtaken or self._prints.is_whole(file, position):
            return False
        if self.config.files == "sequence":
            if file.name < self._frontier:
                return False
            at = position.get("at", 0) if file.name == position.get("file") else 0
        else:
            at = position.get("files", {}).get(file.name, 0)
        return self._cutter.known_size(file) > at

    # -- taking --

    def _take(self, position: Position, rows: int) -> tuple[list[Taken], Position, Position]:
        """Returns the next ranges, the present position after files may have been replaced, and the
        position after the ranges.
        """
        assert rows > 0, "an epoch takes at least one element"
        self._frontier = max(self._frontier, position.get("file", ""))
        self._remember(position)
        rows = self._within_limit(position, rows)
        if rows <= 0:
            return [], position, position
        position = self._prints.current(position, self._files)
        self._cutter.each = position.get("each", 0.0)
        take = self._take_sequence if self.config.files == "sequence" else self._take_parallel
        return take(position, rows)

    def _within_limit(self, position: Position, rows: int) -> int:
        """Returns ``rows``, or the rest of the limit. A limit that only tasks can count is left to
        them.
        """
        if self.config.limit is None:
            return rows
        late = self.config.counted_late
        left = self.config.limit - int(position.get("passed" if late else "taken", 0))
        return min(rows, left) if left <= 0 or not late else rows

    def _drain(
        self, file: SourceFile, at: int, rows: int, one: bool = False
    ) -> Iterator[FileRange]:
        """Yields the pieces of a file from ``at`` on, up to ``rows`` elements (or one piece, or the
        end of data).
        """
        by_size = False
        while rows > 0 and (piece := self._next(file, at, rows, by_size)) is not None:
            by_size = not piece.counted
            if piece.elements or (self.config.settled and file.speaks_at(piece.stop)):
                yield piece
                if one:
                    return
            at = piece.stop
            rows -= piece.elements

    def _next(self, file: SourceFile, at: int, rows: int, by_size: bool) -> FileRange | None:
        return self._watch(file, lambda: self._cutter.next(file, at, rows, by_size=by_size), None)

    def _size(self, file: SourceFile) -> int:
        return self._watch(file, lambda: self._cutter.content(file)[1], 0)

    def _watch(self, file: SourceFile, look: Callable[[], _T], nothing: _T) -> _T:
        """Returns the result of a look at a file. Skips a broken file, and removes a deleted one of
        a folder.
        """
        try:
            return look()
        except FileFault as fault:
            self._pass_over(file, fault)
        except SourceError:
            if self._single or os.path.exists(file.path):
                raise
            self._vanish(file.name)
        return nothing

    def _pass_over(self, file: SourceFile, fault: FileFault) -> None:
        """Skips a broken file, which is reported once; the very first file raises its error."""
        if self._single or (file.name == self._names[0] and not self._begun):
            raise fault
        file.fault, self._backlog = str(fault), None
        if file.name not in self._reported_files:
            self.broken[file.name] = file.fault

    def _remember(self, position: Position) -> None:
        """Restores the facts that a position contains about earlier runs."""
        self._begun = self._begun or "file" in position or "files" in position
        self._reported_files.update(position.get("broken", ()))
        for name in self._reported_files & self.broken.keys():
            del self.broken[name]

    def _take_sequence(
        self, position: Position, rows: int
    ) -> tuple[list[Taken], Position, Position]:
        one = self.config.counted_late
        taken: list[Taken] = []
        before = current = position.get("file", "")
        for name in self._names[bisect_left(self._names, current) :]:
            if self.config.settled and not is_next(self.config.path, before, name):
                break
            before, file = name, self._files[name]
            at = position.get("at", 0) if name == current else 0
            if name != current or not (
                self._cutter.is_drained(file, at) or self._prints.is_whole(file, position)
            ):
                for piece in self._drain(file, at, rows, one):
                    taken.append((file, piece))
                    rows -= piece.elements
            if rows <= 0 or not file.finished or (one and taken):
                break
        if not taken:
            return [], position, position
        file, piece = taken[-1]
        return taken, position, {**position, "file": file.name, "at": piece.stop}

    def _take_parallel(
        self, position: Position, rows: int
    ) -> tuple[list[Taken], Position, Position]:
        """Shares ``rows`` among the files with data, in rounds, from that after the last served."""
        ats: dict[str, int] = dict(position.get("files", {}))
        first = bisect_left(self._names, position.get("after", "") + "\0")
        active = [self._files[name] for name in self._names[first:] + self._names[:first]]
        active = [file for file in active if not self._prints.is_whole(file, position)]
        active = [file for file in active if self._size(file) != ats.get(file.name, 0)]
        taken: list[Taken] = []
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
        return taken, position, {**position, "files": ats, "after": after}

    def _has_unread(self, file: SourceFile, at: int) -> bool:
        """Whether a whole element follows ``at``; the result at the beginning of a file is
        cached.
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


# Stores the fingerprints of a stream's files in positions, to recognize a replaced file of the
# same name (docs/semantics.md#progress).
#
# Cost: 132 KB at most when a file is read further or has changed, and the bytes that are read once
# more.


class Fingerprints:
    """Makes and compares the fingerprints of one stream's files."""

    def __init__(self, cutter: FileSplitter) -> None:
        self.config = cutter.config
        self._cutter = cutter
        self._compared: dict[str, tuple[str, tuple[int, int], bool]] = {}

    def current(self, position: Position, files: Mapping[str, SourceFile]) -> Position:
        """Returns the position, with replaced files at their beginning."""
        others = [
            name
            for name, text in position.get("fingerprints", {}).items()
            if name in files and not self._is_same(files[name], text)
        ]
        if not others:
            return position
        lives: dict[str, int] = dict(position.get("lives", {}))
        for name in others:
            lives[name] = lives.get(name, 0) + 1
        new = {**position, "lives": lives, "replaced": position.get("replaced", 0) + len(others)}
        for key in ("files", "rows", "fingerprints"):
            if key in new:
                new[key] = {name: at for name, at in new[key].items() if name not in others}
        if self.config.files == "sequence":
            new["at"] = 0
        return new

    def make(self, taken: list[Taken], position: Position) -> dict[str, str]:
        """Returns the fingerprints of the files with taken ranges at a position, by name."""
        if self.config.settled:
            return {}
        by_file: dict[str, list[Taken]] = {}
        for one in taken:
            by_file.setdefault(one[0].name, []).append(one)
        before: dict[str, str] = position.get("fingerprints", {})
        return {name: self._make(pieces, before.get(name, "")) for name, pieces in by_file.items()}

    def after_take(self, made: dict[str, str], position: Position) -> Position:
        """Returns the fingerprints after a take: in a sequence that of the last file."""
        if self.config.settled:
            return {}
        if self.config.files == "parallel":
            return {"fingerprints": {**position.get("fingerprints", {}), **made}}
        made = dict([*made.items()][-1:])
        lives = {name: n for name, n in position.get("lives", {}).items() if name in made}
        return {"fingerprints": made, **({"lives": lives} if "lives" in position else {})}

    def is_whole(self, file: SourceFile, position: Position) -> bool:
        """Whether a packed file, as it is now, is read to its end."""
        text = position.get("fingerprints", {}).get(file.name)
        if text is None or not is_packed(file.name):
            return False
        fingerprint = Fingerprint.parse(text)
        return (fingerprint.number, fingerprint.whole) == (file.number, file.size)

    def _is_same(self, file: SourceFile, text: str) -> bool:
        """Whether a file is the known one; compares it if it has changed."""
        state = (file.number, file.size)
        known = self._compared.get(file.name)
        if known is None or known[:2] != (text, state):
            self._compared[file.name] = known = (
                text,
                state,
                self._compare(file, Fingerprint.parse(text)),
            )
        return known[2]

    def _compare(self, file: SourceFile, fingerprint: Fingerprint) -> bool:
        if (fingerprint.number, fingerprint.whole) == (file.number, file.size):
            return True
        try:
            path, size = self._text(file)
        except FileFault:  # the reader reports it
            return True
        with open_descriptor(path) as text:
            return fingerprint.is_of(text, file.number, size)

    def complete(self, name: str, text: str, references: Sequence[FileSplit], digests: str) -> str:
        """Completes a fingerprint with the block hashes of tasks. ``references``: those to the
        file.
        """
        waiting = Fingerprint.parse(text)
        if waiting.missing[0] == waiting.missing[1] or not references:
            return text
        done = waiting.complete(references[0].path, digests).text()
        known = self._compared.get(name)
        if known is not None and known[0] == text:
            self._compared[name] = (done, *known[1:])
        return done

    def _make(self, taken: Sequence[Taken], before: str) -> str:
        """Makes the fingerprint of a file with these taken ranges."""
        file, at = taken[0][0], taken[-1][1].stop
        by_tasks = not all(piece.counted for _, piece in taken)
        begin = taken[0][1].start if self.config.format != "parquet" else 0  # in Parquet: a row
        path, size = self._text(file)
        whole = -1
        if is_packed(file.name) and at == self._cutter.content(file)[1]:
            whole = file.size
        read = size if self.config.format == "parquet" else at
        made = Fingerprint.from_file(
            path,
            (file.number, size),
            whole=whole,
            read=read,
            before=before,
            taken_from=begin if by_tasks or self.config.format == "parquet" else None,
        )
        text = made.text()
        self._compared[file.name] = (text, (file.number, file.size), True)
        return text

    def _text(self, file: SourceFile) -> tuple[str, int]:
        """Returns the path of a file's unpacked bytes, and their number."""
        if self.config.format == "parquet":
            return file.path, file.size
        return self._cutter.content(file)

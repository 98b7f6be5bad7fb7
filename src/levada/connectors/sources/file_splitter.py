"""Cuts the next piece of a file: how far whole elements reach, and how many they are; one way for
each format.

A ``SourceFile`` contains the driver's facts about a file: its size as last seen and whether it is
finished. A range never ends inside an element. The last element of an unfinished file is held back
until another begins, a last line until its newline is present. A range has at most ``WINDOW``
bytes, the amount that one task parses.

A large text is cut by size (``file_splitter``): the driver reads the bytes at the cut, and
estimates the elements from the sizes of the previous ones. So an epoch has about the intended
number. A small text, and one that cannot be cut so, is read in windows, and its elements are
counted.

No two records of a stream have the same number. The records of a sequence are numbered through all
of its files. With ``files=parallel`` each file has ``FILE_NUMBERS`` numbers, in the order in which
the files are begun, so the numbers do not depend on the size of the epochs.
"""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from levada.connectors.config.input_formats import LINES, RDF, format_of
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.config.stream_options import SEPARATORS
from levada.connectors.sources.decompression import inflate, is_packed
from levada.connectors.sources.file_errors import FileFaults
from levada.connectors.sources.fingerprint import hashed_ranges, last_piece, piece
from levada.connectors.sources.message_headers import complete_at_end
from levada.connectors.sources.parquet_files import Layout, layout
from levada.connectors.sources.read_split import (
    LONGEST_ELEMENT,
    Header,
    end_lines,
    first_record,
    line_end,
    read_header,
    read_range,
)
from levada.connectors.sources.splits import FileSplit, Piece, document_id
from levada.connectors.sources.spooled_files import check_file, read_spooled
from levada.core.array_types import Bytes
from levada.core.event_time import MIN
from levada.core.size_thresholds import register
from levada.errors import FileFault, SourceError, near
from levada.kernels.text.csv_records import cut_records
from levada.kernels.text.line_boundaries import cut_blocks, cut_elements, cut_graphs
from levada.kernels.text.subject_runs import count_byte

# Finds where elements begin in the middle of a file, which is cut by size: only the bytes at the
# cut are read.
#
# A few lines alone determine a cut, whatever precedes them:
#
# * a *line* begins behind a line end; * a *block* begins behind a blank line; * an element by
# *graph* begins at a line that names another graph than the line before it; * an element by
# *subject* begins at a line without a blank node whose subject is an IRI, and another than that of
# the line before (``kernels.text.subject_descriptions``: blank nodes may belong to what is before
# them, or behind).
#
# Files are not cut by size if no few bytes show where an element begins, or if the driver must know
# how many elements it assigns: see ``cuts_by_size``. Cost: at most ``LOOKS`` bytes a cut, nearly
# always the first of them.


LOOKS = (4 << 10, 64 << 10)
"""Bytes that are examined after a place: the second number if the first is too small."""

# a line of a subject and one of another, of which only the line end matters
_OTHER_SUBJECT = re.compile(
    rb"[\r\n](<[^>\r\n]*>)[^\r\n]*\r?\n(?=<)(?!\1)(?=(?:(?!_:)[^\r\n])*\r?\n)"
)
_NEWLINE = re.compile(rb"\n|\r(?!\n)")


def cuts_by_size(config: StreamConfig) -> bool:
    """Whether the driver cuts the files of a stream by size, and leaves reading to tasks.

    The driver reads files itself if records may have line ends within quotes (CSV), if elements are
    counted before they are read (``limit``, a mapping that numbers rows), and if a file's name has
    the hash of its bytes (a spool).
    """
    return (
        config.format in (*LINES, "ndjson")
        and not config.whole_files
        and not config.settled
        and config.limit is None
        and (config.mapping is None or not config.mapping.numbers_rows)
    )


def boundary(path: str, at: int, stop: int, element: str) -> tuple[int, Piece] | None:
    """Returns the first place from ``at`` on, before ``stop``, at which an element certainly
    begins, and the bytes read up to there. None if there is none nearby. Raises ``SourceError``.
    """
    for size in LOOKS:
        data = read_range(path, at, min(at + size, stop))
        length = _begin(data, element)
        if length:
            return at + length, piece(at, data[:length])
        if at + size >= stop:
            break
    return None


def _begin(data: Bytes, element: str) -> int:
    """Returns where an element certainly begins in bytes from the middle of a file; 0 if that is
    unknown.
    """
    raw = data.tobytes()
    if raw.endswith(b"\r"):  # a newline may follow
        raw = raw[:-1]
    if element == "subject":
        match = _OTHER_SUBJECT.search(raw)
        return match.end() if match else 0
    first = _NEWLINE.search(raw)
    if first is None or element == "line":
        return first.end() if first else 0
    lines = end_lines(data[first.end() : len(raw)].copy())
    length, elements = (
        cut_graphs(lines, 1, False) if element == "graph" else cut_blocks(lines, 1, False)
    )
    return first.end() + length if elements else 0


WINDOW = 4 << 20
READ = register(f"{__name__}.READ", 512 << 10)
"""The most bytes of a light epoch, which the driver reads to cut them; see ``cuts_by_size``."""
_LEAST_WINDOW = 64 << 10
_BYTES_A_ROW = 256


class FileRange(NamedTuple):
    """A range of whole elements: bytes of the text, or rows of Parquet. ``pieces``: the pieces that
    were read of it. ``counted``: whether all of it was read; otherwise ``elements`` is an estimate.
    """

    start: int
    stop: int
    elements: int
    pieces: tuple[Piece, ...] = ()
    counted: bool = True

    def with_(self, other: FileRange) -> FileRange:
        """Returns the range joined with the next one."""
        elements, pieces = self.elements + other.elements, self.pieces + other.pieces
        counted = self.counted and other.counted
        return FileRange(self.start, other.stop, elements, pieces, counted)


@dataclass(slots=True)
class SourceFile:
    """A file of a stream: its name and path, its size on disk as last seen, whether it will not
    grow any more.

    ``fault``: why nothing of it can be read; then it has no data. ``number``: its inode. ``time``:
    of its last change (ns).
    """

    name: str
    path: str
    size: int
    finished: bool
    fault: str = ""
    number: int = 0
    time: int = 0
    content: tuple[tuple[int, int, bool], str, int] | None = field(default=None, repr=False)
    header: Header | None = field(default=None, repr=False)
    layout: Layout | None = field(default=None, repr=False)

    @property
    def state(self) -> tuple[int, int, bool]:
        """The facts that change when there is something new in the file."""
        return self.number, self.size, self.finished

    def speaks_at(self, place: int) -> bool:
        """Whether its name contains a watermark (``connectors.sources.message_headers``) that
        counts when it is read to this place.
        """
        return place >= self.size and complete_at_end(self.name) > MIN


class FileSplitter:
    """Cuts the files of one stream."""

    def __init__(self, config: StreamConfig, scratch: Path) -> None:
        self.config = config
        self.scratch = scratch
        self.by_size = cuts_by_size(config)
        self.each = 0.0  # estimated bytes of an element; 0: unknown
        self._copies: dict[str, set[str]] = {}  # of packed files, by name
        self._spooled: tuple[str, Bytes | None] = ("", None)  # the last checked file

    def content(self, file: SourceFile) -> tuple[str, int]:
        """Returns the place and size of the file's text or rows: (path, bytes or rows). Raises
        ``FileFault``.
        """
        if file.fault:
            return file.path, 0
        if file.content is None or file.content[0] != file.state:
            with FileFaults(file.path, self.config.name):
                file.content = (file.state, *self._content(file))
        return file.content[1:]

    def is_drained(self, file: SourceFile, at: int) -> bool:
        """Whether nothing follows ``at`` in a file, as it was last looked at. The bytes of a
        spooled file are forgotten with a look (``next``).
        """
        known = file.content
        looked = known is not None and known[0] == file.state and not self.config.settled
        return looked and known is not None and known[2] == at

    def _content(self, file: SourceFile) -> tuple[str, int]:
        data = self._check(file.path) if self.config.settled else None
        if not file.size:
            return file.path, 0
        if self.config.format == "parquet":
            self._spooled = ("", None)  # tasks read the rows
            file.layout = layout(self.config, file.path, finished=file.finished, data=data)
            return file.path, file.layout.rows if file.layout else 0
        if is_packed(file.name):
            plain = inflate(
                self.config.name, file.name, file.path, self.scratch, finished=file.finished
            )
            if plain is None:
                return file.path, 0
            self._copies.setdefault(file.name, set()).add(str(plain))
            return str(plain), plain.stat().st_size
        return file.path, file.size

    def _check(self, path: str) -> Bytes | None:
        """Returns the checked bytes of a file of a spool; None if they are too many. Raises
        ``CheckpointError``.
        """
        if self._spooled[0] != path:
            self._spooled = path, read_spooled(path)
            if self._spooled[1] is None:
                check_file(path)
        return self._spooled[1]

    def _read(self, path: str, start: int, stop: int) -> Bytes:
        """Reads a range of a file; of a file of a spool from the checked bytes."""
        data = self._check(path) if self.config.settled else None
        return read_range(path, start, stop) if data is None else data[start:stop]

    def known_size(self, file: SourceFile) -> int:
        """Returns the size of a file after its header, as far as it is known without a look at
        it.
        """
        size = file.size if file.content is None else file.content[2]
        return 0 if file.header is not None and file.header.end == size else size

    def unread_size(self, file: SourceFile, at: int) -> int:
        """Returns the bytes on disk after a place, in a file as it was last looked at. For
        packed files and Parquet they are in proportion to the rest of the content.
        """
        if self.config.format != "parquet" and not is_packed(file.name):
            empty = file.header is not None and file.header.end == file.size
            return 0 if empty else max(file.size - at, 0)
        known = 0 if file.content is None else file.content[2]
        if known and file.content is not None and file.content[0] == file.state:
            return round(file.size * max(1 - at / known, 0))
        return 0 if at else file.size

    def unpacked_names(self) -> list[str]:
        """Returns the names of the files with unpacked copies."""
        return list(self._copies)

    def copies(self) -> set[str]:
        """Returns the unpacked copies."""
        return set().union(*self._copies.values())

    def clear(self, file: SourceFile | None, name: str) -> None:
        """Deletes the unpacked copies of a file, except that of ``file`` as it is now."""
        kept = {file.content[1]} if file is not None and file.content is not None else set()
        for path in self._copies.pop(name, set()) - kept:
            Path(path).unlink(missing_ok=True)
        if kept:
            self._copies[name] = kept

    def format(self, file: SourceFile) -> str:
        """Returns the format of a file. By its extension if the stream mixes quads and triples, or
        RDF documents; else that of the stream.
        """
        file_format = format_of(file.name)
        mixed = (
            file_format in RDF
            if self.config.documents
            else (self.config.format, file_format) == ("nt", "nq")
        )
        return file_format if mixed and file_format is not None else self.config.format

    def next(
        self, file: SourceFile, at: int, rows: int, *, by_size: bool = False
    ) -> FileRange | None:
        """Returns the piece from ``at`` on with at most ``rows`` elements; None if there is no
        whole element. ``by_size``: the previous piece was cut by size, so a short one is too.
        Raises ``FileFault``.
        """
        with FileFaults(file.path, self.config.name):
            return self._next(file, at, rows, by_size=by_size)

    def _next(self, file: SourceFile, at: int, rows: int, *, by_size: bool) -> FileRange | None:
        path, size = self.content(file)
        if at > size and not file.fault:
            raise SourceError(
                f"The file {file.path} of the stream {self.config.name} became "
                "shorter than what was read."
            )
        if at >= size:
            self._spooled = ("", None)
            return None
        if self.config.format == "parquet":
            assert file.layout is not None, "a Parquet file with rows has a layout"
            stop = file.layout.stop(at, rows)
            return FileRange(at, stop, stop - at)
        if self.config.whole_files:
            elements = 1 if self.config.element == "document" else max(size // _BYTES_A_ROW, 1)
            return FileRange(0, size, elements) if file.finished and at == 0 else None
        if self.config.format == "csv" and at == 0 and not self.config.header:
            if file.header is None:
                file.header = self._header(path, size, finished=file.finished)
                _check_columns(self.config, file)
            if file.header is None or file.header.end == size:
                return None
            at = file.header.end
        if (
            self.by_size
            and (estimated := self._by_size(file, at, rows, following=by_size)) is not None
        ):
            return estimated
        return self._text_range(path, at, size, rows, file.finished)

    def _header(self, path: str, size: int, *, finished: bool) -> Header | None:
        data = self._check(path) if self.config.settled else None
        if data is not None:
            return first_record(path, data, self.config.separator)
        return read_header(path, size, self.config.separator, whole=finished)

    def _by_size(
        self, file: SourceFile, at: int, rows: int, *, following: bool
    ) -> FileRange | None:
        """Returns a piece of about ``rows`` elements without reading it; None if they are few, or
        there is no place to cut.
        """
        path, size = self.content(file)
        if size - at <= READ:
            return None
        at, each = self._sample(file, at, rows)
        wanted = int(rows * each)
        if not each or (wanted <= READ and not following):
            return None
        if file.finished and size - at <= min(wanted, WINDOW):
            return FileRange(at, size, min(rows, max(int((size - at) / each), 1)), (), False)
        length = min(wanted, WINDOW - max(LOOKS))
        target = at + length if file.finished else min(at + length, size - max(LOOKS))
        cut = boundary(path, target, size, self.config.element) if target > at else None
        if cut is None:
            return None
        is_last = target == at + wanted
        elements = rows if is_last else min(rows, max(int((cut[0] - at) / each), 1))
        return FileRange(at, cut[0], elements, (cut[1],), False)

    def _sample(self, file: SourceFile, at: int, rows: int) -> tuple[int, float]:
        """Returns where the elements at ``at`` begin, and the mean bytes of one; 0.0 if so many are
        few.
        """
        if at > 0 and self.each:
            return at, self.each
        path, size = self.content(file)
        data = self._read(path, at, min(at + _LEAST_WINDOW, size))
        if at == 0 and data[:3].tobytes() == BOM_UTF8:
            at, data = 3, data[3:]
        length, elements = self._cut(data, rows, False)
        if not 0 < elements < rows:
            return at, 0.0
        self.each = self.each or length / elements
        return at, self.each

    def _text_range(
        self, path: str, at: int, size: int, rows: int, finished: bool
    ) -> FileRange | None:
        window = min(max(rows * _BYTES_A_ROW, _LEAST_WINDOW), WINDOW)
        while True:
            data = self._read(path, at, min(at + window, size))
            at_end = at + len(data) == size
            if at == 0 and data[:3].tobytes() == BOM_UTF8:  # some editors write a byte order mark
                at, data = 3, data[3:]
            length, elements = self._cut(data, rows, at_end and finished)
            if length or at_end:
                seen = (piece(at, data[:length]),)
                return FileRange(at, at + length, elements, seen) if length else None
            if window >= LONGEST_ELEMENT:
                return self._overlong(path, at, at + len(data), size, finished)
            window = min(4 * window, LONGEST_ELEMENT)

    def _overlong(
        self, path: str, at: int, seen: int, size: int, finished: bool
    ) -> FileRange | None:
        """Returns the line at ``at``, of an element that exceeds the limit and does not end before
        ``seen``; a task makes a dead letter of it without reading it. Raises ``FileFault`` for
        elements of several lines.
        """
        if self.config.element != "line":
            raise FileFault(
                f"The file {path} has an element of more than {LONGEST_ELEMENT >> 20} MB at byte "
                f"{at}: nothing behind that is read."
            )
        stop = line_end(path, seen, size)
        return None if stop is None and not finished else FileRange(at, stop or size, 1)

    def _cut(self, data: Bytes, rows: int, last: bool) -> tuple[int, int]:
        """Returns the length of the whole elements in ``data``, and their number."""
        if self.config.format == "csv":
            return cut_records(data, rows, last, ord(self.config.separator))
        if count_byte(data, len(data), 13):
            data = end_lines(data.copy())  # a copy, since the original is hashed later
        return cut_elements(data, self.config.element, rows, last)


def _check_columns(config: StreamConfig, file: SourceFile) -> None:
    """Checks that a header has every column of the schema and of the time, each once."""
    if file.header is None:
        return
    columns = file.header.columns
    needed = list(dict(config.read_columns)) + ([config.time_field] if config.time_field else [])
    there = set(columns)
    for name in needed:
        if name not in there:
            if {f"{name}_1", f"{name}_2"} <= there:
                message = f"The header of {file.path} has the column {name} twice, or more often."
                raise FileFault(message, hint=f"Say {name}_1 or {name}_2.")
            is_in_schema = config.mapping is None and name in dict(config.schema)
            writable = [c for c in columns if not (is_in_schema and set(c) & set(":;,"))]
            names = [" ".join(column.split()) for column in writable]
            hint = _other_separator(config, columns) or near(name, names)
            raise FileFault(f"The header of {file.path} has no column {name}.", hint=hint)


def _other_separator(config: StreamConfig, columns: tuple[str, ...]) -> str:
    """Returns a hint for a header that another separator than the stream's would split."""
    for word, character in (*SEPARATORS.items(), (";", ";"), ("|", "|")):
        if character != config.separator and any(character in name for name in columns):
            return f"Are its columns separated otherwise? Say separator={word}."
    return ""


# Turns ranges of files into references for tasks, and numbers records.


Position = dict[str, Any]
Taken = tuple[SourceFile, FileRange]

FILE_NUMBERS = 1 << 40
"""The numbers of a file's records with ``files=parallel``; 2**23 files have some."""


def references_of(
    taken: list[Taken], position: Position, cutter: FileSplitter, prints: Mapping[str, str]
) -> list[FileSplit]:
    """Returns the references of the taken ranges at a position, in order. ``prints``: the
    fingerprints of the files, by name.
    """
    config = cutter.config
    left = (
        config.limit - int(position.get("passed", 0))
        if config.counted_late and config.limit is not None
        else None
    )
    counts: dict[str, int] = {}
    lives: dict[str, int] = position.get("lives", {})
    references = []
    merged = _merge(taken, by_bytes=config.format != "parquet")
    hashed = _blocks_to_hash(merged, prints)
    numbers = number_records(merged, position, config)[0]
    for (file, part), blocks, number in zip(merged, hashed, numbers, strict=True):
        partition = config.name if config.files == "sequence" else file.name
        index = counts[partition] = counts.get(partition, -1) + 1
        references.append(
            FileSplit(
                stream=config.name,
                partition=partition,
                name=file.name,
                # a task may run in another directory
                path=os.path.abspath(cutter.content(file)[0]),
                format=cutter.format(file),
                start=part.start,
                stop=part.stop,
                index=index,
                document=document_id(config.name, file.name, lives.get(file.name, 0)),
                elements=part.elements,
                limit_left=left,
                row=number,
                fingerprint=prints.get(file.name, ""),
                seen=() if is_packed(file.name) else (file.size, file.time),
                pieces=part.pieces + _read_behind(part, prints.get(file.name, "")),
                counted=part.counted,
                hashed=blocks,
                base=Path(os.path.abspath(file.path)).as_uri() if config.documents else "",
            )
        )
    return references


def _read_behind(piece_read: FileRange, text: str) -> tuple[Piece, ...]:
    """Returns the piece that a fingerprint knows at the end of a range without counts."""
    pieces = () if piece_read.counted or not text else last_piece(text, piece_read.start)
    return tuple(piece for piece in pieces if piece[1] == piece_read.stop)


def _blocks_to_hash(taken: list[Taken], prints: Mapping[str, str]) -> list[tuple[int, int]]:
    """Returns the blocks of each file to hash with each range, in the order of the ranges; for
    Parquet, whose ranges are rows, with the first range.
    """
    blocks = []
    for name, file_pieces in groupby(taken, key=lambda one: one[0].name):
        files, ranges = zip(*file_pieces, strict=True)
        rows = files[0].layout is not None
        stops = [files[0].size if rows else one.stop for one in ranges]
        blocks += hashed_ranges(prints.get(name, ""), stops)
    return blocks


def number_records(
    taken: list[Taken], position: Position, config: StreamConfig
) -> tuple[list[int], Position]:
    """Returns the number of the first record of each range, and the fields of the position after
    them; zeros if no mapping uses the number.
    """
    if config.mapping is None or not config.mapping.numbers_rows:
        return [0] * len(taken), {}
    free: int = position.get("numbered", 0)
    rows: dict[str, int] = dict(position.get("rows", {}))
    numbers = []
    for file, part in taken:
        if config.files == "sequence":
            numbers.append(free)
            free += part.elements
            continue
        if file.name not in rows:
            rows[file.name], free = free, free + FILE_NUMBERS
        numbers.append(rows[file.name])
        rows[file.name] += part.elements
    return numbers, {"numbered": free, **({"rows": rows} if rows else {})}


def _merge(taken: list[Taken], *, by_bytes: bool) -> list[Taken]:
    """Neighbouring small ranges of a file as one, each file's in order and the files in order of
    first appearance.
    """
    by_file: dict[str, list[Taken]] = {}
    for file, part in taken:
        ranges = by_file.setdefault(file.name, [])
        if ranges and by_bytes and part.stop - ranges[-1][1].start <= WINDOW:
            ranges[-1] = (file, ranges[-1][1].with_(part))
        else:
            ranges.append((file, part))
    return [entry for ranges in by_file.values() for entry in ranges]

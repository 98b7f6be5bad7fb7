"""The next piece of a file: how far whole elements reach, how many they are. One a format.

A ``SourceFile`` is what the driver knows of a file: its size as last seen and whether it is
finished. A piece never ends inside an element. The last element of a file that is not finished is
held back until another begins, a last line until its newline is there. Text is looked at in windows
of at most ``WINDOW`` bytes, so a piece is a range that one task parses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from levada.errors import FileFault, SourceError, near
from levada.kernels.text.lines import GRAPH, SUBJECT, cut_blocks, cut_groups, cut_lines
from levada.kernels.text.records import cut_records
from levada.sources.inflate import inflate, is_packed
from levada.sources.parquet import Layout, layout
from levada.sources.read import Header, read_header, read_range
from levada.streams.formats import RDF, format_of
from levada.streams.stream_config import StreamConfig

WINDOW = 4 << 20
_LEAST_WINDOW = 64 << 10
_BYTES_A_ROW = 256
_GROUPS = {"subject": SUBJECT, "graph": GRAPH}


class Piece(NamedTuple):
    """A range of whole elements: bytes of the text, or rows of Parquet."""

    start: int
    stop: int
    elements: int


@dataclass(slots=True)
class SourceFile:
    """A file of a stream: its name and path, its size on disk as last seen, whether it will not
    grow any more.

    ``fault``: why nothing of it can be read; then it holds nothing.
    """

    name: str
    path: str
    size: int
    finished: bool
    fault: str = ""
    content: tuple[tuple[int, bool], str, int] | None = field(default=None, repr=False)
    header: Header | None = field(default=None, repr=False)
    layout: Layout | None = field(default=None, repr=False)

    @property
    def state(self) -> tuple[int, bool]:
        """What changes when there is something new to know of the file."""
        return self.size, self.finished


class Cutter:
    """Cuts the files of one stream."""

    def __init__(self, config: StreamConfig, scratch: Path) -> None:
        self.config = config
        self.scratch = scratch

    def content(self, file: SourceFile) -> tuple[str, int]:
        """Where the file's text or rows lie, and how much there is: (path, bytes or rows). Raises
        ``FileFault``.
        """
        if file.fault:
            return file.path, 0
        if file.content is None or file.content[0] != file.state:
            file.content = (file.state, *self._content(file))
        return file.content[1:]

    def _content(self, file: SourceFile) -> tuple[str, int]:
        if not file.size:
            return file.path, 0
        if self.config.format == "parquet":
            file.layout = layout(self.config, file.path, finished=file.finished)
            return file.path, file.layout.rows if file.layout else 0
        if is_packed(file.name):
            plain = inflate(
                self.config.name, file.name, file.path, self.scratch, finished=file.finished
            )
            return (str(plain), plain.stat().st_size) if plain else (file.path, 0)
        return file.path, file.size

    def format(self, file: SourceFile) -> str:
        """The format of a file: quads among triples and any RDF among documents show by the ending,
        else the stream's.
        """
        own = format_of(file.name)
        mixed = own in RDF if self.config.documents else (self.config.format, own) == ("nt", "nq")
        return own if mixed and own is not None else self.config.format

    def next(self, file: SourceFile, at: int, rows: int) -> Piece | None:
        """The piece from ``at`` on with at most ``rows`` elements; None if nothing whole is there.
        Raises ``FileFault``.
        """
        path, size = self.content(file)
        if at > size and not file.fault:
            raise SourceError(
                f"The file {file.path} of the stream {self.config.name} became "
                "shorter than what was read."
            )
        if at >= size:
            return None
        if self.config.format == "parquet":
            assert file.layout is not None, "a Parquet file with rows has a layout"
            stop = file.layout.stop(at, rows)
            return Piece(at, stop, stop - at)
        if self.config.whole_files:
            elements = 1 if self.config.element == "document" else max(size // _BYTES_A_ROW, 1)
            return Piece(0, size, elements) if file.finished and at == 0 else None
        if self.config.format == "csv" and at == 0 and not self.config.header:
            if file.header is None:
                file.header = read_header(path, size, whole=file.finished)
                _check_columns(self.config, file)
            if file.header is None or file.header.end == size:
                return None
            at = file.header.end
        return self._text_piece(path, at, size, rows, file.finished)

    def _text_piece(self, path: str, at: int, size: int, rows: int, finished: bool) -> Piece | None:
        window = min(max(rows * _BYTES_A_ROW, _LEAST_WINDOW), WINDOW)
        while True:
            data = read_range(path, at, min(at + window, size))
            at_end = at + len(data) == size
            last = at_end and finished
            if self.config.format == "csv":
                length, elements = cut_records(data, rows, last)
            elif self.config.element == "line":
                length, elements = cut_lines(data, rows, last)
            elif self.config.element == "blankline":
                length, elements = cut_blocks(data, rows, last)
            else:
                length, elements = cut_groups(data, _GROUPS[self.config.element], rows, last)
            if length or at_end:
                return Piece(at, at + length, elements) if length else None
            window *= 4


def _check_columns(config: StreamConfig, file: SourceFile) -> None:
    """A header has every column of the schema and of the time, and none of them twice."""
    if file.header is None:
        return
    columns = file.header.columns
    needed = list(dict(config.read_columns)) + ([config.time_field] if config.time_field else [])
    for name in needed:
        if columns.count(name) > 1:
            raise FileFault(f"The header of {file.path} has the column {name} twice.")
        if name not in columns:
            raise FileFault(
                f"The header of {file.path} has no column {name}.", hint=near(name, columns)
            )

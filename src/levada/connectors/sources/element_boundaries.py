"""Finds where elements begin in the middle of a file, which is cut by size: only the bytes at the
cut are read.

A few lines alone determine a cut, whatever precedes them:

* a *line* begins behind a line end;
* a *block* begins behind a blank line;
* an element by *graph* begins at a line that names another graph than the line before it;
* an element by *subject* begins at a line without a blank node whose subject is an IRI, and another
  than that of the line before (``kernels.text.subject_descriptions``: blank nodes may belong to
  what is before them, or behind).

Files are not cut by size if no few bytes show where an element begins, or if the driver must know
how many elements it assigns: see ``cuts_by_size``. Cost: at most ``LOOKS`` bytes a cut, nearly
always the first of them.
"""

from __future__ import annotations

import re

from levada.connectors.config.input_formats import LINES
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.fingerprint import piece
from levada.connectors.sources.read_split import end_lines, read_range
from levada.connectors.sources.splits import Piece
from levada.core.array_types import Bytes
from levada.kernels.text.line_boundaries import cut_blocks, cut_graphs

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

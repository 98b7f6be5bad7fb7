"""Turns ranges of files into references for tasks, and numbers records.

No two records of a stream have the same number. The records of a sequence are numbered through all
of its files. With ``files=parallel`` each file has ``FILE_NUMBERS`` numbers, in the order in which
the files are begun, so the numbers do not depend on the size of the epochs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.decompression import is_packed
from levada.connectors.sources.file_splitter import WINDOW, FileRange, FileSplitter, SourceFile
from levada.connectors.sources.fingerprint import hashed_ranges, last_piece
from levada.connectors.sources.splits import FileSplit, Piece, document_id

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
    for (file, piece), blocks, number in zip(merged, hashed, numbers, strict=True):
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
                start=piece.start,
                stop=piece.stop,
                index=index,
                document=document_id(config.name, file.name, lives.get(file.name, 0)),
                elements=piece.elements,
                limit_left=left,
                row=number,
                fingerprint=prints.get(file.name, ""),
                seen=() if is_packed(file.name) else (file.size, file.time),
                pieces=piece.pieces + _read_behind(piece, prints.get(file.name, "")),
                counted=piece.counted,
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
    for file, piece in taken:
        if config.files == "sequence":
            numbers.append(free)
            free += piece.elements
            continue
        if file.name not in rows:
            rows[file.name], free = free, free + FILE_NUMBERS
        numbers.append(rows[file.name])
        rows[file.name] += piece.elements
    return numbers, {"numbered": free, **({"rows": rows} if rows else {})}


def _merge(taken: list[Taken], *, by_bytes: bool) -> list[Taken]:
    """Neighbouring small ranges of a file as one, each file's in order and the files in order of
    first appearance.
    """
    by_file: dict[str, list[Taken]] = {}
    for file, piece in taken:
        ranges = by_file.setdefault(file.name, [])
        if ranges and by_bytes and piece.stop - ranges[-1][1].start <= WINDOW:
            ranges[-1] = (file, ranges[-1][1].with_(piece))
        else:
            ranges.append((file, piece))
    return [entry for ranges in by_file.values() for entry in ranges]

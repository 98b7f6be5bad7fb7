"""Turns ranges of files into references for tasks, and numbers records."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from levada.connectors.sources.decompression import is_packed
from levada.connectors.sources.file_splitter import WINDOW, FileRange, FileSplitter, SourceFile
from levada.connectors.sources.fingerprint import hashed_ranges, last_piece
from levada.connectors.sources.splits import FileSplit, Piece, document_id

Position = dict[str, Any]
Taken = tuple[SourceFile, FileRange]


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
    rows: dict[str, int] = dict(position.get("rows", {}))
    lives: dict[str, int] = position.get("lives", {})
    references = []
    merged = _merge(taken, by_bytes=config.format != "parquet")
    hashed = _blocks_to_hash(merged, prints)
    for (file, piece), blocks in zip(merged, hashed, strict=True):
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
                row=rows.get(file.name, 0),
                fingerprint=prints.get(file.name, ""),
                seen=() if is_packed(file.name) else (file.size, file.time),
                pieces=piece.pieces + _read_behind(piece, prints.get(file.name, "")),
                counted=piece.counted,
                hashed=blocks,
                base=Path(os.path.abspath(file.path)).as_uri() if config.documents else "",
            )
        )
        rows[file.name] = rows.get(file.name, 0) + piece.elements
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


def rows_behind(taken: list[Taken], position: Position, *, parallel: bool) -> Position:
    """Returns the number of assigned records of each file; of a sequence, of the one being read."""
    rows: dict[str, int] = dict(position.get("rows", {}))
    for file, piece in taken:
        rows[file.name] = rows.get(file.name, 0) + piece.elements
    last = taken[-1][0].name
    return {"rows": rows if parallel else {last: rows[last]}}


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

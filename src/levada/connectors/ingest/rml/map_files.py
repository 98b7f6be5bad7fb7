"""Maps the files that a mapping names to N-Quads.

    sources --rows--> frames --row_terms--> lines --joins--> lines

Each source is read once. Lines repeat where the data do: a graph is a set. A record that cannot be
read, or whose term is not well-formed, is reported with its place and text, and the others are
mapped. Cost: the rows of all sources in memory, some string operations of Polars a triple and row,
and a hash join for each join.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl

from levada.connectors.config.rml.logical_source import CSV, JSON, XML, LogicalSource
from levada.connectors.config.rml.source_path import find_file
from levada.connectors.config.rml.triples_maps import Join, TriplesMap
from levada.connectors.config.row_mapping import RowMapping, Term
from levada.connectors.ingest.lateness import Dead
from levada.connectors.ingest.rml.source_file import read_file
from levada.connectors.ingest.rml.source_rows import read_rows
from levada.connectors.ingest.rml.table_joins import joined_lines, key_table
from levada.connectors.ingest.tables.csv_rows import RawRows
from levada.connectors.ingest.tables.member_names import members_of_rows
from levada.connectors.ingest.tables.row_terms import (
    reference_of,
    row_lines,
    with_formulas,
)
from levada.connectors.sources.read_split import JsonChunk
from levada.core.distribution import install_command
from levada.core.text_columns import joined_view
from levada.errors import SourceError, UsageError, shorten

_ROWS = 100_000
"""The rows of a piece of the output."""


@dataclass
class MapReport:
    """The faults: the first ``limit`` ones as sentences, and the number of all."""

    limit: int = 20
    count: int = 0
    sentences: list[str] = field(default_factory=list)

    def add(self, count: int, sentences: Iterator[str]) -> None:
        """Counts faults."""
        self.count += count
        self.sentences += map(shorten, islice(sentences, self.limit - len(self.sentences)))


class FileMapper:
    """Maps the files of a mapping in ``folder``; ``allowed``: other folders that it may read."""

    def __init__(
        self, maps: Sequence[TriplesMap], folder: Path, allowed: Sequence[Path] = ()
    ) -> None:
        self.maps, self.folder, self.allowed = _with_plain_joins(maps), folder, allowed
        self.report = MapReport()
        self._by_name = {each.name: each for each in self.maps}
        self._needed = _needed_columns(self.maps, self._by_name)
        for source, columns in self._needed.items():
            if source.formulation == XML:
                _check_xpaths(source, columns)
        self._rows: dict[LogicalSource, RawRows] = {}

    def input_bytes(self) -> int:
        """Returns the size of the files. Raises ``UsageError`` for a missing one."""
        return sum({path: path.stat().st_size for path in map(self._file, self._needed)}.values())

    def lines(self) -> Iterator[memoryview]:
        """Yields the N-Quads in pieces. Raises ``UsageError`` for a mapping that does not fit its
        files, ``SourceError`` for a file that cannot be read.
        """
        joined = {self._by_name[j.parent].source for each in self.maps for j in each.joins}
        joined |= {each.source for each in self.maps if each.joins}
        for source, columns in self._needed.items():
            rows = read_rows(source, columns, self.folder, self.allowed)
            self._report_rows(source, rows, columns)
            rows.table = _with_functions(source, rows.table, self.maps)
            triples = [t for each in self.maps if each.source == source for t in each.triples]
            yield from self._row_lines(source, rows, tuple(dict.fromkeys(triples)))
            if source in joined:
                self._rows[source] = rows
        for each in self.maps:
            for join in each.joins:
                yield from self._join_lines(each, join)

    def _row_lines(
        self, source: LogicalSource, rows: RawRows, triples: tuple[tuple[Term, ...], ...]
    ) -> Iterator[memoryview]:
        mapping = RowMapping((), (), (), triples, is_rml=True)
        if not triples:
            return
        for start in range(0, rows.table.height, _ROWS):
            try:
                texts, faults = row_lines(rows.table[start : start + _ROWS], mapping)
            except ValueError as error:
                raise SourceError(f"The source {source.path} cannot be mapped: {error}.") from error
            shown = (_fault(source, rows, start + row, why, text) for row, why, text in faults)
            self.report.add(len(faults), shown)
            yield joined_view(texts)

    def _join_lines(self, child: TriplesMap, join: Join) -> Iterator[memoryview]:
        """Yields the lines of a join."""
        parent = self._by_name[join.parent]
        children, parents = zip(*join.conditions, strict=True)
        others = key_table(self._rows[parent.source].table, parent.subject, parents)
        table = self._rows[child.source].table
        for start in range(0, table.height, _ROWS):
            try:
                rows = table[start : start + _ROWS]
                lines = joined_lines(rows, join.terms, children, others)
            except ValueError as error:
                raise SourceError(f"The join of {child.name} is too large: {error}.") from error
            yield joined_view(lines["text"])

    def _report_rows(self, source: LogicalSource, rows: RawRows, columns: Sequence[str]) -> None:
        """Reports the records that cannot be read, and columns that no record has."""
        self.report.add(len(rows.dead), (self._dead(source, dead) for dead in rows.dead))
        empty = [name for name in columns if not _has_value(rows.table[name])]
        if not rows.table.height or not empty or source.formulation == CSV:
            return
        data = read_file(source, self._file(source))
        text = data.tobytes()
        for name in empty:
            member = name.rstrip("]*[").rpartition(".")[2].strip("'\"[]@/()")
            if source.formulation == JSON and json.dumps(member).encode() in text:
                continue  # it is there, with null
            said = f"{source.path}: the reference {reference_of(name)} has no value in any record."
            if source.formulation == JSON and (members := _members(rows)):
                said += f" There are {', '.join(members)}."
            self.report.add(1, iter([said]))

    def _dead(self, source: LogicalSource, dead: Dead) -> str:
        data = read_file(source, self._file(source))
        line = int((data[: dead.offset] == 10).sum()) + 1
        return f"{source.path}, line {line}: {dead.reason}: {dead.text}"

    def _file(self, source: LogicalSource) -> Path:
        return find_file(source, self.folder, self.allowed)


def _with_plain_joins(maps: Sequence[TriplesMap]) -> list[TriplesMap]:
    """Returns the maps with joins without conditions as triples of the same row."""
    subjects = {each.name: each.subject for each in maps}
    plain = []
    for each in maps:
        made = tuple(
            (*join.terms[:2], subjects[join.parent], *join.terms[2:])
            for join in each.joins
            if not join.conditions
        )
        joins = tuple(join for join in each.joins if join.conditions)
        plain.append(replace(each, triples=each.triples + made, joins=joins))
    return plain


def _needed_columns(
    maps: Sequence[TriplesMap], by_name: dict[str, TriplesMap]
) -> dict[LogicalSource, list[str]]:
    """Returns the columns of each source that terms and joins use."""
    needed: dict[LogicalSource, dict[str, None]] = {each.source: {} for each in maps}

    def need(source: LogicalSource, *terms: Term) -> None:
        let = tuple(pair for each in maps if each.source == source for pair in each.let)
        mapping = RowMapping((), (), let, (terms,), is_rml=True)
        needed[source].update(dict.fromkeys(mapping.needed_columns))

    for each in maps:
        for triple in each.triples:
            need(each.source, *triple)
        for join in each.joins:
            parent = by_name[join.parent]
            need(each.source, *join.terms, *(child for child, _ in join.conditions))
            need(parent.source, parent.subject, *(other for _, other in join.conditions))
    return {source: list(columns) for source, columns in needed.items()}


def _with_functions(
    source: LogicalSource, table: pl.DataFrame, maps: Sequence[TriplesMap]
) -> pl.DataFrame:
    """Returns the rows of a source with the columns that functions make. Raises ``SourceError``."""
    let = dict(pair for each in maps if each.source == source for pair in each.let)
    try:
        return with_formulas(table, tuple(let.items())) if let else table
    except ValueError as error:
        raise SourceError(f"The source {source.path} cannot be mapped: {error}.") from error


def _check_xpaths(source: LogicalSource, columns: Sequence[str]) -> None:
    """Checks the expressions of a source of XML. Raises ``UsageError``."""
    try:
        from levada.connectors.ingest.rml.xml_rows import compile_xpath  # here: lxml is an extra
    except ModuleNotFoundError as error:
        raise UsageError(
            "XML needs lxml, which is not installed.", hint=install_command("rml")
        ) from error
    if not source.iterator:
        raise UsageError(
            f"The source {source.path} of XML has no rml:iterator.", hint='Say "/rooms/room".'
        )
    for expression in (source.iterator, *columns):
        compile_xpath(expression, source.namespaces)


def _has_value(column: pl.Series) -> bool:
    if isinstance(column.dtype, pl.List):
        column = column.list.explode()
    return column.null_count() < len(column)


def _members(rows: RawRows) -> list[str]:
    """Returns the names of the members of the first records."""
    texts = [" ".join(rows.text(row).split("\n")) for row in range(min(rows.table.height, 20))]
    return members_of_rows(JsonChunk(np.frombuffer("\n".join(texts).encode(), np.uint8)))


def _fault(source: LogicalSource, rows: RawRows, row: int, reason: str, text: str) -> str:
    shown = f": {text}" if text else ""
    return f"{source.path}, record {row + 1}{rows.place(row)}: {reason}{shown}"

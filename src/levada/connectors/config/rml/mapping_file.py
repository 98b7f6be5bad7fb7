"""Loads a mapping file of RML or YARRRML by its content, and makes it the mapping of a stream."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import xxhash

from levada.connectors.config.rml.logical_source import CSV, XML, LogicalSource
from levada.connectors.config.rml.mapping_graph import RDF_FORMATS, parse_graph, read_text
from levada.connectors.config.rml.source_path import find_file
from levada.connectors.config.rml.triples_maps import Join, TriplesMap, read_triples_maps
from levada.connectors.config.rml.yarrrml import is_yarrrml, to_turtle
from levada.connectors.config.row_mapping import RowMapping, TableJoin
from levada.connectors.config.yaml_file import read_yaml
from levada.errors import MissingError, UsageError

MAX_TABLE = 64 << 20
"""The most bytes of a table that a mapping of a stream joins."""
_YAML = (".yml", ".yaml")


def is_rdf(path: str | os.PathLike[str]) -> bool:
    """Whether a mapping file is RDF, by its extension.

    >>> is_rdf("a.rml.ttl"), is_rdf("a.yml")
    (True, False)
    """
    return Path(path).suffix.lower() in RDF_FORMATS


def load_triples_maps(path: str | os.PathLike[str], base: str = "") -> tuple[TriplesMap, ...]:
    """Loads the triples maps of a file. ``base``: of relative IRIs. Raises ``UsageError`` with the
    line of a fault.
    """
    file, name = Path(path), os.fspath(path)
    text = read_text(file)
    if file.suffix.lower() in _YAML:
        return yaml_triples_maps(name, read_yaml(file, "mapping"), base)
    suffix = file.suffix if is_rdf(file) else ".ttl"
    return read_triples_maps(parse_graph(name, text, suffix, base), base)


def yaml_triples_maps(path: str, document: Any, base: str = "") -> tuple[TriplesMap, ...]:
    """Returns the triples maps of a YARRRML document. Raises ``UsageError``."""
    if not is_yarrrml(document):
        raise UsageError(
            f"The mapping {path} is YAML without mappings:, so it is not YARRRML.",
            hint="A native mapping file is for mapping= of a stream.",
        )
    graph = parse_graph(path, to_turtle(path, document), ".ttl", base)
    graph.text = read_text(Path(path))  # so that faults have lines of the file
    return read_triples_maps(graph, base)


def stream_mapping(path: str, maps: tuple[TriplesMap, ...]) -> RowMapping:
    """Returns the mapping of a stream. A source that only joins read is a static table; the others
    must be one. Raises ``UsageError``.
    """
    by_name = {each.name: each for each in maps}
    parents = {by_name[join.parent].source for each in maps for join in each.joins}
    sources = list(dict.fromkeys(each.source for each in maps if each.joins))
    sources = sources or list(dict.fromkeys(each.source for each in maps))
    if len(sources) > 1:
        names = ", ".join(source.path for source in sources)
        raise UsageError(
            f"The mapping {path} has several sources: {names}. A stream is one of them.",
            hint="Write a mapping for each stream. Tables that joins read may stay.",
        )
    (source,) = sources
    for each in maps:
        if each.source != source and each.source not in parents:
            raise UsageError(
                f"The mapping {path} has a source {each.source.path} that no join reads.",
                hint="Write a mapping for each stream.",
            )
    if source.formulation == XML:
        raise UsageError(
            f"The mapping {path} reads XML, which is not a format of streams.",
            hint="levada map writes the quads of XML files.",
        )
    rules = [each for each in maps if each.source == source]
    subjects = {each.name: each.subject for each in maps}
    triples = [triple for each in rules for triple in each.triples]
    joins = []
    for join in (join for each in rules for join in each.joins):
        if join.conditions:
            joins.append(_table_join(path, source, join, by_name[join.parent]))
        else:
            triples.append((*join.terms[:2], subjects[join.parent], *join.terms[2:]))
    let = {name: formula for each in rules for name, formula in each.let}
    return RowMapping(
        (),
        (),
        tuple(let.items()),
        tuple(dict.fromkeys(triples)),
        is_rml=True,
        iterator=source.iterator,
        is_csv=source.formulation == CSV,
        nulls=source.nulls,
        joins=tuple(joins),
    )


def _table_join(path: str, source: LogicalSource, join: Join, parent: TriplesMap) -> TableJoin:
    """Returns a join with the table that another triples map reads. Raises ``UsageError``."""
    if parent.source == source:
        raise UsageError(
            f"The mapping {path} joins the stream with itself in {parent.name}.",
            hint="A query joins elements of a stream; a mapping joins rows with static tables.",
        )
    file = find_file(parent.source, Path(path).parent)
    if file.stat().st_size > MAX_TABLE:
        raise UsageError(
            f"The table {file} has more than {MAX_TABLE >> 20} MB: a mapping cannot join it.",
            hint="Say --static with its triples, and join them in the query.",
        )
    return TableJoin(
        join.terms,
        tuple(child for child, _ in join.conditions),
        parent.subject,
        tuple(other for _, other in join.conditions),
        parent.source,
        os.fspath(file.absolute()),
        digest_of(file),
    )


def digest_of(file: Path) -> str:
    """Returns a digest of a file's content. Raises ``MissingError``."""
    try:
        return xxhash.xxh3_64_hexdigest(file.read_bytes())
    except OSError as error:
        raise MissingError(f"The table {file} cannot be read: {error.strerror}.") from error

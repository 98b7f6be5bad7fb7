"""Loads the mapping file of a stream by its content: a native one, RML or YARRRML."""

from __future__ import annotations

from pathlib import Path

from levada.connectors.config.rml.mapping_file import (
    is_rdf,
    load_triples_maps,
    stream_mapping,
    yaml_triples_maps,
)
from levada.connectors.config.rml.yarrrml import is_yarrrml
from levada.connectors.config.row_mapping import RowMapping, parse_mapping
from levada.connectors.config.yaml_file import read_yaml


def load_mapping(path: str | Path) -> RowMapping:
    """Loads a mapping file. Raises ``UsageError`` with the place of the fault."""
    name = str(path)
    if is_rdf(path):
        return stream_mapping(name, load_triples_maps(path))
    document = read_yaml(Path(path), "mapping file")
    if is_yarrrml(document):
        return stream_mapping(name, yaml_triples_maps(name, document))
    return parse_mapping(name, document)

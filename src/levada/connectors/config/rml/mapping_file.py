"""Loads a mapping file of RML or YARRRML by its content."""

from __future__ import annotations

import os
from pathlib import Path

from levada.connectors.config.rml.mapping_graph import RDF_FORMATS, parse_graph, read_text
from levada.connectors.config.rml.triples_maps import TriplesMap, read_triples_maps
from levada.errors import UsageError


def load_triples_maps(path: str | os.PathLike[str], base: str = "") -> tuple[TriplesMap, ...]:
    """Loads the triples maps of a file. ``base``: of relative IRIs. Raises ``UsageError`` with the
    line of a fault.
    """
    file = Path(path)
    suffix = file.suffix.lower()
    text = read_text(file)
    if suffix in (".yml", ".yaml"):
        raise UsageError(f"The mapping {file} is YAML: only mappings in RDF are files of RML.")
    if suffix not in RDF_FORMATS:
        suffix = ".ttl"
    return read_triples_maps(parse_graph(os.fspath(path), text, suffix, base), base)

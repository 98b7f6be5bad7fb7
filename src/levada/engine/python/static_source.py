"""Static data from Python, as N-Triples lines of a graph."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from levada.connectors.spool.row_batches import ArrowFrame, RdfGraph, graph_lines, term_text
from levada.runtime.driver.static_graphs import Source

StaticSource = str | os.PathLike[str] | RdfGraph | Iterable[str | Sequence[object]]
TableSource = str | os.PathLike[str] | ArrowFrame | Sequence[Mapping[str, Any]]
_DEFAULT = "urn:x-rdflib:default"


def static_sources(source: StaticSource, graph: str | None) -> Iterator[tuple[Source, str | None]]:
    """Yields paths unchanged, and triples as lines. A dataset has its graphs unless ``graph`` is
    set.

    >>> list(static_sources([("<e:a>", "<e:b>", 5)], None))[0][0]
    ['<e:a> <e:b> "5"^^<http://www.w3.org/2001/XMLSchema#integer>']
    """
    if isinstance(source, (str, os.PathLike)):
        yield source, graph
    elif not isinstance(source, RdfGraph):
        yield [_line(item) for item in source], graph
    elif (parts := getattr(source, "graphs", None)) is None:  # no dataset
        yield graph_lines(source).to_list(), graph
    else:
        for part in parts():
            name = str(part.identifier)
            part_graph = graph or (None if name == _DEFAULT else name)
            yield graph_lines(part).to_list(), part_graph


def _line(item: str | Sequence[object]) -> str:
    return item if isinstance(item, str) else " ".join(str(term_text(part)) for part in item)

"""What a leaf of the algebra reads: a window, a static graph, or the merge of several."""

from __future__ import annotations

from levada.frozen import frozen


@frozen
class InWindow:
    """Reads the content of the query's window with this name (index into ``Query.windows``)."""

    index: int


@frozen
class InGraph:
    """Reads a static graph: ``name`` is its IRI, None the default graph."""

    name: str | None


@frozen
class InMerge:
    """Reads the RDF merge of these windows and, if ``static``, of the default graph: a triple in
    two of them is there once.
    """

    windows: tuple[int, ...]
    static: bool


Source = InWindow | InGraph | InMerge

"""Rewrites JSON-LD with type maps into a form that pyoxigraph reads.

In a map of ``@container: @type`` the type of a node is its key. pyoxigraph 0.5 refuses such a node
if it has an ``@id``, since it looks for a type before that. Under ``@nest`` the same identifier
follows the type, and means the same (JSON-LD 1.1 API, 5.1.2, step 14). It also refuses ``@set``
beside ``@type``, which does not affect statements. The context that the term of a key has would
not reach the nodes within a node (5.1.2, step 13.8.2): such a document is refused. A document is
rewritten if its first megabyte declares such a map; its text and its values are in memory then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from levada.connectors.ingest.parse.document_limits import Malformed

_ID, _NEST = "@id", "@nest"
_DECLARED = re.compile(rb'"@container"\s*:\s*(?:\[[^\]]*)?"@type"')


def declares_type_map(text: bytes) -> bool:
    """Whether a text has a term whose values are maps by type.

    >>> declares_type_map(b'{"@context": {"of": {"@id": "e:of", "@container": "@type"}}}')
    True
    """
    return _DECLARED.search(text) is not None


def nest_ids(text: bytes) -> bytes:
    """Returns a document with the identifiers of nodes in type maps under ``@nest``. Raises
    ``ValueError`` for invalid JSON, and ``Malformed``.
    """
    document = json.loads(text)
    maps, ids, scoped = set[str](), {_ID}, set[str]()
    for terms in _contexts(document):
        for name, definition in terms.items():
            term = definition if isinstance(definition, dict) else {_ID: definition}
            container = _as_list(term.get("@container"))
            if "@type" in container:
                maps.add(name)
                term["@container"] = [kind for kind in container if kind != "@set"]
            if term.get(_ID) == _ID:
                ids.add(name)
            if "@context" in term:
                scoped.add(name)
    for value in _objects(document):
        for name in maps.intersection(value):
            by_type = value[name] if isinstance(value[name], dict) else {}
            for kind in scoped.intersection(by_type):
                if sum(1 for _ in _objects(by_type[kind])) > len(_as_list(by_type[kind])):
                    raise Malformed(f"the context of {kind}, a key of a type map, is not supported")
            for node in (node for nodes in by_type.values() for node in _as_list(nodes)):
                if isinstance(node, dict) and (keys := ids.intersection(node)):
                    nested = {key: node.pop(key) for key in keys}
                    node[_NEST] = [*_as_list(node.get(_NEST)), nested]
    return json.dumps(document).encode()


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yields the objects of a document, without those of its contexts."""
    for part in _as_list(value):
        if isinstance(part, dict):
            yield part
            for name, inner in part.items():
                if name != "@context":
                    yield from _objects(inner)
        elif isinstance(part, list):
            yield from _objects(part)


def _contexts(value: Any) -> Iterator[dict[str, Any]]:
    """Yields the contexts of a document, and those within them."""
    for part in _as_list(value):
        for inner in part.values() if isinstance(part, dict) else _as_list(part):
            if isinstance(inner, dict | list):
                yield from _contexts(inner)
        if isinstance(part, dict):
            yield from (
                terms for terms in _as_list(part.get("@context")) if isinstance(terms, dict)
            )

"""``/openapi.json``: the routes as OpenAPI 3.1, from the table that routes requests."""

from __future__ import annotations

import inspect
import re
from typing import Any

from levada import __version__
from levada.server.content_negotiation import EVENTS, MEDIA
from levada.server.route import JSON, ApiRoute
from levada.server.sparql.sparql_routes import GRAPHS, SOLUTIONS, TABLES
from levada.server.sparql.static_routes import GIVES

_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")
_TEXT = {"type": "string"}
SPARQL = [*SOLUTIONS, *TABLES, *GRAPHS]
_SEVERAL = {
    "results": [EVENTS, *MEDIA],
    "sparql": SPARQL,
    "graph": [*GIVES],
    "topology": ["text/plain", JSON],
}
_PROBLEM = {"$ref": "#/components/schemas/Problem"}
_FIELDS = {
    "title": _TEXT,
    "status": {"type": "integer"},
    "detail": _TEXT,
    "line": {"type": "integer"},
    "column": {"type": "integer"},
    "expected": {"type": "array", "items": _TEXT},
    "hint": _TEXT,
    "faulty_rows": {"type": "integer"},
    "limit": _TEXT,
}


def document(ways: tuple[ApiRoute, ...]) -> dict[str, Any]:
    """Returns the OpenAPI document of the routes."""
    paths: dict[str, Any] = {}
    for way in ways:
        path = _PARAMETER.sub(r"{\1}", way.path)
        paths.setdefault(path, {})[way.method.lower()] = _operation(way)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Levada",
            "version": __version__,
            "summary": "Continuous SPARQL and CQL queries over streams",
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {"Problem": {"type": "object", "properties": _FIELDS}},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(way: ApiRoute) -> dict[str, Any]:
    summary = " ".join(inspect.cleandoc(way.endpoint.__doc__ or "").split())
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": _TEXT}
        for name in _PARAMETER.findall(way.path)
    ]
    parameters += [{"name": name, "in": "query", "schema": _TEXT} for name in way.asks]
    parameters += [{"name": name, "in": "header", "schema": _TEXT} for name in way.heads]
    operation: dict[str, Any] = {
        "operationId": way.endpoint.__name__,
        "summary": summary,
        "parameters": parameters,
        "responses": {
            **{str(status): _answer(way) for status in way.gives},
            "default": {
                "description": "What is wrong.",
                "content": {"application/problem+json": {"schema": _PROBLEM}},
            },
        },
    }
    if way.takes:
        content = {media: {"schema": _TEXT} for media in way.takes}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _answer(way: ApiRoute) -> dict[str, Any]:
    medias = _SEVERAL.get(way.answers, [way.answers])
    content: dict[str, Any] = {media: {} for media in medias if media}
    if way.tells:
        schema = {"type": "object", "required": list(way.tells)}
        content[JSON] = {"schema": schema}
    return {"description": "Done.", "content": content}

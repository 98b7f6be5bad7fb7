"""Expands With: each use of a view is its query in brackets, as if the text had it there.

The plan shares equal parts, so a view that is used twice is computed once. Cost: linear in the text
with its views expanded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from levada.errors import QuerySyntaxError, Span
from levada.language.cql.ast import Item, Select, Statement, Table

_Node = TypeVar("_Node")
MOST_TABLES = 256
"""Tables that a query with With may read."""


def with_views(node: _Node, views: Mapping[str, Statement]) -> _Node:
    """Returns a part of a query in which tables with these names are the queries of the views."""
    if isinstance(node, Table) and node.query is None and node.stream in views:
        return replace(node, stream="", query=views[node.stream])
    if isinstance(node, tuple):
        parts = tuple(with_views(part, views) for part in node)
        same = all(a is b for a, b in zip(parts, node, strict=True))
        return node if same else parts  # type: ignore[return-value]
    if not is_dataclass(node) or isinstance(node, Span | type):
        return node
    changed: dict[str, Any] = {}
    for field in fields(node):
        value = getattr(node, field.name)
        new = with_views(value, views)
        if new is not value:
            changed[field.name] = new
    return replace(node, **changed) if changed else node


def check_size(query: Statement) -> None:
    """Raises ``QuerySyntaxError`` for a query that reads too many tables once With is expanded."""
    count = _table_count(query, {})
    if count > MOST_TABLES:
        message = f"With its views expanded this query reads {count:,} tables."
        hint = f"{MOST_TABLES} are possible. Register a view: Register Relation V (..) As Select .."
        raise QuerySyntaxError(message, span=query.span, text=query.text, hint=hint)


def _table_count(node: object, known: dict[int, int]) -> int:
    """Counts the tables below a node; equal parts are one object, which is counted once."""
    if isinstance(node, tuple):
        return sum(_table_count(part, known) for part in node)
    if not is_dataclass(node) or isinstance(node, Span | type):
        return 0
    if id(node) not in known:
        below = (_table_count(getattr(node, field.name), known) for field in fields(node))
        known[id(node)] = sum(below) + isinstance(node, Table)
    return known[id(node)]


def named_columns(query: Statement, names: Sequence[str], name: str) -> Statement:
    """Returns a query whose columns have these names. Raises ``QuerySyntaxError``."""
    body = query.body
    select_items = body.items if isinstance(body, Select) else ()
    items = [item for item in select_items if isinstance(item, Item)]
    if not isinstance(body, Select) or len(items) < len(body.items):
        message = f"The columns of {name} cannot be named here."
        hint = "Name them in its Select: Select x As a."
        raise QuerySyntaxError(message, span=query.span, text=query.text, hint=hint)
    if len(names) != len(body.items):
        message = f"{name} has {len(names)} names for {len(body.items)} columns."
        raise QuerySyntaxError(message, span=query.span, text=query.text)
    named = tuple(replace(i, alias=alias) for i, alias in zip(items, names, strict=True))
    return replace(query, body=replace(body, items=named))

"""Assigns the statements of a CQL text: declarations, views, queries.

There are two equivalent spellings. STREAM's scripts label statements, and name the result of a
query in the statement after it:

    table : Register Stream S (k Integer);          source : S.dat
    vquery : Select k + 1 From S;                   vtable : Register Stream V (n Integer);
    query : Select n From V [Rows 2];               dest : out

Without labels the form decides: ``Register Stream V (n Integer) As Select k + 1 From S;`` is a
view, ``Register ..`` alone a declaration, everything else a query. A name is declared once. A view
can use the views before it, so there are no cycles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from levada.core.frozen import frozen
from levada.errors import QueryError, QuerySyntaxError, Span
from levada.language.cql.ast import Declared, Schema, Script, ScriptQuery, Statement, View


@frozen
class Part:
    """A statement or a line of a script: query, table, vquery, vtable, source or dest."""

    kind: str
    span: Span
    place: tuple[int, int] = (0, 0)
    query: Statement | None = None
    schema: Schema | None = None
    path: str = ""


def script_of(parts: Sequence[Part], text: str) -> Script:
    """Returns the script of these parts.

    Raises ``QuerySyntaxError`` for a part without its other half, ``QueryError`` for a repeated
    name.
    """
    declared: list[Declared] = []
    views: list[View] = []
    queries: list[ScriptQuery] = []
    open_: Part | None = None
    for part in parts:
        if (open_ is not None) != (part.kind == "vtable"):
            raise _unpaired_error(open_ or part, text)
        match part:
            case Part("vquery"):
                open_ = part
            case Part("vtable", schema=Schema() as schema) if (
                open_ is not None and open_.query is not None
            ):
                views.append(View(schema, open_.query))
                open_ = None
            case Part("table", schema=Schema() as schema, query=Statement() as query):
                views.append(View(schema, query))
            case Part("table", schema=Schema() as schema):
                declared.append(Declared(schema))
            case Part("source", path=path) if declared:
                declared[-1] = replace(declared[-1], source=path)
            case Part("query", query=Statement() as query):
                queries.append(ScriptQuery(query, views=len(views), places=(part.place,)))
            case Part("dest", path=path) if queries:
                queries[-1] = replace(
                    queries[-1], dest=path, places=(*queries[-1].places, part.place)
                )
            case _:
                raise QuerySyntaxError(
                    f"A {part.kind} line belongs to a statement before it.",
                    span=part.span,
                    text=text,
                )
    if open_ is not None:
        raise _unpaired_error(open_, text)
    _check_names([*(d.schema for d in declared), *(v.schema for v in views)], text)
    return Script(tuple(declared), tuple(views), tuple(queries))


def _unpaired_error(part: Part, text: str) -> QuerySyntaxError:
    missing = "no vquery before it" if part.kind == "vtable" else "no vtable after it"
    return QuerySyntaxError(f"This {part.kind} has {missing}.", span=part.span, text=text)


def _check_names(schemas: Sequence[Schema], text: str) -> None:
    seen: set[str] = set()
    for schema in schemas:
        if schema.name in seen:
            raise QueryError(f"{schema.name} is registered twice.", span=schema.span, text=text)
        seen.add(schema.name)

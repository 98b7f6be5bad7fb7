"""The queries of a CQL file with several statements, each with the views before it.

The text of each query is the whole file in which the other queries are blank. So positions in
errors are positions in the file. A query is named after the last part of its ``dest`` if that is a
valid name and unique. Else it is named after the file, with a number if there are several. Cost:
linear in the file, for each query.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePosixPath

from levada.cli.app.app_file import QuerySource
from levada.core.names import check_query_name
from levada.errors import UsageError
from levada.language.cql.ast import ScriptQuery
from levada.language.cql.parser import parse_script
from levada.language.dialects.detect import is_cql

_SHOWN = re.compile(r"\S")


def statements(source: QuerySource) -> tuple[QuerySource, ...]:
    """Returns the queries of a CQL script. Any other source is returned alone and unchanged:
    another language, one query, or a text that cannot be parsed.

    >>> text = "Register Stream V (n Integer) As Select k From S; "
    >>> text += "Select n From V; Select n From V [Rows 1];"
    >>> [query.name for query in statements(QuerySource("q", text, "cql"))]
    ['q-1', 'q-2']
    """
    if not is_cql(source.spoken):
        return (source,)
    try:
        asked = parse_script(source.text).queries
    except Exception:  # the stage that parses the query reports it
        return (source,)
    if len(asked) < 2:
        return (source,)
    names = [_name(query) for query in asked]
    return tuple(
        replace(
            source,
            name=name if name and names.count(name) == 1 else f"{source.name}-{i + 1}",
            text=_without_statements(
                source.text, [other for j, other in enumerate(asked) if j != i]
            ),
        )
        for i, name in enumerate(names)
    )


def _name(asked: ScriptQuery) -> str:
    try:
        return check_query_name(PurePosixPath(asked.dest).name) if asked.dest else ""
    except UsageError:
        return ""


def _without_statements(text: str, others: list[ScriptQuery]) -> str:
    """Replaces statements, their semicolons and dest lines by blanks; line ends remain."""
    for other in others:
        for start, stop in other.places:
            end = text.index(";", stop) + 1 if text[stop:].lstrip().startswith(";") else stop
            text = text[:start] + _SHOWN.sub(" ", text[start:end]) + text[end:]
    return text

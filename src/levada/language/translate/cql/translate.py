"""Translates CQL to algebra: a query, and the views defined before it, over windowed tuple streams.

``from_clause`` translates tables, with a level of windows for each query; ``select`` a Select
block; ``scope`` names; ``expressions`` types and operators. Cost: linear in the text with its views
expanded. Each use of a view is translated separately, and the plan shares equal parts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from levada.core.query_model import Form
from levada.errors import QueryError, QuerySyntaxError, Span, UnsupportedError
from levada.language.cql.ast import Script, ScriptQuery
from levada.language.cql.parser import parse_script
from levada.language.dialects.detect import STREAM
from levada.language.translate.cql.from_clause import Levels
from levada.language.translate.sparql.windows import reporting
from levada.plan.logical import nodes
from levada.plan.logical.depth_limit import check_depth
from levada.plan.logical.properties import Analysis
from levada.plan.logical.query_options import QueryOptions

Streams = Mapping[str, Mapping[str, str]]


def translate_cql(
    text: str,
    streams: Streams,
    options: QueryOptions = QueryOptions(),  # noqa: B008 a frozen value
    relations: Collection[str] = (),
    *,
    dialect: str = "cql",
    rdf: Collection[str] = (),
    tables: Streams = MappingProxyType({}),
) -> nodes.Query:
    """Returns the algebra of a CQL text: one query, and the views before it. ``dialect``: cql or
    stream. ``rdf``: the names of RDF streams, for messages.

    ``streams`` maps each tuple stream's word to its columns and their types (integer, double,
    string, boolean), in order. The event time is a further column ``ts`` (integer, ms) unless the
    schema has one. ``relations``: those of them whose rows are inserted and deleted. ``tables``:
    the columns of static tables. Raises ``QueryError``.

    >>> text = "Istream(Select k From A [Range 5 s] Where v > 1)"
    >>> query = translate_cql(text, {"A": {"k": "integer", "v": "double"}})
    >>> query.output.value, query.variables, query.windows[0].window.range
    ('ISTREAM', ('k',), 5000)
    """
    try:
        script = parse_script(text, quoted_texts=dialect == STREAM.name)
        return _translate(script, text, streams, options, (relations, rdf, tables))
    except RecursionError:
        raise QueryError("The query is nested too deeply.", text=text) from None


def _translate(
    script: Script,
    text: str,
    streams: Streams,
    options: QueryOptions,
    others: tuple[Collection[str], Collection[str], Streams],
) -> nodes.Query:
    if len(script.queries) != 1:
        count_text = "no query" if not script.queries else f"{len(script.queries)} queries"
        span = script.queries[1].query.span if script.queries else Span(1, 1)
        raise QuerySyntaxError(f"This text has {count_text}, one is needed.", span=span, text=text)
    asked, (relations, rdf, tables) = script.queries[0], others
    return translate_query(
        script, asked, text, streams, options, relations=relations, rdf=rdf, tables=tables
    )


def translate_query(
    script: Script,
    asked: ScriptQuery,
    text: str,
    streams: Streams,
    options: QueryOptions,
    *,
    relations: Collection[str] = (),
    rdf: Collection[str] = (),
    tables: Streams = MappingProxyType({}),
) -> nodes.Query:
    """Returns the algebra of one query of a script. Raises ``QueryError``."""
    levels = Levels(text, streams, relations, script, options, tables=tables)
    levels.rdf = rdf
    top = levels.outermost(asked)
    levels.check_report()
    check_depth(top.node, text)
    if (
        options.empty_reports
        and (properties := Analysis().properties_of(top.node)).derived
        and properties.matchless
    ):
        message = (
            "Empty reports of an aggregate without Group By over a view or a query "
            "in brackets are not there yet in CQL."
        )
        raise UnsupportedError(message, span=asked.query.span, text=text)
    return nodes.Query(
        form=Form.SELECT,
        pattern=top.node,
        variables=tuple(name for name, _ in top.columns),
        windows=tuple(levels.windows),
        output=top.output,
        text=text,
        reports=reporting(options),
    )

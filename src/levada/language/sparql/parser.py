"""Parses the text of a query into its tree: decode, parse, build, check.

The grammar is ``sparql.lark`` with the clauses of the dialect (``dialects``). Lark makes an LALR(1)
parser of it at the dialect's first query (some 0.4 s, or 30 ms from Levada's cache folder). A query
of CityBench's size then takes about 2 ms. The parser has no state between texts, so threads may
share it.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from lark import Lark
from lark.exceptions import UnexpectedInput

from levada.core.cache_folder import parser_file
from levada.errors import QuerySyntaxError
from levada.language.dialects.detect import dialect_of, is_cql
from levada.language.dialects.dialect import Dialect
from levada.language.dialects.rspql import RSPQL
from levada.language.sparql import ast
from levada.language.sparql.build.query_unit import Builder
from levada.language.sparql.source_text import decode
from levada.language.sparql.static_checks import check, explain_foreign_clause
from levada.language.syntax_errors import syntax_error, words_of


def parse(text: str, dialect: str | None = None) -> ast.QueryUnit:
    """Returns the tree of a SPARQL query with windows, in the named or else the recognized dialect.

    Raises ``QuerySyntaxError`` (with the place and the expected words) or, for an undeclared
    prefix, ``UnknownNameError``; ``UsageError`` for an unknown dialect.

    >>> text = "REGISTER ISTREAM <o> AS SELECT ?s FROM NAMED WINDOW <w> ON <s> [NOW] "
    >>> parse(text + "{ WINDOW <w> { ?s ?p 1 } }").output
    'ISTREAM'
    """
    spoken = dialect_of(text, dialect)
    spoken = RSPQL if is_cql(spoken.name) else spoken
    source = decode(text)
    parser = _parser(spoken.grammar)
    try:
        unit: ast.QueryUnit = Builder(source, spoken).build(parser.parse(source.decoded))
        check(unit, text)
    except UnexpectedInput:
        raise _in_dialect(syntax_error(parser, source), spoken, asked=dialect is not None) from None
    except RecursionError:
        raise QuerySyntaxError("The query is nested too deeply.", text=text) from None
    return unit


def words(dialect: str) -> set[str]:
    """Returns the keywords and functions of a dialect of SPARQL, in upper case.

    >>> {"SELECT", "WINDOW", "STRLEN"} <= words("rspql"), "WINDOW" in words("csparql")
    (True, False)
    """
    return words_of(_parser(dialect_of("", dialect).grammar).terminals)


def _in_dialect(error: QuerySyntaxError, spoken: Dialect, *, asked: bool) -> QuerySyntaxError:
    """Adds an explanation of dialects to an error."""
    assert error.span is not None, "where a parser stops is a place"
    if other := explain_foreign_clause(error.text, error.span, spoken, asked=asked):
        error.hint = other
    elif not asked and spoken is not RSPQL:
        error.hint = f"{error.hint} The text was read as {spoken.title}.".strip()
    return error


@cache
def _parser(clauses: tuple[str, ...]) -> Lark:
    """Returns the parser of SPARQL with windows and these files of clauses."""
    folder = files("levada.language")
    places = [
        "sparql/sparql.lark",
        "dialects/windows.lark",
        *(f"dialects/{name}" for name in clauses),
    ]
    grammar = "\n".join(folder.joinpath(place).read_text(encoding="utf-8") for place in places)
    cache = parser_file(grammar) or False
    return Lark(grammar, start="unit", parser="lalr", lexer="contextual", cache=cache)

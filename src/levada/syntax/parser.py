"""From the text of a query to its tree: decode, parse, build, check.

The grammar is one file, ``sparql.lark``; Lark makes an LALR(1) parser of it at the first query (some 0.4 s), and a query of
CityBench's size then takes about 2 ms. The parser has no state between texts, so threads may share it.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from lark import Lark
from lark.exceptions import UnexpectedInput

from levada.errors import QuerySyntaxError
from levada.syntax import ast
from levada.syntax.build.unit import Builder
from levada.syntax.check import check
from levada.syntax.failure import syntax_error
from levada.syntax.source import decode


def parse(text: str) -> ast.QueryUnit:
    """The tree of a SPARQL 1.1 or RSP-QL query.

    Raises ``QuerySyntaxError`` (with the place, and what was expected there) or, for an undeclared prefix, ``UnknownNameError``.

    >>> parse("REGISTER ISTREAM <o> AS SELECT ?s FROM NAMED WINDOW <w> ON <s> [NOW] { WINDOW <w> { ?s ?p 1 } }").register.operator
    'ISTREAM'
    """
    source = decode(text)
    try:
        tree = _parser().parse(source.decoded)
        unit: ast.QueryUnit = Builder(source).build(tree)
        check(unit, text)
    except UnexpectedInput:
        raise syntax_error(_parser(), source) from None
    except RecursionError:
        raise QuerySyntaxError("The query is nested too deeply.", text=text) from None
    return unit


@cache
def _parser() -> Lark:
    grammar = files("levada.syntax").joinpath("sparql.lark").read_text(encoding="utf-8")
    return Lark(grammar, start="unit", parser="lalr", lexer="contextual")

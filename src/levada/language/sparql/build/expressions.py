"""Builds expressions (SPARQL 1.1, section 17, and the aggregates of section 11)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from lark import Token, Tree

from levada.core.expressions import AggregateFunction
from levada.core.rdf_terms import LANG_STRING, RDF, XSD, Iri, Literal
from levada.core.user_functions import UserAggregate, find_function
from levada.errors import QuerySyntaxError, Span, UnknownNameError, near
from levada.language.sparql import ast
from levada.language.sparql.iri import resolve
from levada.language.sparql.source_text import Source

# Builds terms: names by prefixes and BASE, literals, blank nodes (SPARQL 1.1, section 4.1).
#
# The builder is one class in four files, from terms to the whole query. Each method has the name of
# the grammar rule whose children it gets, already built, in the order of the text. So a declaration
# takes effect before later text is built.


_BEYOND_LATIN_1 = (
    "\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u037d\u037f-\u1fff"
    "\u200c-\u200d\u203f-\u2040\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_STANDARD = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": XSD,
}
"""Well-known prefixes."""
_NO_NAME_CHARACTER = re.compile(f"[^\\x00-\\x7f\u00b7{_BEYOND_LATIN_1}]")
_NOT_FIRST = re.compile("(?:^|[:?$])[\u0300-\u036f\u203f-\u2040]")
_STRING_ESCAPE = re.compile(r"\\([tbnrf\\\"'])")
_ESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", "\\": "\\", '"': '"', "'": "'"}
_LOCAL_ESCAPE = re.compile(r"\\(.)")
_NUMBERS = {"INTEGER": "integer", "DECIMAL": "decimal", "DOUBLE": "double"}


class Terms:
    """Builds terms; keeps the source of one parse, the declarations so far, and the number of
    nameless blank nodes.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._prefixes: dict[str, str] = {}
        self._base: str | None = None
        self._nameless = 0

    def build(self, tree: Tree[Token]) -> Any:
        """Builds the node of a parse tree: its children first, then itself by its rule's method."""
        children = [
            self.build(child) if isinstance(child, Tree) else child for child in tree.children
        ]
        return getattr(self, tree.data)(*children)

    def base_declaration(self, iri: Token) -> None:
        """Sets BASE, relative to the base before it."""
        self._base = resolve(iri[1:-1], self._base)

    def prefix_declaration(self, name: Token, iri: Token) -> None:
        """Sets PREFIX: a later one of the same name replaces an earlier one."""
        self._check_name(name)
        self._prefixes[name[:-1]] = resolve(iri[1:-1], self._base)

    def var(self, token: Token) -> ast.Var:
        """A variable."""
        self._check_name(token)
        return ast.Var(token[1:], self._span(token))

    def iri(self, token: Token) -> ast.Constant:
        """An IRI in angle brackets or a prefixed name."""
        if token.startswith("<"):
            return ast.Constant(Iri(resolve(token[1:-1], self._base)), self._span(token))
        self._check_name(token)
        prefix, _, local = token.partition(":")
        if prefix not in self._prefixes:
            raise self._unknown_prefix(prefix, self._span(token))
        return ast.Constant(
            Iri(self._prefixes[prefix] + _LOCAL_ESCAPE.sub(r"\1", local)), self._span(token)
        )

    def literal(
        self, value: ast.Constant, tail: Token | ast.Constant | None = None
    ) -> ast.Constant:
        """A literal; ``tail`` is its language tag or its datatype."""
        if tail is None:
            return value
        assert isinstance(value.term, Literal), "the grammar puts a tail only behind a string"
        if isinstance(tail, Token):
            return ast.Constant(
                Literal(value.term.lexical, LANG_STRING, tail[1:].lower()), value.span
            )
        assert isinstance(tail.term, Iri), "a datatype is an IRI"
        return ast.Constant(Literal(value.term.lexical, tail.term.value), value.span)

    def string(self, token: Token) -> ast.Constant:
        """A string in one of the four quotings, its escapes decoded."""
        width = 3 if token.type == "LONG_STRING" else 1
        lexical = _STRING_ESCAPE.sub(lambda m: _ESCAPED[m.group(1)], token[width:-width])
        return ast.Constant(Literal(lexical), self._span(token))

    def number(self, token: Token) -> ast.Constant:
        """A number by its spelling; the lexical form stays as written."""
        return ast.Constant(
            Literal(str(token), XSD + _NUMBERS[token.type.removeprefix("SIGNED_")]),
            self._span(token),
        )

    signed_number = number

    def boolean(self, token: Token) -> ast.Constant:
        """``true`` or ``false``."""
        return ast.Constant(Literal(token.lower(), XSD + "boolean"), self._span(token))

    def blank_node(self, token: Token) -> ast.BlankNode:
        """``_:label`` or ``[]``."""
        if token.type == "ANON":
            return self._fresh(self._span(token))
        self._check_name(token)
        return ast.BlankNode(token[2:], self._span(token))

    def nil(self, token: Token) -> ast.Constant:
        """``()``: the empty list."""
        return ast.Constant(Iri(RDF + "nil"), self._span(token))

    def _fresh(self, span: Span) -> ast.BlankNode:
        self._nameless += 1
        return ast.BlankNode(f".{self._nameless}", span)

    def _span(self, token: Token) -> Span:
        if self._source.shifts:
            return self._source.span(token.start_pos or 0)
        return Span(token.line or 1, token.column or 1)

    def _error(self, message: str, span: Span, expected: Iterable[str] = ()) -> QuerySyntaxError:
        return QuerySyntaxError(message, span=span, text=self._source.text, expected=expected)

    def _unknown_prefix(self, prefix: str, span: Span) -> UnknownNameError:
        declared = [name + ":" for name in self._prefixes]
        hint = near(prefix + ":", declared)
        if hint.startswith("Did"):
            hint += f" Declared: {', '.join(sorted(declared))}."
        hint = hint.replace("Known:", "Declared:").replace(
            "None is known.", "No prefix is declared."
        )
        if prefix in _STANDARD:
            hint = f"Write PREFIX {prefix}: <{_STANDARD[prefix]}>."
        return UnknownNameError(
            f"The prefix {prefix}: is not declared.", span=span, text=self._source.text, hint=hint
        )

    def _check_name(self, token: Token) -> None:
        """Checks PN_CHARS exactly for a name that is not ASCII: the grammar accepts more."""
        if token.isascii():
            return
        wrong = _NO_NAME_CHARACTER.search(token) or _NOT_FIRST.search(token)
        if wrong is not None:
            character = wrong.group()[-1]
            offset = (token.start_pos or 0) + wrong.end() - 1
            raise self._error(
                f"The character {character!r} cannot stand here in a name.",
                self._source.span(offset),
            )


_UNARY = {"!": "!", "+": "unary +", "-": "unary -"}


def _without_tokens(children: tuple[Any, ...]) -> tuple[ast.Expression, ...]:
    """Returns the built children, without kept tokens (NIL, DISTINCT) and empty places."""
    return tuple(child for child in children if child is not None and not isinstance(child, Token))


class Expressions(Terms):
    """Builds expressions; operators carry the spelling that ``core.expressions.Function`` uses."""

    def conditional_or(self, *operands: ast.Expression) -> ast.Operation:
        """``a || b || ...``."""
        return ast.Operation("||", operands)

    def conditional_and(self, *operands: ast.Expression) -> ast.Operation:
        """``a && b && ...``."""
        return ast.Operation("&&", operands)

    def comparison(
        self, left: ast.Expression, operator: Token, right: ast.Expression
    ) -> ast.Operation:
        """One of the six comparisons."""
        return ast.Operation(str(operator), (left, right))

    addition = comparison
    multiplication = comparison

    def signed_addition(self, left: ast.Expression, right: ast.Expression) -> ast.Operation:
        """``1 -2``: the sum with a number that brings its sign."""
        return ast.Operation("+", (left, right))

    def unary(self, operator: Token, operand: ast.Expression) -> ast.Operation:
        """``!a``, ``+a``, ``-a``."""
        return ast.Operation(_UNARY[operator], (operand,))

    def in_list(self, value: ast.Expression, *items: Any) -> ast.Operation:
        """``a IN (...)``."""
        return ast.Operation("IN", (value, *_without_tokens(items)))

    def not_in_list(self, value: ast.Expression, *items: Any) -> ast.Operation:
        """``a NOT IN (...)``."""
        return ast.Operation("NOT IN", (value, *_without_tokens(items)))

    def built_in(self, name: Token, *args: Any) -> ast.BuiltIn:
        """A built-in function; the grammar has checked the number of its arguments."""
        return ast.BuiltIn(name.upper(), _without_tokens(args), self._span(name))

    def bound(self, name: Token, variable: ast.Var) -> ast.BuiltIn:
        """``BOUND(?x)``."""
        return ast.BuiltIn("BOUND", (variable,), self._span(name))

    def function_call(self, name: ast.Constant, *args: Any) -> ast.FunctionCall | ast.Aggregate:
        """A function or an aggregate named by an IRI."""
        assert isinstance(name.term, Iri), "a function's name is an IRI"
        distinct = any(isinstance(arg, Token) and arg.type == "DISTINCT" for arg in args)
        iri, arguments = name.term.value, _without_tokens(args)
        if not isinstance(find_function(iri), UserAggregate):
            return ast.FunctionCall(name.term, arguments, distinct, name.span)
        if len(arguments) != 1:
            message = f"The aggregate {name.term} takes one argument: write one expression."
            raise self._error(message, name.span)
        return ast.Aggregate(AggregateFunction.USER, arguments[0], distinct, iri, name.span)

    def exists(self, token: Token, group: ast.Group) -> ast.Exists:
        """``EXISTS {}``."""
        return ast.Exists(group, False, self._span(token))

    def not_exists(self, token: Token, group: ast.Group) -> ast.Exists:
        """``NOT EXISTS {}``."""
        return ast.Exists(group, True, self._span(token))

    def aggregate(
        self, name: Token, distinct: Token | None, arg: Any, separator: ast.Constant | None = None
    ) -> ast.Aggregate:
        """An aggregate; a star for an argument is COUNT's."""
        text = None if separator is None else getattr(separator.term, "lexical", "")
        argument = None if isinstance(arg, Token) else arg
        return ast.Aggregate(name.upper(), argument, distinct is not None, text, self._span(name))

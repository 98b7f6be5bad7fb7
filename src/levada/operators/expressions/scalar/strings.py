"""Functions on strings (SPARQL 1.1, 17.4.3).

A string argument is a simple literal, an xsd:string or a language-tagged string. Two arguments are
compatible if the second has no language or the language of the first; a result taken from a string
keeps its language.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import polars as pl

from levada.core import query_limits
from levada.core.rdf_terms import STRING, Literal, Term
from levada.operators.expressions.scalar import regex
from levada.operators.expressions.scalar.literals import Text, literal_of, value_of
from levada.operators.expressions.scalar.numbers import ExpressionError


def text(term: Term) -> Text:
    """The value of a string argument, with or without language; an error for other terms."""
    value = value_of(term)
    if not isinstance(value, Text):
        raise ExpressionError("a string is expected")
    return value


def simple_text(term: Term) -> str:
    """The characters of a simple literal or xsd:string; an error for other terms."""
    if not isinstance(term, Literal) or term.language or term.datatype != STRING:
        raise ExpressionError("a simple literal is expected")
    return term.lexical


def check_length(size: int) -> None:
    """An error for a text that would be longer than texts may be."""
    if size > query_limits.LONGEST_TEXT:
        raise ExpressionError("a text that is too long")


def integer(term: Term) -> int:
    """The value of an integer argument."""
    value = value_of(term)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ExpressionError("an integer is expected")
    return value


def compatible(a: Term, b: Term) -> tuple[Text, str]:
    """Two compatible arguments (17.4.3.1.2): the first, and the characters of the second."""
    x, y = text(a), text(b)
    if y.language and y.language != x.language:
        raise ExpressionError("two strings of different languages")
    return x, y.lexical


def strlen(a: Term) -> Literal:
    """``STRLEN``: the number of characters."""
    return literal_of(len(text(a).lexical))


def substr(a: Term, start: Term, length: Term | None = None) -> Literal:
    """``SUBSTR``: positions count from 1; characters outside the range are left out.

    >>> substr(Literal("foobar"), literal_of(0), literal_of(3)).lexical
    'fo'
    """
    value = text(a)
    first = integer(start)
    end = len(value.lexical) + 1 if length is None else first + integer(length)
    return literal_of(Text(value.lexical[max(first, 1) - 1 : max(end, 1) - 1], value.language))


def ucase(a: Term) -> Literal:
    """``UCASE``."""
    value = text(a)
    return literal_of(Text(value.lexical.upper(), value.language))


def lcase(a: Term) -> Literal:
    """``LCASE``."""
    value = text(a)
    return literal_of(Text(value.lexical.lower(), value.language))


def strstarts(a: Term, b: Term) -> Literal:
    """``STRSTARTS``."""
    value, part = compatible(a, b)
    return literal_of(value.lexical.startswith(part))


def strends(a: Term, b: Term) -> Literal:
    """``STRENDS``."""
    value, part = compatible(a, b)
    return literal_of(value.lexical.endswith(part))


def contains(a: Term, b: Term) -> Literal:
    """``CONTAINS``."""
    value, part = compatible(a, b)
    return literal_of(part in value.lexical)


def strbefore(a: Term, b: Term) -> Literal:
    """``STRBEFORE``: a simple empty literal if there is no match."""
    value, part = compatible(a, b)
    head, match, _ = value.lexical.partition(part) if part else ("", "found", "")
    return literal_of(Text(head, value.language)) if match else Literal("")


def strafter(a: Term, b: Term) -> Literal:
    """``STRAFTER``: a simple empty literal if there is no match."""
    value, part = compatible(a, b)
    _, match, tail = value.lexical.partition(part) if part else ("", "found", value.lexical)
    return literal_of(Text(tail, value.language)) if match else Literal("")


def encode_for_uri(a: Term) -> Literal:
    """``ENCODE_FOR_URI``: percent-encodes all but letters, digits and ``-._~``."""
    return Literal(quote(text(a).lexical, safe="-._~"))


def concat(*args: Term) -> Literal:
    """``CONCAT``: keeps the language that all arguments share."""
    values = [text(a) for a in args]
    check_length(sum(len(v.lexical) for v in values))
    languages = {v.language for v in values}
    return literal_of(
        Text("".join(v.lexical for v in values), languages.pop() if len(languages) == 1 else "")
    )


def lang_matches(tag: Term, accepted: Term) -> Literal:
    """``langMatches``: basic filtering of RFC 4647; ``*`` is any language."""
    language, range_ = simple_text(tag).lower(), simple_text(accepted).lower()
    if range_ == "*":
        return literal_of(language != "")
    return literal_of(language == range_ or (range_ != "" and language.startswith(range_ + "-")))


def regex_matches(a: Term, pattern: Term, flags: Term | None = None) -> Literal:
    """``REGEX``."""
    compiled = regex.compile_(simple_text(pattern), simple_text(flags) if flags else "")
    return literal_of(_in_time(compiled.search(pl.Series([text(a).lexical]))))


def regex_replace(a: Term, pattern: Term, replacement: Term, flags: Term | None = None) -> Literal:
    """``REPLACE``."""
    value = text(a)
    compiled = regex.compile_(simple_text(pattern), simple_text(flags) if flags else "")
    done = compiled.replace_all(pl.Series([value.lexical]), simple_text(replacement))
    return literal_of(Text(_in_time(done), value.language))


def _in_time(done: pl.Series) -> Any:
    if done.item() is None:
        raise ExpressionError("a regular expression that takes too long")
    return done.item()


# Hash functions (SPARQL 1.1, 17.4.6): lower-case hexadecimal digits over the UTF-8 bytes of a
# simple literal.


def digest(algorithm: str) -> Callable[[Term], Literal]:
    """The SPARQL function of a hashlib algorithm.

    >>> digest("md5")(Literal("abc")).lexical
    '900150983cd24fb0d6963f7d28e17f72'
    """

    def function(a: Term) -> Literal:
        return Literal(
            hashlib.new(algorithm, simple_text(a).encode(), usedforsecurity=False).hexdigest()
        )

    return function

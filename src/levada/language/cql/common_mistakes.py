"""Explains text that CQL's grammar rejects: an unsupported feature, a word of another language, a
slip.

Lark reports where a text stops making sense and which words could follow. The mistake may be
elsewhere: ``Selct k`` is a table name up to its second word, ``Istream Select`` lacks a bracket.
Cost: none, except for a text with an error.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable

from levada.errors import QueryError, QuerySyntaxError, Span, UnsupportedError
from levada.language.dialects.cql import EXPECTED, FOREIGN, REFUSED, TYPES

_OFFERED = 8  # a list of expected words longer than this helps nobody
_WORD = re.compile(r"\w+|'[^']*'|\"[^\"]*\"")
_SIGN = re.compile("|".join(map(re.escape, sorted(FOREIGN, key=len, reverse=True))))
_STREAM_IN_FROM = re.compile(r"(?:\bfrom|,)\s*([idr]stream)\s*\(\s*$", re.IGNORECASE)
_NATURAL = re.compile(r"\bnatural\s+(?:inner|left|right|full|join)\b.*", re.IGNORECASE | re.DOTALL)
_SHORT_ALIAS = re.compile(r"(\w+)\s+$")
_CLAUSES = ("from", "where", "group", "having", "order", "limit", "join", "left", "union", "except")
_BEFORE = re.compile(r"(\w+)\s*$")
_FIRST = re.compile(r"(?:^|;)\s*(\w+)\s*$")
_BEGINNINGS = ("Select", "Register", "Istream(", "Dstream(", "Rstream(")
_STREAMS = ("istream", "dstream", "rstream")


def explain_mistake(text: str, start: int, acceptable: Callable[[str], set[str]]) -> QueryError:
    """Returns the error for a text in which nothing fits from ``start`` on.

    ``acceptable`` returns the terminals that fit after a prefix.
    """
    word = _WORD.match(text, start)
    token = word[0] if word else text[start : start + 1].strip()
    if text[max(start - 1, 0) : start + 1] == "==":
        start, token = start - 1, "=="
    if text[start : start + 2] == "::":
        token = "::"
    first = _FIRST.search(text, 0, start)
    if (
        first
        and token
        and first[1].lower() not in ("register", "select")
        and token.lower() not in REFUSED
    ):
        return _explain_first_word(text, first)
    before = _BEFORE.search(text, 0, start)
    hint = _hint(token.lower(), before[1].lower() if before else "", text[:start].rstrip()[-1:])
    if stream := _STREAM_IN_FROM.search(text, 0, start):
        hint = f"In From write ({stream[1].capitalize()}(..)) [Now] As a name."
    natural = _NATURAL.search(text, 0, start)
    start = natural.start() if natural else start
    feature = REFUSED["natural"] if natural else REFUSED.get(token.lower())
    if feature and not hint:
        return _unsupported_error(feature, text, start)
    if token in ("'", '"'):
        kind = "string" if token == "'" else "name in quotes"
        return QuerySyntaxError(f"This {kind} is not closed.", span=_span(text, start), text=text)
    slip = _misspelt_clause(text, start)
    if slip and not hint:
        start, token = slip.start(1), slip[1]
    allowed = acceptable(text[:start])
    words = list(dict.fromkeys(EXPECTED[name] for name in EXPECTED if name in allowed))
    close = difflib.get_close_matches(token.lower(), [w.lower() for w in words if w.isalpha()], n=1)
    return QuerySyntaxError(
        f"{token!r} does not fit here." if token else "The query ends too early.",
        span=_span(text, start),
        text=text,
        expected=_types() if "TYPE" in allowed else words[:_OFFERED],
        hint=hint
        or _foreign_operator_hint(text, start)
        or (f"Did you mean {close[0].capitalize()}?" if close else ""),
    )


def _explain_first_word(text: str, word: re.Match[str]) -> QueryError:
    """Returns the error for a first word that begins no statement: the rest was read as a table."""
    name, start = word[1], word.start(1)
    if name.lower() in _STREAMS:
        hint = f"Write {name}(Select ..)."
        return QuerySyntaxError(
            f"{name} takes a query in brackets.", span=_span(text, start), text=text, hint=hint
        )
    if feature := REFUSED.get(name.lower()):
        return _unsupported_error(feature, text, start)
    close = difflib.get_close_matches(name.lower(), [w.lower() for w in _BEGINNINGS], n=1)
    hint = f"Did you mean {close[0].capitalize()}?" if close else ""
    message = f"No query begins with {name!r}."
    return QuerySyntaxError(
        message, span=_span(text, start), text=text, expected=list(_BEGINNINGS), hint=hint
    )


def _hint(token: str, before: str, sign: str) -> str:
    """Returns the text to write, if the word and the one before it decide."""
    query = token in ("select", *_STREAMS)
    if query and before in _STREAMS:
        return f"Write {before.capitalize()}(Select ..)."
    if query and sign == ")":
        return "A view is Register .. As Select .."
    if before == "in" and token != "(":
        return "Write In (1, 2)."
    if token in ("union", "except") and sign == ")":
        return f"Put each side into brackets: (Istream(..)) {token.capitalize()} (..)."
    if token == "slide" and sign == "[":
        return "Write [Range 1 minute Slide 10 seconds]."
    if token == "unbounded" and sign == "[":
        return "Write [Range Unbounded]."
    return ""


def _misspelt_clause(text: str, start: int) -> re.Match[str] | None:
    """Returns the word before, which was read as a name, if it is almost a word for a clause."""
    before = _SHORT_ALIAS.search(text, 0, start)
    if before is None or before[1].lower() in _CLAUSES:
        return None
    return before if difflib.get_close_matches(before[1].lower(), _CLAUSES, 1, 0.7) else None


def _foreign_operator_hint(text: str, start: int) -> str:
    """Returns how CQL writes an operator of other languages."""
    sign = _SIGN.match(text, start)
    return FOREIGN[sign[0]] if sign else ""


def _types() -> list[str]:
    return [name.capitalize() for name in TYPES]


def _unsupported_error(feature: str, text: str, start: int) -> UnsupportedError:
    message = f"{feature[0].upper()}{feature[1:]} is not there yet in CQL."
    return UnsupportedError(message, span=_span(text, start), text=text)


def _span(text: str, start: int) -> Span:
    return Span(text.count("\n", 0, start) + 1, start - (text.rfind("\n", 0, start) + 1) + 1)

"""Turns the parser's failure into a sentence for people: the place, the text there, the expected
words, a near miss.

The parser stops at a character that begins no token, or at a token that no rule accepts. In both
cases the parser is asked for the possible words by trying each of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedInput
from lark.lexer import TerminalDef

from levada.errors import QuerySyntaxError, near
from levada.language.sparql.common_mistakes import explain_slip, find_unclosed_bracket
from levada.language.sparql.source_text import Source

_MAX_EXPECTED = 8
_NAMES = {
    "VAR": "a variable",
    "IRIREF": "an IRI",
    "PNAME_LN": "a prefixed name",
    "PNAME_NS": "a prefixed name",
    "STRING": "a string",
    "LONG_STRING": "a string",
    "INTEGER": "a number",
    "DECIMAL": "a number",
    "DOUBLE": "a number",
    "SIGNED_INTEGER": "a number",
    "SIGNED_DECIMAL": "a number",
    "SIGNED_DOUBLE": "a number",
    "BOOLEAN": "true or false",
    "BLANK_NODE_LABEL": "a blank node",
    "ANON": "a blank node",
    "NIL": '"()"',
    "LANGTAG": "a language tag",
    "DURATION": "a duration such as PT10S",
    "SPAN": "a duration such as PT10S",
    "UNIT": "a unit of time",
    "WORD": "a name",
    "_STEP": "STEP",
    "COMPUTED": "COMPUTED EVERY",
    "ON_CLOSE": "ON_WINDOW_CLOSE",
    "ON_CHANGE": "ON_CONTENT_CHANGE",
    "NON_EMPTY": "NON_EMPTY_CONTENT",
    "TICKING": "TIME_DRIVEN",
    "STREAM_OPERATOR": "RSTREAM, ISTREAM or DSTREAM",
    "DUPLICATES": "DISTINCT",
    "COMPARISON": "a comparison",
    "COUNT": "an aggregate",
    "AGGREGATE": "an aggregate",
    "GROUP_CONCAT": "an aggregate",
    "BOUND": "a function",
    "A": '"a"',
    "$END": "the end of the query",
}
_FIRST = [
    *(
        "a variable",
        "an IRI",
        "a prefixed name",
        "a number",
        "a duration such as PT10S",
        "the end of the query",
    ),
    *(
        '"}"',
        '")"',
        '"]"',
        '"{"',
        '"("',
        '"."',
        '";"',
        '","',
        "AS",
        "WHERE",
        "FROM",
        "SELECT",
        "REGISTER",
        "FILTER",
    ),
    *("a string", "a function"),
]
_WORD = re.compile(r"[A-Za-z_][\w-]*")
_DIRECTED = re.compile(r"@[A-Za-z0-9-]+--$")
_FUNCTION_OF_12 = re.compile(
    r"(VERSION(?=\s*[\"'])|(?:TRIPLE|isTRIPLE|SUBJECT|PREDICATE|OBJECT|LANGDIR|hasLANG|hasLANGDIR|"
    r"STRLANGDIR)(?=\s*\())",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[^\s(){}\[\];,.]+|\S")
_SIGILS = ("?", "$", ":", "@", "<", '"', "'", "^")  # a word after one of them is a name
_LETTERS_BEFORE = re.compile(r"[A-Za-z_]*\Z")


def syntax_error(parser: Lark, source: Source) -> QuerySyntaxError:
    """Returns the error of a text that ``parser`` does not accept."""
    text = source.decoded
    accepted, offset = _stop(parser, text)
    hint, message = _explain_unclosed(source), "The query ends too early."
    if offset < len(text.rstrip()):
        hint = ""
        message = _explain_unclosed_literal(text, offset, accepted)
        if message:
            accepted = set()
        else:
            hint = explain_slip(text, offset, accepted)
            offset -= text[offset - 1 : offset + 1] in ("==", "=>")  # the whole sign is shown
            if not hint:
                offset, hint = _near_miss(text, offset, accepted, parser.terminals)
            message = f"{_word(text, offset)} cannot stand here."
    terminals = [terminal for terminal in parser.terminals if terminal.name in accepted]
    names = {_readable(terminal) for terminal in terminals} | {
        _NAMES[name] for name in accepted & {"$END"}
    }
    expected = sorted(names, key=_usefulness)[:_MAX_EXPECTED]
    return QuerySyntaxError(
        message, span=source.span(offset), text=source.text, expected=expected, hint=hint
    )


def _explain_unclosed(source: Source) -> str:
    at = find_unclosed_bracket(source.decoded)
    if at is None:
        return ""
    place = source.span(at)
    return f'The "{source.decoded[at]}" in line {place.line}, column {place.column} is not closed.'


def _stop(parser: Lark, text: str) -> tuple[set[str], int]:
    """Returns the terminals that the parser would have accepted where it stops, and that offset.

    It is fed once to find the place, and once up to there: a failing token may have reduced the
    stack already. Copying the stack for each token would take quadratic time in the nesting depth.
    """
    _, count, offset = _feed(parser, text, len(text))
    good, _, _ = _feed(parser, text, count)
    return set(good.accepts()), offset


def _feed(parser: Lark, text: str, most: int) -> tuple[Any, int, int]:
    """Feeds at most so many tokens; returns the parser, their number, and the offset after them.

    The offset is that of the failure, if there is one.
    """
    state: Any = parser.parse_interactive(text)  # Lark leaves some of its methods untyped
    count = 0
    try:
        for token in state.lexer_thread.lex(state.parser_state):
            if count == most:
                break
            state.feed_token(token)
            count += 1
    except UnexpectedInput as error:
        return state, count, error.pos_in_stream or 0
    return state, count, len(text.rstrip())


def _readable(terminal: TerminalDef) -> str:
    if terminal.name in _NAMES:
        return _NAMES[terminal.name]
    if terminal.name.startswith("FUNCTION"):
        return "a function"
    value = terminal.pattern.value
    return value.upper() if value.isidentifier() else f'"{value}"'


def _usefulness(name: str) -> tuple[int, str]:
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)


def words_of(terminals: Iterable[TerminalDef]) -> set[str]:
    """Returns the keywords and functions among terminals, in upper case."""
    return {
        word.upper()
        for terminal in terminals
        if terminal.name not in ("A", "IRIREF", "VAR", "DURATION", "SPAN", "UNIT", "WORD")
        for word in re.findall(r"[A-Za-z_]\w{1,}", terminal.pattern.value.replace(r"(?!\w)", ""))
    }


def _near_miss(
    text: str, offset: int, accepted: set[str], terminals: Iterable[TerminalDef]
) -> tuple[int, str]:
    """Returns a hint for a misspelt word at ``offset``, and the start of that word.

    The lexer reads SELECT from SELECTT: a word that continues where it stopped is compared as a
    whole with all words.
    """
    glued = _LETTERS_BEFORE.search(text, 0, offset)
    before = offset - len(glued.group()) if glued else offset
    here = words_of(terminal for terminal in terminals if terminal.name in accepted)
    every = words_of(terminals)
    for start, words in ((offset, here), (before, every if before < offset else set())):
        word = _WORD.match(text, start)
        if (
            word is None
            or text[word.end() : word.end() + 1] == ":"
            or text[start - 1 : start] in _SIGILS
        ):
            continue
        hint = near(word.group().upper(), words)
        if hint.startswith("Did") and word.group().upper() not in every:
            return start, hint
    return offset, ""


def _explain_unclosed_literal(text: str, offset: int, accepted: set[str]) -> str:
    """Returns the message for an unclosed string or IRI, or for an empty window specification."""
    sign = text[offset]
    if what := _rdf_12_feature(text, offset):
        return f"{what} is not supported."
    if sign == "[" and "LBRACKET" in accepted:
        return (
            "Nothing stands in the brackets; a window is said there, "
            "such as [RANGE PT10S STEP PT5S] or [NOW]."
        )
    if sign in "\"'" and "STRING" in accepted:
        return (
            "The string that starts here is not closed, or has an escape that SPARQL does not know."
        )
    if sign == "<" and "IRIREF" in accepted:
        return "The IRI that starts here is not closed, or has a character that no IRI has."
    return ""


def _rdf_12_feature(text: str, offset: int) -> str:
    """Returns the RDF 1.2 or SPARQL 1.2 feature at an offset; "" if there is none."""
    if text.startswith("<<", offset) and text[offset:].find(">>") > 0:
        return "A triple as a term (RDF 1.2, << s p o >>)"
    if _DIRECTED.search(text, 0, offset) or _DIRECTED.search(text, 0, offset + 2):
        return "A base direction (RDF 1.2, --ltr or --rtl)"
    if text.startswith("~", offset):
        return "A reifier (RDF 1.2, ~)"
    if "{|" in (text[offset : offset + 2], text[offset - 1 : offset + 1]):
        return "An annotation (RDF 1.2, {| |})"
    word = _FUNCTION_OF_12.match(text, offset)
    return f"{word[1]} (SPARQL 1.2)" if word is not None else ""


def _word(text: str, offset: int) -> str:
    """Returns the text at ``offset`` for a message: a word as it is, other signs in quotes."""
    match = _TOKEN.match(text, offset)
    shown = match.group()[:40] if match else repr(text[offset])
    return shown if shown[0].isalnum() else f'"{shown}"'

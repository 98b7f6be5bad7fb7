"""The end of a typed statement: a command is a line; a query ends with a semicolon or an empty
line.

A semicolon within braces, brackets, strings, IRIs and comments ends nothing: it separates the
predicates of a subject. A CQL text of declarations continues until it has a query.
"""

from __future__ import annotations

import re

from levada.errors import QueryError, UsageError
from levada.language.cql.parser import parse_script
from levada.language.dialects.detect import dialect_of, is_cql

_TOKEN = re.compile(
    r"""(?P<skip>\#[^\n]*|--[^\n]*|'{3}.*?'{3}|"{3}.*?"{3}|"(?:[^"\\\n]|\\.)*"|"""
    r"""'(?:[^'\\\n]|\\.)*'|<[^<>"{}|^`\\\s]*>)|(?P<open>[{(\[])|(?P<close>[})\]])|(?P<end>;)""",
    re.DOTALL,
)


def is_command(text: str) -> bool:
    """Returns whether the text is a command of the shell."""
    return text.lstrip().startswith("\\")


def is_whole(text: str, dialect: str | None = None) -> bool:
    r"""Returns whether the typed text is a whole statement.

    >>> is_whole("ASK { ?s ?p ?o } ;"), is_whole("SELECT * { ?s :a 1 ;"), is_whole("ASK\n")
    (True, False, True)
    """
    if not text.strip() or is_command(text):
        return True
    if "\n" in text and not text.rsplit("\n", 1)[1].strip():
        return True
    end = _final_semicolon(text)
    return end is not None and not _only_declares(text, dialect)


def query_of(text: str, dialect: str | None = None) -> str:
    """Returns the typed query without a final semicolon, which SPARQL does not have.

    >>> query_of("ASK { } ;"), query_of("Select a From S;")
    ('ASK { }', 'Select a From S;')
    """
    end = _final_semicolon(text)
    if end is not None and not is_cql(_dialect_of(text, dialect)):
        return text[:end].rstrip()
    return text.rstrip()


def _final_semicolon(text: str) -> int | None:
    """Returns the position of the semicolon that ends the text, or None."""
    depth, last = 0, None
    stop = 0
    for token in _TOKEN.finditer(text):
        match token.lastgroup:
            case "open":
                depth += 1
            case "close":
                depth -= 1
            case "end" if depth <= 0:
                last = token.start()
        if token.lastgroup != "skip" or not token.group().startswith(("#", "--")):
            stop = token.start()
    return last if last == stop and last is not None and _is_blank(text[last + 1 :]) else None


def _is_blank(text: str) -> bool:
    """Returns whether a text has only blanks and comments."""
    return not re.sub(r"(?:#|--)[^\n]*", "", text).strip()


def _dialect_of(text: str, dialect: str | None) -> str:
    try:
        return dialect_of(text, dialect).name
    except UsageError:
        return ""


def _only_declares(text: str, dialect: str | None) -> bool:
    """Returns whether the text is a CQL script without a query."""
    if not is_cql(_dialect_of(text, dialect)):
        return False
    try:
        return not parse_script(text).queries
    except QueryError:
        return False

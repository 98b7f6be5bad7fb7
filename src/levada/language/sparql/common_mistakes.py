"""Explains text that SPARQL rejects: signs of other languages, commas in SELECT, clauses in another
order, and unclosed brackets.

A slip is recognized by the text where the parser stopped, the text before it, and the expected
words. Its hint contains the text to write, which the list of expected words does not.
"""

from __future__ import annotations

import re
from collections.abc import Set

_UPDATE = ("INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH")
_SIGNS = {"==": "=", "=>": ">=", "=<": "<=", "<>": "!="}
_WORDS = {
    "AND": "&&",
    "OR": "||",
    "LIKE": "REGEX or CONTAINS",
    "ISNULL": "!BOUND",
    "IFNULL": "COALESCE",
    "LOWER": "LCASE",
    "UPPER": "UCASE",
    "LENGTH": "STRLEN",
    "SUBSTRING": "SUBSTR",
    "CEILING": "CEIL",
    "STARTSWITH": "STRSTARTS",
    "ENDSWITH": "STRENDS",
}
_MODIFIERS = ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET")
# three deep; nothing is tried twice, however many there are
_BRACKETS = r"\((?:[^(){}]|\((?:[^(){}]|\([^(){}]*+\))*+\))*+\)"
_SELECTING = re.compile(
    rf"\bSELECT(?:\s+(?:DISTINCT|REDUCED|[RID]STREAM))?(?:\s+[?$]\w+|\s*{_BRACKETS})*+[\s,]*\Z",
    re.IGNORECASE,
)
_COMPUTED = re.compile(r"AS\b|\w+\s*\(", re.IGNORECASE)
_NAME = re.compile(r"[?$<]|\w*:")
_WORD = re.compile(r"[A-Za-z_]+")
# an escape is a part: no open string is tried from each of its escaped quotes
_PARTS = re.compile(
    r"""\#[^\n\r]*|\"{3}(?:[^"\\]|\\.|"(?!""))*"{3}"""
    r"""|'{3}(?:[^'\\]|\\.|'(?!''))*'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
    r"""|<[^<>"{}|^`\\\s]*>|\\.|(?P<bracket>[()\[\]{}])""",
    re.DOTALL,
)


def find_unclosed_bracket(text: str) -> int | None:
    """Returns the place of the last unclosed bracket.

    >>> find_unclosed_bracket("ASK { ?s <p(> '(' ")
    4
    """
    opened: list[int] = []
    for part in _PARTS.finditer(text):
        if part.lastgroup and part.group() in "([{":
            opened.append(part.start())
        elif part.lastgroup and opened:
            opened.pop()
    return opened[-1] if opened else None


def explain_slip(text: str, offset: int, accepted: Set[str]) -> str:
    """Returns a sentence with the text to write in place of that at ``offset``; "" if unknown.

    >>> explain_slip("SELECT ?s, ?o {}", 9, {"VAR", "LBRACE"})
    'Variables stand one after the other, without commas.'
    """
    sign = next(
        (s for s in _SIGNS if text.startswith(s, offset) or text.startswith(s, offset - 1)), ""
    )
    if sign and accepted & {"BANG", "COMPARISON"}:
        return "= compares." if sign == "==" else f"Write {_SIGNS[sign]}; there is no {sign}."
    if text[offset] in "\u201c\u201d\u201e\u2018\u2019":
        return "Strings stand in straight quotes, \" or '."
    word = _WORD.match(text, offset)
    return (_explain_word(word.group().upper(), accepted) if word else "") or _explain_place(
        text, offset, accepted
    )


def _explain_word(word: str, accepted: Set[str]) -> str:
    if word in _WORDS and accepted & {"SLASH", "BANG"}:
        return f"Did you mean {_WORDS[word]}?"
    if word in _MODIFIERS and "$END" in accepted:
        return (
            "The clauses stand in this order: GROUP BY, HAVING, ORDER BY, LIMIT and OFFSET, VALUES."
        )
    if word in _UPDATE and "SELECT" in accepted:
        return (
            "SPARQL Update is not there. Static data are files: --static FILE, "
            "with reload=true read anew when the file changes."
        )
    if word == "FROM" and "$END" in accepted:
        return "FROM stands before WHERE."
    if word == "STREAM" and "RBRACE" in accepted:
        return (
            "A stream is read by STREAM <s> [RANGE PT10S] {..}, "
            "or by FROM NAMED WINDOW <w> and WINDOW <w> {..}."
        )
    return ""


def _explain_place(text: str, offset: int, accepted: Set[str]) -> str:
    before = text[:offset].rstrip()
    if accepted == {"LBRACKET"}:
        return "A window stands in brackets, such as [RANGE PT10S STEP PT5S]."
    if _SELECTING.search(text, 0, offset):
        if text[offset] == ",":
            return "Variables stand one after the other, without commas."
        if "LPAR" in accepted and _COMPUTED.match(text, offset):
            return "What is computed stands in brackets and has a name: (COUNT(?x) AS ?n)."
    if text[offset] == ")" and "AS" in accepted:
        return "What is computed has a name: (COUNT(?x) AS ?n)."
    if text[offset] == "-" and re.search(r"[?$]\w+\Z", text[:offset]) and "VAR" in accepted:
        return "A variable's name has letters, digits and _."
    if re.search(r"\b(?:FILTER|HAVING)\Z", before, re.IGNORECASE):
        return "A condition stands in brackets: FILTER(?x > 1)."
    if "DOT" in accepted and "SEMICOLON" in accepted and _NAME.match(text, offset):
        return 'Triples are separated by ".".'
    return ""

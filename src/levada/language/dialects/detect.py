"""Detects the dialect of a text by words that only one dialect has, or by the file extension.

    STREAM <s> [..] {          CQELS-QL
    STREAM <s> {               CQELS-QL 2
    WINDOW                     RSP-QL
    FROM STREAM, REGISTER QUERY or STREAM, FROM NAMED STREAM beside GRAPH       C-SPARQL
    FROM NAMED STREAM, SELECT RSTREAM                                           SPARQLstream
    no braces, and From a bare word, or Istream( and the like, or Register      CQL
    Stream a bare word with columns
    else                       RSP-QL, of which SPARQL is a part

Words are read as the lexer reads them: not in comments, strings, IRIs and names with a prefix.
Cost: one pass over the text: no pattern is tried from each character of a run or an open string.
"""

from __future__ import annotations

import re
from functools import lru_cache

from levada.errors import UsageError, near
from levada.language.dialects.cqels import CQELS, CQELS2
from levada.language.dialects.csparql import CSPARQL
from levada.language.dialects.dialect import Dialect
from levada.language.dialects.rspql import RSPQL
from levada.language.dialects.sparqlstream import SPARQLSTREAM

CQL = Dialect("cql", "CQL", (), (".cql",), output="RELATION")
"""CQL has a grammar of its own (``language/cql/parser.py``); here it is a name and an ending."""

STREAM = Dialect("stream", "CQL of STREAM", (), output="RELATION")
"""CQL in which a word in double quotes is a text, as in the scripts of STREAM."""

DIALECTS: dict[str, Dialect] = {
    d.name: d for d in (RSPQL, CQELS, CQELS2, CSPARQL, SPARQLSTREAM, CQL, STREAM)
}

_TOKEN = re.compile(
    r'''(?P<skip>\#[^\n\r]*|"""(?:[^"\\]|\\.|"(?!""))*(?:""")?|'''
    r"""\'\'\'(?:[^\'\\]|\\.|\'(?!\'\'))*(?:\'\'\')?|"""
    r"""'(?:[^'\\\n]|\\.)*'?)|(?P<name><[^<>"{}|^`\\\s]*>|[?$]\w+|[\w.-]*+:[\w.%-]*)"""
    r"""|(?P<quoted>"(?:[^"\\\n]|\\.)*"?)|(?P<run>[\w.-]+)|(?P<sign>[\[\]{}(])"""
)
_WORD = re.compile(r"[A-Za-z_]\w*")
# what a rule looks for, the dialect, and how people call what was found ("": by its words)
_RULES = (
    (r"(?<!FROM )(?<!NAMED )(?<!ON )(?<!REGISTER )\bSTREAM \S+ \[", CQELS, "STREAM .. [..] {}"),
    (r"(?<!FROM )(?<!NAMED )(?<!ON )(?<!REGISTER )\bSTREAM \S+ \{", CQELS2, "STREAM .. {}"),
    (r"\bWINDOW #", RSPQL, "WINDOW"),
    (r"\b(?:FROM STREAM|REGISTER QUERY|REGISTER STREAM)\b", CSPARQL, ""),
    (r"\A(?>.*?\bNAMED STREAM) .* GRAPH #", CSPARQL, "FROM NAMED STREAM and GRAPH"),
    (r"\bNAMED STREAM\b|\b(?:SELECT|CONSTRUCT) [RID]STREAM\b", SPARQLSTREAM, ""),
)
_CQL = re.compile(
    r"(?:SELECT .*)?FROM (?!NAMED\b|STREAM\b)[\w\"]"
    r"|(?:[RID]STREAM|VQUERY|QUERY|TABLE|VTABLE|VIEW)\b"
    r"|REGISTER (?:STREAM|RELATION) \S+ \("
    r"|WITH\b|\( ?SELECT .*FROM\b"
)


def is_cql(name: str) -> bool:
    """Whether a dialect is CQL, in either spelling.

    >>> is_cql("cql"), is_cql("stream"), is_cql("rspql")
    (True, True, False)
    """
    return name in (CQL.name, STREAM.name)


@lru_cache(maxsize=256)
def recognise(text: str) -> Dialect:
    """Returns the dialect of a text. It is cached: registration asks for a text several times.

    >>> recognise("SELECT ?s FROM STREAM <http://e/s> [RANGE 1h STEP 10m] { ?s ?p ?o }").title
    'C-SPARQL'
    """
    words = " ".join(_words(text))
    if "{" not in words:
        return CQL if _CQL.match(words) else RSPQL
    return next((dialect for pattern, dialect, _ in _RULES if re.search(pattern, words)), RSPQL)


def evidence(text: str) -> str:
    """Returns the words that decide the dialect of a text; "" if there are none.

    >>> evidence("SELECT ?s FROM STREAM <http://e/s> [RANGE 1h STEP 10m] { ?s ?p ?o }")
    'FROM STREAM'
    """
    words = " ".join(_words(text))
    for pattern, _, name in _RULES:
        if match := re.search(pattern, words):
            return name or match.group()
    return ""


def _words(text: str) -> list[str]:
    """Returns the words in upper case, names as ``#``, texts in double quotes as ``"``, and
    brackets.
    """
    words = list[str]()
    for match in _TOKEN.finditer(text):
        match match.lastgroup:
            case "name":
                words.append("#")
            case "run":
                words += [word.upper() for word in _WORD.findall(match.group())]
            case "quoted":
                words.append('"')
            case "sign":
                words.append(match.group())
    return words


def dialect_of(text: str, name: str | None) -> Dialect:
    """Returns the named dialect, else the recognized one. Raises ``UsageError`` for an unknown
    name.

    >>> dialect_of("ASK { }", "cqels").output
    'ISTREAM'
    """
    if name is None:
        return recognise(text)
    if name not in DIALECTS:
        raise UsageError(f"There is no dialect {name}.", hint=near(name, DIALECTS))
    return DIALECTS[name]


def dialect_of_ending(suffix: str) -> str | None:
    """Returns the dialect of a file extension, or None.

    >>> dialect_of_ending(".cqels")
    'cqels'
    """
    return next((d.name for d in DIALECTS.values() if suffix.lower() in d.endings), None)

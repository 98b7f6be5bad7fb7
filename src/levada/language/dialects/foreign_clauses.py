"""Explains a clause of another dialect than the one in which a text is read.

A text with clauses of two dialects is read in one of them, and fails at a clause of the other.
"""

from __future__ import annotations

import re

from levada.errors import Span
from levada.language.dialects.detect import DIALECTS, evidence
from levada.language.dialects.dialect import Dialect

# what people call a clause, what it looks like, and the file of clauses that has it
_CLAUSES = (
    ("REGISTER QUERY", r"REGISTER\s+QUERY\b", "register_query.lark"),
    ("COMPUTED EVERY", r"COMPUTED\b", "register_query.lark"),
    ("FROM NAMED WINDOW", r"FROM\s+NAMED\s+WINDOW\b", "named_window.lark"),
    ("FROM NAMED STREAM", r"FROM\s+NAMED\s+STREAM\b", "from_stream.lark"),
    ("FROM STREAM", r"FROM\s+STREAM\b", "from_stream.lark"),
    ("WINDOW .. {}", r"\bWINDOW\b(?=\s+[^\s{]+\s*\{)", "named_window.lark"),
    ("STREAM .. [..] {}", r"\bSTREAM\b(?=\s+[^\s\[{]+\s*\[[^\]]*\]\s*\{)", "stream.lark"),
    ("STREAM .. {}", r"\bSTREAM\b(?=\s+[^\s\[{]+\s*\{)", "cqels2.lark"),
    ("REPORT", r"\bREPORT\b", "reporting.lark"),
    ("TICK", r"\bTICK\b", "reporting.lark"),
    ("T0", r"\bT0\b", "reporting.lark"),
    ("An operator beside the query's form", r"\b[RID]STREAM\b", "output.lark"),
)


def explain_foreign_clause(text: str, place: Span, spoken: Dialect, *, asked: bool) -> str:
    """Returns the dialects of a clause at which ``spoken`` cannot go on; "": it is not a foreign
    clause.

    ``asked``: the dialect was requested, not recognized.

    >>> text = "SELECT ?s FROM STREAM <s> [NOW] { WINDOW <w> { ?s ?p ?o } }"
    >>> explain_foreign_clause(text, Span(1, 16), DIALECTS["rspql"], asked=False)[:48]
    'FROM STREAM belongs to CQELS-QL 2, C-SPARQL and '
    """
    lines = text.split("\n")
    offset = sum(len(line) + 1 for line in lines[: place.line - 1]) + place.column - 1
    for name, pattern, file in _CLAUSES:
        if file in spoken.grammar:
            continue
        for match in re.finditer(pattern, text, re.IGNORECASE):
            if match.start() <= offset < match.end():
                owners = [d.title for d in DIALECTS.values() if file in d.grammar]
                dialect = _explain_dialect(text, spoken, asked=asked)
                return f"{name} belongs to {_join_names(owners)}; {dialect}"
    return ""


def _explain_dialect(text: str, spoken: Dialect, *, asked: bool) -> str:
    """Returns the dialect in which a text was read, and the reason."""
    if asked:
        return f"the dialect that was asked for is {spoken.title}."
    why = evidence(text)
    return f"the text was read as {spoken.title}" + (f", because of its {why}." if why else ".")


def _join_names(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)

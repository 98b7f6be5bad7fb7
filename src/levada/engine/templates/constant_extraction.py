"""The constants of a query's text, by tokens: IRIs, prefixed names, strings and numbers.

    ?x :p <e:a> . FILTER(?v > 5)        "?x :p \\0i . FILTER(?v > \\0n)" and <e:a>, 5

Texts of one *skeleton* differ in constants only. A wrong cut does no harm, since the template
checks each constant (``query_templates``). So only certain constants are cut. A text in which
quotes, comments or bases would need a lexer has none. Cost: one regular expression over the text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from levada.core.names import is_iri
from levada.core.rdf_terms import RDF, XSD, Iri, Literal, Term

_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n\r]*)
    |(?P<i><[^<>"{}|^`\\\s]*>)
    |(?P<s>"[^"\n\r]*"|'[^'\n\r]*')
    |(?P<p>(?<![\w?$:.%-])[A-Za-z]?[\w-]*:[A-Za-z0-9_][\w-]*(?![\w:.%-]))
    |(?P<e>(?<![\w?$:.%])(?<!\w-)\d+(?:\.\d+)?[eE][+-]?\d+(?![\w.:]))
    |(?P<d>(?<![\w?$:.%])(?<!\w-)\d+\.\d+(?![\w.:]))
    |(?P<n>(?<![\w?$:.%])(?<!\w-)\d+(?![\w.:]))""",
    re.VERBOSE,
)
_PREFIX = re.compile(r"\bprefix\s+([\w-]*):\s*<([^<>\s]*)>", re.IGNORECASE)
_UNSURE = re.compile(r"""\\|'''|\"{3}|''|""|/\*|--|\bbase\b""", re.IGNORECASE)
_PLAIN = {
    "n": re.compile(r"0|[1-9]\d{0,14}"),
    "d": re.compile(r"(?=.{1,15}$)(?:0|[1-9]\d*)\.\d+"),
    "e": re.compile(r"(?=.{1,24}$)\d+(?:\.\d+)?[eE][+-]?\d{1,2}"),
}
_SPECIAL = (RDF, XSD, "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2002/07/owl#")


class Constants(NamedTuple):
    """A text without its constants. ``pieces``: the text around them. ``kinds``: a letter for each
    (i: an IRI or a prefixed name, s: a string, n, d, e: a number). ``tokens``: their texts, an IRI
    in brackets.
    """

    pieces: tuple[str, ...]
    kinds: str
    tokens: tuple[str, ...]


def constants_of(text: str) -> Constants | None:
    """Returns the constants of a text; None if tokens do not determine them.

    >>> constants = constants_of("SELECT ?x { ?x <e:p> ?v FILTER(?v > 5) }")
    >>> constants.kinds, constants.tokens
    ('in', ('<e:p>', '5'))
    """
    if _UNSURE.search(text):
        return None
    prefixes: dict[str, str] = {}
    for name, iri in _PREFIX.findall(text):
        if prefixes.setdefault(name, iri) != iri:
            return None
    pieces, kinds, tokens, at = [], [], [], 0
    for match in _TOKEN.finditer(text):
        kind, token = str(match.lastgroup), match.group()
        if kind == "p":
            prefix, _, local = token.partition(":")
            kind, token = "i", f"<{prefixes[prefix]}{local}>" if prefix in prefixes else ""
        after = text[match.end() : match.end() + 1]
        if not _is_plain_term(kind, token) or (kind == "s" and after in ("@", "^")):
            continue
        pieces.append(text[at : match.start()])
        kinds.append(kind)
        tokens.append(token)
        at = match.end()
    return Constants((*pieces, text[at:]), "".join(kinds), tuple(tokens))


def _is_plain_term(kind: str, token: str) -> bool:
    """Returns whether a token is a term in its only spelling."""
    if kind == "i":
        return is_iri(token[1:-1]) and not token[1:].startswith(_SPECIAL)
    return kind == "s" or (kind in _PLAIN and _PLAIN[kind].fullmatch(token) is not None)


def term_of(kind: str, token: str, sign: str = "", datatype: str = "") -> Term:
    """Returns the term of a token. The template supplies a number's sign and datatype."""
    if kind == "i":
        return Iri(token[1:-1])
    return Literal(token[1:-1]) if kind == "s" else Literal(sign + token, datatype)


def mark(kind: str, number: int, *, twin: bool) -> str:
    """Returns a token of this kind that no text has. Twins sort in the other order, and have
    special characters.
    """
    at = 89 - number if twin else number + 10
    if kind == "i":
        return f"<urn:levada:{'twin' if twin else 'mark'}:{at}>"
    if kind == "s":
        return f"'levada {'(twin [*{ ?' if twin else 'mark'} {at}'"
    whole = f"{9191 if twin else 7370}00{at}"
    return whole + {"n": "", "d": ".50" if twin else ".25", "e": ".5e1"}[kind]

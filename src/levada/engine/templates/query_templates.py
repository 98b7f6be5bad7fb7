"""Templates: texts that differ in constants only are planned from one of them.

    texts      of one skeleton, dialect and options: by their tokens (``query_templates``)
    holes      the constants that differ between texts; constants that are always equal are one hole
    template   the text with marks in its holes, and again with other marks, both as optimized
               algebra: if these differ in the marks only, and marks are in patterns and
               comparisons only, the plan does not depend on the terms

A constant whose meaning is more than its term (LIMIT, REGEX, a graph) is not a hole. Queries that
differ there have several templates, or are planned separately. So is a text that repeats a term, or
has a term of the template's text, since marks always differ. Cost: some 20 ms a template, some 10
µs a query.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from levada.core.frozen import frozen
from levada.core.names import is_derived, is_iri
from levada.core.rdf_terms import RDF, XSD, Iri, Literal, Term
from levada.engine.name_resolution import NameScope
from levada.engine.query_pipeline import Prepared, prepare
from levada.engine.query_request import QueryRequest
from levada.errors import LevadaError
from levada.plan.logical.nodes import Query
from levada.plan.logical.ontology_schema import Regime
from levada.plan.logical.query_template import (
    Template,
    TemplateInstance,
    Wording,
    marks_outside_patterns,
    substitute,
    terms_in,
)

# The constants of a query's text, by tokens: IRIs, prefixed names, strings and numbers.
#
#     ?x :p <e:a> . FILTER(?v > 5)        "?x :p \0i . FILTER(?v > \0n)" and <e:a>, 5
#
# Texts of one *skeleton* differ in constants only. A wrong cut does no harm, since the template
# checks each constant (``query_templates``). So only certain constants are cut. A text in which
# quotes, comments or bases would need a lexer has none. Cost: one regular expression over the text.


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


MIN_TEMPLATE_QUERIES = 8  # queries that are worth a template
MAX_HOLES = 64


class _Text(NamedTuple):
    """A query with the constants of its text."""

    asked: QueryRequest
    constants: Constants


@frozen
class _Hole:
    """A hole. ``places``: of its constant in the text. ``kind``: of the constant. ``sign``,
    ``datatype``: of a number, as the text means it.
    """

    places: tuple[int, ...]
    kind: str
    sign: str = ""
    datatype: str = ""

    def term(self, tokens: Sequence[str]) -> Term:
        """Returns the term in this hole of a text."""
        return term_of(self.kind, tokens[self.places[0]], self.sign, self.datatype)


def rows_of(batch: Sequence[QueryRequest], known: NameScope) -> dict[str, TemplateInstance]:
    """Returns the queries of a batch that are instances of templates, by name."""
    if len(batch) < MIN_TEMPLATE_QUERIES:
        return {}
    rows: dict[str, TemplateInstance] = {}
    for texts in _group_by_skeleton(batch):
        rows |= _rows(texts, known)
    return rows


def _group_by_skeleton(batch: Sequence[QueryRequest]) -> Iterator[list[_Text]]:
    """Yields the texts of each skeleton that has enough of them."""
    groups: dict[object, list[_Text]] = defaultdict(list)
    options: dict[int, str] = {}
    for asked in batch:
        if asked.options.entailment not in (None, Regime.NONE):
            continue  # entailment depends on the terms of patterns
        constants = constants_of(asked.text)
        if constants is not None and constants.kinds:
            said = options.setdefault(id(asked.options), str(asked.options))
            key = (constants.pieces, constants.kinds, asked.dialect, said)
            groups[key].append(_Text(asked, constants))
    yield from (texts for texts in groups.values() if len(texts) >= MIN_TEMPLATE_QUERIES)


def _rows(texts: list[_Text], known: NameScope) -> dict[str, TemplateInstance]:
    """Returns the template instances among texts of one skeleton."""
    holes = _holes(texts)
    if not holes or len(holes) > MAX_HOLES:
        return {}
    made = _template(texts[0], holes, known)
    if made is not None:
        return _fill(texts, *made)
    free = [hole for hole in holes if _template(texts[0], [hole], known) is not None]
    if not free or len(free) == len(holes):
        return {}
    others = [hole.places[0] for hole in holes if hole not in free]
    groups: dict[tuple[str, ...], list[_Text]] = defaultdict(list)
    for text in texts:
        groups[tuple([text.constants.tokens[at] for at in others])].append(text)
    rows: dict[str, TemplateInstance] = {}
    for group in groups.values():
        if len(group) >= MIN_TEMPLATE_QUERIES:
            rows |= _rows(group, known)
    return rows


def _holes(texts: Sequence[_Text]) -> list[_Hole]:
    """Returns the holes of texts: the constants that are not equal in all."""
    columns: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for at, column in enumerate(zip(*[text.constants.tokens for text in texts], strict=True)):
        if any(token != column[0] for token in column):
            columns[column].append(at)
    kinds = texts[0].constants.kinds
    holes: list[_Hole] = []
    for places in columns.values():
        by_kind: dict[str, list[int]] = defaultdict(list)
        for at in places:
            by_kind[kinds[at]].append(at)
        holes += [_Hole(tuple(kind_places), kind) for kind, kind_places in by_kind.items()]
    return holes


def _template(
    text: _Text, holes: Sequence[_Hole], known: NameScope
) -> tuple[Template, list[_Hole]] | None:
    """Returns the template of a text with these holes, and the holes as it means them; None if its
    plan depends on the terms.
    """
    try:
        one, other = (_prepare_marked(text, holes, known, twin=twin) for twin in (False, True))
        settled = [_hole_in_query(hole, i, one.algebra) for i, hole in enumerate(holes)]
        meant = [hole for hole in settled if hole is not None]
        marks, others = _marks(meant, twin=False), _marks(meant, twin=True)
        stays = (
            len(meant) == len(holes)
            and _are_marks_free(one, marks)
            and _are_marks_free(other, others)
        )
        first, second = (replace(prepared.plannable, text="") for prepared in (one, other))
    except LevadaError:
        return None  # each text raises its error when it is planned separately
    if not stays or substitute(first, dict(zip(marks, others, strict=True))) != second:
        return None
    return Template(first, marks, second, others, _wording(text.constants, meant)), meant


def _wording(constants: Constants, holes: Sequence[_Hole]) -> Wording:
    """Returns the text of instances with these holes, as pieces."""
    at = {place: number for number, hole in enumerate(holes) for place in hole.places}
    pieces, which = [constants.pieces[0]], list[int]()
    around, signs = list[tuple[str, str]](), list[str]()
    for place, token in enumerate(constants.tokens):
        after = constants.pieces[place + 1]
        if place not in at:
            pieces[-1] += token + after
            continue
        hole = holes[at[place]]
        pieces.append(after)
        which.append(at[place])
        around.append((token[0], token[-1]) if hole.kind in "is" else ("", ""))
        signs.append(hole.sign)
    return Wording(tuple(pieces), tuple(which), tuple(around), tuple(signs))


def _prepare_marked(
    text: _Text, holes: Sequence[_Hole], known: NameScope, *, twin: bool
) -> Prepared:
    """Prepares a text with marks in its holes."""
    tokens = list(text.constants.tokens)
    for i, hole in enumerate(holes):
        for at in hole.places:
            tokens[at] = mark(hole.kind, i, twin=twin)
    return prepare(replace(text.asked, text=join_text(text.constants.pieces, tokens)), known)


def _are_marks_free(prepared: Prepared, marks: Sequence[Term]) -> bool:
    """Returns whether all marks are in the query and only as terms. Instances cannot read derived
    streams, since queries of a batch have any order.
    """
    there = {*marks} <= {*terms_in(prepared.plannable)}
    queries = (prepared.algebra, prepared.plannable)
    made = any(is_derived(window.stream) for window in prepared.plannable.windows)
    return (
        there
        and not made
        and not any(any(marks_outside_patterns(query, marks)) for query in queries)
    )


def join_text(pieces: Sequence[str], tokens: Sequence[str]) -> str:
    """Joins pieces and tokens, in turn."""
    between = [part for pair in zip(pieces, tokens, strict=False) for part in pair]
    return "".join([*between, pieces[-1]])


def _marks(holes: Sequence[_Hole], *, twin: bool) -> tuple[Term, ...]:
    """Returns the terms of the marks in the holes of a template."""
    return tuple(
        [
            term_of(hole.kind, mark(hole.kind, i, twin=twin), hole.sign, hole.datatype)
            for i, hole in enumerate(holes)
        ]
    )


def _hole_in_query(hole: _Hole, number: int, query: Query) -> _Hole | None:
    """Returns a hole as the text means it: a number with its only sign and datatype; None if they
    vary.
    """
    token = mark(hole.kind, number, twin=False)
    if hole.kind in "is":
        return hole
    said = {
        t for t in terms_in(query) if isinstance(t, Literal) and t.lexical in _sign_variants(token)
    }
    if len(said) != 1:
        return None
    (term,) = said
    assert isinstance(term, Literal), "a number"
    return replace(hole, sign=term.lexical.removesuffix(token), datatype=term.datatype)


def _sign_variants(token: str) -> tuple[str, ...]:
    return (token, f"-{token}", f"+{token}")


def _fill(
    texts: Sequence[_Text], template: Template, holes: list[_Hole]
) -> dict[str, TemplateInstance]:
    """Returns the instances of the template: texts whose terms differ from each other and from the
    template's.
    """
    rows: dict[str, TemplateInstance] = {}
    fixed, several = template.fixed_terms, len(holes)
    for asked, constants in texts:
        terms = tuple([hole.term(constants.tokens) for hole in holes])
        if len({*terms}) == several and fixed.isdisjoint(terms):
            rows[asked.name] = TemplateInstance(template, terms)
    return rows

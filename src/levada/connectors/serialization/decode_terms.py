"""Converts canonical N-Triples texts to the term forms of SPARQL 1.1's result formats, a column at
a time.

    json   {"type": "literal", "value": "5", "datatype": "http://.../XMLSchema#integer"}
    csv    the IRI, the lexical form, or _:label, quoted as in RFC 4180 where needed
    tsv    the N-Triples text; plain numbers in their short Turtle form

(SPARQL 1.1 Query Results JSON Format, and CSV and TSV Formats.)

Invariants: one value out per value in, null (unbound) stays null; the texts are canonical
(``core/rdf_terms.py``), so the escapes inside quotes are JSON's own and are passed on. Cost: a few
vectorised passes over the *distinct* texts of a column; Python runs only per distinct text that has
something to unescape.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import polars as pl

from levada.core.rdf_terms import XSD, Blank, Iri, Literal, Term, parse_term

_PROBE = 1 << 14  # rows that are sampled to see whether a column has many duplicates
# a literal of any form: quoted, with language, with datatype
ESCAPED_LITERAL = r'(?s)^("(?:.*)")(?:@([A-Za-z0-9-]+)|\^\^<([^>]*)>)?$'
_TSV_NUMBERS = (
    ("integer", r"^[+-]?[0-9]+$"),
    ("decimal", r"^[+-]?[0-9]*\.[0-9]+$"),
    ("double", r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+$"),
)


def json_terms(texts: pl.Series) -> pl.Series:
    """Returns each term as a JSON object, null for null.

    >>> json_terms(pl.Series(['<http://e/a>', '"x"', None])).to_list()
    ['{"type": "uri", "value": "http://e/a"}', '{"type": "literal", "value": "x"}', None]
    """
    return per_distinct(texts, _json_terms)


def csv_values(texts: pl.Series) -> pl.Series:
    """Returns each term as a CSV field, null for null.

    >>> csv_values(pl.Series(['<http://e/a>', '"a, b"', '_:b'])).to_list()
    ['http://e/a', '"a, b"', '_:b']
    """
    return per_distinct(texts, lambda distinct: csv_fields(_values(distinct)))


def plain_values(texts: pl.Series) -> pl.Series:
    """Returns the value of each term: the IRI, the lexical form, or _:label; null for null.

    >>> plain_values(pl.Series(['<http://e/a>', '"a, b"@en', '_:b'])).to_list()
    ['http://e/a', 'a, b', '_:b']
    """
    return per_distinct(texts, _values)


def tsv_values(texts: pl.Series) -> pl.Series:
    """Returns each term as a TSV field, null for null.

    >>> tsv_values(pl.Series(['"5"^^<http://www.w3.org/2001/XMLSchema#integer>', '"x"'])).to_list()
    ['5', '"x"']
    """
    return per_distinct(texts, _tsv_values)


def csv_fields(values: pl.Series) -> pl.Series:
    """Returns plain texts as CSV fields: quoted if they contain a comma, quote or line break (RFC
    4180).
    """
    name = values.name
    quoted = pl.concat_str(
        pl.lit('"'), pl.col(name).str.replace_all('"', '""', literal=True), pl.lit('"')
    )
    needs = pl.col(name).str.contains(r'[",\r\n]')
    return (
        values.to_frame()
        .select(pl.when(needs).then(quoted).otherwise(pl.col(name)).alias(name))
        .to_series()
    )


def json_strings(values: pl.Series) -> pl.Series:
    """Returns plain texts as JSON strings; their only control characters are line ends and tabs."""
    escaped = values
    for raw, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        escaped = escaped.str.replace_all(raw, escape, literal=True)
    return '"' + escaped + '"'


def per_distinct(texts: pl.Series, convert: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Applies ``convert`` to the distinct texts if a column repeats itself, else to all of them."""
    texts = texts.cast(pl.String).rename("text")
    if texts.len() < 64 or texts.head(_PROBE).n_unique() * 2 > min(texts.len(), _PROBE):
        return convert(texts)
    distinct = texts.drop_nulls().unique()
    return texts.replace_strict(distinct, convert(distinct), default=None, return_dtype=pl.String)


def _json_terms(texts: pl.Series) -> pl.Series:
    text = pl.col("text")
    body = text.str.slice(1)  # without escapes the next quote ends the lexical form
    quoted = pl.lit('{"type": "literal", "value": "')
    typed = pl.concat_str(
        quoted,
        body.str.replace('"^^<', '", "datatype": "', literal=True).str.strip_suffix(">"),
        pl.lit('"}'),
    )
    tagged = pl.concat_str(
        quoted, body.str.replace('"@', '", "xml:lang": "', literal=True), pl.lit('"}')
    )
    simple = pl.concat_str(quoted, body, pl.lit("}"))
    iri = pl.concat_str(
        pl.lit('{"type": "uri", "value": "'), body.str.strip_suffix(">"), pl.lit('"}')
    )
    blank = pl.concat_str(pl.lit('{"type": "bnode", "value": "'), text.str.slice(2), pl.lit('"}'))
    literal = (
        pl.when(text.str.ends_with(">"))
        .then(typed)
        .when(text.str.ends_with('"'))
        .then(simple)
        .otherwise(tagged)
    )
    resource = pl.when(text.str.starts_with("<")).then(iri).otherwise(blank)
    return _by_escapes(
        texts, pl.when(text.str.starts_with('"')).then(literal).otherwise(resource), _json_escaped
    )


def _by_escapes(
    texts: pl.Series, plain: pl.Expr, escaped: Callable[[pl.Series], pl.Series]
) -> pl.Series:
    """Applies ``plain`` to texts without a backslash (IRIs: or a quote), ``escaped`` to the
    others.
    """
    text = pl.col("text")
    odd = text.str.contains("\\", literal=True) | (
        text.str.starts_with("<") & text.str.contains('"', literal=True)
    )
    frame = texts.to_frame().select(plain.alias("out"), odd.fill_null(False).alias("odd"))
    if not frame["odd"].any():
        return frame["out"].alias("text")
    rows = frame["odd"].arg_true()
    return frame["out"].scatter(rows, escaped(texts.gather(rows))).alias("text")


def _json_escaped(texts: pl.Series) -> pl.Series:
    """Converts literals with escapes (JSON's, too) by one regular expression; such IRIs one by
    one.
    """
    parts = texts.to_frame().select(
        pl.col("text"), pl.col("text").str.extract_groups(ESCAPED_LITERAL).alias("parts")
    )
    quoted, language, datatype = (pl.col("parts").struct.field(str(i)) for i in (1, 2, 3))
    tail = (
        pl.when(language.is_not_null())
        .then(pl.concat_str(pl.lit(', "xml:lang": "'), language, pl.lit('"}')))
        .when(datatype.is_not_null())
        .then(pl.concat_str(pl.lit(', "datatype": "'), datatype, pl.lit('"}')))
        .otherwise(pl.lit("}"))
    )
    literal = parts.select(
        pl.concat_str(pl.lit('{"type": "literal", "value": '), quoted, tail)
    ).to_series()
    rows = literal.is_null().arg_true()
    return literal.scatter(rows, [_json_term(text) for text in texts.gather(rows).to_list()])


def _json_term(text: str) -> str:
    term = parse_term(text)
    assert isinstance(term, Iri), "only an IRI can be odd without being a literal"
    return json.dumps({"type": "uri", "value": term.value}, ensure_ascii=False)


def _values(texts: pl.Series) -> pl.Series:
    """Returns the value of each term: an IRI without brackets, a lexical form without escapes, a
    blank node unchanged.
    """
    text = pl.col("text")
    lexical = text.str.slice(1).str.splitn('"', 2).struct.field("field_0")
    plain = (
        pl.when(text.str.starts_with("<"))
        .then(text.str.slice(1).str.strip_suffix(">"))
        .when(text.str.starts_with('"'))
        .then(lexical)
        .otherwise(text)
    )
    return _by_escapes(
        texts, plain, lambda odd: pl.Series("text", [_value(parse_term(t)) for t in odd.to_list()])
    )


def _value(term: Term) -> str:
    match term:
        case Iri(value):
            return value
        case Blank():
            return str(term)
        case Literal(lexical):
            return lexical


def _tsv_values(texts: pl.Series) -> pl.Series:
    out = pl.col("text")
    for datatype, shape in _TSV_NUMBERS:
        suffix = f'"^^<{XSD}{datatype}>'
        short = pl.col("text").str.strip_suffix(suffix).str.slice(1)
        fits = pl.col("text").str.ends_with(suffix) & short.str.contains(shape)
        out = pl.when(fits).then(short).otherwise(out)
    return texts.to_frame().select(out.alias("text")).to_series()

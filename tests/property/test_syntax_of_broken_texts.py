"""Whatever a text is: it parses and prints, or it is a query error with a place inside the text and
words for people.
"""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from levada.errors import QueryError
from levada.language import parse, show

TEXTS = [
    "PREFIX : <http://e/> REGISTER RSTREAM :o AS SELECT ?s (MAX(?v) AS ?m) "
    "FROM NAMED WINDOW :w ON :s [RANGE PT10S STEP PT5S]"
    " WHERE { WINDOW :w { ?s a :T ; :v ?v . FILTER(?v > 1.5 && !BOUND(?x)) } "
    "OPTIONAL { ?s :n 'x'@en } } GROUP BY ?s"
    " HAVING (COUNT(*) > 2) ORDER BY DESC(?m) LIMIT 10",
    "BASE <http://e/> ASK { { ?s <p>/^<q>* ( 1 [ <r> _:b ] ) } UNION { "
    'GRAPH ?g { ?s ?p """long \'text\'""" } } MINUS { }'
    " BIND(IF(?x IN (1, -2), STRLEN(?y), COALESCE()) AS ?z) "
    "VALUES (?u ?v) { (1 UNDEF) } { SELECT * { } } }",
    'CONSTRUCT { ?s ?p "\\u00e9\\n"^^<t> } WHERE { SERVICE SILENT <x> { ?s ?p 1e3 } '
    "FILTER NOT EXISTS { ?s ?p ?o } } # end",
]
PIECES = sorted(
    {piece for text in TEXTS for piece in re.findall(r"\w+|\S", text)}
    | {'"', "'", "\\u0041", "\\uD800", "é", "×", "\n", "{"}
)


@st.composite
def broken(draw: st.DrawFn) -> str:
    """A query text with some pieces left out, doubled, swapped for others or glued to their
    neighbours.
    """
    pieces = re.findall(r"\s+|\w+|[^\w\s]", draw(st.sampled_from(TEXTS)))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(pieces) - 1))
        pieces[place] = draw(
            st.sampled_from(["", pieces[place] * 2, draw(st.sampled_from(PIECES))])
        )
    return "".join(pieces)


@given(broken() | st.text(max_size=40))
def test_every_text_parses_or_is_a_query_error_with_its_place(text: str) -> None:
    try:
        unit = parse(text)
    except QueryError as error:
        assert error.span is not None
        lines = text.split("\n")
        assert 1 <= error.span.line <= len(lines)
        assert 1 <= error.span.column <= len(lines[error.span.line - 1]) + 1
        assert error.message.endswith((".", "?"))
        assert len(error.expected) <= 8
        assert str(error)
    else:
        assert show(unit).startswith("(query-unit")
        assert show(parse(text)) == show(unit)

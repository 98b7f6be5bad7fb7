"""STREAM with a variable: over each stream in turn, with its IRI; the reference is asked the union
that this is.
"""

from __future__ import annotations

import pytest

from levada.errors import QueryError
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.logical.print_logical import show
from levada.testing.reference_model import ReferenceQuery
from support.generators import CaseQuery, Clause
from support.generators.windows import compact
from support.query_dsl import PREFIX, STREAM, WINDOWS, TwoStreams, at, check

OTHER = "http://e/t"
STREAMS: TwoStreams = {
    "s": [
        at(500, ":a :p 1"),
        at(900, ":b :p 2 ; :q :a"),
        at(4200, ":a :p 1"),
        at(8100, ":c :q :b"),
    ],
    "t": [at(400, ":a :p 1"), at(2500, ":a :q :b"), at(6100, ":b :p 3")],
}


def _window(stream: str, clause: Clause) -> str:
    """The reference's name of a window."""
    return f"{stream}/" + "".join(c for c in compact(clause) if c.isalnum())


def _both(inner: str, clause: Clause) -> str:
    """What ``STREAM ?in [..] { inner }`` means over the two streams."""
    parts = (
        f"{{ GRAPH <{_window(s, clause)}> {{ {inner} }} VALUES ?in {{ <{s}> }} }}"
        for s in (STREAM, OTHER)
    )
    return " UNION ".join(parts)


def asking(group: str, spelled: str, *clauses: Clause) -> CaseQuery:
    """A query in CQELS-QL with windows of these clauses on both streams."""
    on = {
        _window(s, c): (s, c.window({"report": "change"})) for c in clauses for s in (STREAM, OTHER)
    }
    asked = ReferenceQuery(f"{PREFIX}SELECT * WHERE {{ {spelled} }}", on, "ISTREAM")
    return CaseQuery("q", f"{PREFIX}SELECT * WHERE {{ {group} }}", "cqels", {}, asked)


@pytest.mark.parametrize("clause", WINDOWS)
def test_over_each_stream(clause: Clause) -> None:
    inner = "?x :p ?v"
    check(
        asking(f"STREAM ?in {compact(clause)} {{ {inner} }}", _both(inner, clause), clause),
        **STREAMS,
    )


def test_beside_a_window_of_the_same_brackets() -> None:
    """It is one of those over which the variable goes."""
    clause = Clause("range", 5000)
    name = f"<{_window(STREAM, clause)}>"
    group = (
        f"STREAM <{STREAM}> {compact(clause)} {{ ?x :p ?v }} "
        f"STREAM ?in {compact(clause)} {{ ?y :q ?x }}"
    )
    check(
        asking(group, f"GRAPH {name} {{ ?x :p ?v }} {{ {_both('?y :q ?x', clause)} }}", clause),
        **STREAMS,
    )


def test_a_variable_twice_is_one_stream() -> None:
    clause, short = Clause("range", 5000), Clause("range", 1000)
    group = (
        f"STREAM ?in {compact(clause)} {{ ?x :p ?v }} STREAM ?in {compact(short)} {{ ?x ?k ?o }}"
    )
    spelled = f"{{ {_both('?x :p ?v', clause)} }} {{ {_both('?x ?k ?o', short)} }}"
    check(asking(group, spelled, clause, short), **STREAMS)


@pytest.mark.parametrize(
    ("streams", "text", "message"),
    [
        (
            (),
            "SELECT * { STREAM ?s [NOW] { ?x ?p ?o } }",
            "STREAM ?s goes over the streams, and none are given.",
        ),
        (
            ("temp",),
            "SELECT * { STREAM ?s [NOW] { ?x ?p ?o } }",
            "STREAM ?s goes over the stream temp, which has no IRI.",
        ),
    ],
)
def test_what_cannot_be_gone_over(streams: tuple[str, ...], text: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        translate(parse(text, "cqels"), text=text, streams=streams)
    assert caught.value.message == message


def test_a_word_is_resolved_against_the_base() -> None:
    text = "BASE <http://e/> SELECT * { STREAM ?s [NOW] { ?x ?p ?o } }"
    query = translate(parse(text, "cqels"), text=text, streams=("temp",))
    assert [w.stream for w in query.windows] == ["temp"]
    assert "(<http://e/temp>)" in show(query)


def test_over_the_windows_beside_from() -> None:
    """CQELS-QL 2."""
    text = (
        "SELECT * FROM STREAM <http://e/s> [RANGE 4s SLIDE 2s] "
        "FROM STREAM <http://e/t> [NOW] { STREAM ?in { ?x ?p ?o } }"
    )
    query = translate(parse(text, "cqels2"), text=text)
    assert len(query.windows) == 2
    assert "(<http://e/s>)" in show(query) and "(<http://e/t>)" in show(query)

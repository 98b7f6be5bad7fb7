"""Views, relations, Union and Except in CQL: how they become levels, and what is refused, by name
and position.
"""

from __future__ import annotations

import pytest

from levada.core.event_time import WindowKind
from levada.core.query_model import Output
from levada.errors import QueryError, UnsupportedError
from levada.language.translate.cql.translate import translate_cql
from levada.plan.logical import nodes
from levada.plan.logical.query_options import QueryOptions
from levada.plan.logical.traversal import level

STREAMS = {
    "A": {"k": "integer", "v": "double"},
    "B": {"k": "integer", "n": "string"},
    "R": {"k": "integer"},
}
G = "Register Relation G (k Integer, n Integer) As Select k, Count(*) From A Group By k; "
V = "Register Stream V (k Integer) As Select k From A [Range 5 s]; "


def translated(text: str, **options: object) -> nodes.Query:
    return translate_cql(text, STREAMS, QueryOptions(**options), ["R"])  # type: ignore[arg-type]


def derived(query: nodes.Query) -> list[nodes.SubQuery]:
    return [part for part in level(query.pattern) if isinstance(part, nodes.SubQuery)]


def test_a_view_is_a_level_of_its_own_under_a_window_of_the_reader() -> None:
    query = translated(f"{V} Select V.k From V [Rows 2], B Where V.k = B.k")
    (view,) = derived(query)
    assert (view.output, view.level, view.source) == (Output.ISTREAM, (0,), nodes.InWindow(1))
    assert [w.window.kind for w in query.windows] == [
        WindowKind.RANGE,
        WindowKind.COUNT,
        WindowKind.ALL,
    ]
    assert query.windows[1].beneath == (0,)


def test_a_relation_of_selections_becomes_part_of_its_reader() -> None:
    query = translated(
        "Select S.k From (Select k From A [Range 5 s] Where v > 1) As S, B Where S.k = B.k"
    )
    assert derived(query) == [] and len(query.windows) == 2


def test_a_relation_from_outside_is_what_is_held() -> None:
    (relation,) = derived(translated("Select k From R"))
    assert relation.output is Output.RELATION
    assert [part.relation for part in level(relation.child) if isinstance(part, nodes.Scan)] == [
        True
    ]


def test_integers_become_floats_where_a_view_says_so() -> None:
    query = translated("Register Stream F (x Float) As Select k From A; Select x/2 From F")
    assert query.variables == ("x/2",)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("Select k From R [Range 5 s]", (1, 18), "R is a relation, which has no window."),
        ("Select ts From R", (1, 8), "There is no column ts."),
        (f"{G}Select k From G [Now]", (1, 102), "G is a relation, which has no window."),
        ("Register Relation X (k Integer) As Istream(Select k From A); Select k From X", (1, 19),
         "X is registered as a relation"),
        ("Register Stream X (k Integer) As Select k, v From A; Select k From X", (1, 17),
         "X has 1 column, its query gives 2."),
        ("Register Stream X (k Integer) As Select v From A; Select k From X", (1, 17),
         "The column k of X is of the type integer"),
        ("A Union B", (1, 3), "Union of (integer, double) and (integer, "
         "string): the columns differ."),
        ("Select k From A [Partition By B.k Rows 2], B", (1, 31),
         "Partition By B.k is not of the table A."),
        ("Select k From A [Partition By w Rows 2]", (1, 31), "A has no column w."),
        ("Register Stream A (k Integer); Select k From A", (1, 17),
         "The stream A has the columns k integer, v double."),
        ("Register Relation B (k Integer, n Char(9)); Select k From B", (1, 19),
         "B is not a relation."),
        ("Select k From A; Select k From B", (1, 18), "This text has 2 queries, one is needed."),
        ("Register Stream X (k Integer) As Select k From A", (1, 1),
         "This text has no query, one is needed."),
        ("Select k From X; ", (1, 15), "There is no tuple stream X."),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_at_its_place(
    text: str, place: tuple[int, int], message: str
) -> None:
    with pytest.raises(QueryError) as caught:
        translated(text)
    assert caught.value.message.startswith(message)
    assert (
        caught.value.span is not None
        and (caught.value.span.line, caught.value.span.column) == place
    )


def test_a_name_of_the_result_is_no_column() -> None:
    with pytest.raises(QueryError) as caught:
        translated("Select v + 1 As s From A Where s > 1")
    assert caught.value.hint == "s is a name of the result only: write what it stands for."
    with pytest.raises(QueryError) as caught:
        translated("Select k, Sum(v) From A Group By v")
    assert caught.value.hint == "Say Group By v, A.k, or an aggregate such as Max(A.k)."


def test_empty_reports_of_a_count_over_a_view_are_refused() -> None:
    with pytest.raises(UnsupportedError):
        translated(f"{G}Select Count(*) From G", empty_reports=True)
    assert translated(f"{G}Select n From G", empty_reports=True)


def test_what_rstream_reads_is_apart_since_its_changes_are_the_reports() -> None:
    inner = "(Select k From A [Range 5 s] Where v > 1) As S"
    assert len(derived(translated(f"Rstream(Select k From {inner})"))) == 1
    assert len(derived(translated(f"Rstream(Select S.k From {inner}, B)"))) == 1
    assert derived(translated(f"Rstream(Select S.k From {inner}, B [Now])")) == []
    assert len(derived(translated(f"Select k From {inner}", nonempty=True))) == 1

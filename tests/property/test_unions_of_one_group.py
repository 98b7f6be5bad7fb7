"""CQL: Union and Except of an aggregate without Group By and a select over what is mostly empty.

The aggregate's row is there while something holds something that either side *names*; what holds
something only below a view or a query in brackets does not count. Streams are sparse here, and
conditions sharp, so that both happen often.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_random_cases import epochs, examples, partitions

from levada.core.event_time import Window
from levada.language.translate.cql.translate import translate_cql
from levada.testing.compare import same
from levada.testing.reference_model import ReferenceSql, Row
from support.generators import Case, CaseQuery
from support.generators.cql import SCHEMAS
from support.generators.windows import Clause
from support.sql_cases import ALL, RANGE, RELATION, sql
from support.stepped_runs import run_case

INTEGER = {"c": "integer"}
A, B = (Row(5000, (2, 5.0, "x")),), (Row(1000, (7, 7.0)),)
V = "Register Relation V (c Integer) As Select A.k From A [Range 2 s] Where A.k > 100; "
OF_V = sql("Select k As c From A Where k > 100", {"A": ("A", RANGE)}, INTEGER)
JOINED = "Select A.k From A [Range 2 s], A [Range 2 s] As D Where A.k = D.k And A.k > 100"
COUNT = "Select Count(*) As c From B"


@pytest.mark.long
@pytest.mark.parametrize("output", ["RELATION", "ISTREAM", "DSTREAM", "RSTREAM"])
@pytest.mark.parametrize(
    ("text", "right"),
    [
        (V + "(Select Count(*) As c From B [Range 2 s]) Union (Select c From V)", ()),
        (V + "(Select c From V) Union (Select Count(*) As c From B [Range 2 s])", ()),
        (V + "(Select Count(*) As c From B [Range 2 s]) Except (Select c From V)", ()),
        (V + "(Select Sum(k) As c From B [Range 2 s]) Union (Select c From V)", ("Sum(k)", RANGE)),
        (V + "(Select Count(*) As c From B) Union (Select c From V)", ("Count(*)", ALL)),
        (V.replace("[Range 2 s]", "[Range Unbounded]")
         + "(Select Count(*) As c From B [Range 2 s]) Union (Select c From V)", ()),
        (V.replace(V[V.index("Select"):-2], JOINED)
         + "(Select Count(*) As c From B [Range 2 s]) Union (Select c From V)", ()),
        ("(Select Count(*) As c From B [Range 2 s]) Union "
         "(Select X.k From (Select A.k From A [Range 2 s] Where A.k > 100) As X)", ()),
        (V + "Register Relation W (k Integer) As Select k From B [Range 2 s]; "
         "(Select Count(*) As c From W) Union (Select c From V)", ()),
        (V + "(Select Count(*) As c From B [Range 2 s]) Union V", ()),
        (V + "(Select c From V) Except (Select c From V) Union "
         "(Select Count(*) As c From B [Range 2 s])", ()),
    ],
)  # fmt: skip
def test_what_is_only_below_a_view_does_not_count(
    text: str, right: tuple[str, Window] | tuple[()], output: str
) -> None:
    """The aggregate's row: it came and went with what was below the view, which stays empty."""
    if output != "RELATION":
        views, _, asked = text.rpartition("; ")
        text = f"{views}{'; ' if views else ''}{output.capitalize()}({asked})"
    what, window = right or ("Count(*)", RANGE)
    on = {"B": ("B", window)}
    reference = sql(f"Select {what} As c From B", on, INTEGER, output)
    check_case({"A": A, "B": B}, text, reference, silent=output == "DSTREAM" and window is ALL)


def test_a_view_over_the_union_holds_what_the_union_says() -> None:
    text = (
        f"{V}Register Relation U (c Integer) As "
        "(Select Count(*) From B [Range 2 s]) Union (Select c From V); Rstream(Select c From U)"
    )
    union = sql(COUNT, {"B": ("B", RANGE)}, INTEGER)
    asked = sql("Select c From U", {"U": ("U", ALL)}, INTEGER, "RSTREAM", views={"U": union})
    check_case({"A": A, "B": B}, text, asked)


@pytest.mark.parametrize("operator", ["Union", "Except"])
def test_an_integer_beside_a_double_becomes_a_double(operator: str) -> None:
    """Both sides, at any position, also of three; the names are those of the left side."""
    text = (
        "(Select k As i, v As d From A [Range 2 s]) Union (Select w, k From B [Range 2 s]) "
        f"{operator} (Select k, k From B [Range 2 s])"
    )
    query = translate_cql(text, {"A": SCHEMAS["A"], "B": SCHEMAS["B"]})
    assert query.variables == ("i", "d")
    both = "Select k As i, v As d From A Union All Select w, k From B"
    judged = {
        "Union": f"{both} Union All Select k, k From B",
        "Except": f"Select * From ({both}) Where Not (i = 7 And d = 7)",
    }
    on = {"A": ("A", RANGE), "B": ("B", RANGE)}
    reference = sql(judged[operator], on, {"i": "double", "d": "double"})
    check_case({"A": (Row(1500, (2, 5.0, "x")),), "B": B}, text, reference)


def test_integers_and_averages_are_one_column() -> None:
    text = "(Select k From A [Range 2 s]) Union (Select Avg(k) From B [Range 2 s])"
    on = {"A": ("A", RANGE), "B": ("B", RANGE)}
    judged = "Select k From A Union All Select Avg(k) From B"
    check_case({"A": A, "B": B}, text, sql(judged, on, {"k": "double"}))


def check_case(
    streams: Mapping[str, tuple[Row, ...]], text: str, asked: ReferenceSql, silent: bool = False
) -> None:
    query = CaseQuery("q", text, "cql", {}, asked)
    case = Case(dict(streams), (query,), 0, {}, RELATION, frozenset({"R"}))
    expected = case.expected()["q"]
    assert expected or silent, "it says nothing"
    for rows, parts in ((1000, 1), (1, 3)):
        difference = same(expected, run_case(case, epoch_rows=rows, partitions=parts)["q"])
        assert difference is None, difference


# -- random scripts --

WINDOWS = (
    Clause("range", 1000),
    Clause("range", 1000),
    Clause("range", 2000),
    Clause("step", 2000, 1000),
    Clause("now"),
    Clause("all"),
)


@dataclass
class Side:
    """A query as CQL and as SQL over one table per alias, and what these tables are."""

    cql: str
    sql: str
    on: dict[str, tuple[str, Clause]] = field(default_factory=dict)


@dataclass
class Texts:
    """A script in the making: its views as text, and as questions; the relations among them."""

    views: dict[str, tuple[str, ReferenceSql]] = field(default_factory=dict)
    n: int = 0

    def alias(self) -> str:
        self.n += 1
        return f"t{self.n}"


@st.composite
def selects(draw: st.DrawFn, texts: Texts, what: str = "") -> Side:
    """A select, or with ``what`` an aggregate without Group By, over a stream or a view, or two."""
    found = Side("", "")
    columns, tables = [], []
    for _ in range(draw(st.sampled_from((1, 1, 1, 2)))):
        alias, name = texts.alias(), draw(st.sampled_from(("A", "B", *2 * tuple(texts.views))))
        base = name in SCHEMAS
        clause = draw(st.sampled_from(WINDOWS)) if base else Clause("all")
        found.on[alias] = (name, clause)
        columns.append(f"{alias}.{'k' if base else 'c'}")
        tables.append(f"{name} {clause.cql if base else ''} As {alias}")
    conditions = [f"{columns[0]} > {draw(st.sampled_from((0, 0, 2, 100)))}"]
    conditions += [f"{columns[0]} = {other}" for other in columns[1:]]
    shown = (what or "{}").format(columns[0])
    where = " Where " + " And ".join(conditions)
    found.cql = f"Select {shown} As c From {', '.join(tables)}{where}"
    found.sql = f"Select {shown} As c From {', '.join(found.on)}{where}"
    return found


@st.composite
def combined(draw: st.DrawFn, left: Side, right: Side) -> Side:
    """Union or Except of two, in any order."""
    if draw(st.booleans()):
        left, right = right, left
    numbered = "Select c, row_number() Over (Partition By c) As n From "
    union = draw(st.booleans())
    judged = (
        f"Select c From ({left.sql}) Union All Select c From ({right.sql})"
        if union
        else f"Select c From ({numbered}({left.sql}) Except {numbered}({right.sql}))"
    )
    text = f"({left.cql}) {'Union' if union else 'Except'} ({right.cql})"
    return Side(text, judged, {**left.on, **right.on})


def question(side: Side, output: str, texts: Texts) -> ReferenceSql:
    views = {name: view for name, (_, view) in texts.views.items()}
    on = {alias: (name, clause.window({})) for alias, (name, clause) in side.on.items()}
    return sql(side.sql, on, INTEGER, output, views=views)


AGGREGATES = ("Count(*)", "Count(*)", "Sum({})", "Max({})", "Count(Distinct {})")


@st.composite
def unions(draw: st.DrawFn) -> Case:
    """A script of up to three views, one of which may be such a union, and a union over them."""
    texts = Texts()
    for i in range(draw(st.integers(1, 3))):
        side = draw(selects(texts))
        if draw(st.integers(0, 3)) == 3:
            what = draw(st.sampled_from(("", *AGGREGATES)))
            side = draw(combined(side, draw(selects(texts, what))))
        line = f"Register Relation V{i} (c Integer) As {side.cql};"
        texts.views[f"V{i}"] = (line, question(side, "RELATION", texts))
    one = draw(selects(texts, draw(st.sampled_from(AGGREGATES))))
    asked = draw(combined(one, draw(selects(texts))))
    output = draw(st.sampled_from(("RELATION", "ISTREAM", "DSTREAM", "RSTREAM")))
    text = asked.cql if output == "RELATION" else f"{output.capitalize()}({asked.cql})"
    whole = "\n".join([*(line for line, _ in texts.views.values()), text])
    query = CaseQuery("q", whole, "cql", {}, question(asked, output, texts))
    streams = {"A": draw(sparse((1.0, "x"))), "B": draw(sparse((1.0,)))}
    return Case(streams, (query,), 0, {}, RELATION, frozenset({"R"}))


@st.composite
def sparse(draw: st.DrawFn, rest: tuple[float | str, ...]) -> tuple[Row, ...]:
    """One to four rows with this after their key, and gaps wider than most windows."""
    times = sorted(draw(st.lists(st.integers(0, 24), min_size=1, max_size=4)))
    return tuple(Row(500 * t, (draw(st.sampled_from((1, 2, 5, 101))), *rest)) for t in times)


@examples(60)
@given(unions(), epochs, partitions)
def test_unions_of_one_group_equal_the_reference(case: Case, rows: int, parts: int) -> None:
    got = run_case(case, epoch_rows=rows, partitions=parts)
    assert same(case.expected()["q"], got["q"]) is None

"""``recent_rows``: rows of now with the last rows of their key."""

from __future__ import annotations

import pytest

from levada.language.translate.cql.translate import translate_cql
from levada.plan.logical.nodes import Query
from levada.plan.logical.print_logical import show_node
from levada.plan.optimizer.pipeline import optimize

SCHEMA = {"k": "integer", "v": "integer"}
PAIR = "Rstream(Select a.k, a.v, b.v As w From S [Now] As a, S [{by}Rows {n}] As b{where})"
BY_KEY = {"by": "Partition By k ", "where": " Where a.k = b.k"}
TWO = PAIR.format(n=2, **BY_KEY)
VIEW = "Register {kind} V (k Integer, v Integer) As {output};\n"


def asked(text: str) -> Query:
    """The algebra of a text, optimized."""
    return optimize(translate_cql(text, {"S": SCHEMA, "T": SCHEMA}))


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        (TWO, True),
        (PAIR.format(n=64, **BY_KEY), True),
        (PAIR.format(n=2, by="", where=""), True),
        (TWO.replace("a.k = b.k", "a.k = b.k And b.v < a.v"), True),
        (TWO.replace("a.k = b.k", "a.k = b.k And a.v > 3"), True),
        (TWO.replace("As b", "As b, T [Now] As c"), True),
        # so many rows that a join does as well
        (PAIR.format(n=65, **BY_KEY), False),
        # another key than that of the window
        (TWO.replace("Partition By k", "Partition By v"), False),
        (PAIR.format(n=2, by="", where=" Where a.k = b.k"), False),
        (TWO.replace("a.k = b.k", "a.k = b.k And a.v = b.v"), False),
        (TWO.replace("a.k = b.k", "a.k = b.v"), False),
        # another window, another stream
        (TWO.replace("[Now]", "[Range 1 Second]"), False),
        (TWO.replace("From S", "From T"), False),
    ],
)
def test_where_the_rule_applies(text: str, taken: bool) -> None:
    assert ("(recent" in show_node(asked(text).pattern)) is taken


OF_VIEW = TWO.replace("From S", "From V").replace(", S [", ", V [")


@pytest.mark.parametrize(
    ("kind", "output", "taken"),
    [
        ("Stream", "Rstream(Select k, v From S [Now])", True),
        ("Stream", "Istream(Select k, Sum(v) From S [Range 5 Seconds] Group By k)", True),
        ("Stream", TWO.replace("a.v, b.v", "b.v"), True),
    ],
)
def test_it_applies_to_the_rows_of_a_view(kind: str, output: str, taken: bool) -> None:
    told = show_node(asked(VIEW.format(kind=kind, output=output) + OF_VIEW).pattern)
    assert told.startswith("(project (?k ?v ?w)\n  (recent") is taken


def test_two_views_are_not_the_rows_of_one() -> None:
    views = [
        VIEW.format(kind="Stream", output=f"Rstream(Select k, v From {s} [Now])") for s in "ST"
    ]
    views[1] = views[1].replace("Stream V", "Stream W")
    text = OF_VIEW.replace(", V [", ", W [")
    assert "(recent" not in show_node(asked("".join(views) + text).pattern)


def test_what_is_left_is_joined_with_the_pair() -> None:
    text = TWO.replace("As b", "As b, T [Now] As c").replace("a.k = b.k", "a.k = b.k And b.v = c.v")
    told = show_node(asked(text).pattern)
    assert "(conjunction" in told
    assert told.index("(recent") < told.index("(scan (window 2)")

"""What is too large to be planned is told to who registers it, and nothing else is refused."""

import pytest

from levada.core.stream_facts import StreamFacts
from levada.errors import QueryError
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.logical.nodes import Query
from levada.plan.topology import trial_planning
from levada.plan.topology.trial_planning import MAX_TRIAL_SIZE, check_plan, size

STREAM = "http://e/s"


def star(patterns: int, more: str = "") -> Query:
    """Patterns of one subject: a tree as deep as they are many."""
    group = " . ".join(f"?s <http://e/p{i}> ?v{i}" for i in range(patterns))
    text = (
        f"SELECT * FROM NAMED WINDOW <w> ON <{STREAM}> [RANGE PT2S] {{ "
        f"WINDOW <w> {{ {group} }} {more} }}"
    )
    return translate(parse(text), text=text)


@pytest.mark.parametrize(
    ("more", "nodes"),
    [
        ("", 3),
        ("FILTER(?v0 > 1)", 4),
        ("OPTIONAL { WINDOW <w> { ?s <http://e/q> ?o } }", 5),
        ("{ WINDOW <w> { ?s <http://e/q> ?o } } UNION { WINDOW <w> { ?s <http://e/r> ?o } }", 7),
    ],
)
def test_the_size_is_that_of_operators_and_patterns(more: str, nodes: int) -> None:
    assert size(star(2, more).pattern) == nodes


def test_small_queries_are_not_planned_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[int] = []
    monkeypatch.setattr(
        trial_planning, "_plan", lambda query, _: planned.append(size(query.pattern))
    )
    for patterns in (2, MAX_TRIAL_SIZE - 1, MAX_TRIAL_SIZE + 1):
        check_plan(star(patterns), {}, "")
    assert [n > MAX_TRIAL_SIZE for n in planned] == [True]


def test_what_can_be_planned_passes_also_over_streams_that_queries_make() -> None:
    check_plan(star(MAX_TRIAL_SIZE + 20), {}, "")
    check_plan(star(MAX_TRIAL_SIZE + 20), {STREAM: StreamFacts(unique=True)}, "")


@pytest.mark.long
def test_what_cannot_be_planned_is_a_query_error_with_what_to_do() -> None:
    with pytest.raises(QueryError, match="too large to be planned") as found:
        check_plan(star(700), {}, "the text")
    assert "Join fewer patterns" in found.value.hint


def test_other_mistakes_of_the_planner_come_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(query: Query, facts: object) -> None:
        raise KeyError("a mistake of ours")

    monkeypatch.setattr(trial_planning, "_plan", broken)
    with pytest.raises(KeyError, match="a mistake of ours"):
        check_plan(star(MAX_TRIAL_SIZE + 1), {}, "")

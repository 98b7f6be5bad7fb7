"""Which joins become one step, and why others do not."""

from __future__ import annotations

import pytest

from levada.core.stream_facts import StreamFacts
from levada.errors import UsageError
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.execution.joins import JoinForm, join_form_of
from levada.plan.logical.query_options import QueryOptions
from levada.plan.lowering.lower import lower
from levada.plan.optimizer.pipeline import optimize
from levada.plan.physical import operators as p
from levada.plan.physical.multiway_join import multiway, why_binary
from levada.plan.physical.operators import Op

STAR = "?x :p ?a . ?x :q ?b . ?x :r ?c"


def root(body: str, beside: str = "", clause: str = "[RANGE PT4S STEP PT2S]") -> Op:
    """The operators of a query over one window, two inputs a join."""
    text = (
        f"PREFIX : <http://e/> SELECT * FROM NAMED WINDOW :w ON <http://e/s> {clause} "
        f"WHERE {{ WINDOW :w {{ {body} }} {beside} }}"
    )
    query = optimize(translate(parse(text), QueryOptions(), text=text))
    return lower(query, {"http://e/s": StreamFacts()}).root


def joins(op: Op) -> list[tuple[str, int]]:
    """The joins, outer ones first, with the number of their inputs."""
    own = isinstance(op.spec, p.Join | p.MultiwayJoin)
    below = [found for child in op.inputs for found in joins(child)]
    return [(type(op.spec).__name__, len(op.inputs)), *below] if own else below


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (STAR, [("MultiwayJoin", 3)]),
        (STAR + " . ?d :p ?x . ?x :s ?e", [("MultiwayJoin", 5)]),
        ("?x :p ?a . ?x :q ?b", [("Join", 2)]),
        (STAR + " . ?b :p ?d", [("Join", 2), ("MultiwayJoin", 3)]),
        (STAR + " . ?b :p ?d . ?b :q ?e . ?b :r ?f",
         [("Join", 2), ("MultiwayJoin", 3), ("MultiwayJoin", 3)]),
        ("?x :p ?y . ?y :p ?z . ?z :p ?x", [("Join", 2), ("Join", 2)]),
        (STAR + " FILTER(?a != ?b)", [("Join", 2), ("Join", 2)]),
    ],
)  # fmt: skip
def test_stars_are_one_step(body: str, found: list[tuple[str, int]]) -> None:
    assert joins(multiway(root(body))) == found


def test_one_step_stands_where_its_joins_stood() -> None:
    binary = root(STAR)
    (report,) = binary.inputs
    outer, (step,) = report.inputs[0], multiway(binary).inputs[0].inputs
    assert (step.stage, step.placed, step.variables, step.windows) == (
        outer.stage, outer.placed, outer.variables, outer.windows,
    )  # fmt: skip
    assert step.exchange == (("x",),) * 3
    assert isinstance(step.spec, p.MultiwayJoin)
    assert step.spec.raw == (True, True, True)


@pytest.mark.parametrize(
    ("body", "clause", "why"),
    [
        (STAR + " FILTER(?a != ?b)", "", "by ?x has a join as input: a filter stands between them"),
        (STAR + " . ?b :p ?d", "", "by ?b has a join as input: they are by other variables"),
        (STAR, "[TRIPLES 5]", "by ?x has a join as input: rows of it are taken back"),
        ("?x :p ?y . ?y :p ?z . ?z :p ?x", "", "has a join as input: they are by other variables"),
    ],
)
def test_what_stays_binary_says_why(body: str, clause: str, why: str) -> None:
    (told,) = why_binary(multiway(root(body, clause=clause or "[RANGE PT4S STEP PT2S]")))
    assert why in told


def test_a_star_has_nothing_to_say() -> None:
    assert not list(why_binary(multiway(root(STAR))))


def test_another_word_is_refused_with_the_near_one() -> None:
    with pytest.raises(UsageError, match="no form of joins multiwey") as error:
        join_form_of("multiwey")
    assert "multiway" in str(error.value)
    assert join_form_of("binary") is JoinForm.BINARY

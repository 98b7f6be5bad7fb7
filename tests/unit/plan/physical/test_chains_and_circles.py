"""Which chains and circles become one step, and how their parts come together."""

from __future__ import annotations

import pytest

from levada.core.stream_facts import StreamFacts
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.execution.joins import JoinForm
from levada.plan.logical.query_options import QueryOptions
from levada.plan.lowering.lower import lower
from levada.plan.optimizer.pipeline import optimize
from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op
from levada.plan.physical.partitioning import ALL_PARTITIONS
from levada.plan.physical.replicated_join import describe_replicated_joins


def joined(body: str, clause: str = "[RANGE PT4S STEP PT2S]") -> tuple[Op, Op]:
    """The operators of a query over one window, and the one below its report."""
    text = (
        f"PREFIX : <http://e/> SELECT * FROM NAMED WINDOW :w ON <http://e/s> {clause} "
        f"WHERE {{ WINDOW :w {{ {body} }} }}"
    )
    query = optimize(translate(parse(text), QueryOptions(), text=text))
    root = lower(query, {"http://e/s": StreamFacts()}, joins=JoinForm.REPLICATED).root
    return root, root.inputs[0].inputs[0]


@pytest.mark.parametrize(
    ("body", "copied"),
    [
        ("?x :p ?y . ?y :p ?z . ?z :p ?x", 1),
        ("?x :p ?y . ?y :q ?z . ?z :r ?n", 1),
        ("?a :p ?b . ?b :p ?c . ?c :p ?d . ?d :p ?e . ?e :p ?f", 3),
    ],
)
def test_parts_without_the_variable_of_most_go_to_all_partitions(body: str, copied: int) -> None:
    root, join = joined(body)
    assert isinstance(join.spec, p.LinkedJoin)
    assert sum(join.spec.copied) == copied
    assert [by == ALL_PARTITIONS for by in join.exchange] == list(join.spec.copied)
    assert len({by for by in join.exchange if by != ALL_PARTITIONS} | {join.placed}) == 1
    assert f"the rows of {copied} part" in next(describe_replicated_joins(root))


@pytest.mark.parametrize(
    ("body", "clause"),
    [
        ("?x :p ?y . ?x :q ?z . ?x :r ?n", ""),
        ("?x :p ?y . ?y :q ?z", ""),
        ("?x :p ?y . ?y :q ?z . ?z :r ?n", "[TRIPLES 5]"),
    ],
)
def test_stars_pairs_and_what_is_taken_back_stay_two_at_a_time(body: str, clause: str) -> None:
    root, _ = joined(body, clause or "[RANGE PT4S STEP PT2S]")
    assert not list(describe_replicated_joins(root))

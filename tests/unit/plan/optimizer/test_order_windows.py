"""Windows are numbered as they are read, so the order of FROM clauses and of tables keeps nothing
apart.
"""

from __future__ import annotations

import pytest

from levada.language import parse
from levada.language.translate.cql.translate import translate_cql
from levada.language.translate.sparql.translate import translate
from levada.plan.logical import nodes as a
from levada.plan.logical.print_logical import show
from levada.plan.optimizer.pipeline import optimize

CLAUSES = (
    "FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S]",
    "FROM NAMED WINDOW :u ON :s [RANGE PT9S STEP PT2S]",
    "FROM NAMED WINDOW :other ON :s [RANGE PT7S STEP PT2S]",
)
GROUP = "WINDOW :w { ?x :p ?y } WINDOW :u { ?x :q ?z }"


def optimized(clauses: tuple[str, ...], group: str) -> a.Query:
    text = f"PREFIX : <http://e/> SELECT * {' '.join(clauses)} WHERE {{ {group} }}"
    return optimize(translate(parse(text), text=text))


@pytest.mark.parametrize(
    "group",
    [
        GROUP,
        f"{GROUP} OPTIONAL {{ WINDOW :u {{ ?z :r ?o }} }}",
        f"{GROUP} FILTER NOT EXISTS {{ WINDOW :other {{ ?z :r ?o }} }}",
        "{ WINDOW :u { ?x :p+ ?y } } UNION { WINDOW :w { ?x :q ?y } }",
    ],
)
def test_the_order_of_clauses_does_not_show(group: str) -> None:
    one = optimized(CLAUSES, group)
    other = optimized((*CLAUSES[1:], CLAUSES[0]), group)
    assert (show(one), one.windows[:2]) == (show(other), other.windows[:2])
    assert {*one.windows} == {*other.windows} and len(one.windows) == 3


def test_nor_does_that_of_tables() -> None:
    tables = {"S": {"k": "integer", "v": "integer"}, "T": {"k": "integer", "w": "integer"}}
    said = ("S [Range 3 s] As A", "T [Range 5 s] As B")
    one, other = (
        optimize(translate_cql(f"Select v, w From {first}, {second} Where A.k = B.k", tables))
        for first, second in (said, said[::-1])
    )
    assert one.windows == other.windows


def test_windows_of_levels_and_merges_keep_their_numbers() -> None:
    text = (
        "REGISTER QUERY q AS PREFIX : <http://e/> SELECT * "
        "FROM STREAM :s [RANGE 4s STEP 2s] FROM STREAM :t [RANGE 9s STEP 2s] "
        "WHERE { ?x :p ?y . ?x :q ?z }"
    )
    query = translate(parse(text), text=text)
    assert optimize(query).windows == query.windows

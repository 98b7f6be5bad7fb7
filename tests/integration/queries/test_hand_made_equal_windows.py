"""Windows that are equal but for their names: what their patterns say, and that the rule does not
show. In RSP-QL and in CQELS-QL, where each STREAM clause is a window.
"""

from __future__ import annotations

import random

import pytest

from support.example_counts import EXAMPLES
from support.generators import Clause
from support.query_dsl import OUTPUTS, at, check, query

CLAUSES = (
    Clause("step", 4000, 2000), Clause("step", 3000, 3000), Clause("range", 3000), Clause("now"),
    Clause("step", 4000, 2000, to=1000), Clause("range", 2500, to=1000), Clause("count", count=4),
    Clause("session", 1500),
)  # fmt: skip
GROUPS = (
    "WINDOW :w { ?s :p ?o } WINDOW :u { ?s :q ?x }",
    "WINDOW :w { ?s :p ?o } WINDOW :u { ?s :p ?o }",
    "WINDOW :w { ?s :p ?o } OPTIONAL { WINDOW :u { ?s :q ?x } }",
    "WINDOW :w { ?s :p ?o } MINUS { WINDOW :u { ?s :q ?x } }",
    "{ WINDOW :w { ?s :p ?o } } UNION { WINDOW :u { ?s :q ?o } }",
    "WINDOW :w { ?s :p ?o } FILTER NOT EXISTS { WINDOW :u { ?s :q ?x } }",
    "WINDOW :u { ?s :q/:q? ?x } WINDOW :w { ?x :p ?o }",
    "WINDOW ?g { ?s :p ?o }",
    "WINDOW :u { ?s :q ?x }",
)
POLICIES = (
    {},
    {"report": "nonempty"},
    {"report": "periodic:500ms+nonempty"},
    {"empty_reports": True},
    {"bounds": "(]"},
    {"t0": 700},
)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(EXAMPLES or 24))
def test_two_names_of_one_window(seed: int) -> None:
    rng = random.Random(seed)
    clause = rng.choice(CLAUSES)
    elements, ts = [], 0
    for _ in range(rng.randint(4, 14)):
        ts += rng.choice((0, 300, 1000, 2700))
        said = f":{rng.choice('abc')} :{rng.choice('ppq')} {rng.choice((':a', ':b', '1', '2'))}"
        elements.append(at(1000 + ts, said))
    asked = [
        query(
            "SELECT *",
            group,
            windows={"w": clause, "u": clause},
            output=rng.choice(OUTPUTS),
            name=f"q{i}",
            **(rng.choice(POLICIES) if clause.kind in ("step", "range") else {}),
        )
        for i, group in enumerate(rng.sample(GROUPS, 3))
    ]
    check(*asked, silent=True, s=elements)

"""Queries that join with other rows of a static pattern, by its terms and by conditions, say what
each says alone: they come and go, in each mode of sharing and in several on one checkpoint, while
groups move, are divided, and partitions come and go; each against the naive reference.

How many rows came for newcomers, were there already, and were met for nobody is counted, so that a
test of nothing fails. ``LEVADA_CASES`` is another number of sets.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from levada import Engine
from levada.core.query_limits import Memory
from levada.operators import operator_registry
from levada.operators.windowed import arranged_join
from levada.plan.execution import steps as s
from support.dynamic_queries import MODES, PHASES, Coming, World, check, comings, counters
from support.generators.case import Case, CaseQuery
from support.generators.elements import elements
from support.heavy_key_cases import CLAUSES, Lots, groups_of
from support.query_dsl import S, query
from support.random_key_groups import by_lot

SETS = int(os.environ.get("LEVADA_CASES", "0"))
pytestmark = pytest.mark.timeout(0)
lots = st.integers(0, 2**32 - 1)
E, XSD = "http://e/", "http://www.w3.org/2001/XMLSchema#"


def triple(s: str, p: str, o: str) -> str:
    last = o if o.startswith('"') else f"<{E}{o}>"
    return f"<{E}{s}> <{E}{p}> {last}"


AGES = (("a", '"3"', "integer"), ("a", '"9007199254740993"', "integer"), ("b", '"7"', "integer"),
        ("b", '"7.0"', "decimal"), ("c", '"07"', "integer"), ("c", '"NaN"', "double"),
        ("a", '"7.5E0"', "double"))  # fmt: skip
WORLD: dict[str | None, tuple[str, ...]] = {
    None: (
        *(triple(s, "kind", k) for s, k in ("aK", "bK", "bL", "cL", "cM", "aN", "ca")),
        *(triple(s, "near", o) for s, o in ("ab", "bc", "ca", "aa")),
        *(triple(s, "age", f"{v}^^<{XSD}{t}>") for s, v, t in AGES),
        *(triple(s, "name", f'"{n}"') for s, n in (("a", "kay"), ("b", "kim"), ("c", "lou"))),
        triple("b", "name", '"kim"@en'),
    ),
    f"{E}g": tuple(triple(s, "kind", k) for s, k in ("aM", "cM", "bK")),
}
WINDOW = ("WINDOW :w { ?a :q ?b }", "WINDOW :w { ?a :q ?b }", "WINDOW :w { ?a :q ?b . ?b :p ?n }",
          "WINDOW :w { ?a :q {term} . ?a :q ?b }", "WINDOW :w { ?b :p ?n }")  # fmt: skip
STATIC = (
    "?b :kind {term}", "?b :kind {term}", "?b :kind ?k FILTER(?k = {term})",
    "?b :kind ?k FILTER(?k IN ({term}, :L))", "?b :kind ?k FILTER(?k != {term})", "?b :kind ?k",
    "?b :age ?m FILTER(?m > {n})", "?b :age ?m FILTER(?m > {n})", "?b :age ?m FILTER(?m = {n})",
    "?b :age ?m FILTER(?m <= {n} || ?m = 3)", "?b :age ?m FILTER(?m IN ({n}, 7.0))", "?b :age ?m",
    '?b :name ?t FILTER(?t >= "{t}")', '?b :name ?t FILTER(STRSTARTS(STR(?t), "{t}"))',
    '?b :name ?t FILTER(CONTAINS(?t, "{t}"))', "{thing} :near ?b", "?b :near ?b2 FILTER(?b != ?b2)",
    "?b :kind {term} . ?b :age ?m FILTER(?m > {n})", "?b :near ?d . ?d :kind {term}",
    "GRAPH :g {{ ?b :kind {term} }}", "?a :near ?b FILTER(?b = {thing})", "?a :kind {term}",
    "?b :kind {term} OPTIONAL {{ ?b :age ?m FILTER(?m > {n}) }}",
)  # fmt: skip
HEADS = ("*", "?b", "?a ?b", "(COUNT(*) AS ?all)", "DISTINCT ?b")
NUMBERS = ("2", "3", "5", "7", "7.0", "9007199254740992", "1.0E1")


@st.composite
def differing(draw: st.DrawFn) -> list[CaseQuery]:
    """Queries of a few forms, with other terms and numbers."""
    forms = draw(st.lists(st.tuples(st.sampled_from(WINDOW), st.sampled_from(STATIC)), min_size=1,
                          max_size=3))  # fmt: skip
    found = []
    for i in range(draw(st.integers(3, 9))):
        window, static = draw(st.sampled_from(forms))
        terms = {
            "term": draw(st.sampled_from((":K", ":L", ":M", ":a", ":none"))),
            "n": draw(st.sampled_from(NUMBERS)), "t": draw(st.sampled_from(("k", "ki", "l"))),
            "thing": draw(st.sampled_from((":a", ":b", ":c"))),
        }  # fmt: skip
        group = f"{window.replace('{term}', terms['term'])} {static.format(**terms)}"
        output = draw(st.sampled_from(("RSTREAM", "RSTREAM", "ISTREAM")))
        found.append(query(f"SELECT {draw(st.sampled_from(HEADS))}", group, name=f"q{i}",
                           windows={"w": draw(st.sampled_from(CLAUSES[:3]))},
                           output=output))  # fmt: skip
    return found


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A stream with repeated triples and disorder, and the static graphs."""
    lateness = draw(st.sampled_from((0, 0, 1500)))
    stream = draw(elements(lateness=lateness, least=6))
    cuts = sorted(draw(st.integers(0, len(stream))) for _ in range(PHASES - 1))
    return World({S: stream}, {S: cuts}, lateness, WORLD)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What came to rows that are kept for several joins, and what they met."""
    found, kept, picks = (
        Counter[str](),
        operator_registry.OPERATORS[s.RelaxedStatic],
        arranged_join._of_picks,
    )

    def keeping(node: object, inputs: Sequence[object], env: object) -> object:
        found["came"] += inputs[0] is not None
        found["again"] += inputs[0] is not None and bool(env.state.pieces(f"{node.id}.arranged"))  # type: ignore[attr-defined]
        return kept(node, inputs, env)  # type: ignore[arg-type]

    def met(node: object, pairs: object, *rest: object) -> object:
        wanted = picks(node, pairs, *rest)  # type: ignore[arg-type]
        found["met"] += len(wanted.i)
        found["not"] += len(pairs.i) - len(wanted.i)  # type: ignore[attr-defined]
        return wanted

    monkeypatch.setitem(operator_registry.OPERATORS, s.RelaxedStatic, keeping)
    monkeypatch.setattr(arranged_join, "_of_picks", met)
    return found


@pytest.mark.long
def test_other_static_rows_are_each_querys_own(seen: Counter[str]) -> None:
    shared = counters()

    @settings(
        max_examples=SETS or 3,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(
        comings(differing()), worlds(), st.lists(st.sampled_from(MODES), min_size=4, max_size=4),
        lots, st.booleans(), st.sampled_from(("", "", "1MB,theta=4096")),
    )  # fmt: skip
    def each(
        coming: Sequence[Coming], world: World, mixed: Sequence[str], lot: int, heavy: bool,
        memory: str,
    ) -> None:  # fmt: skip
        def prepare(engine: Engine) -> None:
            streams = {name: tuple(own) for name, own in world.streams.items()}
            case = Case(streams, (), 0, WORLD)
            engine._memory = Memory.parse(memory)
            deal = Lots(lot, groups_of(case)).deal if heavy else by_lot(lot)
            engine._open().tables.dealing = deal

        check(coming, world, shared, lot % 7, mixed, prepare=prepare)

    each()
    if SETS >= 20:
        assert min(seen[word] for word in ("came", "again", "met", "not")), seen

"""Static data that are kept once change no result: queries of all forms join with the same few
static patterns, come and go, in each mode of sharing and in several on one checkpoint, while groups
move, are divided, and partitions come and go; each says what the naive reference says of it alone.

How many joins have read what another one has asked for is counted, so that a test of nothing fails.
``LEVADA_CASES`` is another number of sets.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from levada import Engine
from levada.core.query_limits import Memory
from levada.operators.reporting import report_join
from levada.operators.windowed import arranged_join
from support.dynamic_queries import MODES, PHASES, Coming, World, check, comings, counters
from support.generators.case import Case, CaseQuery
from support.generators.elements import elements
from support.heavy_key_cases import CLAUSES, Lots, groups_of
from support.query_dsl import S, query
from support.random_key_groups import by_lot

SETS = int(os.environ.get("LEVADA_CASES", "0"))
pytestmark = pytest.mark.timeout(0)
lots = st.integers(0, 2**32 - 1)
E = "http://e/"


def iri(name: str) -> str:
    return f"<{E}{name}>"


WORLD: dict[str | None, tuple[str, ...]] = {
    None: (
        *(f"{iri(s)} {iri('kind')} {iri(k)}" for s, k in ("aK", "bK", "bL", "cL")),
        *(f"{iri(s)} {iri('near')} {iri(o)}" for s, o in ("ab", "bc", "ca", "aa")),
        *(f"{iri(s)} {iri('age')} \"{n}\"^^<http://www.w3.org/2001/XMLSchema#integer>"
          for s, n in (("a", 3), ("b", 7), ("c", 7))),
        f"{iri('K')} {iri('name')} \"kay\"",
    ),
    f"{E}g": tuple(f"{iri(s)} {iri('kind')} {iri(k)}" for s, k in ("aM", "cM")),
}  # fmt: skip
WINDOW = ("WINDOW :w { ?a :q ?b }", "WINDOW :w { ?a :q ?b . ?b :p ?n }", "WINDOW :w { ?b :p ?n }",
          "WINDOW :w { ?c :q ?b }", "WINDOW :w { ?b :r ?t }")  # fmt: skip
STATIC = ("?b :kind ?k", "?b :kind ?k", "?b :kind :K", "?b :age ?m", "?b :age ?m FILTER(?m > 3)",
          "?b :near ?d . ?d :kind ?k", "?b :kind ?k . ?k :name ?t", "?a :near ?b", "?b :near ?a",
          "?b :kind ?k . ?b :age ?m", "GRAPH :g { ?b :kind ?k }", "OPTIONAL { ?b :kind ?k }",
          "OPTIONAL { ?b :age ?k } ?b :kind ?k",
          "FILTER NOT EXISTS { ?b :kind :L }", "MINUS { ?b :kind :K }", "MINUS { ?b :kind ?k }",
          "FILTER EXISTS { ?b :kind ?k }", "OPTIONAL { ?b :age ?m FILTER(?m > 3) }",
          "OPTIONAL { ?b :near ?d . ?d :kind ?k }", "FILTER(EXISTS { ?b :kind :K } || ?b = :c)",
          "OPTIONAL { ?b :age ?k } MINUS { ?b :kind ?k }",
          "OPTIONAL { ?b :age ?k } OPTIONAL { ?b :kind ?k }",
          "FILTER EXISTS { ?b :near ?d FILTER(?d != ?b) }")  # fmt: skip
SHOWN = ("*", "?b", "?b ?k", "?k", "(COUNT(*) AS ?all)", "DISTINCT ?k")


@st.composite
def joined(draw: st.DrawFn) -> list[CaseQuery]:
    """Queries that join a stream with static patterns, of which there are few."""
    found = []
    for i in range(draw(st.integers(2, 8))):
        parts = [draw(st.sampled_from(WINDOW)), draw(st.sampled_from(STATIC))]
        first = parts[1].startswith(("?", "G")) and draw(st.booleans())
        group = " ".join(parts[::-1] if first else parts)
        head = draw(st.sampled_from(SHOWN))
        clause = draw(st.sampled_from(CLAUSES[:4]))
        output = draw(st.sampled_from(("RSTREAM", "RSTREAM", "ISTREAM")))
        found.append(query(f"SELECT {head}", group, name=f"q{i}", windows={"w": clause},
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
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often joins have met what is kept, and in how many runs of it."""
    found, kept = [0, 0], arranged_join.arranged_rows

    def counted(*args: object) -> object:
        runs = kept(*args)  # type: ignore[arg-type]
        found[0] += 1
        found[1] += len(runs)
        return runs

    for module in (arranged_join, report_join):
        monkeypatch.setattr(module, "arranged_rows", counted)
    return found


@pytest.mark.long
def test_what_is_kept_once_does_not_show(read: list[int]) -> None:
    shared = counters()

    @settings(
        max_examples=SETS or 3,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(
        comings(joined()), worlds(), st.lists(st.sampled_from(MODES), min_size=4, max_size=4),
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
    assert read[0], "some join has met what is kept"
    assert read[1] > read[0] > 50 or SETS < 20, "and some in several runs of it"

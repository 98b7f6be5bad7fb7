"""Which joins get which form, and where their rows are, by what is known of streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from levada.core.expressions import Var
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Iri
from levada.core.stream_facts import StreamFacts
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.execution.joins import JoinForm
from levada.plan.logical.query_options import QueryOptions
from levada.plan.lowering.lower import Lowered, lower
from levada.plan.lowering.print_physical import show_operators
from levada.plan.optimizer.pipeline import optimize
from levada.plan.physical import operators as p
from levada.plan.physical.operators import HOME, Op
from levada.plan.physical.partitioning import ALL_PARTITIONS
from levada.plan.statistics.print_strategy import explain_joins_at_home, sentences, tables
from levada.plan.statistics.statistics import RowStatistics, Run, Values

MANY = Values.even(50_000)


@dataclass
class Said:
    """What is said of patterns by their predicates: rows a second, values of both ends."""

    said: Mapping[str, tuple[float, Values, Values]]
    partitions: int = 4
    run: Mapping[str, Run] = field(default_factory=dict)

    def see(self, run: Mapping[str, Run], partitions: int) -> None:
        self.run, self.partitions = run, partitions

    def triples(self, stream: str, pattern: TriplePattern) -> RowStatistics | None:
        assert isinstance(pattern.predicate, Iri)
        found = self.said.get(pattern.predicate.value.removeprefix("http://e/"))
        if found is None:
            return None
        ends = zip((pattern.subject, pattern.object), found[1:], strict=True)
        return RowStatistics(found[0], {v.name: of for v, of in ends if isinstance(v, Var)})

    def tuples(self, stream: str) -> RowStatistics | None:
        raise AssertionError("no stream is a table")


def planned(
    body: str,
    said: Said | None,
    form: JoinForm = JoinForm.AUTO,
    clause: str = "[RANGE PT4S STEP PT2S]",
) -> Lowered:
    """The operators of a query over one window."""
    text = (
        f"PREFIX : <http://e/> SELECT * FROM NAMED WINDOW :w ON <http://e/s> {clause} "
        f"WHERE {{ {body} }}"
    )
    query = optimize(translate(parse(text), QueryOptions(), text=text))
    return lower(query, {"http://e/s": StreamFacts()}, joins=form, measures=said)


def every(op: Op) -> Iterator[Op]:
    yield op
    for below in op.inputs:
        yield from every(below)


def joins(lowered: Lowered) -> list[Op]:
    return [op for op in every(lowered.root) if isinstance(op.spec, p.Join | p.LinkedJoin)]


CHAIN = "WINDOW :w { ?x :p ?y . ?y :q ?z . ?z :r ?n }"
SOME = Values.even(2000)
SMALL = {"p": (5000.0, MANY, SOME), "q": (5000.0, SOME, MANY), "r": (10.0, MANY, MANY)}


def test_with_nothing_known_a_chain_is_as_it_was() -> None:
    binary = show_operators(planned(CHAIN, None, JoinForm.BINARY).root)
    for said in (None, Said({}), Said({"p": (100, MANY, MANY), "q": (100, MANY, MANY)})):
        found = planned(CHAIN, said)
        assert show_operators(found.root) == binary
        assert not list(sentences(found.wanted))


def test_a_small_part_goes_to_all_and_the_numbers_are_told() -> None:
    found = planned(CHAIN, Said(SMALL))
    (join,) = joins(found)
    assert isinstance(join.spec, p.LinkedJoin)
    small = next(i for i, op in enumerate(join.inputs) if "n" in op.variables)
    assert [by == ALL_PARTITIONS for by in join.exchange] == [i == small for i in range(3)]
    (table,) = tables(found.wanted)
    head, *lines = table.splitlines()
    assert "is replicated: by ?y, 1 part to all" in head
    assert lines[1].startswith("  replicated: by ?y, 1 part to all")
    assert lines[1].endswith("chosen")
    assert any("two at a time" in line and "times as much" in line for line in lines)


def test_a_condition_between_parts_is_applied_all_the_same() -> None:
    found = planned(f"{CHAIN} FILTER(?x != ?z)", Said(SMALL))
    assert [type(op.spec) for op in joins(found)] == [p.LinkedJoin]
    assert sum(isinstance(op.spec, p.Filter) for op in every(found.root)) == 1


@pytest.mark.parametrize("bad", [Values.even(3), Values.with_heaviest(50_000, 0.4)])
def test_the_key_that_places_is_the_most_even_one(bad: Values) -> None:
    body = "WINDOW :w { ?x :p ?y . ?x :q ?y }"
    for end, placed in (((bad, MANY), "y"), ((MANY, bad), "x"), ((MANY, MANY), "x")):
        said = Said({"p": (100, *end), "q": (100, *end)})
        found = planned(body, said)
        (join,) = joins(found)
        assert join.placed == (placed,)
        assert all(by == (placed,) for by in join.exchange)
        assert [f"is placed by ?{placed}" in told for told in found.wanted.notes] == (
            [] if placed == "x" else [True]
        )
        assert joins(planned(body, Said(said.said, partitions=1)))[0].placed == ("x",)
    assert joins(planned(body, Said({"p": (100, bad, MANY)})))[0].placed == ("x",)


def test_of_variables_that_most_parts_have_one_step_goes_by_the_most_even_one() -> None:
    few = Values.even(2)
    said = {"p": (100.0, MANY, few), "q": (100.0, few, MANY), "r": (100.0, MANY, MANY)}
    assert joins(planned(CHAIN, None, JoinForm.REPLICATED))[0].placed == ("y",)
    assert joins(planned(CHAIN, Said(said), JoinForm.REPLICATED))[0].placed == ("z",)


KEYLESS = "{ WINDOW :w { ?x :p ?y } } UNION { WINDOW :w { ?x :r ?n } } WINDOW :w { ?y :q ?z }"


def test_rows_without_the_variable_of_a_join_go_to_all() -> None:
    at_home = joins(planned(KEYLESS, None, JoinForm.BINARY))
    assert [op.placed for op in at_home] == [HOME]
    found = planned(KEYLESS, None)
    by_it, lacking = sorted(joins(found), key=lambda op: isinstance(op.spec, p.LinkedJoin))
    assert isinstance(by_it.spec, p.Join)
    assert by_it.placed == ("y",)
    assert isinstance(lacking.spec, p.LinkedJoin)
    assert lacking.placed == ("y",)
    assert ALL_PARTITIONS in lacking.exchange
    assert any("may be unbound, is spread" in told for told in found.wanted.notes)


def test_where_both_sides_may_lack_it_there_are_four_joins() -> None:
    body = KEYLESS.replace(
        "WINDOW :w { ?y :q ?z }",
        "{ WINDOW :w { ?z :q ?y } } UNION { WINDOW :w { ?z :p :a } }",
    )
    found = joins(planned(body, None))
    assert sorted(type(op.spec).__name__ for op in found) == ["Join", *["LinkedJoin"] * 3]
    assert HOME not in {op.placed for op in found}


def test_rows_that_are_taken_back_and_static_ones_stay_at_one_home() -> None:
    for body, clause in (
        (KEYLESS, "[TRIPLES 5]"),
        (KEYLESS.replace("WINDOW :w { ?y :q ?z }", "?y :q ?z"), "[RANGE PT4S STEP PT2S]"),
    ):
        found = planned(body, None, clause=clause)
        assert not [note for note in found.wanted.notes if "spread" in note]
        (told,) = explain_joins_at_home(found.root)
        assert told.endswith((": rows of it are taken back.", ": a part of it is static."))


def test_of_two_parts_without_a_common_variable_the_small_one_goes_to_all() -> None:
    body = "WINDOW :w { ?x :p ?y . ?u :q ?v }"
    unknown = planned(body, Said({}))
    assert joins(unknown)[0].placed == HOME
    (told,) = explain_joins_at_home(unknown.root)
    assert "it is not known that one part is small" in told
    for rates, large in (((2000, 3), {"x", "y"}), ((3, 2000), {"u", "v"})):
        said = Said({"p": (rates[0], MANY, MANY), "q": (rates[1], MANY, MANY)})
        (join,) = joins(planned(body, said))
        assert isinstance(join.spec, p.LinkedJoin)
        assert [set(op.variables) == large for op in join.inputs] == [
            not copied for copied in join.spec.copied
        ]

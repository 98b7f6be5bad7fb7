"""Joins that differ in constants alone are one; what is not relaxed; newcomers and departures."""

from __future__ import annotations

import pytest

from levada.core.event_time import MIN
from levada.core.expressions import Function
from levada.core.stream_facts import StreamFacts
from levada.language import parse
from levada.language.translate.cql.translate import translate_cql
from levada.language.translate.sparql.translate import translate
from levada.plan.execution.pattern_text import patterns_read, starving_patterns
from levada.plan.execution.plan import Plan
from levada.plan.execution.sharing_demand import sharing_demand_of
from levada.plan.execution.steps import Join, Pick
from levada.plan.optimizer.pipeline import optimize
from levada.plan.sharing.relaxed_blocks import Relaxations
from levada.plan.sharing.sharing_modes import Sharing
from levada.plan.topology.topology import Topology
from support.topologies import STREAM, members, relaxing

MODE = Sharing.RELAX
TEXT = """PREFIX : <http://e/> SELECT {}
FROM NAMED WINDOW :w ON :s {} WHERE {{ {} }}"""
CLAUSE = "[RANGE PT4S STEP PT2S]"
JOIN = "WINDOW :w {{ ?x :p {} . ?x :q ?z }}"


def add(
    found: Topology, *groups: str, head: str = "*", clause: str = CLAUSE, start: int = MIN
) -> Plan:
    """Queries that come together."""
    for group in groups:
        text = TEXT.format(head, clause, group)
        name = f"q{found.graph.numbers}-{len(found.queries)}-{len(found._newcomers)}"
        found.add(name, optimize(translate(parse(text), text=text)), start)
    return found.seal()


def terms(plan: Plan) -> list[set[str]]:
    """The terms of each relaxed pattern."""
    return [
        {str(term) for (term,) in found}
        for found in sharing_demand_of(plan).wanted_terms.rest.values()
    ]


@pytest.mark.long
def test_a_thousand_constants_are_one_join() -> None:
    found = relaxing()
    plan = add(found, *(JOIN.format(f":c{i}") for i in range(1000)))
    counts = members(found)
    assert (counts["Match"], counts["Join"], counts["Pick"]) == (2, 1, 1000)
    assert [len(wants) for wants in terms(plan)] == [1000]


def test_one_query_alone_is_not_relaxed_nor_are_equal_ones() -> None:
    alone, exact = relaxing(), relaxing(Sharing.EXACT)
    for topology in (alone, exact):
        add(topology, JOIN.format(":c"), JOIN.format(":c").replace("?x", "?other"))
    assert [n.shape for n in alone.graph.nodes.values()] == [
        n.shape for n in exact.graph.nodes.values()
    ]


def test_nothing_but_the_intake_is_shared_where_sharing_is_off() -> None:
    found = relaxing(Sharing.OFF)
    add(found, *[JOIN.format(":c")] * 3)
    assert members(found)["Join"] == 3


def test_group_bys_with_a_condition_and_without_have_one_set() -> None:
    tail = " GROUP BY ?x"
    groups = [
        f"WINDOW :w {{ ?x :p ?v {one} }}" for one in ("", "FILTER(?v > 3)", "FILTER(?x = :a)")
    ]
    for asked, counts in ((groups, (1, 3)), (groups[:1] * 2, (1, 0)), (groups[:1], (1, 0))):
        found = relaxing()
        text = TEXT.replace("}}", "}}" + tail)
        for i, group in enumerate(asked):
            own = text.format("?x (SUM(?v) AS ?n)", CLAUSE, group)
            found.add(f"q{i}", optimize(translate(parse(own), text=own)), MIN)
        found.seal()
        assert (members(found)["Occur"], members(found)["Pick"]) == counts


def test_a_newcomer_widens_what_runs() -> None:
    """The first keeps its own; the second has a relaxed one, which the others widen."""
    found = relaxing()
    joins = []
    for i in range(4):
        plan = add(found, JOIN.format(f":c{i}"), start=i)
        joins.append(members(found)["Join"])
    assert joins == [1, 2, 2, 2]
    assert terms(plan) == [{f"<http://e/c{i}>" for i in (1, 2, 3)}]


def test_what_is_equal_to_what_runs_reads_that() -> None:
    found = relaxing()
    for name in ("a", "b", "a", "b", "a"):
        add(found, JOIN.format(f":{name}"))
    counts = members(found)
    assert (counts["Join"], counts["Pick"]) == (2, 1)


def test_a_newcomer_that_wants_another_column_has_a_join_of_its_own() -> None:
    found = relaxing()
    add(found, JOIN.format(":a"), JOIN.format(":b"), head="?x")
    add(found, JOIN.format(":c"), head="?x ?z")
    assert members(found)["Join"] == 2


def test_what_goes_takes_its_constant_along() -> None:
    found = relaxing()
    add(found, *(JOIN.format(f":c{i}") for i in range(3)))
    first, *others = list(found.queries)
    found.remove(first)
    assert terms(found.seal()) == [{"<http://e/c1>", "<http://e/c2>"}]
    for name in others:
        found.remove(name)
    assert not found.graph.nodes and not found.graph.common.known
    assert found.sharing.relaxations == Relaxations()


@pytest.mark.parametrize(
    "one",
    [
        "WINDOW :w {{ ?y :p {} . ?y :q ?other }}",
        "WINDOW :w {{ ?x :q ?z . ?x :p {} }}",
        "WINDOW :w {{ ?x :q ?z }} WINDOW :w {{ ?x :p {} }}",
    ],
)
def test_names_and_the_order_of_patterns_keep_nothing_apart(one: str) -> None:
    found = relaxing()
    add(found, JOIN.format(":a"), one.format(":b"), head="*")
    assert members(found)["Join"] == 1


@pytest.mark.parametrize(
    "group",
    [
        "WINDOW :w {{ ?x :q ?z . {} :p :d }}",
        "WINDOW :w {{ ?x :q ?z . ?y :p {} }}",
        "WINDOW :w {{ ?x :p {} }}",
        "WINDOW :w {{ ?x :q ?z . OPTIONAL {{ ?x :p ?y }} FILTER(?y = {}) }}",
    ],
)
def test_what_is_not_relaxed(group: str) -> None:
    found = relaxing()
    add(found, group.format(":a"), group.format(":b"))
    assert "Pick" not in members(found)


@pytest.mark.parametrize(
    "group",
    [
        "WINDOW :w {{ ?x :q ?z OPTIONAL {{ ?x :p {} . ?x :r ?y }} }}",
        "WINDOW :w {{ ?x :q ?z }} FILTER EXISTS {{ WINDOW :w {{ ?x :p {} . ?x :r ?y }} }}",
        "WINDOW :w {{ ?x :q ?z }} MINUS {{ WINDOW :w {{ ?x :p {} . ?x :r ?y }} }}",
        "WINDOW :w {{ {{ ?x :p {} . ?x :r ?y }} UNION {{ ?x :q ?y }} }}",
        "WINDOW :w {{ {{ ?x :p {} . ?x :r ?y }} UNION {{ ?x :q ?y }} ?x :s ?z }}",
        "WINDOW :w {{ ?x :q ?z }} {{ SELECT ?x ?y {{ WINDOW :w {{ ?x :p {} . ?x :r ?y }} }} }}",
    ],
)
def test_joins_wherever_they_stand_are_relaxed(group: str) -> None:
    found = relaxing()
    add(found, group.format(":a"), group.format(":b"))
    joins = [
        node.shape.step for node in found.graph.nodes.values() if isinstance(node.shape.step, Join)
    ]
    assert sum(step.relaxed for step in joins) and members(found)["Pick"] == 2


FORMS = (
    "", "FILTER(?v > 5)", "FILTER(?v > 5 && ?v < 7)", "FILTER(?v != 5)",
    "FILTER(?v NOT IN (1, 2))",
    "FILTER(?v IN (1, 2.5))", 'FILTER(?v < "b")', "FILTER(?v + 1 > 2)", "FILTER(?v > 1 || ?v < 0)",
    'FILTER(STRSTARTS(STR(?v), "a"))', 'FILTER REGEX(?v, "a")', "FILTER(ISIRI(?v))",
    "FILTER(?x != ?v)",
    "FILTER(?v != 5 && ?x = :a)", "FILTER(?x = :a) FILTER(?v != 5) FILTER(?v > 1)",
)  # fmt: skip


def test_conditions_of_any_form_keep_nothing_apart() -> None:
    found = relaxing()
    group = "WINDOW :w {{ ?x :p ?v . ?x :q ?z }} {}"
    add(found, *map(group.format, FORMS))
    counts = members(found)
    assert (counts["Join"], counts["Pick"]) == (1, len(FORMS))
    assert not counts["Filter"], "conditions are all in the picks"


@pytest.mark.parametrize(
    ("condition", "rest"),
    [
        ('?v < "a"', 0), ('STRSTARTS(?v, "a")', 0), ('STRSTARTS(STR(?v), "a")', 0),
        ('STR(?v) = "a"', 0), ('"a" < STR(?v)', 0), ('STRSTARTS("a", ?v)', 1), ('?v < "a"@en', 1),
        ('STRSTARTS(?v, "a"@en)', 1), ('STRENDS(?v, "a")', 1), ('CONTAINS(?v, "a")', 1),
        ('STRSTARTS(LCASE(?v), "a")', 1), ('STR(?v) < STR(?x)', 1), ('STR(?v) < 1', 1),
    ],
)  # fmt: skip
def test_what_an_order_tells_is_not_asked(condition: str, rest: int) -> None:
    found = relaxing()
    group = "WINDOW :w {{ ?x :p ?v . ?x :q ?z FILTER({}) }}"
    plan = add(found, group.format(condition), group.format("?v > 1"))
    picks = [node.step for node in plan.nodes.values() if isinstance(node.step, Pick)]
    assert sorted(len(step.rest) for step in picks) == sorted((rest, 0))


@pytest.mark.parametrize(
    ("regex", "guard"),
    [
        ("^abc", "abc"), ("^abc*", "ab"), ("^ab+c", "a"), ("^a{2}b", None), ("^a.b", "a"),
        ("^http://e/x[0-9]", "http://e/x"), ("^a|b", None), ("abc", None), ("^", None),
        ("^(a)", None), ("^ä$", "ä"), ("^a\\\\.b", "a"),
    ],
)  # fmt: skip
def test_a_regex_is_asked_where_its_beginning_is(regex: str, guard: str | None) -> None:
    found = relaxing()
    told = [f'FILTER({word}(STR(?v), "{regex}"))' for word in ("REGEX", "!REGEX")]
    plan = add(found, *(f"WINDOW :w {{ ?x :p ?v . ?x :q ?z {one} }}" for one in told))
    picks = [node for node in plan.nodes.values() if isinstance(node.step, Pick)]
    guards = [
        str(node.members.constants_at(0)[test.param])
        for node in picks
        for test in node.step.tests
        if test.function is Function.STRSTARTS
    ]
    assert guards == ([] if guard is None else [f'"{guard}"'])
    assert [len(node.step.rest) for node in picks] == [1] * len(picks)


def test_other_static_rows_are_one_join() -> None:
    """Those that a newcomer wants come with it."""
    found = relaxing()
    add(found, *(f"WINDOW :w {{ ?x :p ?v }} ?x :age ?z FILTER(?z > {i})" for i in range(3)))
    add(found, *(f"WINDOW :w {{ ?x :p ?v }} ?x :age ?z FILTER(?z < {i})" for i in range(3)))
    counts = members(found)
    assert (counts["ArrangedJoin"], counts["RelaxedStatic"], counts["Arrange"]) == (1, 1, 0)
    add(found, *(f"WINDOW :w {{ ?x :p ?v }} ?x :kind :k{i}" for i in range(3)))
    counts = members(found)
    assert (counts["ArrangedJoin"], counts["RelaxedStatic"], counts["Pick"]) == (2, 2, 9)
    add(found, *(f"WINDOW :w {{ ?x :p ?v }} ?x :near ?y FILTER(?x != :{i})" for i in "ab"))
    counts = members(found)
    assert (counts["ArrangedJoin"], counts["RelaxedStatic"], counts["Arrange"]) == (3, 2, 1)


def test_static_rows_that_may_be_replaced_stay_apart() -> None:
    found = Topology({STREAM: StreamFacts()}, (None,), MODE)
    add(found, *(f"WINDOW :w {{ ?x :p ?v }} ?x :kind :k{i}" for i in range(3)))
    counts = members(found)
    assert (counts["Join"], counts["RelaxedStatic"], counts["Pick"]) == (3, 0, 0)


def test_what_goes_by_chance_or_time_stays_where_it_is() -> None:
    found = relaxing()
    group = "WINDOW :w {{ ?x :p ?v . ?x :q ?z }} FILTER({})"
    told = ("RAND() < 0.5", "NOW() > ?v", "?v < RAND()", "?v > 5", "?v != 1")
    add(found, *map(group.format, told))
    counts = members(found)
    assert (counts["Join"], counts["Pick"], counts["Filter"]) == (1, 3, 3)


@pytest.mark.parametrize("clause", ["[ELEMENTS 4 STEP 2]", "[SESSION PT2S]"])
def test_rows_with_weights_are_not_relaxed(clause: str) -> None:
    found = relaxing()
    add(found, JOIN.format(":a"), JOIN.format(":b"), clause=clause)
    assert "Pick" not in members(found)


CLAUSES = (
    CLAUSE,
    "[RANGE PT9S STEP PT2S]",
    "[RANGE PT9S]",
    "[FROM NOW-PT9S TO NOW-PT1S STEP PT3S]",
    "[NOW]",
)


def test_other_windows_are_one_join() -> None:
    """The first keeps its own; windows of the others are those of their picks."""
    found = relaxing()
    for clause in CLAUSES:
        plan = add(found, JOIN.format(":a"), JOIN.format(":b"), clause=clause)
    assert (members(found)["Join"], members(found)["Pick"]) == (1, 2 * len(CLAUSES))
    (join,) = [n for n in plan.nodes.values() if type(n.step).__name__ == "Join"]
    assert join.windows.range.tolist() == [[12_000]], "the longest of all, as long as it stays"


@pytest.mark.parametrize(
    "condition",
    [
        "?v > {}",
        "?v <= {}",
        "{} < ?v",
        "?v > {} && ?v < 9",
        "?v = {}",
        '?v > "2026-01-0{}T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
        "?v >= {} && ?y = :a",
        "?v >= {} && ?y != :a",
        "?y IN (:a, :b{})",
        "sameTerm(?y, {})",
        '?y = "a{}"',
        '?v > "a{}"',
        '?v > "a{}" && STRSTARTS(STR(?v), "a")',
        'STRSTARTS(?v, "a{}") && ?y = :a',
        '"a{}" = STR(?v)',
        '?v <= "2026-01-0{}T00:00:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
        '?v = "2026-01-0{}"^^<http://www.w3.org/2001/XMLSchema#date>',
    ],
)
def test_conditions_below_a_join_are_taken_out(condition: str) -> None:
    found = relaxing()
    group = f"WINDOW :w {{{{ ?x :p ?y . ?x :q ?v FILTER({condition}) }}}}"
    add(found, *(group.format(number) for number in ("1", "2", "3.5")))
    counts = members(found)
    assert (counts["Join"], counts["Pick"]) == (1, 3)
    assert not counts["Filter"]


def test_conditions_of_other_forms_on_one_variable_share_a_join() -> None:
    found = relaxing()
    group = "WINDOW :w {{ ?x :p ?y . ?x :q ?v FILTER({}) }}"
    for condition in ("?v > 1", "?v > 1 && ?v < 5", "?v = 3", "2 >= ?v"):
        add(found, group.format(condition), start=1)
    assert (members(found)["Join"], members(found)["Pick"]) == (2, 3), "the first has its own"


def test_a_pattern_may_have_two_constants() -> None:
    found = relaxing()
    plan = add(found, *(f"WINDOW :w {{ ?y :p ?x . :a{i} ?x :b{i % 2} }}" for i in range(3)))
    assert (members(found)["Join"], members(found)["Pick"]) == (1, 3)
    ((_, pairs),) = sharing_demand_of(plan).wanted_terms.rest.items()
    assert {tuple(map(str, pair)) for pair in pairs} == {
        (f"<http://e/a{i}>", f"<http://e/b{i % 2}>") for i in range(3)
    }


def test_a_query_reads_its_own_patterns() -> None:
    """What status tells of it knows the constant, not the variable in its place."""
    plan = add(relaxing(), JOIN.format(":a"), JOIN.format(":b"))
    one = list(plan.queries.values())[1]
    read = [text for _, text in patterns_read(plan, one.node, one.member)]
    assert read == ["?a <http://e/p> <http://e/b>", "?a <http://e/q> ?b"]
    lacking = starving_patterns(
        plan, one.node, one.member, lambda _, text: 0 if text == read[0] else 5
    )
    assert [text for _, text in lacking] == read[:1]


def test_a_newcomer_reads_the_one_group_that_runs_and_both_may_go() -> None:
    """A group without keys needs no row, and yet it is not read once as static data are."""
    found = relaxing(Sharing.EXACT)
    for start in (0, 0):
        add(found, JOIN.format(":a"), head="(COUNT(*) AS ?n)", clause="[RANGE PT3S]", start=start)
    assert members(found)["Running"] == 1
    for name in list(found.queries):
        found.remove(name)
    assert not found.graph.nodes and not found.graph.common.known


FLIGHTS = {"FLIGHTS": {"num": "integer", "carrier": "string"},
           "CHECKIN": {"num": "integer", "terminal": "string", "seats": "double"}}  # fmt: skip


def add_cql(found: Topology, *told: tuple[str, str, str]) -> None:
    """Joins of two streams in these windows, under this condition."""
    for i, (one, other, where) in enumerate(told):
        text = (
            f"Select F.num, carrier, terminal From FLIGHTS [Range {one}] As F, "
            f"CHECKIN [Range {other}] As C Where F.num = C.num And {where}"
        )
        found.add(f"q{i}", optimize(translate_cql(text, FLIGHTS)), MIN)
    found.seal()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("carrier = 'DL'", "carrier In ('DL', 'CO')"),
        ("seats > 3", "seats Between 1.5 And 4"),
        ("F.num In (1, 2)", "F.num In (3)"),
        ("carrier = 'DL' And seats >= 1", "seats < 3 And carrier = 'CO'"),
    ],
)
def test_conditions_on_columns_are_taken_out(one: str, other: str) -> None:
    """Columns may be NULL, which no comparison is true of, and which joins with nothing."""
    found = Topology({name: StreamFacts(columns) for name, columns in FLIGHTS.items()}, (), MODE)
    add_cql(
        found, ("5 minutes", "1 minute", one), ("5 minutes", "5 minutes Slide 5 minutes", other)
    )
    counts = members(found)
    assert (counts["Scan"], counts["Join"], counts["Pick"]) == (2, 1, 2)

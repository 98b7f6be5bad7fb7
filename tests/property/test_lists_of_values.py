"""Joins with lists of values say what each says alone (``operators/rows/told/lists``): lists of
numbers, instants, days, texts, other terms, and all of these mixed, as IN, as equations and of
STR(), beside ranges, on either side or both, below and above OPTIONAL; in sets that come and go, in
each mode of sharing and in several on one checkpoint.

Terms in the form in which the naive reference keeps them are judged by it; all others, and times,
of which it says something else, by the mode ``off``. How many sets share a pick whose rows are told
by points is counted, so that a test of nothing fails. ``LEVADA_CASES``: so many sets of each.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from levada import Engine
from levada.operators.rows import list_keys
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.testing.compare import same
from levada.testing.memory_sink import MemorySink
from levada.testing.reference_model import Element, Report, Row
from levada.testing.stream_builders import write_lines
from support.dynamic_queries import MODES, PHASES, Coming, World, check, counters, run
from support.generators.cql import SCHEMAS
from support.generators.cql_sketches import CqlSketch
from support.generators.windows import Clause
from support.query_dsl import STREAM, at, query
from support.random_key_groups import by_lot

pytestmark = pytest.mark.timeout(0)
MANY = os.environ.get("LEVADA_CASES")
CASES = int(MANY or 1)
EXACT = ("1", "2", "3", "7", "-1", "0", "2.5")
FORMS = ("1.0", "1e0", '"01"^^xsd:integer', "3.0", '"3"^^xsd:int', "-0.0", "-0.0e0", "2.50", "0")
NUMBERS = ('"NaN"^^xsd:double', '"INF"^^xsd:double', "9007199254740993", "9007199254740992",
           "9007199254740992e0", "9007199254740993.0", '"1"^^xsd:float', "0.1", "1e-1",
           '"x"^^xsd:integer')  # fmt: skip
DAYS = tuple(f'"{day}"^^xsd:date' for day in ("2026-01-01", "2026-01-02", "2026-02-30"))
ZONED = tuple(f'"{day}"^^xsd:date' for day in ("2026-01-01Z", "2026-01-02+14:00"))
CLOCKS = ("2026-01-01T00:00:00", "2026-01-02T00:00:00", "2026-01-01T24:00:00",
          "2026-01-01T00:00:00.0", "2026-01-01T00:00:00.50", "2026-01-01T00:00:00.5")  # fmt: skip
LOCAL = tuple(f'"{clock}"^^xsd:dateTime' for clock in CLOCKS)
INSTANTS = (
    *(f'"{clock}Z"^^xsd:dateTime' for clock in CLOCKS),
    '"2026-01-01T02:00:00+02:00"^^xsd:dateTime', '"2026-01-01T00:00:00Z"^^xsd:dateTimeStamp',
)  # fmt: skip
TEXTS = ('"a"', '"b"', '"1"', '"2"', '"true"', '"http://e/a"', '""')
TERMS = ('"a"@en', '"b"@en', ":a", ":b", ":none", "true", "false", '"a"^^:t')
EQUALS = ('"a"@EN', '"1"^^xsd:boolean', '"+3"^^xsd:integer', '"a"^^xsd:string')
ALL = (*EXACT, *FORMS, *NUMBERS, *DAYS, *ZONED, *LOCAL, *INSTANTS, *TEXTS, *TERMS, *EQUALS)
ANY, KEPT_FORM = (*EXACT, *FORMS), (*EXACT, *TEXTS, *TERMS)
KEPT = ((EXACT, EXACT), (EXACT, EXACT), (EXACT, KEPT_FORM), (TEXTS, TEXTS), (TEXTS, KEPT_FORM),
        (TERMS, TERMS), (KEPT_FORM, KEPT_FORM))  # fmt: skip
"""Of what lists are that the reference judges, and rows."""
OTHERS = ((ANY, ANY), (ANY, (*ANY, *NUMBERS)), (ANY, ALL), ((*ANY, *NUMBERS), (*ANY, *NUMBERS)),
          (DAYS[:2], (*DAYS, *ZONED)), (DAYS[:2], ALL), (DAYS, (*DAYS, *ZONED, *LOCAL)),
          (LOCAL[::2], LOCAL), (LOCAL[::2], (*LOCAL, *INSTANTS)), (LOCAL, ALL),
          (INSTANTS, INSTANTS), (INSTANTS, (*LOCAL, *INSTANTS)), (TEXTS, ALL), (ALL, ALL),
          (TEXTS, (*TEXTS, *TERMS, *EQUALS, *ANY)), ((*TEXTS, *TERMS, *EQUALS), ALL))  # fmt: skip
CONDITIONS = (
    "{v} IN ({list})", "{v} IN ({list})", "{v} IN ({list})", "{or}", "{or}",
    "{v} IN ({list}) || {or}",
    "{v} IN ({a})", "{v} IN ({a}, {a}, {b})", "{v} NOT IN ({list})", "{a} = {v} || {v} = {b}",
    "{v} IN ({list}) && {v} >= {n}", "{v} IN ({list}) && ?z >= {n}",
    "{v} IN ({list}) && ?z IN ({b}, {a})",
    "({or}) && ?z IN ({list})", "?z IN ({list})", "{v} IN ({list}) && {v} IN ({list})",
    "STR(?v) IN ({list}) && ?v IN ({list})", "{v} IN ({list}) && ?z != {a}", "?v = {a} || ?z = {b}",
    "{v} IN ({list}, ?z)", "{v} = {a}", "{v} < {n}",
)  # fmt: skip
GROUPS = (
    "?x :p ?v . ?x :q ?z FILTER({})", "?x :p ?v FILTER({}) ?x :q ?z",
    "?x :q ?z OPTIONAL {{ ?x :p ?v }} FILTER({})", "?x :q ?z OPTIONAL {{ ?x :p ?v FILTER({}) }}",
    "?x :q ?z . ?x :p ?v FILTER({}) OPTIONAL {{ ?x :r ?o }}",
    "?x :p ?v MINUS {{ ?x :q ?z . ?x :p ?v FILTER({}) }}",
    "?x :p ?v . ?x :q ?z FILTER EXISTS {{ ?x :p ?v . ?x :q ?z FILTER({}) }}",
)  # fmt: skip
HEADS = (("?x ?v ?z", ""), ("?x ?v ?z", ""), ("?x", ""), ("DISTINCT ?v", ""),
         ("(COUNT(*) AS ?n)", ""), ("?x (COUNT(?v) AS ?n)", "GROUP BY ?x"),
         ("?v (COUNT(*) AS ?n)", "GROUP BY ?v"))  # fmt: skip
CLAUSES = (Clause("step", 4000, 2000), Clause("step", 4000, 2000), Clause("range", 3000),
           Clause("step", 2000, 2000))  # fmt: skip


def listed(draw: random.Random, form: str, own: Sequence[str], length: int, v: str) -> str:
    """A condition of a form on ``v`` with constants of these."""
    a, b, n = draw.choice(own), draw.choice(own), draw.choice(("1", "2", "2.5"))
    equal = " || ".join([f"{v} = {draw.choice(own)}" for _ in range(length)])
    found = form.replace("{or}", equal)
    while "{list}" in found:
        some = ", ".join(draw.choices(own, k=length))
        found = found.replace("{list}", some, 1)
    return found.format(v=v, a=a, b=b, n=n)


def asked(draw: random.Random, own: Sequence[str], n: int) -> list[Coming]:
    """Queries of two forms, with lists of one length or of another, and some without one."""
    forms = draw.choices((CONDITIONS[0], CONDITIONS[3], *draw.sample(CONDITIONS, 2)), k=2)
    groups, heads = [GROUPS[0], GROUPS[0], draw.choice(GROUPS)], draw.sample(HEADS, 2)
    length, texts = draw.choice((2, 2, 3, 4)), draw.random() < (0.8 if own is TEXTS else 0.1)
    found = []
    for i in range(n):
        v = "STR(?v)" if texts and draw.random() < 0.9 else "?v"
        text = listed(draw, draw.choice(forms), own, length if draw.random() < 0.9 else 5, v)
        group = draw.choice(groups).format(text) if draw.random() < 0.9 else "?x :p ?v . ?x :q ?z"
        head, tail = draw.choice(heads)
        one = query(
            f"SELECT {head}", f"WINDOW :w {{ {group} }}", tail, name=f"q{i}",
            windows={"w": draw.choice(CLAUSES)},
            output=draw.choice(("RSTREAM", "RSTREAM", "ISTREAM", "DSTREAM")),
        )  # fmt: skip
        found.append(coming(draw, Coming(one)))
    return found


def coming(draw: random.Random, one: Coming) -> Coming:
    """When a query comes, and goes, most from the beginning to the end."""
    comes = draw.choice((0, 0, 0, 1, 2))
    goes = draw.choice((PHASES, PHASES, comes + 1))
    return Coming(one.query, comes, goes, draw.choice((None, None, None, 3000)))


def elements(draw: random.Random, own: Sequence[str]) -> list[Element]:
    """Subjects with terms of these, most of them in few, as objects of both patterns."""
    found = []
    for ts in sorted(draw.randrange(40) * 200 for _ in range(36)):
        p = draw.choice((":p", ":p", ":q"))
        term = draw.choice(own) if p == ":p" or draw.random() < 0.7 else ":z"
        found.append(at(ts, f":x{draw.randrange(4)} {p} {term}"))
    return found


def world(draw: random.Random, own: Sequence[str], rows: Sequence[str]) -> World:
    """A stream of such rows, of which half are of those that are listed."""
    rows = [draw.choice(draw.choice((own, rows))) for _ in range(20)]
    return World({STREAM: elements(draw, rows)}, {STREAM: (12, 24)})


def mixed(draw: random.Random) -> tuple[str, ...]:
    return ("relax", draw.choice(MODES), "relax", "relax")


def by_off(coming: Sequence[Coming], world: World, modes: Sequence[str], lot: int) -> None:
    """Each says in all modes, in mixed ones and alone what it says with ``off``."""

    def prepare(engine: Engine) -> None:
        engine._open().tables.dealing = by_lot(lot)

    got = {mode: run(coming, world, [mode] * (PHASES + 1)) for mode in ("off", "exact", "relax")}
    got["mixed"] = run(coming, world, modes, prepare=prepare)
    one = coming[lot % len(coming)]
    got["alone"] = run([one], world, ["relax"] * (PHASES + 1))
    for each in coming:
        own = {
            how: of.reports[each.query.name]
            for how, of in got.items()
            if each.query.name in of.reports
        }
        for how, reports in own.items():
            difference = same(own["off"], reports)
            assert difference is None, f"{how}: {each.query.text}\n{difference}"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of each set how often a pick of several queries is told by points."""
    found, points_of = [0], list_keys.points_of

    def seen(node: PlanNode[s.Pick], i: int) -> list_keys.Points | None:
        points = points_of(node, i)
        found[-1] += points is not None and len(node.members) > 1
        return points

    monkeypatch.setattr(list_keys, "points_of", seen)
    return found


def judged(told: Sequence[int], cases: int) -> None:
    """A third of many sets is told by points."""
    some = sum(map(bool, told))
    print(some, "of", cases, "sets are told by points")
    assert cases < 10 or 3 * some >= cases, f"{some} of {cases}"


@pytest.mark.long
def test_the_reference_says_what_lists_say(random_seed: int, told: list[int]) -> None:
    for case in range(CASES):
        draw = random.Random(f"{random_seed} {case}")
        own, rows = draw.choice(KEPT) if MANY else (EXACT, KEPT_FORM)
        print("seed", random_seed, "case", case)
        told.append(0)
        some = asked(draw, own, 12 if MANY else 6)
        check(some, world(draw, own, rows), counters(), draw.randrange(8), mixed(draw))
    judged(told, CASES)


def test_lists_of_terms_in_any_form(random_seed: int, told: list[int]) -> None:
    for case in range(CASES):
        draw = random.Random(f"any {random_seed} {case}")
        own, rows = draw.choice(OTHERS)
        print("seed", random_seed, "case", case)
        told.append(0)
        some = asked(draw, own, 12 if MANY else 6)
        by_off(some, world(draw, own, rows), mixed(draw), draw.randrange(99))
    judged(told, CASES)


IN = ("l.k In ({i}, {i})", "l.k In ({i}, {i}, {d})", "l.v In ({d}, {i})", "l.k = {i} Or l.k = {i}",
      "l.n In ({s}, {s})", "r.w In ({d}, {d})", "l.k Not In ({i}, {i})", "l.v In ({d}, {d})",
      "l.v In ({d}, {d}) And l.k > {i}", "l.v In ({d}, {i}) And r.w In ({d}, {d})", "l.k = {i}",
      "l.v = {d} Or l.v = {i}", "l.n In ({s}) And l.v In ({i}, {d}, {d})")  # fmt: skip
INTEGERS, DOUBLES = (1, 2, 3, 2**53, 2**53 + 1), (1.0, 2.5, 3.0, 7.0)


def of_columns(draw: random.Random, n: int) -> list[Coming]:
    """Queries over tuples, with lists of numbers and strings. None compares an integer of 16 digits
    with a double, of which SQLite says something else (docs/semantics.md).
    """
    forms = draw.sample(IN, 3)
    few = draw.random() < 0.7
    found = []
    for i in range(n):
        text = draw.choice(forms)
        for mark, values in (("{i}", INTEGERS), ("{d}", DOUBLES), ("{s}", ("'x'", "'y'", "'1'"))):
            while mark in text:
                text = text.replace(mark, str(draw.choice(values[: 3 if few else None])), 1)
        one = CqlSketch(
            ("A", "B"), (draw.choice(CLAUSES), CLAUSES[0]), ((0, text),),
            draw.choice(("RELATION", "ISTREAM", "DSTREAM", "RSTREAM")),
            draw.choice(("select", "select", "distinct", "group", "count")),
        )  # fmt: skip
        found.append(coming(draw, Coming(one.query(f"q{i}"))))
    return found


def tuples(draw: random.Random) -> World:
    """Rows of two streams, whose numbers are those of the lists."""
    times = [sorted(draw.randrange(40) * 200 for _ in range(20)) for _ in "AB"]
    k, v = INTEGERS, DOUBLES
    a = [Row(ts, (draw.choice(k), draw.choice(v), draw.choice("xy1"))) for ts in times[0]]
    b = [Row(ts, (draw.choice(k), draw.choice(v))) for ts in times[1]]
    schemas = {name: SCHEMAS[name] for name in "AB"}
    return World({"A": a, "B": b}, {"A": (7, 14), "B": (7, 14)}, 0, {}, schemas)


@pytest.mark.long
def test_lists_of_columns(random_seed: int, told: list[int]) -> None:
    for case in range(CASES):
        draw = random.Random(f"columns {random_seed} {case}")
        print("seed", random_seed, "case", case)
        told.append(0)
        some = of_columns(draw, 8)
        check(some, tuples(draw), counters(), draw.randrange(8), mixed(draw))
    judged(told, CASES)


TABLES = ("?v IN ({{a}}, {{b}})", "?v = {{a}} || ?v = {{b}} || ?v = 2", "?v IN (1, {{a}}, 3.0)",
          'STR(?v) IN ("{{a}}", "{{b}}")', "?v IN ({{a}}, {{b}}) && ?z >= {{c}}",
          "?v IN ({{a}}, {{b}}) && ?z IN ({{c}}, 2)", "?v IN ({{a}}, {{a}})")  # fmt: skip


def registered(draw: random.Random) -> tuple[str, list[Mapping[str, object]]]:
    """A text with columns, and rows of numbers, of which some are no exact points."""
    clause = f"FROM NAMED WINDOW :w ON <{STREAM}> {CLAUSES[0].rspql}"
    text = (
        f"PREFIX : <http://e/> SELECT ?x ?v ?z {clause} WHERE {{ WINDOW :w "
        f"{{ ?x :p ?v . ?x :q ?z FILTER({draw.choice(TABLES)}) }} }}"
    )
    values: tuple[object, ...] = (1, 2, 3, 7, 0, 2.5, -1)
    values = values if draw.random() < 0.6 else (*values, 2**53 + 1, 10**20)
    n = draw.choice((3, 12))
    return text, [{"at": i, **{c: draw.choice(values) for c in "abc"}} for i in range(n)]


def reports(
    text: str, table: list[Mapping[str, object]], stream: Sequence[Element], mode: str
) -> Mapping[str, list[Report]]:
    """What the rows' queries report: with ``off`` each is registered as a text of its own."""
    sink = MemorySink()
    with tempfile.TemporaryDirectory() as folder, Engine(
        spark=False, checkpoint=Path(folder) / "c", partitions=2, sink=sink, sharing=mode,
        epoch_rows=20,
    ) as engine:  # fmt: skip
        engine.stream(STREAM, write_lines(Path(folder) / "s.nt", stream))
        if mode != "off":
            engine.register_each(text, table, name="q{{at}}")
        for row in table if mode == "off" else ():
            own = text
            for name, value in row.items():
                own = own.replace(f"{{{{{name}}}}}", str(value))
            engine.register(own, name=f"q{row['at']}")
        engine.start(once=True)
        engine.await_end()
    return sink.reports


def test_lists_of_tables(random_seed: int, told: list[int]) -> None:
    for case in range(CASES):
        draw = random.Random(f"tables {random_seed} {case}")
        print("seed", random_seed, "case", case)
        told.append(0)
        stream = elements(draw, draw.choice((EXACT, EXACT, ANY, (*EXACT, *NUMBERS))))
        text, table = registered(draw)
        off = reports(text, table, stream, "off")
        for mode in ("exact", "relax"):
            got = reports(text, table, stream, mode)
            for name in {*off, *got}:
                difference = same(off.get(name, []), got.get(name, []))
                row = table[int(name[1:])]
                assert difference is None, f"{mode}: {text} {row}\n{difference}"
    judged(told, CASES)

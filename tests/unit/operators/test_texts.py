"""Ranges of texts: an index tells what the conditions say, whatever terms there are."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
import pytest

from levada.core import column_names as col
from levada.core.array_types import Bools
from levada.core.event_time import MIN
from levada.core.frame import Column, Frame
from levada.core.rdf_terms import Literal
from levada.core.stream_facts import StreamFacts
from levada.kernels.terms.term_ids import identify
from levada.kernels.terms.term_lookup import TermLookup
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.operators.expressions.scalar.literals import term_of
from levada.operators.expressions.term_values import classify, from_texts
from levada.operators.operator_context import OperatorContext
from levada.operators.rows.compensation_filter import finder_of, pick, route
from levada.operators.rows.list_keys import parse_list
from levada.operators.rows.route_rows import project_for_consumer
from levada.operators.rows.text_range_keys import Placed, RangeTexts
from levada.plan.execution import steps as s
from levada.plan.execution.joins import Order
from levada.plan.execution.plan import Plan, PlanNode
from levada.plan.optimizer.pipeline import optimize
from levada.plan.sharing.sharing_modes import Sharing
from levada.plan.topology.topology import Topology

TEXT = """PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
SELECT * FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT4S STEP PT2S]
WHERE {{ WINDOW :w {{ ?x :p ?v . ?x :q ?z FILTER({}) }} }}"""
XSD = "http://www.w3.org/2001/XMLSchema#"
CHARACTERS = (
    "",
    "a",
    "ab",
    "abc",
    "b",
    "Z",
    "ä",
    "\uffff",
    "\U0001f600",
    "a\\n",
    'a\\"',
    "\\\\",
    "0",
)
WORDS = tuple(f'"{a}{b}"' for a in CHARACTERS for b in ("", "a", "\U0010ffff", "\ud7ff"))
DAYS = ("2026-01-01", "2026-02-30", "0001-01-01", "0000-01-01", "-0001-01-01", "12026-01-01",
        "9999-12-31", "2024-02-29", "2026-01-01Z", "2026-01-02+14:00")  # fmt: skip
CLOCKS = ("00:00:00", "00:00:00.0", "00:00:00.5", "00:00:00.50", "24:00:00", "23:59:59", "25:00:00",
          "00:00:00Z", "12:00:00-14:00", "00:00:00.123456789012345678", "0:00:00")  # fmt: skip
DATES = tuple(f'"{day}"^^<{XSD}date>' for day in DAYS)
TIMES = tuple(f'"{day}T{clock}"^^<{XSD}dateTime>' for day in DAYS[:6] for clock in CLOCKS)
OTHERS = (
    *(f"{word}@en" for word in WORDS[::5]), f'"1"^^<{XSD}integer>', f'"01"^^<{XSD}integer>',
    f'"NaN"^^<{XSD}double>', f'"a"^^<{XSD}integer>', f'"a"^^<{XSD}dateTime>', '"ab"^^<http://e/t>',
    f'"2026-01-01T00:00:00Z"^^<{XSD}dateTimeStamp>', f'"P1D"^^<{XSD}duration>',
    f'"true"^^<{XSD}boolean>', f'"2026"^^<{XSD}gYear>', "<a:b>", "<ab:c>", "<e:x>", "_:b", "_:a",
    '"2026-01-01"^^<http://wwwXw3.org/2001/XMLSchema#date>',
    f'"2"^^<{XSD}integer>', f'"1.0"^^<{XSD}decimal>', f'"0.1"^^<{XSD}decimal>',
    f'"0.1"^^<{XSD}double>',
    f'"9007199254740993"^^<{XSD}integer>', f'"9007199254740992"^^<{XSD}double>',
    f'"-0.0"^^<{XSD}double>', f'"INF"^^<{XSD}double>', f'"1"^^<{XSD}float>', f'"3"^^<{XSD}int>',
)  # fmt: skip
COMPARE = ("<", ">", "<=", ">=")


def drawn(order: Order, draw: random.Random) -> str:
    """A condition that such a range tells, or two of them."""
    constants = {Order.DATE: DATES, Order.LOCAL: TIMES}.get(order, WORDS)
    of = "STR(?v)" if order is Order.STR else "?v"
    parts = []
    for _ in range(draw.choice((1, 1, 2))):
        constant = draw.choice(constants)
        if order is Order.TAGGED or (order is Order.STR and draw.random() < 0.5):
            parts.append(f"STRSTARTS({of}, {constant})")
        elif draw.random() < 0.2 and order is not Order.STRING:
            parts.append(f"{of} = {constant}")
        elif draw.random() < 0.3:
            parts.append(f"{constant} {draw.choice(COMPARE)} {of}")
        else:
            parts.append(f"{of} {draw.choice(COMPARE)} {constant}")
    return " && ".join(parts)


def plan_of(conditions: Sequence[str]) -> Plan:
    found = Topology({"http://e/s": StreamFacts()}, (), Sharing.RELAX)
    for i, condition in enumerate(conditions):
        text = TEXT.format(condition)
        found.add(f"q{i}", optimize(translate(parse(text), text=text)), MIN)
    return found.seal()


def rows_of(frame: Frame) -> list[tuple[int, ...]]:
    return sorted(zip(*(frame[name].tolist() for name in frame.columns), strict=True))


@pytest.mark.long
@pytest.mark.parametrize("order", [order for order in Order if order is not Order.VALUE])
def test_what_an_index_tells_is_what_conditions_say(order: Order, random_seed: int) -> None:
    draw = random.Random(f"{order}{random_seed}")
    plan, pool = plan_of(list({drawn(order, draw): None for _ in range(60)})), TermLookup(7)
    told = 0
    for node in picks_of(plan):
        orders = {test.order for test in node.step.tests}
        assert not node.step.rest and orders <= {order, Order.VALUE}, "of LOCAL some have a zone"
        told += len(node.members)
        sure = judged(plan, node, node.step.tests[0].slot, pool)
        if len(orders) == 1 and order not in (Order.DATE, Order.LOCAL):
            assert sure.all(), "nothing is asked"
    assert told > 30


@pytest.mark.long
@pytest.mark.parametrize(
    "of", ["exact", "days", "numbers", "times", "texts", "characters", "mixed"]
)
def test_what_an_index_tells_of_lists_is_what_conditions_say(of: str, random_seed: int) -> None:
    """Each value of a list by itself, in whatever form it is written."""
    draw = random.Random(f"{of}{random_seed}")
    plan, pool = plan_of(list({listing(of, draw): None for _ in range(60)})), TermLookup(7)
    sure = 0
    for node in picks_of(plan):
        found = [one for one in map(parse_list, node.step.rest) if one is not None]
        slots = [one.slot for one in found] + [test.slot for test in node.step.tests]
        slot = (slots or [key.slot for key in node.step.keys])[0]
        sure += int(judged(plan, node, slot, pool).sum())
    assert sure or of not in ("exact", "days", "texts"), (
        "where any list has a value that is no point, all are asked"
    )


NUMBERS = ("1", "1.0", "1.0e0", "01", "2", "-0.0", "0", "9007199254740993", "9007199254740992.0e0",
           "0.1", "1e999", f'"NaN"^^<{XSD}double>', f'"1"^^<{XSD}float>',
           f'"3"^^<{XSD}int>')  # fmt: skip
LISTED = {
    "exact": NUMBERS[:7],
    "days": (DATES[0], *DATES[6:8]),
    "numbers": NUMBERS,
    "times": TIMES,
    "texts": WORDS,
    "characters": ("5", "6.0", '"5"@en'),
}


def listing(of: str, draw: random.Random) -> str:
    """A list of some constants, as IN or as equations, or one of them beside a range."""
    subject = "STR(?v)" if of in ("texts", "characters") else "?v"
    constants = LISTED.get(of, (*NUMBERS, *TIMES, *DATES, *WORDS, "<a:b>", "true"))
    own = draw.choices(constants, k=draw.choice((2, 2, 3, 4)))
    if draw.random() < 0.5:
        text = f"{subject} IN ({', '.join(own)})"
    else:
        text = " || ".join(f"{subject} = {one}" for one in own)
    return text if draw.random() < 0.8 else f"({text}) && ?v >= {draw.choice(NUMBERS)}"


def picks_of(plan: Plan) -> Iterator[PlanNode[s.Pick]]:
    for number in plan.order:
        if (node := plan.nodes[number].as_step(s.Pick)) is not None:
            yield node


def judged(plan: Plan, node: PlanNode[s.Pick], slot: int, pool: TermLookup) -> Bools:
    """Which pairs are sure, of which the same are found with an index and without."""
    (below,) = node.inputs
    (consumer,) = [c for c in plan.nodes[below].consumers if c.node == node.id]
    layout = plan.nodes[below].layout
    frame = _frame(layout.columns(), slot, consumer.edge.slots, pool)
    rows = project_for_consumer(frame, consumer, layout)
    slow = pick(node, (rows,), OperatorContext.for_rows(pool))
    fast = route(node, consumer, frame, layout, pool, mixed=True)
    assert slow is not None and rows_of(slow) == rows_of(fast)
    return node.compute_once(finder_of, pool.seed).find_owners(rows, pool)[2]


def _frame(names: Sequence[str], slot: int, slots: Sequence[int], pool: TermLookup) -> Frame:
    """Rows of a join whose ?v is each of the terms, three times."""
    # as what reads streams writes them
    fives = ('"5"', '"5"@en', f'"5"^^<{XSD}integer>')
    terms = pl.Series([*WORDS, *DATES, *TIMES, *OTHERS, *fives] * 3).str.replace(
        "\uffff", "\\uFFFF"
    )
    columns: dict[str, Column] = {name: np.zeros(len(terms), np.int64) for name in names}
    columns["op"] = np.zeros(len(terms), np.int32)
    columns.update({n: np.full(len(terms), MIN) for n in columns if n.startswith("prev")})
    at = slots[slot]
    pool.identify(terms)
    facets = (*identify(terms, pool.seed), *classify(terms))
    columns.update(zip((f"{name}{at}" for name in "xykdmc"), facets, strict=True))
    others = [n for n in names if col.is_slot(n) and n[0] in "xy" and int(n[1:]) != at]
    columns.update({name: np.ones(len(terms), np.uint64) for name in others})
    return Frame(columns, len(terms))


def test_a_text_is_at_a_border_or_before_it() -> None:
    terms = pl.Series(['"b"', '"a"@en', "<a:b>", None, '"ab"', '"c"'])
    column = from_texts(terms)
    told = RangeTexts.from_column(column, Order.STRING)
    assert told.none.tolist() == [False, True, True, True, False, False]
    placed = Placed.locate(told, pl.Series([b"a", b"b"]))
    assert placed.d[placed.exact].tolist() == [1, 0.5, 1.5]
    assert RangeTexts.from_column(column, Order.TAGGED).texts.to_list() == [
        b"b",
        b"a",
        None,
        None,
        b"ab",
        b"c",
    ]
    assert RangeTexts.from_column(column, Order.STR).texts.to_list() == [
        b"b",
        b"a",
        b"a:b",
        None,
        b"ab",
        b"c",
    ]


def test_many_texts_are_told_as_few_are() -> None:
    """Of many terms columns are made at once, of few one by one."""
    ends = ("", "@en", "^^<e:t>")
    terms = [
        f'"{c}x{i}"{end}' for i in range(90) for c in ("a", "é", '\\"', "\\u0001") for end in ends
    ]
    terms += [f"<e:{i}>" for i in range(90)]
    read = [term_of(term) for term in terms]
    own = [one.lexical if isinstance(one, Literal) else str(one)[1:-1] for one in read]
    assert RangeTexts.from_column(from_texts(pl.Series(terms)), Order.STR).texts.to_list() == [
        text.encode() for text in own
    ]


def test_times_are_in_the_order_of_what_is_written() -> None:
    told = (
        RangeTexts.from_column(from_texts(pl.Series(TIMES)), Order.LOCAL)
        .texts.drop_nulls()
        .unique()
        .sort()
    )
    assert told.to_list()[1:4] == [
        b"0001-01-01T00:00:00.123456789012345678",
        b"0001-01-01T00:00:00.5",
        b"0001-01-01T23:59:59",
    ]
    days = RangeTexts.from_column(from_texts(pl.Series(DATES)), Order.DATE).texts.drop_nulls()
    assert days.to_list() == [b"2026-01-01", b"0001-01-01", b"9999-12-31", b"2024-02-29"]

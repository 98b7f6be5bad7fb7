"""Integers and decimals of any size, judged by Python's own: expressions, aggregates, orders.

Small numbers and numbers of 30 digits meet in all of them; the judge is written here, since
pyoxigraph has 64 and 128 bits. What it is asked of windows are the rows of each report, which need
no arithmetic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from math import ceil, floor, trunc

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_groups_on_change import examples

from levada.core.expressions import Call, Const, Expression, Var
from levada.core.expressions import Function as Fn
from levada.core.rdf_terms import XSD, Iri, Literal, Term
from levada.kernels.terms.term_ids import identify
from levada.operators.expressions import Scope, evaluate, from_texts, order_rank, truth
from levada.testing.reference_model import Report
from support.generators import Case
from support.generators.windows import Clause
from support.query_dsl import at, query
from support.stepped_runs import run_case

IDENTIFY = partial(identify, seed=3)
Value = tuple[Fraction, bool]
"""A number, and whether it is an integer by its type."""

small = st.integers(-20, 20)
edge = st.builds(
    lambda bits, more: bits + more,
    st.sampled_from([0, 10**15, 2**53, 10**18, 2**63, -(2**63), 2**64, 2**127, -(2**127)]),
    st.integers(-2, 2),
)
large = st.integers(-(10**30), 10**30)
integers = small | edge | large | st.integers(-(10**60), 10**60)
decimals = st.builds(
    lambda n, scale: Fraction(n, 10**scale),
    small | large | st.integers(-(10**18), 10**18),
    st.integers(0, 25),
)
numbers: st.SearchStrategy[Value] = st.one_of(
    integers.map(lambda n: (Fraction(n), True)), decimals.map(lambda d: (d, False))
)


def text(value: Value) -> str:
    """The canonical literal of an integer or decimal.

    >>> text((Fraction(-5, 2), False))
    '"-2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    """
    number, integer = value
    scale = 0
    while (number * 10**scale).denominator != 1:
        scale += 1
    digits = str(abs(int(number * 10**scale))).rjust(scale + 1, "0")
    lexical = digits[: len(digits) - scale] + ("." if scale else "") + digits[len(digits) - scale :]
    sign = "-" if number < 0 else ""
    return str(Literal(sign + lexical, XSD + ("integer" if integer else "decimal")))


def cut(number: Fraction) -> Fraction:
    """18 fraction digits, towards zero."""
    return Fraction(trunc(number * 10**18), 10**18)


ARITHMETIC = (Fn.ADD, Fn.SUBTRACT, Fn.MULTIPLY, Fn.DIVIDE)
ROUNDING: dict[Fn, Callable[[Fraction], Fraction]] = {
    Fn.PLUS: lambda n: n,
    Fn.MINUS: lambda n: -n,
    Fn.ABS: abs,
    Fn.CEIL: lambda n: Fraction(ceil(n)),
    Fn.FLOOR: lambda n: Fraction(floor(n)),
    Fn.ROUND: lambda n: Fraction(floor(n + Fraction(1, 2))),
}
COMPARED: dict[Fn, Callable[[Fraction, Fraction], bool]] = {
    Fn.EQUAL: lambda a, b: a == b,
    Fn.NOT_EQUAL: lambda a, b: a != b,
    Fn.LESS: lambda a, b: a < b,
    Fn.GREATER_EQUAL: lambda a, b: a >= b,
}
INTEGER = Const(Iri(XSD + "integer"))
NAMES = ("a", "b", "c")


def judged(expression: Expression, row: dict[str, Value]) -> Value | None:
    """The value of an expression; None is an error."""
    match expression:
        case Var(name):
            return row[name]
        case Call(Fn.CAST, (_, arg)):
            value = judged(arg, row)
            return None if value is None else (Fraction(trunc(value[0])), True)
        case Call(function, (arg,)):
            value = judged(arg, row)
            return None if value is None else (ROUNDING[function](value[0]), value[1])
        case Call(function, (left, right)):
            return _judged(function, judged(left, row), judged(right, row))
    raise AssertionError(expression)


def _judged(function: Fn, a: Value | None, b: Value | None) -> Value | None:
    if a is None or b is None or (function is Fn.DIVIDE and b[0] == 0):
        return None
    integer = a[1] and b[1]
    match function:
        case Fn.ADD:
            return a[0] + b[0], integer
        case Fn.SUBTRACT:
            return a[0] - b[0], integer
        case Fn.MULTIPLY:
            return a[0] * b[0], integer
        case _:
            return cut(a[0] / b[0]), False


def build(function: Fn, *args: Expression) -> Expression:
    return Call(function, args)


expressions = st.recursive(
    st.sampled_from(NAMES).map(Var),
    lambda inner: st.one_of(
        st.builds(build, st.sampled_from(ARITHMETIC), inner, inner),
        st.builds(build, st.sampled_from(list(ROUNDING)), inner),
        st.builds(build, st.just(Fn.CAST), st.just(INTEGER), inner),
    ),
    max_leaves=5,
)
rows = st.lists(st.fixed_dictionaries(dict.fromkeys(NAMES, numbers)), min_size=1, max_size=6)


def scope_of(table: Sequence[dict[str, Value]]) -> Scope:
    columns = {n: from_texts(pl.Series([text(row[n]) for row in table])) for n in NAMES}
    return Scope(len(table), columns, identify=IDENTIFY)


@examples(300)
@given(expressions, rows)
def test_expressions_are_exact(expression: Expression, table: list[dict[str, Value]]) -> None:
    found = evaluate(expression, scope_of(table)).texts().to_list()
    right = [judged(expression, row) for row in table]
    assert found == [None if value is None else text(value) for value in right]


@examples(200)
@given(expressions, expressions, st.sampled_from(list(COMPARED)), rows)
def test_comparisons_are_exact(
    left: Expression, right: Expression, function: Fn, table: list[dict[str, Value]]
) -> None:
    found = truth(Call(function, (left, right)), scope_of(table)).tolist()
    for row, is_true in zip(table, found, strict=True):
        a, b = judged(left, row), judged(right, row)
        assert is_true == (a is not None and b is not None and COMPARED[function](a[0], b[0]))


@examples(200)
@given(st.lists(numbers, min_size=1, max_size=12), numbers)
def test_the_order_is_that_of_the_values(values: list[Value], near: Value) -> None:
    """Also of neighbours that have one nearest double."""
    values += [near, (near[0] + Fraction(1, 10**30), False), (near[0] - Fraction(1, 10**27), False)]
    column = from_texts(pl.Series([text(value) for value in values]))
    ranks = order_rank([column], [False]).tolist()
    right = sorted({value for value, _ in values})
    assert ranks == [right.index(value) for value, _ in values]


@pytest.mark.parametrize("digits", [310, 900])
def test_the_order_beyond_the_doubles(digits: int) -> None:
    """Numbers whose nearest double is infinite stay apart from each other and from INF."""
    power = 10**digits
    shown = [
        "-INF",
        *(-power + i for i in (-1, 0, 1)),
        -1,
        0,
        1,
        power - 1,
        power,
        power + 1,
        "INF",
    ]
    terms = [Literal(str(v), XSD + ("double" if isinstance(v, str) else "integer")) for v in shown]
    column = from_texts(pl.Series([str(term) for term in terms]))
    assert order_rank([column], [False]).tolist() == list(range(len(shown)))


def test_results_have_1000_characters_at_most() -> None:
    a, b = (Literal(str(10**n), XSD + "integer") for n in (600, 396))
    one: list[Term] = [a, b, Literal("1", XSD + "integer")]
    product = Call(Fn.MULTIPLY, (Const(one[0]), Const(one[1])))
    assert evaluate(product, Scope(1, {})).texts()[0] == str(Literal(str(10**996), XSD + "integer"))
    squared = Call(Fn.MULTIPLY, (Const(one[0]), Const(one[0])))
    assert evaluate(squared, Scope(1, {})).texts()[0] is None


# -- over windows --

CLAUSES = (
    Clause("step", 4000, 2000),
    Clause("range", 3000),
    Clause("count", count=4),
    Clause("all"),
)
AGGREGATES = "(SUM(?v) AS ?sum) (AVG(?v) AS ?avg) (MIN(?v) AS ?min) (MAX(?v) AS ?max)"
DISTINCT = "(SUM(DISTINCT ?v) AS ?sum) (COUNT(DISTINCT ?v) AS ?n)"
elements_of = st.lists(
    st.tuples(st.integers(0, 16), st.sampled_from("ab"), st.sampled_from("xyz"), numbers),
    min_size=1,
    max_size=14,
)


def literal(value: Value) -> str:
    return text(value).replace(f"<{XSD}", "xsd:").replace(">", "")


def asked(head: str, tail: str, clause: Clause, output: str, name: str):  # type: ignore[no-untyped-def]
    return query(
        f"SELECT {head}", "WINDOW :w { ?s ?p ?v }", tail, windows={"w": clause}, output=output,
        name=name
    )  # fmt: skip


def aggregated(report: Report, *, distinct: bool) -> dict[str, dict[str, str]]:
    """By subject what the aggregates are, from the rows of a report."""
    groups: dict[str, list[str]] = {}
    for solution, times in report.solutions.items():
        row = dict(solution)
        groups.setdefault(row["s"], []).extend([row["v"]] * times)
    return {s: (_distinct if distinct else _plain)(texts) for s, texts in groups.items()}


def value_of(term: str) -> Value:
    lexical, _, datatype = term[1:].partition('"^^<')
    return Fraction(lexical), datatype.endswith("integer>")


def _sum(values: Sequence[Value]) -> Value:
    return sum((v for v, _ in values), Fraction(0)), all(i for _, i in values)


def _plain(texts: list[str]) -> dict[str, str]:
    values = [value_of(t) for t in texts]
    total, least = _sum(values), min(v for v, _ in values)
    greatest = max(v for v, _ in values)
    return {
        "sum": text(total),
        "avg": text((cut(total[0] / len(values)), False)),
        "min": str(least),
        "max": str(greatest),
    }


def _distinct(texts: list[str]) -> dict[str, str]:
    total = _sum([value_of(t) for t in set(texts)])
    return {"sum": text(total), "n": text((Fraction(len(set(texts))), True))}


def shown(solution: dict[str, str]) -> dict[str, str]:
    """MIN and MAX by value: of equal numbers of two types either may be meant."""
    own = {n: str(value_of(solution[n])[0]) for n in ("min", "max") if n in solution}
    return {n: t for n, t in solution.items() if n != "s"} | own


@examples(60)
@given(
    elements_of, st.sampled_from(CLAUSES), st.booleans(), st.sampled_from((1, 3, 1000)),
    st.sampled_from((1, 2)),
)  # fmt: skip
def test_aggregates_are_exact(
    found: list[tuple[int, str, str, Value]], clause: Clause, distinct: bool, rows: int, parts: int
) -> None:
    """Whole results, and what differences make of the results before."""
    ordered = sorted(found, key=lambda e: e[0])
    stream = tuple(at(500 * t, f":{s} :{p} {literal(v)}") for t, s, p, v in ordered)
    head = f"?s {DISTINCT if distinct else AGGREGATES}"
    raw = asked("?s ?p ?v", "", clause, "RSTREAM", "raw")
    queries = [asked(head, "GROUP BY ?s", clause, o, o) for o in ("RSTREAM", "ISTREAM", "DSTREAM")]
    case = Case({"http://e/s": stream}, tuple(queries), 0, {})
    got = run_case(case, epoch_rows=rows, partitions=parts)
    expected = Case({"http://e/s": stream}, (raw,), 0, {}).expected()["raw"]
    right = {r.time: aggregated(r, distinct=distinct) for r in expected}
    whole = {r.time: by_subject(r) for r in got["RSTREAM"]}
    assert {t: r for t, r in whole.items() if r} == {t: r for t, r in right.items() if r}
    check_differences(got, whole)


def by_subject(report: Report) -> dict[str, dict[str, str]]:
    return {dict(sol)["s"]: shown(dict(sol)) for sol in report.solutions}


def check_differences(
    got: dict[str, list[Report]], whole: dict[int, dict[str, dict[str, str]]]
) -> None:
    """ISTREAM and DSTREAM, put together from the beginning on, are the whole results."""
    events: dict[int, dict[str, Counter[tuple[str, str]]]] = {}
    for output in ("DSTREAM", "ISTREAM"):
        for report in got[output]:
            rows = Counter((s, str(sorted(r.items()))) for s, r in by_subject(report).items())
            events.setdefault(report.time or 0, {})[output] = rows
    standing: Counter[tuple[str, str]] = Counter()
    for time in sorted({*events, *whole}):
        change = events.get(time, {})
        standing -= change.get("DSTREAM", Counter())
        standing += change.get("ISTREAM", Counter())
        right = {(s, str(sorted(r.items()))) for s, r in whole.get(time, {}).items()}
        assert set(standing) == right, time


def counted(report: Report) -> Counter[str]:
    rows = map(dict, report.solutions)
    return Counter({row["c"]: int(value_of(row["n"])[0]) for row in rows})


@examples(25)
@given(elements_of, st.integers(-(10**25), 10**25), st.sampled_from((1, 1000)))
def test_computed_values_group_and_join(
    found: list[tuple[int, str, str, Value]], factor: int, rows: int
) -> None:
    """A product is the term that it would be if it were told: GROUP BY, COUNT DISTINCT and a join
    of two sub-selects by it; its sum is exact in later epochs, too.
    """
    stream = tuple(
        at(500 * t, f":{s} :{p} {literal(v)}") for t, s, p, v in sorted(found, key=lambda e: e[0])
    )
    clause = Clause("range", 3000)
    group = f"WINDOW :w {{ ?s ?p ?v }} BIND(?v * {factor} AS ?c)"
    heads = {
        "g": ("SELECT ?c (COUNT(?s) AS ?n)", "GROUP BY ?c"),
        "t": ("SELECT (SUM(?c) AS ?n)", ""),
    }
    queries = [
        query(head, group, tail, windows={"w": clause}, name=name)
        for name, (head, tail) in heads.items()
    ]
    raw = asked("?s ?p ?v", "", clause, "RSTREAM", "raw")
    got = run_case(Case({"http://e/s": stream}, tuple(queries), 0, {}), epoch_rows=rows)
    expected = Case({"http://e/s": stream}, (raw,), 0, {}).expected()["raw"]
    counts, totals = {}, {}
    for report in expected:
        values = [value_of(dict(sol)["v"]) for sol, n in report.solutions.items() for _ in range(n)]
        products = [(v * factor, i) for v, i in values]
        if products:
            counts[report.time] = Counter(map(text, products))
            totals[report.time] = text(_sum(products))
    assert {r.time: counted(r) for r in got["g"] if r.solutions} == counts
    assert {r.time: dict(next(iter(r.solutions)))["n"] for r in got["t"] if r.solutions} == totals


def test_a_sum_with_a_double_takes_large_numbers_in_as_a_double() -> None:
    """Also by changes, where it loses the double again."""
    ordered = [(1, "a", str(10**30)), (2, "b", "0.5e0"), (3, "c", str(-(10**30) + 7))]
    stream = tuple(at(500 * t, f":s :{p} {v}") for t, p, v in ordered)
    clause = Clause("range", 1000)
    queries = [asked("(SUM(?v) AS ?n)", "", clause, o, o) for o in ("RSTREAM", "ISTREAM")]
    got = run_case(Case({"http://e/s": stream}, tuple(queries), 0, {}), epoch_rows=1)
    right = {
        500: (10**30, "integer"),
        1000: (10**30, "double"),
        1500: (-(10**30), "double"),
        2000: (-(10**30) + 7, "integer"),
    }
    for reports in got.values():
        found = {r.time: dict(s)["n"] for r in reports for s in r.solutions}
        assert found == {t: str(Literal(str(v), XSD + name)) for t, (v, name) in right.items()}

"""Sets of queries that come and go, in all modes of sharing, against the second oracle.

``LEVADA_CASES`` is another number of cases. Each is a function of its seed: one that differs is
repeated alone by ``LEVADA_CASE=seed``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

import pytest

from oracle import draw, judge
from oracle.case import PHASES, Case, expected
from oracle.drive import differences
from oracle.small import smaller

CASES = int(os.environ.get("LEVADA_CASES", "0"))
FEW, MORE, PARTS = 22, 35, 2  # cases of a short run, which are short ones; more by other workers
MANY = 200
NEEDED = (
    "side of streams in common", "relaxed side in common", "static right side in common",
    "relaxed join", "pick above reports", "family", "joined by number", "count window",
    "static rows in common", "rows of a table", "made stream", "CQL",
)  # fmt: skip
"""Kinds of which each is in a case of CI, and of ``MANY`` cases in more than one of 20; so are
those that are rarer, or come about while a case runs, of many.
"""
RARER = ("one window and several", "divided group", "switch of orders")
pytestmark = pytest.mark.timeout(0)


@pytest.mark.long
def test_queries_that_come_and_go_say_what_the_page_says(random_seed: int) -> None:
    own = judge.seeds(random_seed * draw.MILLION, CASES or FEW)
    kinds = judge.judged(own, draw.case)
    judge.show(kinds)
    needed: Sequence[str] = ()
    if CASES >= MANY:
        needed = (*NEEDED, *RARER)
    elif "CI" in os.environ and len(own) == FEW:
        needed = NEEDED
    rare = judge.rare(kinds, needed, CASES)
    assert not rare, f"of {len(own)} cases few or none have {rare}"


@pytest.mark.skipif(CASES > 0 or "LEVADA_CASE" in os.environ, reason="There are others.")
@pytest.mark.parametrize(
    "part", [pytest.param(i, marks=[pytest.mark.long] * (i > 0)) for i in range(PARTS)]
)
def test_more_that_come_and_go(part: int, random_seed: int) -> None:
    first = random_seed * draw.MILLION + FEW + part * MORE
    assert judge.judged(range(first, first + MORE), draw.case)


def test_what_is_missing_or_otherwise_is_told() -> None:
    case = next(c for c in map(draw.case, range(100)) if any(_said(c)))
    right = expected(case)
    got = {
        name: {} if own is None else {at: replace(r, made=()) for at, r in own.reports.items()}
        for name, own in right.items()
    }
    assert differences(case, right, got) == ""
    name, at = _said(case)[0]
    missing = {**got, name: {t: r for t, r in got[name].items() if t != at}}
    assert f"report {at}" in differences(case, right, missing)
    more = {**got, name: {**got[name], at - 1: got[name][at]}}
    assert f"report {at - 1}" in differences(case, right, more)


def _said(case: Case) -> list[tuple[str, int]]:
    """The first reports of queries that stay."""
    stays = {one.query.name for one in case.coming if one.goes == PHASES}
    found = {n: r.reports for n, r in expected(case).items() if r is not None and n in stays}
    return [(name, min(reports)) for name, reports in found.items() if reports]


def test_a_case_is_made_small() -> None:
    case = draw.case(draw.MILLION)
    small = smaller(case, lambda c: any(one.query.name == "q1" for one in c.coming))
    assert [one.query.name for one in small.coming] == ["q1"]
    assert not any(part for parts in small.streams.values() for part in parts)

"""Cuts: windows of every kind over one stream, by epochs of 1, 2, 3, 1,000 elements and of a number
by lot, say what the second oracle says, and so the same as each other.

Few queries join: what is judged is where windows begin and end, how far reports go, and what epochs
keep of elements' times, which is where epochs that cut a stream elsewhere have differed.
A twentieth of ``LEVADA_CASES`` is another number of cases, since each has sixty runs of a query;
one that differs is repeated by ``LEVADA_CASE=seed``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count, islice
from random import Random

import pytest

from oracle import draw, judge
from oracle.case import Case, Coming, Running, expected
from oracle.draw_query import aggregate, shaped, window
from oracle.drive import differences, run
from oracle.queries import RDF_STREAMS, Filter, In, Item, Query, Select, Triple, Window
from oracle.reports import Report
from oracle.words import NODES, A, N, P, Q, condition

CASES = int(os.environ.get("LEVADA_CASES", "0"))
FEW, EACH = 1, 2 if CASES else 1
ROWS = (1, 2, 3, 1000)
KINDS = ("count", "session", "periodic", "time", "empty", "two")
pytestmark = pytest.mark.timeout(0)


def asked(rng: Random, kind: str, name: str) -> Query:
    """A query of one pattern over a window of a kind, or over two."""
    pattern = Triple("?x", rng.choice((P, P, Q)), "?v")
    group = [In("w", (pattern,))]
    if rng.random() < 0.4:
        group = [In("w", (pattern, Filter(condition(rng, ("?v",)))))]
    windows = [("w", of_kind(rng, kind))]
    if kind == "two":
        windows.append(("w2", of_kind(rng, rng.choice(KINDS[:2]))))
        group.append(In("w2", (Triple("?x", "?pp", "?o"),)))
    names = ["?x", "?v"]
    parts = tuple(group)
    select = Select(tuple(map(Item, names)), parts, distinct=rng.random() < 0.2)
    if rng.random() < 0.35:
        select = aggregate(rng, parts, names)
    found = shaped(rng, Query(name, tuple(windows), select))
    if kind == "periodic":
        period = rng.choice((300, 700, 1000, 1500))
        found = replace(found, policy=period, nonempty=rng.random() < 0.2, empty=False)
    if kind == "empty":
        found = replace(found, empty=True, nonempty=False)
    return found


def of_kind(rng: Random, kind: str) -> Window:
    """A window of the first stream that counts, is a session, or goes by time."""
    if kind == "count":
        n = rng.randrange(1, 8)
        return rng.choice((
            Window(RDF_STREAMS[0], "triples", n=n),
            Window(RDF_STREAMS[0], "elements", n=n, m=rng.randrange(1, 7)),
        ))  # fmt: skip
    if kind == "session":
        return Window(RDF_STREAMS[0], "session", a=rng.choice((200, 400, 900, 2000)))
    if kind == "time":
        a, b = rng.choice((1000, 2000, 4000)), rng.choice((500, 700, 1000, 5000))
        return Window(RDF_STREAMS[0], "step", a=a, b=b)
    return window(rng, RDF_STREAMS[:1], "rspql")


def drawn(seed: int) -> Case:
    """Queries of each kind, which are there from the beginning to the end."""
    rng = Random(seed)
    lateness = rng.choice((0, 0, 700))
    pool = [*draw.pool(rng, rng.choice((3, 6, 10)), (P, P, Q, N, A)), (NODES[0], Q, NODES[1])]
    said = {
        RDF_STREAMS[0]: draw.elements(rng, pool, rng.choice((4, 8, 12)), lateness, False),
        RDF_STREAMS[1]: draw.elements(rng, pool, 0, lateness, False),
    }
    coming = tuple(
        Coming(asked(rng, kind, f"{kind}{i}")) for kind in KINDS for i in range(EACH)
    )  # fmt: skip
    mode = rng.choice(("exact", "relax"))
    how = tuple(Running(mode, rng.choice((1, 2)), live=True) for _ in range(4))
    graphs = [{"": (), "http://e/g": ()}] * 3
    return Case(seed, said, graphs, coming, how, lateness)


def rows_of(case: Case) -> tuple[int, ...]:
    """How many elements an epoch has, in each run of a case."""
    return (*ROWS, Random(case.seed).randrange(4, 12))


def difference(case: Case) -> str:
    """What is said otherwise under some cut, than by the oracle or under another cut."""
    right = expected(case)
    first: Mapping[str, Mapping[int, Report]] | None = None
    for rows in rows_of(case):
        ran = run(replace(case, epoch_rows=rows))
        found = differences(case, right, ran.reports, ran.suspended)
        if found:
            return f"{rows} elements an epoch: {found}"
        if first is not None and first != ran.reports:
            return f"{rows} elements an epoch: {ran.reports}, and with {ROWS[0]}: {first}"
        first = ran.reports
    return ""


def told(case: Case) -> int:
    """How many reports are right."""
    return sum(len(own.reports) for own in expected(case).values() if own is not None)


def cases(random_seed: int) -> Iterator[Case]:
    """So many cases that say something; ``LEVADA_CASE``: that one, whatever it says."""
    if "LEVADA_CASE" in os.environ:
        yield drawn(int(os.environ["LEVADA_CASE"]))
        return
    saying = (case for case in map(drawn, count(random_seed * draw.MILLION)) if told(case) > 5)
    yield from islice(saying, -(-CASES // 20) or FEW)


def test_where_epochs_cut_a_stream_changes_nothing(random_seed: int) -> None:
    for case in cases(random_seed):
        if found := difference(case):
            judge.fail(case.seed, case, found, difference)

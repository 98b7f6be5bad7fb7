"""A case that differs, made small: queries, elements and ways to run it are left out as long as
something differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from oracle.case import PHASES, Case, Coming
from oracle.queries import Query
from oracle.texts import name


def smaller(case: Case, fails: Callable[[Case], bool], tries: int = 200) -> Case:
    """A case that still fails, of which nothing more can be left out, or not in so many tries."""
    while tries > 0:
        for less in _less(case):
            tries -= 1
            if fails(less):
                case = less
                break
            if tries <= 0:
                break
        else:
            return case
    return case


def _less(case: Case) -> Iterator[Case]:
    """Cases with something less: halves before single things."""
    yield from _fewer_queries(case)
    yield from _plainer(case)
    yield from _fewer_elements(case)


def _fewer_queries(case: Case) -> Iterator[Case]:
    n, size = len(case.coming), len(case.coming) // 2
    while size:
        for at in range(0, n, size):
            kept = (*case.coming[:at], *case.coming[at + size :])
            read = {s for c in kept for s in c.query.streams}
            there = {name(c.query) for c in kept if isinstance(c.query, Query)} | {*case.streams}
            if kept and read <= there:
                yield replace(case, coming=kept)
        size //= 2


def _plainer(case: Case) -> Iterator[Case]:
    """Fewer moves, deaths, partitions, replacements; queries that are always there."""
    if case.lot is not None:
        yield replace(case, lot=None)
    if case.orders is not None:
        yield replace(case, orders=None)
    if case.epoch_rows < 1000:
        yield replace(case, epoch_rows=1000)
    if len(set(map(str, case.graphs))) > 1:
        yield replace(case, graphs=[case.graphs[0]] * len(case.graphs))
    for i, how in enumerate(case.running):
        for plain in (replace(how, dies=()), replace(how, stops=1000),
                      replace(how, partitions=1), replace(how, again=False)):  # fmt: skip
            if plain != how:
                yield replace(case, running=(*case.running[:i], plain, *case.running[i + 1 :]))
    alone = tuple(map(_rowless, case.coming))
    if alone != case.coming:
        yield replace(case, coming=alone)
    for i, one in enumerate(case.coming):
        if (one.comes, one.goes) != (0, PHASES):
            always = replace(one, comes=0, goes=PHASES)
            yield replace(case, coming=(*case.coming[:i], always, *case.coming[i + 1 :]))


def _rowless(one: Coming) -> Coming:
    """A query that comes by itself and not as the row of a table."""
    query = one.query
    return replace(one, query=replace(query, row=None)) if isinstance(query, Query) else one


def _fewer_elements(case: Case) -> Iterator[Case]:
    for stream, parts in case.streams.items():
        for i, part in enumerate(parts):
            size = len(part)
            while size:
                for at in range(0, len(part), size):
                    left = [*part[:at], *part[at + size :]]
                    own = [*parts[:i], left, *parts[i + 1 :]]
                    yield replace(case, streams={**case.streams, stream: own})
                size //= 2

"""Cases by lot: a query, its mutations, streams of few triples told again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import TypeVar

from second import draw_cql
from second.case import PHASES, Case, Coming, Running, Said, expected
from second.cql import SCHEMAS, Relation
from second.draw_query import join, made, query
from second.mutate import mutated
from second.queries import RDF_STREAMS, Query
from second.reports import Graphs
from second.solve import Three
from second.texts import name
from second.words import NODES, OBJECTS, D, F, G, K, M, N, P, Q, R

MILLION = 1_000_000
SIZES = (2, 2, 3, 3, 4, 4, 5, 6, 8, 10, 14, 24)  # of sets of queries
MODES = ("off", "exact", "containment", "relax", "relax", "relax")


def elements(
    rng: Random, pool: Sequence[object], n: int, lateness: int, late: bool
) -> list[list[Said]]:
    """What a stream says in each phase: few triples, told again, disordered within the lateness."""
    times, ts = list[int](), rng.choice((0, 100, 900))
    for _ in range(n):
        ts += rng.choice((0, 0, 0, 1, 50, 100, 100, 200, 300, 500, 1000))
        if rng.random() < 0.03:
            ts += rng.choice((7000, 20_000))
        times.append(ts)
    cuts = sorted(rng.randrange(n + 1) for _ in range(PHASES - 1))
    found, top = [], 0
    for low, high in zip([0, *cuts], [*cuts, n], strict=True):
        part = list[Said]()
        least = max((ts for own in found for ts, _ in own), default=0) - lateness
        for at in times[low:high]:
            top = max(top, at)
            moved = max(at - rng.randrange(lateness + 1), top - lateness, 0) if lateness else at
            if late and rng.random() < 0.1 and least > 100:
                moved = rng.randrange(least)
            part.append((moved, rng.choice(pool)))
            if rng.random() < 0.1:
                part.append(part[-1])
        found.append(part)
    return found


def pool(rng: Random, n: int, predicates: Sequence[str]) -> list[Three]:
    """The triples of a stream, or of a graph."""
    return [
        (rng.choice(NODES[:3]), p, rng.choice(OBJECTS[p]))
        for p in (rng.choice(predicates) for _ in range(n))
    ]


def graphs(rng: Random) -> list[Graphs]:
    """Static data, in each phase."""

    def one() -> Graphs:
        return {"": tuple(set(pool(rng, 9, (K, K, F, F, Q)))), G: tuple(set(pool(rng, 6, (K, F))))}

    found = [one()]
    changing = rng.random() < 0.3
    for _ in range(PHASES - 1):
        found.append(
            {**found[-1], rng.choice(("", G)): one()[""]}
            if changing and rng.random() < 0.7
            else found[-1]
        )
    return found


One = TypeVar("One", Query, Relation)


def own(one: Query) -> bool:
    """Whether it reads what comes from outside alone."""
    return all(stream in RDF_STREAMS for stream in one.streams)


def tried(rng: Random, world: Case, make: Callable[[], One], tries: int) -> One:
    """A query that says something, if one is found in so many tries."""
    for _ in range(tries):
        found = make()
        right = expected(replace(world, coming=(Coming(found),)))[found.name]
        if (
            right is not None
            and sum(
                len(r.rows) + len(r.graph) + (r.answer is not None) for r in right.reports.values()
            )
            > 2
        ):
            break
    return found


def queries(rng: Random, n: int, world: Case) -> list[Query]:
    """A set: mutations of few queries, some of which read what others make."""
    found = list[Query]()
    joins = rng.random() < 0.5
    bases = [
        tried(
            rng,
            world,
            partial(join, rng, RDF_STREAMS) if joins else partial(query, rng, 0, RDF_STREAMS),
            40,
        )
        for _ in range(rng.choice((1, 1, 2)))
    ]
    makers, near = rng.random() < (0.1 if joins else 0.3), rng.random() < (0.7 if joins else 0.3)
    while len(found) < n:
        number = len(found)
        base = rng.choice([*bases, *bases, *[f for f in found[-3:] if own(f) and not near]])
        one = (
            tried(rng, world, partial(mutated, rng, near, base), 4) if rng.random() < 0.9 else base
        )
        if makers and rng.random() < 0.3 and one.form == "select":
            one = made(rng, one)
        elif rng.random() < 0.03:
            one = query(rng, 0, RDF_STREAMS)
        if makers and rng.random() < 0.3:
            one = reading(rng, one, [f for f in found if f.form == "construct"])
        found.append(replace(one, name=f"q{number}"))
    return found


def reading(rng: Random, one: Query, makers: Sequence[Query]) -> Query:
    """A query that reads a stream of another one."""
    if not makers:
        return one
    windows = list(one.windows)
    at = rng.randrange(len(windows))
    windows[at] = (windows[at][0], replace(windows[at][1], stream=name(rng.choice(makers))))
    return replace(one, windows=tuple(windows))


def options(rng: Random) -> dict[str, object]:
    """What an engine takes beside."""
    found: dict[str, object] = {"join": rng.choice(("binary", "binary", "multiway", "replicated"))}
    if rng.random() < 0.2:
        found["share_limit"] = rng.choice((1, 8, 30))
    if rng.random() < 0.15:
        found["memory"] = "8MB,theta=4096"
    if rng.random() < 0.06:
        found["max_rows"] = rng.choice((20, 60))
    return found


def comings(rng: Random, found: Sequence[Query | Relation], world: Case) -> tuple[Coming, ...]:
    """When they come and go; who makes a stream is there while it is read."""
    times: dict[str, tuple[int, int]] = {}
    for one in found:
        comes = rng.choice((0, 0, 0, *range(1, PHASES)))
        times[one.name] = (comes, rng.choice((PHASES, PHASES, *range(comes + 1, PHASES))))
    for one in reversed(found):
        for stream in one.streams:
            maker = stream.rpartition("/")[2]
            if maker in times:
                comes, goes = times[one.name]
                there = times[maker]
                times[maker] = (min(comes, there[0]), max(goes, there[1]))
    asked = []
    for one in found:
        comes, goes = times[one.name]
        seen = max(world.seen(s, comes) for s in world.streams)
        ends = one.until is not None and one.until <= max(seen, one.t0 or 0)
        asked.append(Coming(replace(one, until=None) if ends else one, comes, goes))
    return tuple(asked)


def running(rng: Random, short: bool) -> tuple[Running, ...]:
    """How each phase is run."""
    modes = [rng.choice(MODES)] * (PHASES + 1)
    if rng.random() < 0.25:
        modes = [rng.choice(MODES) for _ in range(PHASES + 1)]
    found, before, plain = [], "", short or rng.random() < 0.5  # one engine
    for phase, mode in enumerate(modes):
        live = plain or rng.random() < 0.6
        again = mode != before or (not plain and rng.random() < 0.2)
        dies = tuple(
            (rng.randrange(1, 9), rng.random() < 0.5) for _ in range(rng.choice((0, 0, 1, 2)))
        )
        partitions = rng.choice((None, 1, 2, 3, 4)) if phase else rng.randrange(1, 5)
        stops, together = rng.choice((2, 4, 1000, 1000)), rng.random() < 0.6
        found.append(Running(mode, partitions, again, live, stops, dies, together))
        before = mode
    return tuple(found)


def case(seed: int) -> Case:
    """The case of a seed; one in four is CQL. The first hundred of each million are short."""
    rng, short = Random(seed), seed % MILLION < 100
    of = rng.choice(SIZES[:6] if short else SIZES)
    lateness = rng.choice((0, 0, 0, 700, 1500))
    late = rng.random() < 0.2
    n = rng.choice((6, 12, 20) if short else (6, 12, 20, 30, 40))
    cql = rng.random() < 0.25
    ties = rng.random() < 0.5
    said = {}
    for stream in SCHEMAS if cql else RDF_STREAMS:
        if cql:
            own: list[object] = [draw_cql.row(rng, stream) for _ in range(rng.choice((5, 10, 40)))]
        else:
            predicates = [P, P, Q, Q, *rng.sample((R, D, M, N), rng.randrange(4))]
            own = [*pool(rng, rng.choice((4, 8, 14)), predicates)]
        said[stream] = elements(rng, own, n, lateness, late)
    if cql and not ties:
        said = {stream: apart(parts) for stream, parts in said.items()}
    world = Case(
        seed, said, graphs(rng), (), running(rng, short), lateness,
        rng.choice((None, rng.randrange(1 << 30))), rng.choice((1, 4, 9, 9, 20, 20, 1000)),
    )  # fmt: skip
    found = relations(rng, of, world, ties) if cql else queries(rng, of, world)
    return replace(world, coming=comings(rng, found, world), options=options(rng))


def apart(parts: Sequence[Sequence[Said]]) -> list[list[Said]]:
    """No two at one time: what is said twice at one is left out."""
    seen, found = set[int](), []
    for part in parts:
        own: dict[int, object] = {}
        for ts, said in part:
            if ts not in seen:
                own.setdefault(ts, said)
        found.append([*own.items()])
        seen.update(own)
    return found


def relations(rng: Random, n: int, world: Case, ties: bool) -> list[Relation]:
    """A set in CQL."""
    found = list[Relation]()
    base = tried(rng, world, lambda: draw_cql.relation(rng, ties), 40)
    while len(found) < n:
        of = rng.choice([base, *found[-3:]])
        one = tried(rng, world, partial(draw_cql.mutated, rng, of, ties), 4)
        if (
            not any(w.kind == "step" for c in one.choices for _, w in c.tables)
            and one.policy == "change"
        ):
            one = replace(one, policy="close")
        found.append(replace(one, name=f"q{len(found)}"))
    return found

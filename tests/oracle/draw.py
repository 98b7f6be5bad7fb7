"""Cases by lot: a query, its mutations, streams of few triples told again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import TypeVar

from levada.plan.sharing.sharing_modes import Sharing
from oracle import draw_cql
from oracle import draw_sets as sets
from oracle.case import PHASES, Case, Coming, Running, Said, expected
from oracle.cql import SCHEMAS, Relation
from oracle.draw_query import join, made, query
from oracle.draw_sets import Draw
from oracle.mutate import mutated
from oracle.queries import RDF_STREAMS, Query
from oracle.reports import Graphs
from oracle.solve import Three
from oracle.texts import name
from oracle.words import NODES, OBJECTS, A, D, F, G, K, M, N, P, Q, R

MILLION = 1_000_000
SIZES = (4, 6, 8, 8, 10, 12, 14, 20)  # of sets of queries
SHORT = (3, 4, 4, 5)
MODES = ("off", *["exact"] * 7, *[Sharing.CONTAINMENT] * 3, *["relax"] * 9)


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
    changing = rng.random() < 0.15
    for _ in range(PHASES - 1):
        found.append(
            {**found[-1], rng.choice(("", G)): one()[""]}
            if changing and rng.random() < 0.7
            else found[-1]
        )
    return found


One = TypeVar("One", Query, Relation)


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


def queries(rng: Random, n: int, world: Case, kinds: Sequence[Draw | None]) -> list[Query]:
    """A set: of each kind some, which have much in common; some read what others make."""
    found, low = list[Query](), 0
    for i, draw in enumerate(kinds, 1):
        high = n * i // len(kinds)
        found += draw(rng, high - low) if draw else anything(rng, high - low, world)
        low = high
    return [replace(one, name=f"q{i}") for i, one in enumerate(rng.sample(found, n))]


def chained(rng: Random, found: list[Query]) -> list[Query]:
    """The same, of which some make streams and some read these."""
    plain = [i for i, q in enumerate(found) if q.form == "select" and q.row is None]
    for i in plain[: max(1, len(plain) // 3)]:
        found[i] = made(rng, found[i])
    for i in plain[max(1, len(plain) // 3) :]:
        if rng.random() < 0.5:
            makers = [f for f in found[:i] if f.form == "construct"]
            found[i] = reading(rng, found[i], makers)
    return found


def anything(rng: Random, n: int, world: Case) -> list[Query]:
    """Mutations of few queries."""
    found = list[Query]()
    joins = rng.random() < 0.5
    bases = [
        tried(
            rng,
            world,
            partial(join, rng, RDF_STREAMS) if joins else partial(query, rng, 0, RDF_STREAMS),
            12,
        )
        for _ in range(rng.choice((1, 1, 2)))
    ]
    near = rng.random() < (0.7 if joins else 0.3)
    while len(found) < n:
        base = rng.choice([*bases, *bases, *([] if near else found[-3:])])
        one = (
            tried(rng, world, partial(mutated, rng, near, base), 4) if rng.random() < 0.9 else base
        )
        if rng.random() < 0.03:
            one = query(rng, 0, RDF_STREAMS)
        found.append(replace(one, name=f"q{len(found)}"))
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
    forms = ("binary", "binary", "binary", "binary", "multiway", "replicated")
    found: dict[str, object] = {"join": rng.choice(forms)}
    if rng.random() < 0.15:
        found["memory"] = "8MB,theta=4096"
    if rng.random() < 0.06:
        found["max_rows"] = rng.choice((20, 60))
    return found


def comings(rng: Random, found: Sequence[Query | Relation], world: Case) -> tuple[Coming, ...]:
    """When they come and go; who makes a stream is there while it is read."""
    times: dict[str, tuple[int, int]] = {}
    tables: dict[str, int] = {}
    for one in found:
        comes = rng.choice((0, 0, 0, *range(1, PHASES)))
        if isinstance(one, Query) and one.row is not None:
            comes = tables.setdefault(one.row.table, comes)
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


def running(rng: Random, short: bool, mode: str) -> tuple[Running, ...]:
    """How each phase is run: mostly in one mode."""
    modes = [mode] * (PHASES + 1)
    if rng.random() < 0.15:
        modes = [rng.choice(MODES) for _ in range(PHASES + 1)]
    found, before, plain = [], "", short or rng.random() < 0.5  # one engine
    for phase, mode in enumerate(modes):
        live = plain or rng.random() < 0.6
        again = mode != before or (not plain and rng.random() < 0.2)
        dies = tuple(
            (rng.randrange(1, 9), rng.random() < 0.5) for _ in range(rng.choice((0, 0, 1, 2)))
        )
        partitions = rng.choice((None, 1, 2, 3, 4)) if phase else rng.choice((1, 2, 2, 3, 4))
        stops, together = rng.choice((2, 4, 1000, 1000)), rng.random() < 0.6
        found.append(Running(mode, partitions, again, live, stops, dies, together))
        before = mode
    return tuple(found)


KINDS: dict[str, tuple[Draw | None, ...]] = {
    "off": (None, sets.sides, sets.traps),
    "exact": (sets.sides, sets.chains, sets.rights, sets.traps, sets.tabled, None),
    Sharing.CONTAINMENT: (sets.relaxed, sets.rights, sets.traps, None),
    "relax": (sets.relaxed, sets.divided, sets.thresholds, sets.numbered, sets.rights, sets.traps,
              sets.tabled, None),
}  # fmt: skip
"""What is drawn in which mode; None: anything."""


FIRST: tuple[tuple[str, Draw | None], ...] = (
    ("exact", sets.sides), (Sharing.CONTAINMENT, sets.relaxed), ("relax", sets.relaxed),
    ("relax", sets.thresholds), ("relax", sets.numbered), ("", sets.rights),
    ("exact", sets.chains), ("", sets.tabled), ("relax", sets.divided), ("", None), ("", None),
)  # fmt: skip
"""What one case of eleven has in any way; the last but one has streams that are made, the last
CQL.
"""
MADE, CQL = 9, 10


def kinds(rng: Random, mode: str, n: int, first: Draw | None) -> list[Draw | None]:
    """Of one kind, or of two or three if there are many queries."""
    others = [draw for draw in KINDS[mode] if draw is not first]
    return [first, *rng.sample(others, 0 if n < 6 else 1 if n < 12 else 2)]


def case(seed: int) -> Case:
    """The case of a seed. The first hundred of each million are short."""
    rng, short, spot = Random(seed), seed % MILLION < 100, seed % len(FIRST)
    of = rng.choice(SHORT if short else SIZES)
    lateness = rng.choice((0, 0, 0, 700, 1500))
    late = rng.random() < 0.2
    mode, first = FIRST[spot]
    mode = mode or rng.choice(MODES)
    drawn = kinds(rng, mode, of, first or rng.choice(KINDS[mode]))
    chains, cql = sets.chains in drawn, spot == CQL
    n = rng.choice((6, 12, 20) if short and not chains else (20, 20, 30, 40))
    ties = rng.random() < 0.5
    said = {}
    for stream in SCHEMAS if cql else RDF_STREAMS:
        if cql:
            own: list[object] = [draw_cql.row(rng, stream) for _ in range(rng.choice((5, 10, 40)))]
        else:
            predicates = [P, P, Q, Q, *rng.sample((R, D, M, N, A), rng.randrange(4))]
            predicates += [A, A] * (sets.traps in drawn)
            own = [*pool(rng, rng.choice((6, 10, 16)), predicates)]
        said[stream] = elements(rng, own, n, lateness, late)
    if cql and not ties:
        said = {stream: apart(parts) for stream, parts in said.items()}
    world = Case(
        seed, said, graphs(rng), (), running(rng, short, mode), lateness,
        lot=rng.choice((None, *[rng.randrange(1 << 30)] * 2)),
        epoch_rows=rng.choice((1, 4, 9, 9, 20, 20, 1000)),
    )  # fmt: skip
    asked = comings(rng, relations(rng, of, world, ties), world) if cql else ()
    if not cql:
        found = queries(rng, of, world, drawn)
        chain = spot == MADE or rng.random() < 0.05
        asked = comings(rng, chained(rng, found) if chain else found, world)
    how = options(rng)
    if chains:
        how["join"] = "binary"
        orders = (rng.randrange(100), rng.randrange(1, 3))
        world = replace(world, orders=orders, epoch_rows=rng.choice((1, 2, 4)))
    return replace(world, coming=asked, options=how)


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
    base = tried(rng, world, lambda: draw_cql.relation(rng, ties), 12)
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

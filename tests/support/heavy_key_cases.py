"""Heavy keys by lot: which groups are divided, and among whom, at each epoch of a run; and cases of
joins that may divide them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyoxigraph as ox
from hypothesis import strategies as st

from levada.core.key_groups import group_of
from levada.errors import UsageError
from levada.plan.execution.key_group_table import (
    Division,
    GroupTable,
    SplitKeyGroup,
    deal_round_robin,
    divide_groups,
)
from levada.testing.reference_model import Element
from support.generators import Case, Clause, elements
from support.generators.vocabulary import STATIC
from support.query_dsl import S, T, query

MOST = 4  # partitions
CLAUSES = (
    Clause("step", 4000, 1000),
    Clause("range", 3000),
    Clause("step", 2000, 2000),
    Clause("range", 10_000),
    Clause("step", 10_000, 3000),
    Clause("all"),
)
BODIES = (
    ("?a ?b ?n", "WINDOW :w { ?a :q ?b } WINDOW :v { ?b :p ?n }"),
    ("?a ?n", "WINDOW :w { ?a :q ?b } WINDOW :v { ?b :p ?n }"),
    ("?a ?b ?c", "WINDOW :w { ?a :q ?b } WINDOW :v { ?b :q ?c }"),
    ("?a ?c ?n", "WINDOW :w { ?a :q ?b . ?b :q ?c } WINDOW :v { ?c :p ?n }"),
    ("?a ?c", "WINDOW :w { ?a :q ?b . ?b :q ?c . ?c :q ?a }"),
    ("?a ?b ?n", "WINDOW :w { ?a :q ?b . ?b :p ?n FILTER(?n > 2) }"),
    ("?a ?k ?n", "WINDOW :w { ?a :q ?b . ?b :p ?n } ?a :kind ?k"),
    ("?n (COUNT(*) AS ?c)", "WINDOW :w { ?a :q ?b } WINDOW :v { ?b :p ?n }"),
)


@st.composite
def joined(draw: st.DrawFn) -> Case:
    """One to three joins of two streams in which triples are repeated."""
    late = draw(st.sampled_from((0, 0, 1500)))
    streams = {name: draw(elements(lateness=late, least=6)) for name in (S, T)}
    asked = []
    for i in range(draw(st.integers(1, 3))):
        shown, body = draw(st.sampled_from(BODIES))
        own, other = draw(st.sampled_from(CLAUSES)), draw(st.sampled_from(CLAUSES))
        windows: dict[str, Clause | tuple[str, Clause]] = {"w": (S, own)}
        if ":v" in body:
            windows["v"] = (draw(st.sampled_from((S, T))), other)
        out = draw(st.sampled_from(("RSTREAM", "RSTREAM", "ISTREAM", "DSTREAM")))
        tail = " GROUP BY ?n" if "COUNT" in shown else ""
        asked.append(
            query(f"SELECT {shown}", body, tail, windows=windows, output=out, name=f"q{i}")
        )
    return Case(streams, tuple(asked), late, STATIC)


def groups_of(case: Case) -> tuple[int, ...]:
    """The groups of all terms of a case."""
    found: set[int] = set()
    graphs = [*case.static.values(), *(t for _, g in case.replaced for t in g.values())]
    for triples in graphs:
        found |= _of_triples(triples)
    for stream in case.streams.values():
        for element in stream:
            if isinstance(element, Element):
                found |= _of_triples(element.triples)
            else:
                found |= {_of(v) for v in element.values if v is not None}
    return tuple(sorted(found - {-1}))


def _of_triples(triples: Sequence[str]) -> set[int]:
    text = "".join(f"{t} .\n" for t in triples)
    terms = [x for q in ox.parse(text, format=ox.RdfFormat.N_QUADS) for x in (q.subject, q.object)]
    return {_of(str(t)) for t in terms if isinstance(t, ox.NamedNode | ox.Literal)}


def _of(value: str | float | bool) -> int:
    try:
        return group_of(value)
    except UsageError:
        try:
            return group_of(f'"{value}"')
        except UsageError:
            return -1


@dataclass(frozen=True)
class Lots:
    """Before each epoch nothing changes, or groups move, or some of ``groups`` are divided, some
    stay so, some are whole again, by lot.
    """

    seed: int
    groups: tuple[int, ...]

    def deal(self, epoch: int, table: GroupTable) -> GroupTable | None:
        """As ``Dealing``."""
        rng = np.random.default_rng((self.seed, epoch))
        if rng.random() < 0.3:
            return None
        base = self._moved(rng, table)
        heavy = self._heavy(rng, base, table.division)
        return divide_groups(base, Division(heavy, table.division.joins))

    def _moved(self, rng: np.random.Generator, table: GroupTable) -> GroupTable:
        parts = int(rng.choice((table.partitions, table.partitions, *range(1, MOST + 1))))
        to = table.partition.astype(np.int32)
        moved = (rng.random(table.groups) < rng.choice((0.0, 0.0, 0.01, 0.5, 1.0))) | (to >= parts)
        to[moved] = rng.integers(0, rng.integers(1, parts + 1), np.count_nonzero(moved))
        other = np.flatnonzero(to != deal_round_robin(table.groups, parts).partition).astype(
            np.int32
        )
        return GroupTable(1, table.groups, parts, other, to[other])

    def _heavy(
        self, rng: np.random.Generator, table: GroupTable, before: Division
    ) -> tuple[SplitKeyGroup, ...]:
        if table.partitions == 1 or rng.random() < 0.15:
            return ()
        stays = rng.random()
        found = {
            h.group: h
            for h in before.heavy
            if h.parts[0] == table.partition[h.group]
            and max(h.parts) < table.partitions
            and rng.random() < stays
        }
        share = rng.choice((0.1, 0.5, 1.0))
        for group in self.groups:
            if group not in found and rng.random() < share:
                home = int(table.partition[group])
                others = [p for p in range(table.partitions) if p != home]
                some = rng.permutation(others)[: rng.integers(1, len(others) + 1)]
                found[group] = SplitKeyGroup(group, (home, *some.tolist()))
        return tuple(found[g] for g in sorted(found))

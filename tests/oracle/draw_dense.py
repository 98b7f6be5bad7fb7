"""Sets by lot that share one join: under windows of other ranges, steps and beginnings, in one
window here and in two or three there, with lists of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from levada.plan.sharing.sharing_modes import Sharing
from oracle import draw
from oracle.case import PHASES, Case, Coming, Running, Said
from oracle.cql import SCHEMAS, Relation
from oracle.draw_lists import Lists
from oracle.draw_query import aggregate, made
from oracle.draw_tables import LENGTHS, relations, row
from oracle.queries import (
    RDF_STREAMS,
    Call,
    Exists,
    Filter,
    Group,
    In,
    Item,
    Minus,
    Optional,
    Part,
    Query,
    Select,
    Triple,
    Window,
)
from oracle.words import NODES, Q, R, variables

STREAM = RDF_STREAMS[0]
J = "<http://e/j>"
J1, J2, Q1, Q2 = (Triple("?x", J, "?j"), Triple("?y", J, "?i"), Triple("?x", Q, "?y"),
                  Triple("?y", Q, "?z"))  # fmt: skip
PATTERNS: tuple[tuple[Triple, ...], ...] = (
    (J1, Q1), (J1, Q1), (J1, Q1), (Q1, Triple("?y", J, "?j")), (J1, Q1, J2), (J1, Q1, Q2),
    (J1, Q1, Triple("?y", J, "?j")), (J1, Triple("?x", Q, NODES[0])),
)  # fmt: skip
KINDS = ("ranges", "divided", "lists", "all", "relax", "tuples", "all", "ranges")
"""What one case of eight has most of."""
SIZES = (4, 6, 8, 8, 10, 12)


SHARES = {
    "ranges": (0.0, 0.9, 0.1, 0.02), "divided": (0.6, 0.5, 0.6, 0.4), "all": (0.4, 0.6, 0.85, 0.7),
    "lists": (0.05, 0.4, 1.0, 0.95), "relax": (0.1, 0.5, 1.0, 0.95), "tuples": (0.0, 0.0, 0.0, 0.0),
}  # fmt: skip
"""How often patterns are in several windows, IStreams, under conditions, with other constants."""


class World:
    """What the queries of a set have in common: one form or two, of which each has its own
    windows, constants, and ways to divide its patterns among windows. ``noise``: how often one is
    otherwise.
    """

    def __init__(self, rng: Random, kind: str) -> None:
        self.rng, self.kind = rng, kind
        self.patterns = rng.choice(PATTERNS)
        names = variables(self.patterns)
        self.lists = Lists(rng, [n for n in ("?j", "?i") if n in names])
        self.step = rng.choice((0, 0, 500, 1000, 1000, 2000))
        self.lengths = self.some_lengths(kind == "ranges" or rng.random() < 0.4)
        self.t0 = rng.choice((None, None, None, None, 0, 300, 1000))
        self.bounds = rng.choice(("[)", "[)", "(]"))
        self.policy: str | int = rng.choice(("close", "close", "close", "close", "change", 700))
        if kind == "ranges":
            self.t0, self.policy = None, "close"
        self.noise = rng.choice((0.0, 0.02, 0.02, 0.1))
        self.divides, self.istreams, self.listed, self.other = SHARES[kind]
        many = 1 if kind == "ranges" else rng.choice((1, 1, 2))
        self.forms = [rng.randrange(1 << 30) for _ in range(many)]
        self.form = rng
        """What says how a query is made, which is the same for all of its form."""

    def some_lengths(self, alike: bool) -> list[int]:
        """Ranges of the set; ``alike``: whose windows close at the same instants."""
        rng, many = self.rng, self.rng.choice((3, 5, 7))
        if not self.step or not alike:
            return rng.sample(LENGTHS, many)
        first = rng.choice((0, 0, 250, 500, 999)) % self.step
        return [a for k in rng.sample(range(9), many) if (a := first + k * self.step)]

    def odd(self, often: float = 1.0) -> bool:
        """Whether something is otherwise."""
        return self.rng.random() < self.noise * often

    def window(self) -> Window:
        """Mostly one of the set's lengths with its step."""
        rng, a = self.rng, self.rng.choice(self.lengths)
        own = Window(STREAM, "step", a=a, b=self.step) if self.step else Window(STREAM, "range", a)
        if self.odd(2.0):
            b = rng.choice((500, 700, 1000, 5000))
            own = rng.choice((
                Window(STREAM, "range", a=a), Window(STREAM, "step", a=a, b=b),
                Window(STREAM, "now"), Window(STREAM, "all"), Window(STREAM, "triples", n=5),
                Window(STREAM, "past", a=a + 500, e=500), Window(STREAM, "session", a=900),
                Window(STREAM, "paststep", a=a + 500, e=500, b=b),
                Window(STREAM, "elements", n=6, m=2), Window(STREAM, "step", a=a, b=a),
            ))  # fmt: skip
        return own

    def query(self) -> Query:
        rng = self.rng
        self.form = Random(rng.random() if self.odd() else rng.choice(self.forms))
        self.lists.form = self.form
        self.lists.rng = rng if rng.random() < self.other else self.form
        windows, group = self.where(self.constants())
        group = (*group, *self.more([n for n, _ in windows]))
        found = Query("q0", windows, self.select(group), output=self.output())
        found = replace(found, t0=self.t0, bounds=self.bounds, policy=self.policy)
        if self.odd():
            found = replace(
                found, policy=rng.choice(("close", "change", 700)), bounds=rng.choice(("[)", "(]")),
                t0=rng.choice((None, 0, 300, 1700)), nonempty=rng.random() < 0.3,
                until=rng.choice((None, None, 2500, 6000)),
            )  # fmt: skip
        elif self.odd() and found.policy == "close":
            found = replace(found, empty=True)
        if self.odd(2.0):
            found = replace(made(rng, found), policy=found.policy)
        elif self.odd():
            select = Select((), found.select.parts)
            found = replace(found, form="ask", select=select, empty=False)
        return found

    def constants(self) -> tuple[Triple, ...]:
        """The patterns; a constant in the place of some variable in some."""
        form, found = self.form, list(self.patterns)
        if form.random() < (0.04 if self.kind == "ranges" else 0.15):
            at, place = form.randrange(len(found)), form.choice("so")
            of_list = found[at].p == J and place == "o"
            term = self.lists.term() if of_list else self.lists.rng.choice(NODES[:2])
            found[at] = replace(found[at], **{place: term})
        return tuple(found)

    def where(self, patterns: Sequence[Triple]) -> tuple[tuple[tuple[str, Window], ...], Group]:
        """Windows, patterns in one or in several, and conditions within or outside."""
        form, names = self.form, ["w"] * len(patterns)
        if self.rng.random() < self.divides:
            names = [self.rng.choice(("w", "w2", "w3")) for _ in patterns]
        windows = tuple((n, self.window()) for n in dict.fromkeys(names))
        parts: list[list[Part]] = [
            [p for p, own in zip(patterns, names, strict=True) if own == n] for n, _ in windows
        ]
        outside: list[Part] = []
        condition = self.lists.condition() if form.random() < self.listed else None
        if condition is not None:
            (parts[0] if form.random() < 0.4 else outside).append(Filter(condition))
        if self.odd(3.0):
            self.rng.shuffle(parts[0])
        found: list[Part] = [In(n, tuple(own)) for (n, _), own in zip(windows, parts, strict=True)]
        if condition is not None and form.random() < 0.1:
            found, outside = self.optional(found, condition), []
        return windows, (*found, *outside)

    def optional(self, found: list[Part], condition: Call) -> list[Part]:
        """What the condition asks of may have no value, or is optional under it."""
        *others, last = found
        if not others and isinstance(last, In) and isinstance(last.parts[0], Triple):
            rest = tuple(p for p in last.parts[1:] if isinstance(p, Triple)) or (Q1,)
            return [In(last.graph, rest), Optional((In(last.graph, last.parts[:1]),)),
                    Filter(condition)]  # fmt: skip
        return [*others, Optional((last, Filter(condition)))]

    def more(self, windows: Sequence[str]) -> Group:
        """Seldom something above the join."""
        form, window = self.form, self.rng.choice(windows)
        if form.random() > (0.03 if self.kind == "ranges" else 0.08):
            return ()
        inner: Group = (In(window, (form.choice((Triple("?x", R, "?s"), J1, Q1)),)),)
        if form.random() < 0.4:
            inner = (*inner, Filter(self.lists.condition()))
        return (form.choice((Optional(inner), Minus(inner), Exists(inner, form.random() < 0.5))),)

    def select(self, group: Group) -> Select:
        """All names, or some; seldom groups or each once."""
        form, names = self.form, sorted(variables(group))
        if not names:
            return Select((Item("?n", Call("count", ("*",))),), group)
        kind = form.random()
        if kind < (0.03 if self.kind == "ranges" else 0.08):
            return counting(aggregate(form, group, [n for n in names if n in "?x?y?z"] or names))
        if kind >= 0.7:
            names = form.sample(names, form.randrange(1, len(names) + 1))
        return Select(tuple(map(Item, names)), group, distinct=kind > 0.96)

    def output(self) -> str:
        if self.rng.random() < self.istreams:
            return "ISTREAM"
        return self.rng.choice(("RSTREAM", "RSTREAM", "ISTREAM", "DSTREAM"))


def counting(select: Select) -> Select:
    """Counts alone: what is summed up or greatest is judged elsewhere."""
    items = [
        replace(i, value=Call("count", ("*",)))
        if isinstance(i.value, Call) and i.value.op not in ("count", "countd") else i
        for i in select.items
    ]  # fmt: skip
    return replace(select, items=tuple(items))


def elements(rng: Random, pool: Sequence[object], n: int, lateness: int) -> list[list[Said]]:
    """Few triples that come again and again, on the grid of the ranges, so that ends fall on
    beginnings; or at any time.
    """
    if rng.random() < 0.4:
        return draw.elements(rng, pool, n, lateness, rng.random() < 0.1)
    every = rng.choice((250, 250, 500))
    times = sorted(rng.randrange(20) * every for _ in range(n))
    cuts = sorted(rng.randrange(n + 1) for _ in range(PHASES - 1))
    found, top = [], 0
    for low, high in zip([0, *cuts], [*cuts, n], strict=True):
        part = list[Said]()
        for at in times[low:high]:
            top = max(top, at)
            moved = at - rng.choice((0, 0, 250, 500)) if lateness else at
            part.append((max(moved, top - lateness, 0), rng.choice(pool)))
        found.append(part)
    return found


def pool(rng: Random, world: World) -> list[object]:
    """The triples of a stream: half of the values are those of the lists."""
    nodes = NODES[: rng.choice((1, 2, 2, 3))]
    found: list[object] = []
    for _ in range(rng.choice((3, 5, 8))):
        found.append((rng.choice(nodes), J, rng.choice(world.lists.rows)))
        found.append((rng.choice(nodes), Q, rng.choice(nodes)))
    return [*found, (NODES[0], Q, NODES[0]), (NODES[0], R, '"a"')]


MODES = (*["relax"] * 9, "exact", Sharing.CONTAINMENT, "off")


def running(rng: Random, short: bool, kind: str) -> tuple[Running, ...]:
    """How each phase is run: in one mode or in several, in 1, 2 or 5 partitions, with stops and
    crashes.
    """
    found = draw.running(rng, short, _mode(rng, kind))
    of = rng.choice((1, 2, 5))
    return tuple(
        replace(how, partitions=of if rng.random() < 0.8 else rng.choice((None, 1, 2, 5)))
        if i else replace(how, partitions=of)
        for i, how in enumerate(found)
    )  # fmt: skip


def _mode(rng: Random, kind: str) -> str:
    if kind == "relax" or (kind == "ranges" and rng.random() < 0.7):
        return "relax"
    return rng.choice(MODES)


def case(seed: int) -> Case:
    """The case of a seed. The first hundred of each million are short."""
    rng, short = Random(seed), seed % draw.MILLION < 100
    kind = KINDS[seed % len(KINDS)]
    lateness = rng.choice((0, 0, 0, 700))
    n = rng.choice((12, 20) if short else (20, 30, 40))
    of = rng.choice(draw.SHORT if short else SIZES)
    tuples = kind == "tuples"
    world = World(rng, kind)
    said = {}
    for stream in SCHEMAS if tuples else (STREAM,):
        own = [row(rng, stream) for _ in range(12)] if tuples else pool(rng, world)
        said[stream] = elements(rng, own, n, lateness)
    found = Case(
        seed, said, [{"": (), "http://e/g": ()}] * PHASES, (), running(rng, short, kind), lateness,
        lot=rng.choice((None, *[rng.randrange(1 << 30)] * 2)),
        epoch_rows=rng.choice((1, 4, 9, 9, 20, 1000)),
    )  # fmt: skip
    asked: list[Query | Relation] = [*relations(rng, of)] if tuples else []
    while len(asked) < of:
        asked.append(draw.tried(rng, found, world.query, 3))
    named = [replace(one, name=f"q{i}") for i, one in enumerate(asked)]
    coming = draw.comings(rng, named, found)
    return replace(found, coming=settled(rng, coming), options=options(rng))


def options(rng: Random) -> dict[str, object]:
    """What an engine takes beside."""
    found: dict[str, object] = {"join": rng.choice((*["binary"] * 8, "multiway", "replicated"))}
    if rng.random() < 0.15:
        found["memory"] = "8MB,theta=4096"
    if rng.random() < 0.04:
        found["max_rows"] = rng.choice((20, 60))
    return found


def settled(rng: Random, coming: Sequence[Coming]) -> tuple[Coming, ...]:
    """In one of three sets all are there from the beginning to the end."""
    if rng.random() < 0.67:
        return tuple(coming)
    return tuple(replace(one, comes=0, goes=PHASES) for one in coming)

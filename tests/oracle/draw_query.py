"""A SPARQL query by lot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from oracle.queries import (
    Bind,
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
    Sub,
    Triple,
    Union,
    Values,
    Window,
)
from oracle.words import (
    LINKED,
    NODES,
    NUMBERS,
    STATIC,
    G,
    P,
    Q,
    condition,
    integer,
    patterns,
    variables,
)


def window(rng: Random, streams: Sequence[str], dialect: str) -> Window:
    """A window on a stream; most step."""
    stream = rng.choice(streams)
    a, b = rng.choice((1000, 2000, 4000, 6000)), rng.choice((500, 1000, 1000, 2000, 5000))
    e = rng.choice((500, 1000))
    few = rng.choice((2, 3, 5, 8, 12))
    m = few if dialect == "csparql" else rng.choice((1, 2, few, 4))
    return rng.choice((
        *[Window(stream, "step", a=a, b=b)] * 6, *[Window(stream, "range", a=a)] * 3,
        Window(stream, "now"), Window(stream, "all"),
        *([] if dialect == "csparql" else [Window(stream, "triples", n=few)] * 2),
        Window(stream, "elements", n=few, m=m), Window(stream, "session", a=rng.choice((400, 900))),
        *([Window(stream, "past", a=a + e, e=e), Window(stream, "paststep", a=a + e, e=e, b=b)]),
    ))  # fmt: skip


def extra(rng: Random, windows: Sequence[str], names: Sequence[str]) -> Part:
    """One more part of a group: optional, taken off, either, bound, static, a sub-select."""
    inner: Group = (In(rng.choice(windows), patterns(rng, 2)),)
    if rng.random() < 0.35:
        inner = (rng.choice(STATIC),)
    elif rng.random() < 0.15:
        inner = (In(f"<{G}>", (rng.choice(STATIC),)),)
    with_filter = (*inner, Filter(condition(rng, [*names, *variables(inner)])))
    kind = rng.choice((0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9))
    if kind == 0:
        return Optional(with_filter)
    if kind == 1:
        return Optional(inner)
    if kind == 2:
        return Minus(inner)
    if kind in (3, 4):
        own = with_filter if kind == 3 else inner
        return Exists(own, rng.random() < 0.5)
    if kind == 5:
        return Union(inner, (In(rng.choice(windows), patterns(rng, 1)),))
    return _other(rng, kind, inner, names)


def _other(rng: Random, kind: int, inner: Group, names: Sequence[str]) -> Part:
    """A part that binds something by itself."""
    if kind == 6:
        of = rng.choice([*names, "?v"])
        return Bind(
            rng.choice((Call("+", (of, integer(1))), Call("str", (of,)))), f"?b{rng.randrange(999)}"
        )
    if kind == 7:
        one = rng.choice([n for n in names if n in ("?x", "?y", "?v")] or ["?x"])
        return Values(one, tuple(rng.sample(NUMBERS[:5] if one == "?v" else NODES[:3], 2)))
    if kind == 8:
        shown = rng.choice(variables(inner) or ["?x"])
        return Sub(_counted(inner, shown) if rng.random() < 0.5 else
                   Select((Item(shown),), inner, distinct=True))  # fmt: skip
    return inner[0]


def _counted(inner: Group, shown: str) -> Select:
    return Select((Item(shown), Item("?c", Call("count", ("*",)))), inner, group=(shown,))


def select(rng: Random, parts: Group) -> Select:
    """What is shown: variables, all of them, or aggregates."""
    names = [n for n in variables(parts) if n != "?pp"] or ["?x"]
    kind = rng.random()
    if kind < 0.3:
        return aggregate(rng, parts, names)
    shown = names if kind < 0.6 else rng.sample(names, rng.randrange(1, len(names) + 1))
    items = tuple(Item(n) for n in shown)
    if rng.random() < 0.1:
        items = (*items, Item("?e", Call("+", (rng.choice(names), integer(1)))))
    found = Select(items, parts, distinct=rng.random() < 0.2)
    single = not {"?m", "?o", "?e", "?c", "?h"} & {i.name[:2] for i in items}
    if single and rng.random() < 0.2:
        order = tuple((i.name, rng.random() < 0.5) for i in items)
        limit = rng.choice((None, 1, 2, 3))
        return replace(found, order=order, limit=limit)
    return found


def aggregate(rng: Random, parts: Group, names: Sequence[str]) -> Select:
    """Groups, or one of all."""
    group = tuple(rng.sample(list(names), rng.choice((0, 1, 1, min(2, len(names))))))
    of = rng.choice([n for n in names if n in ("?v", "?u", "?f", "?s", "?m")] or ["?x"])
    items = [Item(n) for n in group]
    for i in range(rng.randrange(1, 3)):
        op = rng.choice(("count", "count", "countd", "sum", "avg", "min", "max"))
        if op in ("min", "max") and of in ("?m", "?x"):
            op = "count"
        alias = {"min": "?lo", "max": "?hi"}.get(op, "?n")
        arg = "*" if op == "count" and rng.random() < 0.5 else of
        items.append(Item(f"{alias}{i if alias == '?n' else ''}", Call(op, (arg,))))
    items = list({i.name: i for i in items}.values())
    having = None
    if rng.random() < 0.2:
        having = Call(rng.choice((">", "<=")), (Call("count", ("*",)), integer(rng.randrange(3))))
    return Select(tuple(items), parts, group=group, having=having)


def query(rng: Random, number: int, streams: Sequence[str]) -> Query:
    """A query from nothing."""
    dialect = rng.choice(("rspql", "rspql", "rspql", "cqels", "csparql"))
    windows = [("w", window(rng, streams, dialect))]
    parts: list[Part] = list(patterns(rng, 3))
    if rng.random() < 0.6:
        parts.append(Filter(condition(rng, variables(tuple(parts)))))
    group: list[Part] = [In("w", tuple(parts))]
    if rng.random() < 0.3:
        windows.append(("w2", window(rng, streams, dialect)))
        group.append(In("w2", patterns(rng, 2)))
    if rng.random() < 0.35:
        group.append(rng.choice(STATIC))
    while rng.random() < 0.3:
        group.append(extra(rng, [n for n, _ in windows], variables(tuple(group))))
    if rng.random() < 0.25:
        group.append(Filter(condition(rng, variables(tuple(group)))))
    if dialect == "csparql" and rng.random() < 0.7:
        group = list(flat(tuple(group)))
    if dialect == "cqels":
        windows = [(n, w) for n, w in windows]
    found = Query(f"q{number}", tuple(windows), select(rng, tuple(group)), dialect=dialect)
    return shaped(rng, found)


def join(rng: Random, streams: Sequence[str]) -> Query:
    """Two or three patterns of a window with a condition: what queries share most."""
    stream, a, b = (
        rng.choice(streams),
        rng.choice((2000, 4000, 6000)),
        rng.choice((500, 1000, 2000)),
    )
    own = Window(stream, "step", a=a, b=b) if rng.random() < 0.7 else Window(stream, "range", a=a)
    parts: list[Part] = []
    while len(parts) < 2:
        parts = [*patterns(rng, 3, LINKED)]
    if rng.random() < 0.8:
        parts.append(Filter(condition(rng, variables(tuple(parts)))))
    shown = tuple(Item(n) for n in variables(tuple(parts)))
    output = rng.choice(("RSTREAM", "RSTREAM", "RSTREAM", "ISTREAM"))
    return Query("q0", (("w", own),), Select(shown, (In("w", tuple(parts)),)), output=output)


def flat(group: Group) -> Group:
    """A group whose patterns stand side by side, as one writes C-SPARQL."""
    return tuple(
        q for p in group for q in (p.parts if isinstance(p, In) and p.graph[0] != "<" else (p,))
    )


def shaped(rng: Random, found: Query) -> Query:
    """A query with options and a form."""
    output = rng.choice(("RSTREAM", "RSTREAM", "RSTREAM", "ISTREAM", "DSTREAM"))
    if found.dialect == "csparql":
        output = "RSTREAM"
    policy: str | int = "change" if found.dialect == "cqels" else "close"
    if rng.random() < 0.25:
        policy = rng.choice(("change", "close", 700, 1500))
    if policy == "close" and not any(
        w.kind in ("step", "paststep", "session") for _, w in found.windows
    ):
        policy = "close" if found.dialect != "cqels" else "change"
    nonempty = rng.random() < 0.1
    until = rng.choice((2500, 6000, 15_000)) if rng.random() < 0.08 else None
    empty = rng.random() < 0.08 and policy == "close" and not nonempty
    t0 = rng.choice((None, None, None, 0, 300, 1700))
    found = replace(
        found, output=output, policy=policy, nonempty=nonempty, t0=t0, until=until, empty=empty
    )
    if rng.random() < 0.1:
        found = replace(found, bounds="(]")
    if rng.random() < 0.06:
        found = replace(
            found,
            form="ask",
            select=replace(
                found.select, items=(), group=(), having=None, order=(), limit=None, distinct=False
            ),
        )
    return found


def made(rng: Random, found: Query) -> Query:
    """A query that makes a stream."""
    names = [n for n in variables(found.select.parts) if n not in ("?pp",)]
    subjects = [n for n in names if n in ("?x", "?y", "?z", "?k")] or [NODES[0]]
    template = [
        Triple(
            rng.choice(subjects),
            rng.choice((P, Q, "<http://e/n>")),
            rng.choice(names or [NODES[1]]),
        )
    ]
    if rng.random() < 0.3:
        template.append(Triple(rng.choice(subjects), Q, rng.choice(subjects)))
    shown = dict.fromkeys(t for p in template for t in (p.s, p.o) if t.startswith("?"))
    chosen = Select(tuple(Item(n) for n in shown), found.select.parts)
    return replace(found, form="construct", template=tuple(template), select=chosen, empty=False)

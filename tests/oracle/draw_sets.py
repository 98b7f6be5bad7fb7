"""Sets of queries by lot that have something of one kind in common: a side of their joins, what
relaxes them, patterns in one window or in several, a static right side, a window that counts, an
order that may change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from random import Random

from oracle.draw_query import aggregate
from oracle.mutate import mapped
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
    Row,
    Select,
    Triple,
    Window,
)
from oracle.words import (
    EQUALS,
    HARD,
    NODES,
    NUMBERS,
    STRINGS,
    A,
    D,
    F,
    K,
    N,
    P,
    Q,
    R,
    condition,
    integer,
    variables,
)

SIDES = (Triple("?x", Q, "?y"), Triple("?x", P, "?v"))
BESIDE = (
    Triple("?x", P, "?v"), Triple("?x", R, "?s"), Triple("?x", N, "?h"), Triple("?y", P, "?u"),
    Triple("?x", D, "?d"), Triple("?x", Q, "?y"), Triple("?y", Q, "?z"), Triple("?x", A, "?m"),
)  # fmt: skip
MONTH = 30 * 24 * 3600 * 1000
Draw = Callable[[Random, int], list[Query]]


def windows(rng: Random) -> list[Window]:
    """Few windows of one stream, most of them alike."""
    stream = rng.choice(RDF_STREAMS)
    a, b = rng.choice((2000, 4000, 6000)), rng.choice((500, 1000, 2000))
    first = Window(stream, "step", a=a, b=b)
    others = (
        Window(stream, "range", a=a), Window(stream, "step", a=2 * a, b=b),
        Window(stream, "step", a=a, b=1500), Window(stream, "range", a=MONTH),
    )  # fmt: skip
    return [first, first, first, rng.choice(others)]


def asked(rng: Random, window: Window, *parts: Part, output: str = "") -> Query:
    """A query of one window, with all that its patterns bind, or some of it."""
    group: Group = (In("w", tuple(parts)),)
    return over(rng, window, group, output=output)


def over(rng: Random, window: Window, group: Group, output: str = "") -> Query:
    names = variables(group)
    shown = names if rng.random() < 0.8 else rng.sample(names, rng.randrange(1, len(names) + 1))
    output = output or rng.choice(("RSTREAM", "RSTREAM", "RSTREAM", "ISTREAM", "DSTREAM"))
    select = Select(tuple(map(Item, shown)), group)
    if rng.random() < 0.12 and "?m" not in names:  # whose sums go by the order of what is added
        select, output = aggregate(rng, group, names), output or "RSTREAM"
    t0 = rng.choice((None, None, None, None, 300, 1700))
    return Query("q0", (("w", window),), select, output=output, t0=t0)


def sides(rng: Random, n: int) -> list[Query]:
    """One pattern, joined with several others over equal windows."""
    of, side = windows(rng), rng.choice(SIDES)
    few = [p for p in BESIDE if p != side and {p.s, p.o} & {side.s, side.o}]
    found = []
    for i in range(n):
        parts: list[Part] = [side, few[(i + rng.randrange(2)) % len(few)]]
        if rng.random() < 0.2:
            parts.append(rng.choice(few))
        if rng.random() < 0.2:
            parts.append(Filter(condition(rng, variables(tuple(parts[1:])))))
        rng.shuffle(parts)
        found.append(asked(rng, of[i and rng.randrange(4)], *dict.fromkeys(parts)))
    return found


def relaxed(rng: Random, n: int) -> list[Query]:
    """One pattern with constants, joined with few others with constants and ranges, so that what
    is in common is relaxed in each of several joins.
    """
    of, side = windows(rng), SIDES[0]
    few = rng.sample((BESIDE[0], BESIDE[1], BESIDE[3], BESIDE[6]), 2)
    found = []
    for i in range(n):
        one, other = side, few[i % 2]
        parts: list[Part] = [one, other]
        if rng.random() < 0.7:
            parts.append(Filter(narrow(rng, i, variables((one,)))))
        if rng.random() < 0.7:
            parts.append(Filter(narrow(rng, i, variables((other,)))))
        if rng.random() < 0.3:
            parts[0] = replace(side, s=rng.choice(NODES[:3])) if other.s == "?y" else parts[0]
        window = of[rng.randrange(4)]
        found.append(asked(rng, window, *parts, output="RSTREAM" if rng.random() < 0.7 else ""))
    return found


def divided(rng: Random, n: int) -> list[Query]:
    """Few patterns, which one query reads in one window and another in two or three."""
    # a month beside closes each second is as many reports
    of = [one for one in windows(rng) if one.a < MONTH][1:]
    of += [replace(of[0], a=of[0].a + 1500), Window(of[0].stream, "range", a=1000)]
    few = (SIDES[0], *rng.sample((BESIDE[0], BESIDE[3], BESIDE[1], BESIDE[6]), rng.choice((1, 2))))
    found = []
    for i in range(n):
        names = [rng.choice(("w", "w", "w2", "w3")) for _ in few]
        if i % 3 < 2:
            names = ["w", *[("w", "w2")[i % 3]] * (len(few) - 1)]
        own = tuple([(w, rng.choice(of)) for w in dict.fromkeys(names)])
        group: Group = tuple(
            [In(w, tuple([p for p, at in zip(few, names, strict=True) if at == w])) for w, _ in own]
        )
        if rng.random() < 0.5:
            group = (*group, Filter(narrow(rng, i, variables(few))))
        found.append(replace(over(rng, of[0], group), windows=own))
    return found


def narrow(rng: Random, i: int, names: list[str]) -> Call:
    """A condition that an index tells: of names one, and of numbers or texts a range."""
    own = [n for n in names if n in ("?v", "?u", "?s", "?h", "?m")]
    if not own:
        return Call("=", (rng.choice(names), rng.choice(NODES[:3])))
    one = rng.choice(own)
    kinds = {"?s": STRINGS, "?m": (*NUMBERS, *EQUALS), "?h": (*NUMBERS, *HARD)}
    terms = kinds.get(one, NUMBERS)
    return Call(rng.choice((">", ">=", "<", "<=", "=")), (one, rng.choice(terms)))


def thresholds(rng: Random, n: int) -> list[Query]:
    """One join whose rows go to all whose range they are in, over equal windows."""
    of, other = windows(rng), rng.choice((BESIDE[1], BESIDE[5], BESIDE[7]))
    name, pattern = rng.choice((("?v", BESIDE[0]), ("?v", BESIDE[0]), ("?h", BESIDE[2])))
    policy: str | int = rng.choice(("close", "close", "close", "change", 700))
    if isinstance(policy, int):  # a month has millions of periods, each a report
        of = [one if one.a < MONTH else of[0] for one in of]
    found = []
    for i in range(n):
        terms = HARD if name == "?h" and rng.random() < 0.7 else NUMBERS
        low, high = rng.choice(terms), rng.choice(terms)
        own = Call(rng.choice((">", ">=", "<", "<=")), (name, low))
        if rng.random() < 0.25:
            own = Call("&&", (Call(">=", (name, low)), Call("<", (name, high))))
        parts = (pattern, other, Filter(own))
        one = asked(rng, of[i > 1 and rng.randrange(4)], *parts, output="RSTREAM")
        found.append(replace(one, policy=policy, t0=None))
    return found


def numbered(rng: Random, n: int) -> list[Query]:
    """Joins within windows that count, of other numbers, some with a step."""
    stream = rng.choice(RDF_STREAMS)
    one, two = rng.choice(((SIDES[0], BESIDE[0]), (SIDES[0], BESIDE[3]), (BESIDE[0], BESIDE[1])))
    found = []
    for i in range(n):
        many, m = rng.randrange(1, 13), rng.choice((1, 2, 3, 4))
        window = Window(stream, "triples", n=many)
        if i > 2 and rng.random() < 0.3:
            window = Window(stream, "elements", n=many, m=m)
        parts: list[Part] = [one, two]
        if rng.random() < 0.5:
            parts.append(Filter(narrow(rng, i, variables(tuple(parts)))))
        query = asked(rng, window, *parts)
        policy = rng.choice(("close", "close", "close", 700)) if i > 1 else "close"
        found.append(replace(query, policy=policy, t0=query.t0 if i > 1 else None))
    return found


def rights(rng: Random, n: int) -> list[Query]:
    """Optional, taken off, asked for, or joined: static rows that several look up by one key."""
    of = windows(rng)
    inner: Group = (rng.choice((Triple("?x", K, "?k"), Triple("?x", F, "?f"))),)
    found = []
    for _ in range(n):
        other: Part = rng.choice(
            (
                Optional(inner),
                Minus(inner),
                Exists(inner, False),
                Exists(inner, True),
                *inner,
                *inner,
            )
        )
        side = rng.choice((BESIDE[0], BESIDE[1], SIDES[0], BESIDE[2]))
        group: Group = (In("w", (side,)), other)
        if rng.random() < 0.3:
            group = (*group, Filter(narrow(rng, 0, variables((side,)))))
        found.append(over(rng, rng.choice(of), group))
    return found


def chains(rng: Random, n: int) -> list[Query]:
    """Joins of three and four patterns, whose orders may change."""
    of = [replace(one, a=rng.choice((1000, 2000))) for one in windows(rng)[:3]]
    few = (SIDES[0], BESIDE[0], BESIDE[3], BESIDE[1])
    found = []
    for i in range(n):
        parts: list[Part] = [SIDES[0], *rng.sample(few[1:], rng.choice((2, 2, 3)))]
        rng.shuffle(parts)
        if rng.random() < 0.4:
            parts.append(Filter(narrow(rng, i, variables(tuple(parts)))))
        found.append(replace(asked(rng, of[rng.randrange(3)], *parts), t0=None))
    return found


def tabled(rng: Random, n: int) -> list[Query]:
    """One text for each row of a table, whose terms stand in patterns and conditions."""
    window, many = windows(rng)[rng.randrange(4)], rng.choice((P, A, R))
    name = {P: "?v", A: "?m", R: "?s"}[many]
    two = rng.random() < 0.7
    parts: list[Part] = [Triple("?x", many, name), Triple("?x", Q, "{{c0}}")]
    if two:
        parts.append(Filter(Call(rng.choice((">", ">=", "<", "=", "!=")), (name, "{{c1}}"))))
    elif rng.random() < 0.5:
        parts.append(Triple("{{c0}}", Q, "?y"))
    of = replace(asked(rng, window, *parts), name="{{name}}")
    table, found = f"t{rng.randrange(10**6)}", []
    values = {P: NUMBERS, A: EQUALS, R: STRINGS}[many]
    for _ in range(n):
        terms = {"{{c0}}": rng.choice(NODES[:4]), "{{c1}}": rng.choice(values)}
        columns = tuple((c[2:-2], terms[c]) for c in sorted(terms)[: 1 + two])
        found.append(replace(mapped(of, partial(_filled, terms)), row=Row(table, of, columns)))
    return found


def _filled(terms: Mapping[str, str], leaf: object) -> object:
    return terms.get(leaf, leaf) if isinstance(leaf, str) else leaf


def traps(rng: Random, n: int) -> list[Query]:
    """Terms that are equal by value or as terms, one constant in two patterns, names that may be
    unbound, equal triples under windows of other lengths, months beside seconds, all beside now.
    """
    stream, of = rng.choice(RDF_STREAMS), windows(rng)
    lengths = (
        Window(stream, "range", a=MONTH), Window(stream, "range", a=5000), of[0], of[0], of[3],
        Window(stream, "step", a=MONTH, b=MONTH // 2),
    )  # fmt: skip
    found = []
    for _ in range(n):
        one = TRAPS[rng.randrange(len(TRAPS))](rng)
        query = over(rng, rng.choice(lengths), one)
        if rng.random() < 0.25:
            everything = (("w", Window(stream, "all")), ("w2", Window(stream, "now")))
            group: Group = (*one, In("w2", (Triple("?x", Q, "?z"),)))
            query = replace(query, windows=everything, select=replace(query.select, parts=group))
        found.append(query)
    return found


def _by_value(rng: Random) -> Group:
    """A number that is told in several ways is asked for by its value, or by a term."""
    one, term = Triple("?x", A, "?m"), rng.choice(EQUALS)
    if rng.random() < 0.5:
        return (In("w", (replace(one, o=term), Triple("?x", Q, "?y"))),)
    op = rng.choice(("=", "!=", "in", "<", ">="))
    return (In("w", (one, Triple("?x", Q, "?y"), Filter(Call(op, ("?m", term))))),)


def _twice(rng: Random) -> Group:
    """The same constant, or not, in two places."""
    one, other = rng.choice(NODES[:3]), rng.choice(NODES[:3])
    few = (
        (Triple("?x", Q, one), Triple("?y", Q, other), Triple("?x", Q, "?y")),
        (Triple(one, Q, "?y"), Triple("?y", Q, other)),
        (Triple("?x", P, integer(3)), Triple("?y", P, integer(rng.choice((3, 2)))),
         Triple("?x", Q, "?y")),
    )  # fmt: skip
    return (In("w", rng.choice(few)),)


def _unbound(rng: Random) -> Group:
    """A condition on what may have no value."""
    inner = (In("w", (Triple("?x", A, "?m"),)),)
    op = rng.choice(("=", "!=", "<", "bound"))
    told = Call("bound", ("?m",)) if op == "bound" else Call(op, ("?m", rng.choice(EQUALS)))
    first = In("w", (Triple("?x", Q, "?y"), Triple("?y", P, "?u")))
    told = Call("!", (told,)) if rng.random() < 0.3 else told
    return (first, Optional(inner), Filter(told))


def _joined(rng: Random) -> Group:
    """Two patterns meet by a number: as terms."""
    return (In("w", (Triple("?x", A, "?m"), Triple("?y", A, "?m"), Triple("?x", Q, "?y"))),)


TRAPS = (_by_value, _by_value, _twice, _unbound, _joined)

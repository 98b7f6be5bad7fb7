"""What queries and triples are made of: terms, patterns, conditions by lot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from oracle.queries import Bind, Call, Group, In, Sub, Triple, Values
from oracle.terms import XSD, rank, string

NODES = tuple(f"<http://e/{n}>" for n in "abcde")
P, Q, R, D, M, K, F, N, A = (f"<http://e/{n}>" for n in "pqrdmkfnl")
G = "http://e/g"


def integer(n: int) -> str:
    return f'"{n}"^^<{XSD}integer>'


NUMBERS = (
    *map(integer, range(7)), f'"2.5"^^<{XSD}decimal>', f'"3.0"^^<{XSD}decimal>',
    f'"3.0E0"^^<{XSD}double>', f'"4.5E0"^^<{XSD}double>',
)  # fmt: skip
HARD = (
    *map(integer, (2**53, 2**53 + 1, -(2**53) - 1, 10**30, 0, -1)),
    *(f'"{n}"^^<{XSD}decimal>' for n in ("0.1", "9007199254740992.5", "-0.1")),
    *(f'"{n}"^^<{XSD}double>' for n in ("0.1E0", "9007199254740992", "INF", "-INF", "NaN", "-0.0")),
    f'"5"^^<{XSD}byte>', f'"300"^^<{XSD}byte>',
)  # fmt: skip
EQUALS = (
    string("1"), *map(integer, (1, 2)), f'"01"^^<{XSD}integer>', f'"1.0"^^<{XSD}decimal>',
    f'"1"^^<{XSD}decimal>', f'"1.0E0"^^<{XSD}double>', f'"NaN"^^<{XSD}double>',
    integer(2**53), integer(2**53 + 1), f'"9007199254740992.0"^^<{XSD}decimal>',
    f'"9007199254740992"^^<{XSD}double>', string("01"), f'"1"^^<{XSD}byte>',
)  # fmt: skip
"""Terms of which several have one value."""
STRINGS = tuple(map(string, ("a", "ab", "abc", "b", "ba", "", "a\U0001f600", "a\ufffd", "\xe9")))
DATES = tuple(f'"2024-01-0{d}T12:00:00Z"^^<{XSD}dateTime>' for d in range(1, 6))
DATES = (*DATES, f'"2024-01-02T13:00:00+01:00"^^<{XSD}dateTime>',
         f'"2024-01-02T12:00:00.25Z"^^<{XSD}dateTime>')  # fmt: skip
MIXED = (*NUMBERS[:3], *STRINGS[:3], *NODES[:2])
OBJECTS = {
    P: NUMBERS,
    Q: NODES[:3],
    R: STRINGS,
    D: DATES,
    M: MIXED,
    K: NODES[:3],
    F: NUMBERS[:4],
    N: HARD,
    A: EQUALS,
}
PATTERNS = (
    *[Triple("?x", P, "?v"), Triple("?x", Q, "?y"), Triple("?y", P, "?u")] * 3,
    Triple("?y", Q, "?z"), Triple("?x", R, "?s"), Triple("?x", D, "?d"), Triple("?y", R, "?t"),
    Triple("?x", M, "?m"), Triple("?x", N, "?h"), Triple("?y", N, "?h"),
    Triple("?x", Q, NODES[0]), Triple(NODES[1], Q, "?x"),
    Triple("?x", "?pp", "?o"), Triple("?x", P, NUMBERS[3]), Triple("?x", Q, "?x"),
)  # fmt: skip
LINKED = (
    *[Triple("?x", P, "?v"), Triple("?x", Q, "?y")] * 2, Triple("?y", P, "?u"),
    Triple("?y", Q, "?z"), Triple("?x", R, "?s"), Triple("?x", D, "?d"), Triple("?x", N, "?h"),
)  # fmt: skip
STATIC = (Triple("?x", K, "?k"), Triple("?y", K, "?k"), Triple("?x", F, "?f"),
          Triple("?x", K, NODES[0]))  # fmt: skip


def variables(group: Group) -> list[str]:
    """The variables that a group's patterns bind for sure, each once."""
    found = list[str]()
    for part in group:
        if isinstance(part, Triple):
            found += [t for t in (part.s, part.p, part.o) if t.startswith("?")]
        elif isinstance(part, In):
            found += variables(part.parts)
        elif isinstance(part, Bind | Values):
            found.append(part.name)
        elif isinstance(part, Sub):
            found += [i.name for i in part.select.items]
    return list(dict.fromkeys(found))


def patterns(rng: Random, most: int, base: Sequence[Triple] = PATTERNS) -> Group:
    """Some patterns, which mostly have a variable in common."""
    found = [rng.choice(base)]
    for _ in range(rng.randrange(most)):
        near = [p for p in base if {p.s, p.o} & set(variables(tuple(found))) and p not in found]
        found.append(rng.choice(near or base))
    return tuple(dict.fromkeys(found))


def condition(rng: Random, names: Sequence[str]) -> Call:
    """A condition on some of these variables."""
    kinds = {"?v": NUMBERS, "?u": NUMBERS, "?s": STRINGS, "?t": STRINGS, "?d": DATES,
             "?m": (*MIXED, *EQUALS), "?h": HARD, "?f": NUMBERS, "?o": MIXED, "?x": NODES,
             "?y": NODES, "?z": NODES, "?k": NODES}  # fmt: skip
    own = [n for n in names if n in kinds] or ["?v"]
    first = [n for n in own if kinds[n] is not NODES]
    one = rng.choice(first or own)
    terms = kinds[one]
    if rng.random() < 0.05:
        terms = rng.choice(tuple(kinds.values()))
    return rng.choice(CONDITIONS)(rng, one, terms, own)


Make = Callable[[Random, str, Sequence[str], Sequence[str]], Call]


def _compare(rng: Random, one: str, terms: Sequence[str], own: Sequence[str]) -> Call:
    op = rng.choice(("=", "!=", "<", "<=", ">", ">=")) if terms is not NODES else rng.choice("=!")
    other = rng.choice(terms)
    args = (one, other) if rng.random() < 0.8 else (other, one)
    return Call("!=" if op == "!" else op, args)


def _range(rng: Random, one: str, terms: Sequence[str], own: Sequence[str]) -> Call:
    low, high = sorted((rng.choice(terms), rng.choice(terms)), key=rank)
    ops = rng.choice(((">", "<"), (">=", "<="), (">", "<="), (">=", "<")))
    return Call("&&", (Call(ops[0], (one, low)), Call(ops[1], (one, high))))


def _among(rng: Random, one: str, terms: Sequence[str], own: Sequence[str]) -> Call:
    some = tuple(rng.choice(terms) for _ in range(rng.randrange(1, 4)))
    return Call(rng.choice(("in", "in", "notin")), (one, *some))


def _either(rng: Random, one: str, terms: Sequence[str], own: Sequence[str]) -> Call:
    parts = tuple(rng.choice((_compare, _range))(rng, one, terms, own) for _ in range(2))
    found = Call("||", parts)
    return Call("!", (found,)) if rng.random() < 0.3 else found


def _two(rng: Random, one: str, terms: Sequence[str], own: Sequence[str]) -> Call:
    return Call(rng.choice(("<", "=", "!=", ">=")), (one, rng.choice(own)))


def _sum(rng: Random, one: str, terms: Sequence[str], own: Sequence[str]) -> Call:
    made = Call(rng.choice("+-*"), (one, rng.choice((*own, integer(2)))))
    return Call(rng.choice(("<", ">=", "!=")), (made, rng.choice(NUMBERS)))


def _textual(rng: Random, one: str, terms: Sequence[str], own: Sequence[str]) -> Call:
    of = one if terms is STRINGS else Call("str", (one,))
    return Call(rng.choice(("strstarts", "strstarts", "contains")), (of, rng.choice(STRINGS)))


def _other(rng: Random, one: str, terms: Sequence[str], own: Sequence[str]) -> Call:
    return rng.choice((
        Call("isiri", (one,)), Call("isnumeric", (one,)), Call("bound", (one,)),
        Call("=", (Call("coalesce", (Call("+", (one, integer(1))), integer(0))), integer(0))),
        Call("<", (Call("strlen", (Call("str", (one,)),)), integer(2))),
    ))  # fmt: skip


CONDITIONS: tuple[Make, ...] = (
    _compare, _compare, _compare, _range, _range, _among, _either, _two, _sum, _textual, _other,
)  # fmt: skip

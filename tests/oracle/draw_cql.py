"""CQL by lot, as ``draw`` does SPARQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from oracle.cql import Choice, Of, Relation, Value
from oracle.queries import Window

CONSTANTS: dict[str, tuple[Value, ...]] = {
    "k": (0, 1, 2, 3, 2.0, 1.5), "w": (0, 1, 2, 3, 4, 2.5), "v": (0.5, 1.0, 1.5, 2.0, 1, 2),
    "s": ("", "a", "ab", "b"),
}  # fmt: skip
COLUMNS = {"A": ("k", "v", "s"), "B": ("k", "w", "s")}


def column(name: str) -> Of:
    return Of("col", of=name)


def row(rng: Random, stream: str) -> tuple[tuple[str, Value], ...]:
    """A row of a stream; some values are not there."""

    def cell(name: str) -> Value:
        if rng.random() < 0.1 and name != "s":
            return None
        if name == "s":
            return rng.choice(("a", "ab", "b"))
        return rng.choice((0.5, 1.0, 1.5, 2.0)) if name == "v" else rng.randrange(4)

    return tuple((name, cell(name)) for name in COLUMNS[stream])


def window(rng: Random, stream: str, ties: bool) -> Window:
    a, b = rng.choice((1000, 2000, 4000, 6000)), rng.choice((500, 1000, 2000, 5000))
    n = rng.choice((1, 2, 3, 5, 8))
    counts = [] if ties else [Window(stream, "rows", n=n), Window(stream, "by", n=n, key="k")]
    return rng.choice((
        *[Window(stream, "range", a=a)] * 4, *[Window(stream, "step", a=a, b=b)] * 4,
        Window(stream, "now"), Window(stream, "all"), *counts, *counts,
    ))  # fmt: skip


def condition(rng: Random, columns: Sequence[str]) -> Of:
    """A condition on some of these columns."""
    name = rng.choice(columns)
    of, few = column(name), CONSTANTS[name[-1]]

    def one() -> Of:
        return Of("is", of=rng.choice(few))

    kind = rng.randrange(8)
    if kind < 3:
        return Of(rng.choice(("=", "<>", "<", "<=", ">", ">=")), (of, one()))
    if kind == 3:
        low, high = sorted((rng.choice(few), rng.choice(few)))  # type: ignore[type-var]
        return Of(rng.choice(("between", "between", "not between")),
                  (of, Of("is", of=low), Of("is", of=high)))  # fmt: skip
    if kind == 4:
        return Of(
            rng.choice(("in", "in", "not in")), (of, *(one() for _ in range(rng.randrange(1, 4))))
        )
    if kind == 5:
        return Of(rng.choice(("and", "or")), (condition(rng, columns), condition(rng, columns)))
    if kind == 6:
        return Of("not", (condition(rng, columns),))
    other = [c for c in columns if (c[-1] == "s") == (name[-1] == "s")]
    return Of(rng.choice(("=", "<", "<>")), (of, column(rng.choice(other))))


def choice(rng: Random, ties: bool) -> Choice:
    streams = rng.choice(
        (("A",), ("A",), ("B",), ("A", "B"), ("A", "B"), ("A", "A"), ("A", "B", "B"))
    )
    tables = tuple((f"T{i}", window(rng, s, ties)) for i, s in enumerate(streams))
    columns = [f"{alias}.{c}" for alias, w in tables for c in COLUMNS[w.stream]]
    where = None
    for i in range(1, len(tables)):
        key = rng.choice(("k", "k", "s"))
        one = Of("=", (column(f"T{i - 1}.{key}"), column(f"T{i}.{key}")))
        where = one if where is None else Of("and", (where, one))
    if rng.random() < 0.6:
        more = condition(rng, columns)
        where = more if where is None else Of("and", (where, more))
    return shown(rng, Choice(tables, (), where))


def shown(rng: Random, one: Choice) -> Choice:
    """What is shown: columns, sums of these, or aggregates."""
    columns = [f"{alias}.{c}" for alias, w in one.tables for c in COLUMNS[w.stream]]
    kind = rng.random()
    if kind < 0.35:
        group = tuple(rng.sample(columns, rng.choice((0, 1, 1, 2))))
        items = [(f"c{i}", column(c)) for i, c in enumerate(group)]
        numbers = [c for c in columns if c[-1] in "vwk"]
        ops = ("count*", "count", "sum", "min", "max", "avg") if group else ("count*", "count")
        for i in range(rng.randrange(1, 3)):
            op, of = rng.choice(ops), rng.choice(numbers)
            if op == "avg" and of[-1] != "v":
                op = "sum"
            items.append((f"n{i}", Of(op) if op == "count*" else Of(op, (column(of),))))
        having = None
        if group and rng.random() < 0.25:
            having = Of(rng.choice((">", "<=")), (Of("count*"), Of("is", of=rng.randrange(3))))
        return replace(one, items=tuple(items), group=group, having=having, distinct=False)
    few = rng.sample(columns, rng.randrange(1, min(4, len(columns)) + 1))
    items = [(f"c{i}", column(c)) for i, c in enumerate(few)]
    if rng.random() < 0.2:
        numbers = [c for c in columns if c[-1] in "vwk"]
        items.append(
            ("e", Of(rng.choice("+-*"), (column(rng.choice(numbers)), column(rng.choice(numbers)))))
        )
    return replace(one, items=tuple(items), group=(), having=None, distinct=rng.random() < 0.2)


def relation(rng: Random, ties: bool) -> Relation:
    return shaped(rng, Relation("q0", (choice(rng, ties),)))


def shaped(rng: Random, one: Relation) -> Relation:
    policy: str | int = rng.choice(("close", "close", "close", "change", 700, 1500))
    return replace(
        one, output=rng.choice(("BOTH", "BOTH", "ISTREAM", "DSTREAM", "RSTREAM")), policy=policy,
        t0=rng.choice((None, None, None, 0, 300, 1700)), nonempty=rng.random() < 0.1,
    )  # fmt: skip


def _constant(rng: Random, one: Relation, ties: bool) -> Relation:
    def change(of: Of, few: Sequence[Value]) -> Of:
        if of.op == "is" and rng.random() < 0.8 and few:
            return replace(of, of=rng.choice(few))
        own = [str(a.of)[-1] for a in of.args if a.op == "col"]
        few = CONSTANTS[own[0]] if own else few
        if of.op in ("between", "not between"):
            low, high = sorted((rng.choice(few), rng.choice(few)))  # type: ignore[type-var]
            return replace(of, args=(of.args[0], Of("is", of=low), Of("is", of=high)))
        return replace(of, args=tuple(change(a, few) for a in of.args))

    first = one.choices[0]
    if first.where is None:
        return one
    return _first(one, replace(first, where=change(first.where, ())))


def _first(one: Relation, choice: Choice) -> Relation:
    return replace(one, choices=(choice, *one.choices[1:]))


def _length(rng: Random, one: Relation, ties: bool) -> Relation:
    first = one.choices[0]
    at = rng.randrange(len(first.tables))
    alias, w = first.tables[at]
    if rng.random() < 0.2:
        w = window(rng, w.stream, ties)
    elif w.n:
        w = replace(w, n=rng.choice((1, 2, 4, 6, 9)))
    elif w.b and rng.random() < 0.5:
        w = replace(w, b=rng.choice((500, 1000, 2000, 3000)))
    elif w.a:
        w = replace(w, a=rng.choice((500, 1500, 2000, 3000, 4000, 8000)))
    tables = (*first.tables[:at], (alias, w), *first.tables[at + 1 :])
    return _first(one, replace(first, tables=tables))


def _where(rng: Random, one: Relation, ties: bool) -> Relation:
    first = one.choices[0]
    columns = [f"{alias}.{c}" for alias, w in first.tables for c in COLUMNS[w.stream]]
    more = condition(rng, columns)
    where = more if first.where is None else Of("and", (first.where, more))
    return _first(one, replace(first, where=where))


def _shown(rng: Random, one: Relation, ties: bool) -> Relation:
    return _first(replace(one, choices=one.choices[:1]), shown(rng, one.choices[0]))


def _options(rng: Random, one: Relation, ties: bool) -> Relation:
    return shaped(rng, one)


def _combined(rng: Random, one: Relation, ties: bool) -> Relation:
    """Union or Except with what differs in a constant or a window."""
    first = replace(one, choices=one.choices[:1])
    other = rng.choice((_constant, _length))(rng, first, ties)
    return replace(
        one, choices=(*first.choices, *other.choices), by=rng.choice(("Union", "Except"))
    )


CHANGES: tuple[Callable[[Random, Relation, bool], Relation], ...] = (
    _constant, _constant, _constant, _length, _length, _where, _shown, _options, _combined,
)  # fmt: skip


def mutated(rng: Random, one: Relation, ties: bool) -> Relation:
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        one = rng.choice(CHANGES)(rng, one, ties)
    return one

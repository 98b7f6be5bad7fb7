"""What makes a query another one that has much in common with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from random import Random
from typing import Any, TypeVar

from oracle.draw_query import extra, select, shaped
from oracle.queries import Call, Filter, In, Query, Triple
from oracle.words import DATES, HARD, LINKED, NODES, NUMBERS, STRINGS, condition, variables

Any_ = TypeVar("Any_")


def mapped(of: Any_, change: Callable[[object], object]) -> Any_:
    """A structure with its leaves (texts) and parts changed."""
    found: Any = of
    if isinstance(found, tuple):
        found = tuple(mapped(one, change) for one in found)
    elif is_dataclass(found) and not isinstance(found, type):
        found = replace(
            found, **{f.name: mapped(getattr(found, f.name), change) for f in fields(found)}
        )
    return change(found)  # type: ignore[return-value]


def mutated(rng: Random, near: bool, query: Query) -> Query:
    """A query with one, two or three things changed; ``near``: such as leave its shape."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        query = rng.choice(NEAR if near else CHANGES)(rng, query)
    closes = any(w.kind in ("step", "paststep", "session") for _, w in query.windows)
    if query.dialect == "cqels" and query.policy == "close" and not closes:
        return replace(query, policy="change")  # who asks for closes needs such a window
    return query


def _constant(rng: Random, query: Query) -> Query:
    """Another constant of the same kind in each of some conditions."""

    def change(one: object) -> object:
        if isinstance(one, Call) and one.op in (
            "=",
            "!=",
            "<",
            "<=",
            ">",
            ">=",
            "in",
            "notin",
            "strstarts",
            "contains",
        ):
            args = [
                other(a) if i or one.op not in ("in", "notin") else a
                for i, a in enumerate(one.args)
            ]
            return Call(one.op, tuple(args))
        return one

    def other(term: Any) -> Any:
        for kind in (NUMBERS, STRINGS, DATES, NODES, HARD):
            if term in kind and rng.random() < 0.8:
                return rng.choice(kind)
        return term

    return replace(query, select=replace(query.select, parts=mapped(query.select.parts, change)))


def _term(rng: Random, query: Query) -> Query:
    """A variable becomes a constant in a pattern, or one constant another."""

    def change(one: object) -> object:
        if isinstance(one, Triple) and rng.random() < 0.4:
            if one.o in NODES:
                return replace(one, o=rng.choice(NODES))
            if one.o in NUMBERS:
                return replace(one, o=rng.choice(NUMBERS))
        return one

    return replace(query, select=replace(query.select, parts=mapped(query.select.parts, change)))


def _operator(rng: Random, query: Query) -> Query:
    def change(one: object) -> object:
        if isinstance(one, Call) and one.op in ("<", "<=", ">", ">=") and rng.random() < 0.5:
            return Call(rng.choice(("<", "<=", ">", ">=")), one.args)
        return one

    return replace(query, select=replace(query.select, parts=mapped(query.select.parts, change)))


def _condition(rng: Random, query: Query) -> Query:
    """A condition more within a window, or one less."""
    done = [False]

    def change(one: object) -> object:
        if isinstance(one, In) and not done[0]:
            done[0] = True
            kept = tuple(p for p in one.parts if not isinstance(p, Filter))
            if len(kept) < len(one.parts) and rng.random() < 0.5:
                return replace(one, parts=kept)
            return replace(one, parts=(*one.parts, Filter(condition(rng, variables(one.parts)))))
        return one

    return replace(query, select=replace(query.select, parts=mapped(query.select.parts, change)))


def _length(rng: Random, query: Query) -> Query:
    """Another range, step or number of a window."""
    at = rng.randrange(len(query.windows))
    name, w = query.windows[at]
    what = rng.randrange(4)
    if what == 0 and w.a and w.kind != "session":
        w = replace(w, a=w.e + rng.choice((500, 1500, 2000, 3000, 4000, 6000, 8000)))
    elif what == 1 and w.b:
        w = replace(w, b=rng.choice((500, 1000, 2000, 3000)))
    elif w.n:
        n = rng.choice((1, 3, 4, 6, 9, 12))
        w = replace(w, n=n, m=n if query.dialect == "csparql" and w.m else w.m)
    elif w.kind == "step" and what == 3:
        w = replace(w, kind="range", b=0)
    windows = (*query.windows[:at], (name, w), *query.windows[at + 1 :])
    return replace(query, windows=windows)


def _shown(rng: Random, query: Query) -> Query:
    if query.form != "select":
        return query
    return replace(query, select=select(rng, query.select.parts))


def _options(rng: Random, query: Query) -> Query:
    if query.form != "select":
        return query
    return shaped(rng, query)


def _more(rng: Random, query: Query) -> Query:
    """A part more: a pattern, or what may follow."""
    if query.form == "ask" or len(query.select.parts) > 4:
        return query
    parts = query.select.parts
    one = extra(rng, [n for n, _ in query.windows], variables(parts))
    return replace(query, select=replace(query.select, parts=(*parts, one)))


def _order(rng: Random, query: Query) -> Query:
    """Patterns in another order: those that stand side by side, windows beside windows."""

    def change(one: object) -> object:
        if isinstance(one, In) and all(isinstance(p, Triple | Filter) for p in one.parts):
            return replace(one, parts=tuple(rng.sample(one.parts, len(one.parts))))
        return one

    parts = mapped(query.select.parts, change)
    if all(isinstance(p, Triple | In | Filter) for p in parts):
        parts = tuple(rng.sample(parts, len(parts)))
    return replace(query, select=replace(query.select, parts=parts))


def _pattern(rng: Random, query: Query) -> Query:
    """Another pattern in the place of one: joins that have a side in common."""

    def change(one: object) -> object:
        if isinstance(one, In) and any(isinstance(p, Triple) for p in one.parts):
            at = rng.choice([i for i, p in enumerate(one.parts) if isinstance(p, Triple)])
            return replace(one, parts=(*one.parts[:at], rng.choice(LINKED), *one.parts[at + 1 :]))
        return one

    return replace(query, select=replace(query.select, parts=mapped(query.select.parts, change)))


def _names(rng: Random, query: Query) -> Query:
    """Other names of some variables; what is shown has them, too."""
    to = rng.choice(({"?x": "?y", "?y": "?x"}, {"?z": "?w", "?w": "?z"}, {"?v": "?u", "?u": "?v"}))

    def change(one: object) -> object:
        return to.get(one, one) if isinstance(one, str) else one

    return replace(
        query, select=mapped(query.select, change), template=mapped(query.template, change)
    )


CHANGES: tuple[Callable[[Random, Query], Query], ...] = (
    _constant, _constant, _constant, _term, _operator, _condition, _length, _length, _shown,
    _options, _more, _order, _names,
)  # fmt: skip
NEAR = (
    _constant, _constant, _constant, _operator, _length, _term, _names, _order, _pattern, _pattern,
)  # fmt: skip

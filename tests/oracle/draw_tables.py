"""Sets in CQL by lot that share one join of tables, over windows of other ranges, with IN, BETWEEN
and equations of integers and doubles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random

from oracle.cql import SCHEMAS, Choice, Of, Relation, Value
from oracle.draw_cql import column, shown
from oracle.queries import Window

LENGTHS = (250, 500, 1000, 1500, 2000, 2250, 3000, 4000, 5000, 7500)
INTEGERS = (0, 1, 2, 3, -1, 2**53, 2**53 + 1)
DOUBLES = (0.0, -0.0, 1.0, 2.5, 3.0, 0.1, 9007199254740992.0)
WORDS = ("a", "b", "1", "")
OF: dict[str, tuple[Value, ...]] = {"k": INTEGERS, "w": INTEGERS, "v": DOUBLES, "s": WORDS}


def row(rng: Random, stream: str) -> tuple[tuple[str, Value], ...]:
    """A row, whose values are those of the lists; some are not there."""

    def cell(name: str) -> Value:
        if name == "s":
            return rng.choice(WORDS[:3])
        return None if rng.random() < 0.08 else rng.choice(OF[name][: rng.choice((4, 7))])

    return tuple((name, cell(name)) for name in SCHEMAS[stream])


def relations(rng: Random, n: int) -> list[Relation]:
    """Joins of two tables, or of one with itself, over windows of few lengths, with lists."""
    streams = rng.choice((("A", "B"), ("A", "B"), ("A", "A"), ("B", "B"), ("A", "B", "B")))
    step, lengths = rng.choice((0, 0, 1000, 500)), rng.sample(LENGTHS, 4)
    shape = partial(columned, rng, streams)
    forms = rng.sample(range(len(TESTS)), 2)
    policy: str | int = rng.choice(("close", "close", "change", 700)) if step else "close"
    t0, bounds = rng.choice((None, None, 0, 300)), rng.choice(("[)", "[)", "(]"))
    found = []
    for _ in range(n):
        tables = tuple((f"T{i}", _window(rng, s, step, lengths)) for i, s in enumerate(streams))
        where: Of | None = None
        for i in range(1, len(tables)):
            where = _and(where, Of("=", (column(f"T{i - 1}.k"), column(f"T{i}.k"))))
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            where = _and(where, shape(rng.choice(forms) if rng.random() < 0.85 else -1))
        one = shown(rng, Choice(tables, (), where))
        output = rng.choice(("ISTREAM", "ISTREAM", "BOTH", "DSTREAM", "RSTREAM"))
        asked = Relation("q0", (one,), output=output, policy=policy, t0=t0, bounds=bounds)
        stepping = any(w.kind == "step" for _, w in tables)
        found.append(asked if stepping or policy != "change" else replace(asked, policy="close"))
    return found


def _window(rng: Random, stream: str, step: int, lengths: Sequence[int]) -> Window:
    a = rng.choice(lengths)
    own = Window(stream, "step", a=a, b=step) if step else Window(stream, "range", a=a)
    if rng.random() < 0.15:
        own = rng.choice(
            (
                Window(stream, "now"),
                Window(stream, "all"),
                Window(stream, "range", a=a),
                Window(stream, "step", a=a, b=700),
            )
        )
    return own


def _and(left: Of | None, right: Of) -> Of:
    return right if left is None else Of("and", (left, right))


TESTS = ("in", "in", "in", "not in", "between", "not between", "or", "<", "in and", "=", "not")


def columned(rng: Random, streams: Sequence[str], form: int) -> Of:
    """A condition of a form on a column, with values of its kind and of the other one."""
    at = 0 if rng.random() < 0.7 else rng.randrange(len(streams))
    name = rng.choice([c for c in SCHEMAS[streams[at]] if c != "s" or rng.random() < 0.3])
    of = column(f"T{at}.{name}")
    few = OF[name]
    if name != "s":
        few = rng.choice((OF[name][:4], OF[name], (*INTEGERS, *DOUBLES)))

    def some(n: int) -> tuple[Of, ...]:
        return tuple(Of("is", of=rng.choice(few)) for _ in range(n))

    op = TESTS[form] if form >= 0 else rng.choice(TESTS)
    length = rng.choice((1, 2, 2, 3))
    if op in ("in", "not in"):
        return Of(op, (of, *some(length)))
    if op in ("between", "not between"):
        low, high = sorted((rng.choice(few), rng.choice(few)))  # type: ignore[type-var]
        return Of(op, (of, Of("is", of=low), Of("is", of=high)))
    if op == "or":
        return Of("or", tuple(Of("=", (of, one)) for one in some(length + 1)))
    if op == "in and":
        return Of("and", (Of("in", (of, *some(length))), Of(rng.choice("<>"), (of, *some(1)))))
    if op == "not":
        return Of("not", (Of("in", (of, *some(length))),))
    return Of(op, (of, *some(1)))

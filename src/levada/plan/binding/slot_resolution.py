"""Replaces names by slots in expressions, keys and the origins of output slots.

Constants are taken out of expressions as parameters. So queries that differ only in constants have
one shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from levada.core.expressions import Call, Const, Expression, Var
from levada.core.rdf_terms import Term
from levada.plan.binding.required_facets import lift
from levada.plan.execution import steps as s
from levada.plan.physical import operators as p


def slots_of(names: Iterable[str], variables: Sequence[str]) -> tuple[int, ...]:
    """Returns the slots of names among variables.

    >>> slots_of(["b", "a"], ["a", "b"])
    (1, 0)
    """
    slots = dict(zip(variables, range(len(variables)), strict=True))
    return tuple([slots[name] for name in names])


def resolve_slots(expression: Expression, names: tuple[str, ...]) -> Expression:
    """Replaces variables by slots; a variable that the input lacks is named "" and is unbound."""
    match expression:
        case Var(name):
            return Var(str(names.index(name)) if name in names else "")
        case Call(function, args):
            return Call(function, tuple(resolve_slots(arg, names) for arg in args))
        case _:
            return expression


def parameterize_expression(
    expression: Expression, names: tuple[str, ...]
) -> tuple[Expression, tuple[Term, ...]]:
    """Returns an expression by slots, and its constants, which become parameters."""
    constants: list[Const] = []
    by_slot = resolve_slots(lift(expression, constants), names)
    return by_slot, tuple(c.term for c in constants)


Sides = tuple[
    tuple[tuple[int, ...], tuple[int, ...]],
    tuple[tuple[int, int], ...],
    tuple[tuple[int, int], ...],
]
"""Key slots of both sides, each output slot's origin, and shared slots that may be unbound."""


def key_sides(keys: tuple[str, ...], names: tuple[str, ...], ins: list[tuple[str, ...]]) -> Sides:
    """Returns the key slots, output origins and fills of a join."""
    left, right = ins
    sides = (tuple(left.index(k) for k in keys), tuple(right.index(k) for k in keys))
    out = tuple([(0, left.index(v)) if v in left else (1, right.index(v)) for v in names])
    fills = tuple([(left.index(v), right.index(v)) for v in left if v in right and v not in keys])
    return sides, out, fills


def arranged_sides(
    keys: tuple[str, ...], names: tuple[str, ...], ins: list[tuple[str, ...]], at: int
) -> Sides:
    """Returns these of a join whose side ``at`` is arranged by ``keys``, which the other side
    shows.
    """
    left, right = ins
    key_slots = tuple(map(ins[1 - at].index, keys))
    first = {v: (i, n) for i in (1, 0) for n, v in enumerate(ins[i])}
    first |= {v: (1 - at, n) for v, n in zip(keys, key_slots, strict=True)}
    fills = tuple([(left.index(v), right.index(v)) for v in left if v in right and v not in keys])
    return ((), key_slots) if at == 0 else (key_slots, ()), tuple([first[v] for v in names]), fills


def draw_slots(draw: p.Draw | None, names: tuple[str, ...]) -> tuple[tuple[int, ...], int] | None:
    """Returns the slots from which random values derive."""
    return None if draw is None else (tuple(names.index(v) for v in draw.solution), draw.place)


def pick_step(
    spec: p.Pick, names: tuple[str, ...], input_names: tuple[str, ...], tuples: bool
) -> tuple[s.Pick, tuple[Term, ...]]:
    """Returns a pick by slots, and its constants."""
    constants: list[Term] = []
    keys = []
    for key in spec.keys:
        params = tuple(range(len(constants), len(constants) + len(key.terms)))
        constants += key.terms
        keys.append(s.Key(input_names.index(key.name), params, key.source))
    tests = []
    for test in spec.tests:
        slot = input_names.index(test.name)
        tests.append(s.Comparison(test.range, slot, test.function, len(constants), test.order))
        constants.append(test.term)
    lifted = [Const(term) for term in constants]
    rest = tuple([resolve_slots(lift(one, lifted), input_names) for one in spec.rest])
    kept = tuple(map(input_names.index, names))
    pick = s.Pick(tuple(keys), tuple(tests), rest, kept, tuples)
    return pick, tuple([one.term for one in lifted])

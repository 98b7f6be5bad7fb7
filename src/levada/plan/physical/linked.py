"""Parts that are joined by different variables (chains, circles) as one step of all: those that
have the variable which most of them have come together by it, the others go to all partitions.

    a.x = b.x, b.y = c.y   ->   a and b exchanged by ?x, c to all, one step in one stage

So what is joined on the way is neither kept nor exchanged; what goes to all is received and kept by
each partition, which pays where it is little. Nothing is estimated: it is for who knows that.
(CQELS Cloud, C27 b.)

Invariant: the rows are those of the joins of two, with the same times; each combination has a row
of a part that is not copied, and all such rows are in one partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from levada.plan.physical import operators as p
from levada.plan.physical.operators import HOME, Op
from levada.plan.physical.partitioning import ALL, Exchange, place

MOST = 6
"""Parts of one step."""


def linked(parts: Sequence[Op]) -> list[Op]:
    """The parts, with one operator in the place of those that can be one step."""
    out: list[Op] = []
    for group in _connected([part for part in parts if _fits(part)]):
        out += [_one(group)] if _is_linked(group) else group
    return [*out, *(part for part in parts if not _fits(part))]


def told(root: Op) -> Iterator[str]:
    """Which joins are such a step, a sentence each."""
    waiting, seen = [root], set[int]()
    while waiting:
        op = waiting.pop()
        if id(op) in seen:
            continue
        seen.add(id(op))
        waiting += op.inputs
        if isinstance(op.spec, p.LinkedJoin):
            by = " ".join(f"?{name}" for name in op.placed) or "where they are"
            copied = sum(op.spec.copied)
            parts = "1 part goes" if copied == 1 else f"{copied} parts go"
            yield (
                f"The join of {len(op.inputs)} parts is one step: {len(op.inputs) - copied} of "
                f"them by {by}; the rows of {parts} to all partitions, each of which keeps them."
            )


def _fits(part: Op) -> bool:
    return bool(part.windows) and not part.weighted and part.placed != HOME


def _connected(parts: Sequence[Op]) -> list[list[Op]]:
    """Parts in groups: those that share variables, directly or through others."""
    groups: list[list[Op]] = []
    for part in parts:
        mine = [g for g in groups if any(set(part.variables) & set(op.variables) for op in g)]
        groups = [g for g in groups if g not in mine] + [[*(op for g in mine for op in g), part]]
    return groups


def _is_linked(group: Sequence[Op]) -> bool:
    """Whether parts are joined by several variables, all of which are always bound, and are few."""
    uses = _uses(group)
    sure = all(uses[v] < 2 or v not in part.maybe for part in group for v in part.variables)
    return 3 <= len(group) <= MOST and sure and max(uses.values()) < len(group)


def _uses(group: Sequence[Op]) -> Counter[str]:
    return Counter(v for part in group for v in part.variables)


def _one(group: Sequence[Op]) -> Op:
    """One operator of all parts."""
    uses = _uses(group)
    hub = max(uses, key=lambda v: uses[v])  # of equal ones that which stands first
    copied = tuple([hub not in part.variables for part in group])
    stage, exchange = _placed(group, copied, hub)
    shared = tuple([tuple([v for v in part.variables if uses[v] > 1]) for part in group])
    names = tuple(dict.fromkeys(v for part in group for v in part.variables))
    typed = frozenset(v for v in names if all(v in i.typed or v not in i.variables for i in group))
    return Op(
        p.LinkedJoin(shared, tuple([part.raw for part in group]), copied),
        tuple(group),
        names,
        tuple(sorted({w for part in group for w in part.windows or ()})),
        stage,
        exchange,
        (hub,),
        frozenset(v for part in group for v in part.maybe),
        typed=typed,
    )


def _placed(group: Sequence[Op], copied: Sequence[bool], hub: str) -> tuple[int, Exchange]:
    """The stage in which all parts are, and how they come there."""
    pairs = list(zip(group, copied, strict=True))
    own = tuple([part for part, alike in pairs if not alike])
    stage, by = place(own, (hub,))
    least = max([0, *(part.stage + 1 for part, alike in pairs if alike)])
    if least > stage:
        stage, by = least, ((hub,),) * len(own)
    ways = iter(by)
    return stage, tuple([ALL if alike else next(ways) for alike in copied])

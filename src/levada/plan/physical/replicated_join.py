"""Joins parts by different variables (chains, circles) in one step: parts with one of the variables
are partitioned by it, the others go to all partitions.

    a.x = b.x, b.y = c.y   ->   a and b exchanged by ?x, c to all, one step in one stage

So intermediate rows are neither kept nor exchanged. Each partition receives and keeps the
replicated parts, which pays if these are small. ``join_strategy`` decides whether to do it, and by
which variable. (CQELS Cloud, C27 b.)

Invariant: the rows are those of the binary joins, with the same times. Each combination has a row
of a part that is not replicated, and all such rows are in one partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from levada.core.count_text import count_text
from levada.core.size_thresholds import register
from levada.plan.physical import operators as p
from levada.plan.physical.build import occur
from levada.plan.physical.operators import HOME, Op
from levada.plan.physical.partitioning import ALL_PARTITIONS, Exchange, connected_groups, place

MAX_STEP_PARTS = register(f"{__name__}.MAX_STEP_PARTS", 6, least=2)
"""The maximum number of parts of one step."""


def link_parts(parts: Sequence[Op], by: Callable[[Sequence[Op]], str]) -> list[Op]:
    """Returns the parts, with one operator in place of those that become one step.

    ``by`` returns the variable for parts that can be one step; "": they stay separate.
    """
    out: list[Op] = []
    for group in connected_groups([part for part in parts if _fits(part)]):
        hub = by(group) if can_replicate(group) else ""
        out += [linked_join(group, hub)] if hub else group
    return [*out, *(part for part in parts if not _fits(part))]


def describe_replicated_joins(root: Op) -> Iterator[str]:
    """Returns a sentence for each join in such a step."""
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
            parts = count_text(copied, "part")
            yield (
                f"The join of {len(op.inputs)} parts is one step: {len(op.inputs) - copied} of "
                f"them by {by}; the rows of {parts} go to all partitions, each of which keeps them."
            )


def _fits(part: Op) -> bool:
    return bool(part.windows) and not part.weighted and part.placed != HOME


def can_replicate(group: Sequence[Op]) -> bool:
    """Whether parts can be one step: few parts, none static or weighted, shared variables always
    bound.
    """
    uses = count_variables(group)
    fits = all(map(_fits, group))
    sure = fits and all(
        uses[v] < 2 or v not in part.maybe for part in group for v in part.variables
    )
    return 2 <= len(group) <= MAX_STEP_PARTS and sure


def count_variables(group: Sequence[Op]) -> Counter[str]:
    """Returns the number of parts with each variable."""
    return Counter(v for part in group for v in part.variables)


def linked_join(group: Sequence[Op], hub: str) -> Op:
    """Returns one operator of all parts; those with the hub variable are partitioned by it.

    A part that shares no variable is made a set before: all of its rows match alike.
    """
    uses = count_variables(group)
    if max(uses.values()) < 2:
        group = [occur(part, (hub,) if hub in part.variables else ()) for part in group]
    copied = tuple([hub not in part.variables for part in group])
    stage, exchange = _place_parts(group, copied, hub)
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


def _place_parts(group: Sequence[Op], copied: Sequence[bool], hub: str) -> tuple[int, Exchange]:
    """Returns the stage of all parts, and their exchanges."""
    pairs = list(zip(group, copied, strict=True))
    divided = tuple([part for part, alike in pairs if not alike])
    stage, by = place(divided, (hub,))
    least = max([0, *(part.stage + 1 for part, alike in pairs if alike)])
    if least > stage:
        stage, by = least, ((hub,),) * len(divided)
    ways = iter(by)
    return stage, tuple([ALL_PARTITIONS if alike else next(ways) for alike in copied])

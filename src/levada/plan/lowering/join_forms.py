"""Parts of a conjunction as one step of several inputs, where the form of joins that is wanted has
that: all chains and circles (``replicated``), or those for which it costs less (``auto``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from levada.plan.physical.forms.choose import TWO, choose
from levada.plan.physical.forms.known import problem_of, values_of
from levada.plan.physical.forms.wanted import Chosen, Wanted
from levada.plan.physical.linked import common, linked
from levada.plan.physical.operators import Op
from levada.plan.sealed.kinds import JoinForm


def formed(parts: Sequence[Op], wanted: Wanted, two: Callable[[Sequence[Op]], Op]) -> list[Op]:
    """The parts, with one operator in the place of those that are one step; ``two``: what joins
    some two at a time.
    """
    if wanted.form is JoinForm.REPLICATED:
        return linked(parts, lambda group: _told(group, wanted))
    return linked(parts, lambda group: _chosen(group, wanted, two))


def _told(group: Sequence[Op], wanted: Wanted) -> str:
    """The variable of one step that the user wants: that which most parts have; of equal ones the
    most even one, if that is known, else the first. A star has none.
    """
    uses = common(group)
    most = max(uses.values())
    if len(group) < 3 or most == len(group):
        return ""
    names = [name for name, many in uses.items() if many == most]
    if wanted.measures is None or len(names) == 1:
        return names[0]
    found = [values_of(part, wanted.measures) for part in group]
    having = [
        [of for of, part in zip(found, group, strict=True) if v in part.variables] for v in names
    ]
    if any(v not in of for v, each in zip(names, having, strict=True) for of in each):
        return names[0]
    many = wanted.measures.partitions
    shares = [
        max(of[v].busiest(many) for of in each) for v, each in zip(names, having, strict=True)
    ]
    return names[shares.index(min(shares))]


def _chosen(group: Sequence[Op], wanted: Wanted, two: Callable[[Sequence[Op]], Op]) -> str:
    """The variable of the one step that costs least; "" for joins of two, and for what is not
    known. A star by its own variable is left to ``multiway``.
    """
    if wanted.measures is None or len(group) < 3:
        return ""
    problem = problem_of(group, two(group), wanted.measures, wanted.windows)
    if problem is None:
        return ""
    choice = choose(problem)
    parts = tuple([" ".join(f"?{name}" for name in part.variables) for part in group])
    wanted.chosen.append(Chosen(parts, problem.partitions, choice))
    return choice.chosen.by if choice.chosen.copied else TWO

"""How definitions, relaxations and decisions are told to people; one text for each, which tests
hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from bench.papers.streamreuse.model.cost import Costs
from bench.papers.streamreuse.model.descriptor import Descriptor
from bench.papers.streamreuse.model.planner import Decision, Way
from bench.papers.streamreuse.model.relaxation import Compensation, compensation, least
from bench.papers.streamreuse.model.windows import Windows, minutes


def show(definition: Descriptor) -> str:
    """A definition, a line for each of its parts."""
    lines = [", ".join(_streams(definition)) + f", {definition.windows.instants}"]
    if definition.joins:
        lines.append("equal: " + ", ".join(sorted(" = ".join(sorted(c)) for c in definition.joins)))
    lines.append(f"where: {definition.where}")
    if definition.group is not None:
        aggregates = sorted(f"{f}({a})" for f, a in definition.aggregates)
        lines.append("of each " + ", ".join(sorted(definition.group) or ["report"]))
        lines.append("aggregates: " + ", ".join(aggregates))
    else:
        lines.append("columns: " + ", ".join(sorted(definition.columns)))
    return "\n".join(lines)


def show_relaxed(users: Sequence[tuple[str, Descriptor]]) -> str:
    """The least operator for some queries, and what is done for each of these above it."""
    relaxed = least(definition for _, definition in users)
    told = [show(relaxed)]
    for name, definition in users:
        told.append(f"for {name}: " + "; ".join(_steps(compensation(relaxed, definition))))
    return "\n".join(told)


def show_decision(decision: Decision, costs: Costs) -> str:
    """All ways that were priced for a query, the cheapest first, and why it is that one."""
    ways = sorted(decision.ways, key=lambda way: way.cost)
    lines = [f"{decision.query.name}: {_way(decision.chosen)}"]
    lines += [
        f"  {'*' if way is decision.chosen else ' '} {_way(way)}: "
        f"{way.price.network:,.1f} bytes in transit, {way.price.cpu * 1000:,.3f} ms/s, "
        f"{way.cost:,.0f} over its life"
        for way in ways
    ]
    return "\n".join([*lines, f"  (a processor counts as {costs.weight:,.0f} bytes in transit)"])


def order(windows: Sequence[Windows]) -> list[tuple[Windows, Windows]]:
    """Which contain which: the order inside a node of the lattice (Figure 2 of the paper)."""
    return [(one, other) for one, other in permutations(windows, 2) if one.covers(other)]


def _streams(definition: Descriptor) -> list[str]:
    pairs = zip(definition.sources, definition.windows.ranges, strict=True)
    return [f"{source} [{minutes(ms)}]" if ms else source for source, ms in pairs]


def _steps(found: Compensation) -> list[str]:
    told = [f"where {found.where}"] if found.where is not None else []
    told += [f"{source} within {minutes(ms)}" for source, ms in found.ranges]
    told += [str(found.instants)] if found.instants is not None else []
    if found.group is not None:
        told.append("groups put together by " + ", ".join(sorted(found.group)))
    if found.columns is not None:
        told.append("columns " + ", ".join(sorted(found.columns)))
    return told or ["nothing"]


def _way(way: Way) -> str:
    if way.operator is not None:
        return f"operator {way.operator} ({way.kind}) at node {way.node}"
    inner = " and ".join(_way(given) for given in way.inputs)
    what = "+".join(way.definition.sources)
    return f"new {what} at node {way.node}" + (f" from [{inner}]" if inner else "")

"""Checks the invariants of rules: a rule may change only the pattern and the order of windows.

The variables that the pattern shows and the sources that it reads stay, and the tree is
well-formed. A violation is a mistake in a rule, not in a query. Cost: linear in the tree, for a
rule that changed it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from levada.plan.logical import nodes as a
from levada.plan.logical.traversal import children
from levada.plan.logical.variables import possible_variables


def verify(rule: str, before: a.Query, after: a.Query) -> None:
    """Asserts that a rule can make ``after`` from ``before``."""
    if after is before:
        return
    unchanged = replace(after, pattern=before.pattern, windows=before.windows)
    assert unchanged == before, f"{rule} changed more than the pattern and the order of windows"
    assert Counter(after.windows) == Counter(before.windows), f"{rule} has other windows"
    nodes = list(_nodes(after.pattern))
    assert _show(after.pattern) == _show(before.pattern), f"{rule} changed the variables"
    assert _read(before).issuperset(_read(after)), f"{rule} reads other sources"
    for node in nodes:
        assert is_well_formed(node), f"{rule} made {type(node).__name__} of what cannot be one"


def is_well_formed(node: a.Node) -> bool:
    """Whether a node by itself can be lowered.

    >>> is_well_formed(a.Conjunction(()))
    False
    """
    match node:
        case a.Conjunction(parts, _):
            return len(parts) > 0 and not any(isinstance(p, (a.Unit, a.Join)) for p in parts)
        case a.Extend(child, variable, _) | a.Mark(child, _, _, variable):
            return variable not in possible_variables(child)
        case a.Except(left, right):
            return possible_variables(left) == possible_variables(right)
        case a.Static(child):
            return not any(isinstance(n, _OVER_WINDOWS) for n in _nodes(child)) and not any(
                isinstance(n, (a.Bgp, a.Entailed)) and not isinstance(n.source, a.InGraph)
                for n in _nodes(child)
            )
        case _:
            return True


_READING = (a.Bgp, a.Entailed, a.TripleArrivals, a.Scan, a.SubQuery)
_OVER_WINDOWS = (a.TripleArrivals, a.Scan, a.SubQuery)


def _read(query: a.Query) -> frozenset[object]:
    """Returns the sources that are read, regardless of window numbers."""
    sources = [n.source for n in _nodes(query.pattern) if isinstance(n, _READING)]
    return frozenset(
        query.windows[s.index :][:1] if isinstance(s, a.InWindow) else s for s in sources
    )


def _nodes(node: a.Node) -> Iterator[a.Node]:
    yield node
    for child in children(node):
        yield from _nodes(child)


def _show(node: a.Node) -> frozenset[str]:
    """Returns the variables that a pattern shows; those with a dot are internal."""
    return frozenset(name for name in possible_variables(node) if not name.startswith("."))

"""Translates DESCRIBE: the concise bounded description of resources, as the solutions of a pattern
(SPARQL 1.1, 16.4, leaves the form open).

The description of a resource is the triples with it as the subject, and those of the blank nodes
that they lead to, and so on. It is read from the union of the query's windows and the default
graph. In algebra:

    resources    the values of the variables, the given IRIs
    subjects     the ends of a path over blank node objects from a resource, itself included
    description  the distinct triples of these subjects: a CONSTRUCT of them is the answer

Cost: that of the pattern, and of all triples of the windows and the default graph, by a join on the
subject.
"""

from __future__ import annotations

from collections.abc import Sequence

from levada.core.expressions import Call, Function, Var
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Term
from levada.language.translate.sparql.context import Context
from levada.plan.logical.nodes import (
    Bgp,
    Closure,
    Distinct,
    Extend,
    Filter,
    InMerge,
    InWindow,
    Join,
    Node,
    Project,
    Source,
    Union,
    Values,
)

TRIPLE = TriplePattern(Var(".s"), Var(".p"), Var(".o"))
"""The variables of a description's solutions, and its template."""


def describe_resources(solutions: Node, names: Sequence[Var | Term], context: Context) -> Node:
    """Returns the triples that describe these variables of ``solutions`` and these terms."""
    resources = Distinct(_union([_resource(solutions, name) for name in names]))
    step = Filter(
        _triples(TriplePattern(Var(".r"), Var(".p"), Var(".s")), context), _is_blank(".s")
    )
    subjects = Closure(Project(step, (".r", ".s")), resources, ".r", ".s", True, (None, None))
    reached = Distinct(Project(Join(resources, subjects), (".s",)))
    triples = Project(Join(reached, _triples(TRIPLE, context)), (".s", ".p", ".o"))
    return Distinct(triples)


def _resource(solutions: Node, name: Var | Term) -> Node:
    """Returns the resources of one name of DESCRIBE, as ``.r``; an unbound variable has none."""
    if not isinstance(name, Var):
        return Values((".r",), ((name,),))
    bound = Filter(Project(solutions, (name.name,)), Call(Function.BOUND, (name,)))
    return Project(Extend(bound, ".r", name), (".r",))


def _is_blank(name: str) -> Call:
    return Call(Function.IS_BLANK, (Var(name),))


def _triples(pattern: TriplePattern, context: Context) -> Node:
    """Returns a pattern over the windows and the default graph."""
    merged = context.source.windows if isinstance(context.source, InMerge) else ()
    apart = (InWindow(index) for index in context.windows.values() if index not in merged)
    sources: list[Source] = [
        context.source,
        *(window for window in apart if window != context.source),
    ]
    return _union([Bgp(source, (pattern,)) for source in sources])


def _union(branches: Sequence[Node]) -> Node:
    whole = branches[0]
    for branch in branches[1:]:
        whole = Union(whole, branch)
    return whole

"""Replaces an entailed pattern by explicit ones: distinct solutions of the union of its
alternatives.

This is for sources whose rows are weighted changes (count windows), where rows cannot be made a set
on arrival. Alternatives that differ only in constants are one pattern, joined with the rows of its
constants. So the size follows from the forms of alternatives, not from the ontology.
"""

from __future__ import annotations

from levada.core.expressions import Call, Const, Function, Var
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Iri, Term
from levada.plan.logical import nodes as a
from levada.plan.logical.variables import possible_variables

_PLACES = ("..cs", "..cp", "..co")
_THERE, _OTHER = "..there", "..other"
_Row = tuple[Term, ...]


def distinct_union(node: a.Entailed) -> a.Node:
    """Returns the meaning of an entailed pattern, without ``Entailed``."""
    names = tuple(dict.fromkeys(v.name for v in node.pattern.positions if isinstance(v, Var)))
    forms: dict[a.Alternative, list[tuple[a.Alternative, _Row]]] = {}
    for alternative in node.alternatives:
        form, row = _form(alternative)
        forms.setdefault(form, []).append((alternative, row))
    whole: a.Node | None = None
    for form, members in forms.items():
        form_node = (
            _explicit(node, members[0][0])
            if len(members) == 1
            else _join(node, form, [row for _, row in members])
        )
        branch = a.Project(_spread(node, members[0][0], form_node), names)
        whole = branch if whole is None else a.Union(whole, branch)
    assert whole is not None, "a pattern is an alternative of its own"
    if names:
        return a.Distinct(whole)
    return a.Project(
        a.Distinct(a.Project(a.Extend(whole, _THERE, Const(Iri(_THERE))), (_THERE,))), (_THERE,)
    )


def _form(alternative: a.Alternative) -> tuple[a.Alternative, _Row]:
    """Returns an alternative with variables in place of its terms, and these terms."""
    pairs = list(zip(_PLACES, alternative.pattern.positions, strict=True))
    pattern = TriplePattern(*(t if isinstance(t, Var) else Var(place) for place, t in pairs))
    binds = tuple(
        (name, value if isinstance(value, Var) else Var(name)) for name, value in alternative.binds
    )
    terms = (*alternative.pattern.positions, *(value for _, value in alternative.binds))
    return a.Alternative(pattern, binds, alternative.resource), tuple(
        t for t in terms if not isinstance(t, Var)
    )


def _explicit(node: a.Entailed, alternative: a.Alternative) -> a.Node:
    """Returns the solutions of one alternative."""
    whole = _resources(a.Bgp(node.source, (alternative.pattern,)), alternative)
    for name, value in alternative.binds:
        whole = a.Extend(whole, name, value if isinstance(value, Var) else Const(value))
    return whole


def _join(node: a.Entailed, form: a.Alternative, rows: list[_Row]) -> a.Node:
    """Returns the solutions of all alternatives of a form: its pattern joined with their terms."""
    names = [v.name for v in form.pattern.positions if isinstance(v, Var) and v.name in _PLACES]
    names += [name for name, value in form.binds if value == Var(name)]
    whole = _resources(a.Bgp(node.source, (form.pattern,)), form)
    whole = a.Join(whole, a.Values(tuple(names), tuple(rows)))
    for name, value in form.binds:
        if isinstance(value, Var) and value.name != name:
            whole = a.Extend(whole, name, value)
    return whole


def _resources(whole: a.Node, alternative: a.Alternative) -> a.Node:
    if not alternative.resource or not isinstance(alternative.pattern.object, Var):
        return whole
    return a.Filter(
        whole, Call(Function.NOT, (Call(Function.IS_LITERAL, (alternative.pattern.object,)),))
    )


def _spread(node: a.Entailed, alternative: a.Alternative, whole: a.Node) -> a.Node:
    """Adds solutions in which a subject or object is replaced by each of its equals."""
    bound = {name for name, value in alternative.binds if not isinstance(value, Var)}
    pairs = tuple((x, y) for group in node.alike for x in group for y in group if x != y)
    for place in (node.pattern.subject, node.pattern.object):
        if pairs and isinstance(place, Var) and place.name not in bound:
            others = tuple(sorted(possible_variables(whole) - {place.name}))
            moved = a.Project(a.Extend(whole, _OTHER, place), (*others, _OTHER))
            spread = a.Project(
                a.Join(moved, a.Values((_OTHER, place.name), pairs)), (*others, place.name)
            )
            whole = a.Union(whole, spread)
    return whole

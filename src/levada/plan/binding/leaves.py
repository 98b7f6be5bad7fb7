"""Turns leaf operators into shapes and members: patterns, columns and constants by slots."""

from __future__ import annotations

from collections.abc import Sequence

from levada.core.expressions import Var
from levada.core.rdf_terms import Term
from levada.plan.binding.slot_resolution import slots_of
from levada.plan.execution import steps as s
from levada.plan.execution.shapes import Member
from levada.plan.logical.nodes import Alternative
from levada.plan.physical import operators as p

Graphs = tuple[str | None, ...]
Leaf = p.Match | p.Entailed | p.Star | p.Scan | p.Constant


def is_static(spec: p.Spec) -> bool:
    """Whether this is a pattern over static graphs, whose rows are compared by all columns."""
    return isinstance(spec, (p.Match, p.Entailed)) and spec.stream is None


def leaf(
    spec: Leaf,
    variables: tuple[str, ...],
    names: tuple[str, ...],
    since: int,
    reread_graphs: Graphs,
) -> tuple[s.Step, Member]:
    """Returns the step and the member of a leaf that binds ``variables`` and outputs ``names``.

    ``since``: the plan version that reads static data and constants. ``reread_graphs``: the graphs
    at whose replacement they are read again.
    """
    kept = slots_of(names, variables)
    match spec:
        case p.Match(pattern, stream, graphs, lifted):
            places, terms = positions(pattern.positions, variables, names)
            return s.Match(places, kept, stream is None, lifted), _source_member(
                stream, graphs, terms, since, reread_graphs
            )
        case p.Entailed():
            return _entailed_step(spec, variables, kept, since, reread_graphs)
        case p.Star(patterns, stream):
            legs = [positions(t.positions, variables, names) for t in patterns]
            constants = tuple(t for _, terms in legs for t in terms)
            return s.Star(tuple(slots for slots, _ in legs), kept), Member(
                streams=(stream,), constants=constants
            )
        case p.Scan(stream, columns, types, sign):
            step = s.Scan(tuple(columns[k] for k in kept), tuple(types[k] for k in kept), sign)
            return step, Member(streams=(stream,))
        case p.Constant(rows):
            chosen = tuple(tuple(r[k] for k in kept) for r in rows)
            return s.Constant(len(kept)), Member(
                rows=chosen, since=since, reread_graphs=reread_graphs
            )


def _source_member(
    stream: str | None,
    graphs: Graphs,
    terms: tuple[Term | None, ...],
    since: int,
    reread_graphs: Graphs,
    *,
    ways: tuple[s.EntailmentAlternative, ...] = (),
) -> Member:
    """Returns a pattern's member; a pattern over static graphs belongs to its plan version."""
    streams = () if stream is None else (stream,)
    if stream is not None:
        since, reread_graphs = 0, ()
    return Member(
        streams=streams,
        constants=terms,
        graphs=graphs,
        since=since,
        ways=ways,
        reread_graphs=reread_graphs,
    )


def _entailed_step(
    spec: p.Entailed, variables: tuple[str, ...], kept: tuple[int, ...], since: int, reread_graphs:
    Graphs
) -> tuple[s.Step, Member]:  # fmt: skip
    """Returns the step with the forms of the alternatives, and the member with each alternative."""
    slots, terms = positions(spec.pattern.positions, variables, ())
    alternatives = [_way(alternative, variables) for alternative in spec.alternatives]
    forms = {form: i for i, form in enumerate(dict.fromkeys(form for form, _, _ in alternatives))}
    ways = sorted(
        (
            s.EntailmentAlternative(forms[form], constants, way_slots)
            for form, constants, way_slots in alternatives
        ),
        key=lambda way: way.form,
    )
    ends = (spec.pattern.subject, spec.pattern.object)
    spread = tuple(i for i, k in enumerate(kept) if spec.alike and Var(variables[k]) in ends)
    step = s.Entailed(slots, tuple(forms), kept, spec.stream is None, spread, spec.alike)
    return step, _source_member(
        spec.stream, spec.graphs, terms, since, reread_graphs, ways=tuple(ways)
    )


def _way(
    alternative: Alternative, variables: tuple[str, ...]
) -> tuple[s.Form, tuple[Term | None, Term | None, Term | None], tuple[Term, ...]]:  # fmt: skip
    """Returns the form of one alternative, the terms of its pattern, and the terms of its row."""
    places = alternative.pattern.positions
    binds = dict(alternative.binds)
    values = [binds.get(v, Var(v)) for v in variables]
    sources = tuple(places.index(value) if isinstance(value, Var) else -1 for value in values)
    terms = tuple(value for value in values if not isinstance(value, Var))
    a, b, c = (x if isinstance(x, Var) else None for x in places)
    repeats = (
        (a is not None and a == c) * 1
        + (a is not None and a == b) * 2
        + (b is not None and b == c) * 4
    )
    constants = tuple(None if isinstance(x, Var) else x for x in places)
    return (
        s.Form(sources, repeats, alternative.resource),
        (constants[0], constants[1], constants[2]),
        terms,
    )


def positions(
    places: Sequence[Var | Term], variables: tuple[str, ...], names: tuple[str, ...]
) -> tuple[tuple[int, int, int], tuple[Term | None, ...]]:  # fmt: skip
    """Returns the slot of each pattern position (-1: a term) and its term (None: a variable)."""
    slots = tuple(variables.index(x.name) if isinstance(x, Var) else -1 for x in places)
    constants = tuple(None if isinstance(x, Var) else x for x in places)
    return (slots[0], slots[1], slots[2]), constants

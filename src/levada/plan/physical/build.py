"""Constructors of physical operators: they decide placement, unbound variables and stages
(docs/architecture.md#a-querys-way).

Each returns an ``Op`` whose fields hold by construction. An input is local (``exchange`` None) only
if it is in the same stage and partitioned as the operator needs. Equal rows of a window are merged
(``Occur``) before an operator could lose the variables that distinguish two triples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from levada.core.expressions import Call, Const, Expression, Function, Var
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import XSD, Literal, Term
from levada.core.user_functions import operator_of
from levada.plan.logical.nodes import Entailed
from levada.plan.physical import operators as p
from levada.plan.physical.operators import HOME, Op
from levada.plan.physical.partitioning import LOST, join_keys, place, place_as_input, place_by_keys

ZERO = Const(Literal("0", XSD + "integer"))


def match(
    pattern: TriplePattern,
    stream: str | None,
    graphs: tuple[str | None, ...],
    window: int | None,
    *,
    raw: bool,
) -> Op:
    """Returns a triple pattern at the intake, with its variables in order of first position."""
    names = tuple(dict.fromkeys(v.name for v in pattern.positions if isinstance(v, Var)))
    windows = () if window is None else (window,)
    # static rows with times: replaced rows are taken back
    lasting = stream is None and window is not None
    return Op(p.Match(pattern, stream, graphs), (), names, windows, 0, raw=raw, weighted=lasting)


def entail(
    node: Entailed,
    stream: str | None,
    graphs: tuple[str | None, ...],
    window: int | None,
    *,
    raw: bool,
) -> Op:
    """Returns a triple pattern with its alternatives, at the intake.

    Several triples may entail one match, so its rows are not a set yet.
    """
    names = tuple(dict.fromkeys(v.name for v in node.pattern.positions if isinstance(v, Var)))
    windows = () if window is None else (window,)
    lasting = stream is None and window is not None
    spec = p.Entailed(node.pattern, node.alternatives, node.alike, stream, graphs)
    return Op(spec, (), names, windows, 0, raw=raw, weighted=lasting)


def star(patterns: Sequence[TriplePattern], stream: str, window: int) -> Op:
    """Returns patterns of one subject over a stream whose elements are closed.

    Their rows are a set: a triple is in one element only.
    """
    names = tuple(
        dict.fromkeys(v.name for t in patterns for v in t.positions if isinstance(v, Var))
    )
    return Op(p.Star(tuple(patterns), stream), (), names, (window,), 0)


def constant(names: tuple[str, ...], rows: tuple[tuple[Term | None, ...], ...]) -> Op:
    """Returns VALUES, or the one empty row of an empty group."""
    maybe = frozenset(v for i, v in enumerate(names) if any(r[i] is None for r in rows))
    return Op(p.Constant(rows), (), names, (), 0, maybe=maybe)


def count_window(rows: Op, window: int, count: int, keys: tuple[str, ...], *, bag: bool) -> Op:
    """Returns the changes of a count window for each value of ``keys``, at its home without keys.

    ``rows``: all rows of the stream.
    """
    stage, exchange, placed = place_by_keys(rows, keys) if keys else (rows.stage + 1, (HOME,), HOME)
    return replace(
        rows,
        spec=p.CountWindow(window, count, keys, bag),
        inputs=(rows,),
        stage=stage,
        exchange=exchange,
        placed=placed,
        raw=False,
        weighted=True,
    )


def user_operator(
    rows: Op,
    iri: str,
    keys: tuple[str, ...],
    read: Mapping[str, str],
    columns: Sequence[tuple[str, str]],
) -> Op:
    """Returns the rows of an operator of the user, whose state is kept for each value of the
    columns ``keys``, at its home without keys; one without state is where its rows fall.

    ``read``: the variables of the input's columns. ``columns``: those shown, with their variables.
    """
    by = tuple(read[key] for key in keys) or (() if operator_of(iri).state else rows.variables)
    stage, exchange, at = place_by_keys(rows, by) if by else (rows.stage + 1, (HOME,), HOME)
    spec = p.UserOperator(iri, keys, tuple(read.items()), tuple(c for c, _ in columns))
    names = tuple(variable for _, variable in columns)
    passed = {v: source for v in names if (source := spec.source(v, names)) is not None}
    to = {source: v for v, source in passed.items()}
    placed = at if at in (HOME, LOST) else tuple(to[v] for v in at) if to.keys() >= {*at} else LOST
    return Op(
        spec,
        (rows,),
        names,
        rows.windows,
        stage,
        exchange,
        placed,
        frozenset(v for c, v in columns if c != p.TIME),
        typed=frozenset(v for v, source in passed.items() if source in rows.typed),
    )


def recent(
    rows: Op,
    windows: tuple[int, int],
    count: int,
    keys: tuple[str, ...],
    shown: Sequence[tuple[str, str, bool]],
) -> Op:
    """Joins each row with the last rows of its key; ``rows``: all rows of the stream.

    ``windows``: [Now] and the count window. ``shown``: a variable, that of the input, and a flag
    for the past row.
    """
    rows = require(rows, keys)
    stage, exchange, at = place_by_keys(rows, keys) if keys else (rows.stage + 1, (HOME,), HOME)
    names, sources, past = zip(*shown, strict=True) if shown else ((), (), ())
    to = dict(zip(sources, names, strict=True))
    placed = at if at in (HOME, LOST) else tuple(to[v] for v in at) if to.keys() >= {*at} else LOST
    return Op(
        p.Recent(*windows, count, keys, sources, past),
        (rows,),
        names,
        tuple(sorted(windows)),
        stage,
        exchange,
        placed,
        frozenset(name for name, source, _ in shown if source in rows.maybe),
        typed=frozenset(name for name, source, _ in shown if source in rows.typed),
    )


def session(rows: Op, window: int, *, ended: bool, bag: bool) -> Op:
    """Returns the rows of a session window; equal rows are together, unless it is a bag."""
    always = tuple(v for v in rows.variables if v not in rows.maybe)
    keys = (always[:1] if bag else rows.variables) or HOME
    stage, exchange = place((rows,), keys)
    spec = p.Session(window, ended, bag)
    return Op(
        spec,
        (rows,),
        rows.variables,
        rows.windows,
        stage,
        exchange,
        keys,
        rows.maybe,
        weighted=not ended,
        typed=rows.typed,
    )


def select(rows: Op, pattern: TriplePattern, *beside: str) -> Op:
    """Returns a triple pattern over the rows of a count window, which have further variables."""
    names = (*dict.fromkeys(v.name for v in pattern.positions if isinstance(v, Var)), *beside)
    return Op(
        p.Select(pattern, beside),
        (rows,),
        names,
        rows.windows,
        rows.stage,
        (None,),
        HOME,
        weighted=True,
    )


def occur(op: Op, by: tuple[str, ...] = ()) -> Op:
    """Makes raw rows a set, partitioned by all their variables, or by some."""
    if not op.raw:
        return op
    keys = by or op.variables or HOME
    stage, exchange = place((op,), keys)
    return Op(
        p.Occur(), (op,), op.variables, op.windows, stage, exchange, keys, op.maybe, typed=op.typed
    )


def hold(op: Op, by: tuple[str, ...] = ()) -> Op:
    """Returns rows of one window after the intake, where they wait for its watermark.

    Raw rows become a set.
    """
    if op.raw:
        return occur(op, by)
    if op.stage > 0 or not op.windows:
        return op
    keys = by or tuple(v for v in op.variables if v not in op.maybe)[:1] or HOME
    stage, exchange = place((op,), keys)
    return replace(op, spec=p.Hold(), inputs=(op,), stage=stage, exchange=exchange, placed=keys)


def draw_source(op: Op, place: int) -> p.Draw:
    """Returns the values from which a random expression over these rows derives."""
    while isinstance(op.spec, (p.Filter, p.Extend)):
        op = op.inputs[0]
    return p.Draw(op.variables, place)


def filter_(op: Op, condition: Expression, draw: p.Draw | None = None) -> Op:
    """Returns a filter in the place of its input; a random filter needs equal solutions
    together.
    """
    return _same(op, p.Filter(condition, draw), op.variables, op.maybe, draw)


def extend(op: Op, variable: str, expression: Expression, draw: p.Draw | None = None) -> Op:
    """Adds a computed variable, placed as a filter; a copy of a variable is only a second name."""
    if isinstance(expression, Var):
        source = expression.name
        named = rename(op, (*op.variables, variable), (*op.variables, source))
        maybe = (
            named.maybe - {variable}
            if source in op.variables and source not in op.maybe
            else named.maybe
        )
        typed = op.typed | ({variable} if source in op.typed else set())
        return replace(named, maybe=maybe, typed=typed)
    maybe = op.maybe if isinstance(expression, Const) else op.maybe | {variable}
    return _same(op, p.Extend(expression, draw), (*op.variables, variable), maybe, draw)


def _same(
    op: Op, spec: p.Spec, names: tuple[str, ...], maybe: frozenset[str], draw: p.Draw | None = None
) -> Op:
    stage, exchange, placed = (
        place_as_input(op) if draw is None else place_by_keys(op, draw.solution)
    )
    return Op(
        spec,
        (op,),
        names,
        op.windows,
        stage,
        exchange,
        placed,
        maybe,
        op.raw,
        op.weighted,
        op.typed,
    )


def rename(op: Op, names: Sequence[str], sources: Sequence[str] | None = None) -> Op:
    """Projects to ``names``, which are the variables ``sources``; missing ones are unbound."""
    wanted = tuple(names)
    if wanted == op.variables:
        return op
    if op.raw and not set(op.variables) <= set(wanted):
        op = occur(op)
    placed = op.placed if op.placed == HOME or set(op.placed) <= set(wanted) else LOST
    maybe = (op.maybe & set(wanted)) | (set(wanted) - set(op.variables))
    typed = op.typed & set(wanted)
    spec = p.Rename(wanted if sources is None else tuple(sources))
    return Op(
        spec,
        (op,),
        wanted,
        op.windows,
        op.stage,
        (None,),
        placed,
        frozenset(maybe),
        op.raw,
        op.weighted,
        typed,
    )


def apply(tree: Op, names: tuple[str, ...], terms: tuple[Term, ...]) -> Op:
    """Returns a tree of operators over patterns with these names and terms."""
    assert not (tree.maybe or tree.typed or tree.raw), "a set of matches of a pattern"
    called = dict(zip(tree.variables, names, strict=True))
    placed = tuple(called.get(v, v) for v in tree.placed)
    return Op(
        p.Applied(terms),
        (tree,),
        names,
        tree.windows,
        tree.stage,
        (None,),
        placed,
        weighted=tree.weighted,
    )


def require(op: Op, names: Sequence[str]) -> Op:
    """Keeps rows in which these variables are bound (an equi-join of tuples never
    matches nulls).
    """
    for name in names:
        if name in op.maybe:
            bound = filter_(op, Call(Function.BOUND, (Var(name),)))
            op = replace(bound, maybe=bound.maybe - {name})
    return op


def bind_missing(op: Op, names: Sequence[str]) -> Op:
    """Adds variables that the input lacks, as unbound."""
    missing = [n for n in dict.fromkeys(names) if n not in op.variables]
    return rename(op, (*op.variables, *missing)) if missing else op


def union(*parts: Op) -> Op:
    """Returns all rows of all parts; each part's missing variables are unbound."""
    parts = tuple(map(hold, parts))
    names = tuple(dict.fromkeys(v for part in parts for v in part.variables))
    common = set(names).intersection(*(part.variables for part in parts))
    maybe = frozenset(set(names) - common).union(*(part.maybe for part in parts))
    windows = None
    if all(part.windows is not None for part in parts):
        windows = tuple(sorted({w for part in parts for w in part.windows or ()}))
    stage = max(part.stage for part in parts)
    together = tuple(sorted(common)) or HOME
    exchange = tuple(None if part.stage == stage else together for part in parts)
    first = parts[0].placed
    same = first != HOME and all(part.placed == first and part.stage == stage for part in parts)
    placed = first if same else (LOST if stage else ())
    typed = frozenset(v for v in names if all(v in i.typed or v not in i.variables for i in parts))
    weighted = any(part.weighted for part in parts)
    return Op(
        p.Union(),
        parts,
        names,
        windows,
        stage,
        exchange,
        placed,
        maybe,
        weighted=weighted,
        typed=typed,
    )


def join(left: Op, right: Op, by: str = "") -> Op:
    """Returns an incremental join of rows with event times.

    ``by``: the key that places it, unless rows are already placed.
    """
    shared, keys, placed = join_keys(left, right)
    if by and not any(side.stage > 0 and side.placed == placed for side in (left, right)):
        placed = (by,)
    stage, exchange = place((left, right), placed)
    names = (*left.variables, *(v for v in right.variables if v not in shared))
    assert left.windows is not None and right.windows is not None, (
        "an incremental join has event times"
    )
    windows = tuple(sorted({*left.windows, *right.windows}))
    maybe = both_maybe(left, right, shared)
    weighted = left.weighted or right.weighted
    typed = (left.typed | right.typed) - frozenset(
        v for v in shared if v not in left.typed or v not in right.typed
    )
    spec = p.Join(keys, (left.raw, right.raw))
    return Op(
        spec,
        (left, right),
        names,
        windows,
        stage,
        exchange,
        placed,
        maybe,
        weighted=weighted,
        typed=typed,
    )


def both_maybe(left: Op, right: Op, shared: tuple[str, ...]) -> frozenset[str]:
    """Returns the variables that can be unbound in the result: those that can be on both sides."""
    one_sided = (left.maybe | right.maybe) - set(shared)
    return one_sided | frozenset(v for v in shared if v in left.maybe and v in right.maybe)

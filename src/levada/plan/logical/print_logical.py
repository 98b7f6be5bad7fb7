"""Prints the stable text form of the algebra, for ``explain --stage algebra`` and for snapshots in
tests.

Each node is a line with its children indented below it. The line has the node's sources, patterns,
expressions and names:

    SELECT ?s RSTREAM
      window 0 <http://e/w> on <http://e/s> [RANGE PT4S STEP PT2S close [)]
      (project (?s)
        (bgp (window 0)
          (?s <http://e/p> ?o)))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from levada.core import expressions
from levada.core.event_time import Window, WindowKind
from levada.core.expressions import Var
from levada.core.query_model import Form, TriplePattern
from levada.core.rdf_terms import Term
from levada.plan.logical.nodes import (
    Alternative,
    Bgp,
    Closure,
    Conjunction,
    Distinct,
    Entailed,
    Except,
    Exists,
    Extend,
    Filter,
    Group,
    InGraph,
    InMerge,
    InWindow,
    Join,
    LeftJoin,
    Mark,
    Minus,
    Node,
    Number,
    OrderBy,
    Project,
    Query,
    Recent,
    Scan,
    Slice,
    Source,
    Static,
    SubQuery,
    Top,
    TripleArrivals,
    Union,
    Unit,
    Values,
)
from levada.plan.logical.traversal import children

# alternatives of a pattern, and classes of terms that are alike, that are shown: there may be
# thousands
SHOWN = 24


def show(query: Query) -> str:
    """Returns the text form of a query: form, columns, output, windows, graphs,
    template, pattern.
    """
    head = [
        query.form.value,
        _names(query.variables) if query.form is Form.SELECT else "",
        query.output.value,
    ]
    lines = [" ".join(part for part in head if part)]
    for index, on in enumerate(query.windows):
        lines.append(
            f"  window {index} <{on.name}> on <{on.stream}> "
            f"{on.window.describe()}{_start(on.window)}"
        )
    policy = (
        [query.reports.clock.describe() + _start(query.reports.clock)]
        if query.reports.clock
        else []
    )
    policy += ["nonempty"] if query.reports.nonempty else []
    if policy:
        lines.append("  reports " + " ".join(policy))
    if query.graphs is not None:
        lines.append("  from " + (" ".join(f"<{graph}>" for graph in query.graphs) or "no graph"))
    lines += [f"  template {_triple(triple)}" for triple in query.template]
    return "\n".join([*lines, show_node(query.pattern, 1)])


def show_node(node: Node, depth: int = 0) -> str:
    """Returns the text form of a node and the nodes below it.

    >>> print(show_node(Join(Unit(), Unit())))
    (join
      (unit)
      (unit))
    """
    lines = [
        f"{'  ' * depth}({_head(node)}",
        *(f"{'  ' * (depth + 1)}{line}" for line in _inner(node)),
    ]
    lines += [show_node(child, depth + 1) for child in children(node)]
    return "\n".join(lines) + ")"


def _head(node: Node) -> str:
    match node:
        case Unit() | Join() | Recent() | Minus() | Union() | Except() | Distinct() | Static():
            return type(node).__name__.lower()
        case Bgp(source, _):
            return f"bgp {_source(source)}"
        case Entailed(source, pattern, _, _):
            return f"entailed {_source(source)} {_triple(pattern)}"
        case TripleArrivals(source, pattern, variable):
            return f"came {_source(source)} {_triple(pattern)} ?{variable}"
        case Closure():
            return _closure(node)
        case Scan(source, columns, partition, relation, operators):
            word = "relation" if relation else "scan"
            word = " ".join([*(f"<{iri}> of" for iri, _ in reversed(operators)), word])
            return " ".join(
                [f"{word} {_source(source)}", *_columns(columns), *_partition(partition)]
            )
        case SubQuery(source, _, level, output, columns, partition):
            below = f"derived {_source(source)} {output} over {' '.join(map(str, level))}"
            return " ".join([below, *_columns(columns), *_partition(partition)])
        case Values(variables, _):
            return f"values {_names(variables)}"
        case LeftJoin(_, _, condition):
            return "left-join" if condition is None else f"left-join {expressions.show(condition)}"
        case Exists(_, _, condition, negated):
            word = "not-exists" if negated else "exists"
            return word if condition is None else f"{word} {expressions.show(condition)}"
        case Mark(_, _, condition, variable):
            return f"mark ?{variable}" + (
                "" if condition is None else f" {expressions.show(condition)}"
            )
        case Filter(_, condition):
            return f"filter {expressions.show(condition)}"
        case Extend(_, variable, value):
            return f"extend ?{variable} = {expressions.show(value)}"
        case Group(_, keys, aggregates):
            named = "".join(
                f" ?{name} = {expressions.show(aggregate)}" for name, aggregate in aggregates
            )
            return f"group {_names(keys)}{named}"
        case Project(_, variables):
            return f"project {_names(variables)}"
        case OrderBy(_, keys):
            return f"order {_order(keys)}"
        case Number(_, variable, function, partition, keys):
            return f"number ?{variable} = {function} by {_names(partition)} {_order(keys)}"
        case Slice(_, offset, limit):
            return f"slice {_range(offset, limit)}"
        case Top(_, keys, offset, limit, shown):
            ties = "" if shown is None else f" then {_names(shown)}"
            return f"top {_range(offset, limit)} {_order(keys)}{ties}"
        case Conjunction(_, conditions):
            return " ".join(["conjunction", *map(expressions.show, conditions)])


def _order(keys: Sequence[tuple[expressions.Expression, bool]]) -> str:
    return " ".join(f"{'desc' if down else 'asc'} {expressions.show(key)}" for key, down in keys)


def _range(offset: int, limit: int | None) -> str:
    return f"offset {offset}" + ("" if limit is None else f" limit {limit}")


def _closure(node: Closure) -> str:
    """Returns both ends and the number of steps between them."""
    least, most = (1 if node.zero is None else 0), ("" if node.many else 1)
    ends = (
        f"?{name}" + ("" if term is None else f"={term}")
        for name, term in zip((node.start, node.end), node.ends, strict=True)
    )
    return f"closure {' '.join(ends)} {least}..{most}"


def _inner(node: Node) -> Iterator[str]:
    """Returns the lines of a leaf."""
    match node:
        case Bgp(_, patterns):
            yield from map(_triple, patterns)
        case Entailed(_, _, alternatives, alike):
            yield from map(_alternative, alternatives[:SHOWN])
            if len(alternatives) > SHOWN:
                yield f"and {len(alternatives) - SHOWN} more"
            yield from (f"alike {' '.join(map(str, terms))}" for terms in alike[:SHOWN])
            if len(alike) > SHOWN:
                yield f"alike: {len(alike) - SHOWN} classes more"
        case Values(_, rows):
            for row in rows:
                yield "(" + " ".join("UNDEF" if term is None else str(term) for term in row) + ")"
        case _:
            return


def _columns(columns: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{column}=?{name}" for column, name in columns]


def _partition(columns: Sequence[str]) -> list[str]:
    return [f"partition by {' '.join(columns)}"] if columns else []


def _source(source: Source) -> str:
    match source:
        case InWindow(index):
            return f"(window {index})"
        case InMerge(windows, static):
            parts = [f"window {index}" for index in windows] + ["default graph"] * static
            return f"(merge of {', '.join(parts)})"
        case InGraph(None):
            return "(default graph)"
        case InGraph(name):
            return f"(graph <{name}>)"


def _triple(triple: TriplePattern) -> str:
    return "(" + " ".join(_position(position) for position in triple.positions) + ")"


def _alternative(alternative: Alternative) -> str:
    """Returns an explicit pattern, its further bindings, and the restriction of its object."""
    binds = "".join(f" ?{name} = {_position(value)}" for name, value in alternative.binds)
    return _triple(alternative.pattern) + binds + " no literal" * alternative.resource


def _position(position: Var | Term) -> str:
    return f"?{position.name}" if isinstance(position, Var) else str(position)


def _names(names: Sequence[str]) -> str:
    return "(" + " ".join(f"?{name}" for name in names) + ")"


def _start(window: Window) -> str:
    """Returns the start of a window whose own text lacks it."""
    is_in_text = window.kind in (WindowKind.CLOSE_OPEN, WindowKind.CLOSE_CLOSED, WindowKind.CHANGE)
    return f" from {window.t0}" if window.t0_given and not is_in_text else ""

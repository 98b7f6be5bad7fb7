"""Translates a query's syntax tree to its algebra (SPARQL 1.1, section 18.2; docs/semantics.md).

    windows    FROM NAMED WINDOW and the options  ``windows``
    dataset    FROM, FROM NAMED                   here
    pattern    WHERE                              ``patterns``, with ``expressions``
    level      SELECT and the solution modifiers  ``solution_modifiers``, with ``aggregates``
    form       SELECT, ASK, CONSTRUCT             here; DESCRIBE is a CONSTRUCT of the triples of
                                                  ``describe``

SPARQL features that the engine does not evaluate are refused here, with name and place. Later
stages do not depend on the text's language. Cost: linear in the text.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from levada.core.expressions import Call, Function, Var
from levada.core.query_model import Form, Output, TriplePattern
from levada.core.rdf_terms import Blank, Term
from levada.errors import QueryError, UnknownNameError, near
from levada.language.sparql import ast
from levada.language.sparql.scope import variables_in_scope
from levada.language.translate.sparql.context import Context
from levada.language.translate.sparql.patterns import inline, pattern, triple_pattern
from levada.language.translate.sparql.solution_modifiers import level
from levada.language.translate.sparql.windows import (
    iri,
    merge_report_options,
    reporting,
    spread_windows,
    stream_hint,
    windows,
)
from levada.plan.logical.depth_limit import check_depth
from levada.plan.logical.nodes import (
    Bgp,
    Closure,
    Distinct,
    Extend,
    Filter,
    InGraph,
    InMerge,
    InWindow,
    Join,
    Node,
    Project,
    Query,
    Reporting,
    Source,
    Union,
    Values,
)
from levada.plan.logical.query_options import QueryOptions

# Translates DESCRIBE: the concise bounded description of resources, as the solutions of a pattern
# (SPARQL 1.1, 16.4, leaves the form open).
#
# The description of a resource is the triples with it as the subject, and those of the blank nodes
# that they lead to, and so on. It is read from the union of the query's windows and the default
# graph. In algebra:
#
#     resources    the values of the variables, the given IRIs
#     subjects     the ends of a path over blank node objects from a resource, itself included
#     description  the distinct triples of these subjects: a CONSTRUCT of them is the answer
#
# Cost: that of the pattern, and of all triples of the windows and the default graph, by a join on
# the subject.


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


_DEFAULTS = QueryOptions()


def translate(
    unit: ast.QueryUnit,
    options: QueryOptions = _DEFAULTS,
    *,
    text: str = "",
    graphs: Collection[str] | None = None,
    streams: Collection[str] | None = None,
) -> Query:
    """Returns the algebra of a query; ``text`` is the source of ``unit``, for messages.

    ``graphs``: the names of all static graphs. None: unknown; then any can exist, and GRAPH with a
    variable matches none. ``streams``: the names of all RDF streams, over which STREAM with a
    variable ranges.

    Raises ``UnsupportedError`` for features that are not evaluated, ``UnknownNameError`` for a
    window, graph or function that does not exist, ``QueryError`` for windows and options that
    contradict each other.

    >>> from levada.language import parse
    >>> text = "SELECT ?s FROM NAMED WINDOW <w> ON <s> [RANGE PT4S STEP PT2S] "
    >>> query = translate(parse(text + "{ WINDOW <w> { ?s ?p ?o } }"))
    >>> query.windows[0].window.describe()
    '[RANGE PT4S STEP PT2S close [)]'
    """
    try:
        query = _query(spread_windows(unit, streams, text), options, text, graphs, streams or ())
    except RecursionError:
        raise QueryError("The query is nested too deeply.", text=text) from None
    check_depth(query.pattern, text)
    return query


def _query(
    unit: ast.QueryUnit,
    options: QueryOptions,
    text: str,
    graphs: Collection[str] | None,
    streams: Collection[str],
) -> Query:
    options = merge_report_options(unit, options, text)
    declared = windows(unit.windows, options, text)
    names = {window.name: index for index, window in enumerate(declared)}
    graphs_ = _named_graphs(unit.datasets, graphs, streams, text)
    context = Context(
        text,
        names,
        graphs_,
        unit.base,
        pattern,
        _default(unit),
        tuple(on.stream for on in declared),
    )
    template = _template(unit.form.template) if isinstance(unit.form, ast.Construct) else ()
    # a DESCRIBE of IRIs may have none
    where = ast.Group((), unit.form.span) if unit.where is None else unit.where
    below = pattern(where, _default(unit), context)
    data = None if unit.values is None else inline(unit.values)
    columns = _variables(template) if isinstance(unit.form, ast.Construct) else None
    above, shown = level(
        below,
        unit.form,
        where,
        unit.modifiers,
        (unit.values, data),
        context=context,
        columns=columns,
    )
    if isinstance(unit.form, ast.Describe):
        template = (TRIPLE,)
        above, shown = (
            describe_resources(above, _describe(unit, unit.form, where), context),
            _variables(template),
        )
    return Query(
        form=_form(unit.form),
        pattern=above,
        variables=shown,
        windows=declared,
        output=_output(unit, bool(declared), text),
        template=template,
        graphs=_default_graphs(unit.datasets),
        text=text,
        reports=reporting(options)
        if declared
        else Reporting(),  # one report, whatever the policy of others
        registered="" if unit.register is None else iri(unit.register.name),
    )


def _default(unit: ast.QueryUnit) -> Source:
    """Returns the source of patterns without window or graph: the default graph, with merged
    windows.
    """
    merged = tuple(index for index, clause in enumerate(unit.windows) if clause.merged)
    static = not unit.datasets or any(not clause.named for clause in unit.datasets)
    if not merged:
        return InGraph(None)
    return InWindow(merged[0]) if len(merged) == 1 and not static else InMerge(merged, static)


def _describe(unit: ast.QueryUnit, form: ast.Describe, where: ast.Group) -> list[Var | Term]:
    """Returns the resources to describe; ``*`` is all variables in scope."""
    if form.names is None:
        return [Var(name) for name in variables_in_scope(where, unit.modifiers, unit.values)]
    return [Var(name.name) if isinstance(name, ast.Var) else name.term for name in form.names]


def _form(form: ast.Form) -> Form:
    match form:
        case ast.Select():
            return Form.SELECT
        case ast.Construct() | ast.Describe():
            return Form.CONSTRUCT
        case _:
            return Form.ASK


def _output(unit: ast.QueryUnit, windowed: bool, text: str) -> Output:
    """Returns the output. Without windows there is one report: all is new, nothing is removed."""
    output = Output(unit.output)
    if windowed:
        return output
    if output is Output.DSTREAM:
        hint = "Declare a window: FROM NAMED WINDOW <w> ON <stream> [RANGE PT10S STEP PT5S]."
        span = unit.form.span if unit.register is None else unit.register.span
        raise QueryError(
            "A DSTREAM without windows would never say anything.", span=span, text=text, hint=hint
        )
    return Output.RSTREAM


def _named_graphs(
    datasets: Sequence[ast.From],
    graphs: Collection[str] | None,
    streams: Collection[str],
    text: str,
) -> Sequence[str] | None:
    """Returns the named graphs of the dataset (13.2): those of FROM NAMED; without FROM all
    existing ones.

    Each must exist.
    """
    for clause in datasets:
        name = iri(clause.graph)
        if graphs is not None and name not in graphs:
            raise UnknownNameError(
                f"There is no static graph <{name}>.",
                span=clause.graph.span,
                text=text,
                hint=stream_hint(name, streams) or near(name, sorted(graphs)),
            )
    if datasets:
        return tuple(dict.fromkeys(iri(clause.graph) for clause in datasets if clause.named))
    return None if graphs is None else sorted(graphs)


def _default_graphs(datasets: Sequence[ast.From]) -> tuple[str, ...] | None:
    """Returns the graphs of FROM (13.2).

    With FROM NAMED alone the default graph is empty; without both it is the engine's.
    """
    graphs = tuple(dict.fromkeys(iri(clause.graph) for clause in datasets if not clause.named))
    return graphs if datasets else None


def _template(triples: Sequence[ast.Triple]) -> tuple[TriplePattern, ...]:
    """Translates a template; its blank nodes are not variables, also in the short form (16.2.4)."""
    nodes = {
        Var(f"_:{node.label}"): Blank(node.label)
        for triple in triples
        for node in (triple.subject, triple.object)
        if isinstance(node, ast.BlankNode)
    }
    patterns = (triple_pattern(triple).positions for triple in triples)
    return tuple(
        TriplePattern(*(nodes.get(p, p) if isinstance(p, Var) else p for p in row))
        for row in patterns
    )


def _variables(template: Sequence[TriplePattern]) -> tuple[str, ...]:
    """Returns the variables of a template in order of appearance."""
    return tuple(
        dict.fromkeys(p.name for triple in template for p in triple.positions if isinstance(p, Var))
    )

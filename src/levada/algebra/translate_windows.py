"""FROM NAMED WINDOW to ``model.time.Window``: the one place where RSP-QL's clauses and the options meet (design, section 1).

RANGE a STEP b   on close CLOSE_OPEN or CLOSE_CLOSED by the bounds, on content change CHANGE
RANGE a          RANGE: each element stays for a
NOW, ALL         NOW, ALL
TRIPLES n        COUNT
"""

from __future__ import annotations

from collections.abc import Sequence

from levada.algebra.nodes import WindowOn
from levada.algebra.options import QueryOptions
from levada.errors import QueryError
from levada.model.term import Iri
from levada.model.time import Window, WindowKind
from levada.syntax import ast


def windows(clauses: Sequence[ast.WindowClause], options: QueryOptions, text: str) -> tuple[WindowOn, ...]:
    """The windows of a query in order; QueryError for a name declared twice, or ``report=close`` without any STEP."""
    seen: set[str] = set()
    for clause in clauses:
        name = iri(clause.name)
        if name in seen:
            raise QueryError(f"The window <{name}> is declared twice.", span=clause.span, text=text)
        seen.add(name)
    if options.report == "close" and not any(isinstance(c.spec, ast.Range) and c.spec.step for c in clauses):
        span = clauses[0].span if clauses else None
        message = "The option report=close needs a window with a STEP: only such windows close."
        raise QueryError(message, span=span, text=text)
    return tuple(WindowOn(iri(c.name), iri(c.stream), window(c.spec, options)) for c in clauses)


def window(spec: ast.WindowSpec, options: QueryOptions) -> Window:
    """The window that a clause means under the options.

    >>> window(ast.Range(4000, 2000), QueryOptions(bounds="(]")).kind.name
    'CLOSE_CLOSED'
    """
    t0, given = options.t0 or 0, options.t0 is not None
    match spec:
        case ast.Range(range_, None):
            return Window(WindowKind.RANGE, range=range_, t0=t0, t0_given=given)
        case ast.Range(range_, int(step)):
            return Window(_sliding(options), range=range_, step=step, t0=t0, t0_given=given)
        case ast.LastTriples(count):
            return Window(WindowKind.COUNT, count=count, t0=t0, t0_given=given)
        case ast.Instant.NOW:
            return Window(WindowKind.NOW, t0=t0, t0_given=given)
        case _:
            return Window(WindowKind.ALL, t0=t0, t0_given=given)


def _sliding(options: QueryOptions) -> WindowKind:
    if options.report == "change":
        return WindowKind.CHANGE
    return WindowKind.CLOSE_OPEN if options.bounds == "[)" else WindowKind.CLOSE_CLOSED


def iri(constant: ast.Constant) -> str:
    """The text of a constant that the grammar has shown to be an IRI."""
    assert isinstance(constant.term, Iri), "names of windows, streams and graphs are IRIs"
    return constant.term.value

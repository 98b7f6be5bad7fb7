"""Translates FROM NAMED WINDOW to ``core.event_time.Window``: the only place that combines RSP-QL's
clauses with the options (docs/semantics.md#windows).

    RANGE a STEP b             CLOSE_OPEN or CLOSE_CLOSED by the bounds; on content change CHANGE
    RANGE a                    RANGE: each element stays for a
    FROM NOW-a TO NOW-e ...    the same with ``to`` = e
    NOW, ALL                   NOW, ALL
    TRIPLES n                  COUNT
    ELEMENTS n STEP m          COUNT with a step
    SESSION g                  at its end ENDED, on content change or periodically SESSION
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from levada.core.event_time import Window, WindowKind
from levada.core.names import match_streams
from levada.core.query_model import StreamWindow
from levada.core.rdf_terms import Iri
from levada.errors import LevadaError, QueryError, Span
from levada.language.sparql import ast
from levada.language.sparql.iri import resolve
from levada.language.sparql.window_ast import call
from levada.language.translate.sparql.context import Context
from levada.plan.logical.nodes import Reporting
from levada.plan.logical.query_options import QueryOptions

READ_BY = (
    "A stream is read through a window: FROM NAMED WINDOW <w> ON <stream> "
    "[RANGE PT10S STEP PT5S], and WINDOW <w> { .. } around the pattern."
)


def stream_hint(graph: str, streams: Collection[str]) -> str:
    """Returns a hint for a stream that is named as a graph; else "".

    >>> stream_hint("http://e/rooms", ["rooms"])[:30]
    'rooms is a stream. A stream is'
    """
    with suppress(LevadaError):
        return f"{match_streams([graph], streams)[graph]} is a stream. {READ_BY}"
    return ""


def merge_report_options(unit: ast.QueryUnit, options: QueryOptions, text: str) -> QueryOptions:
    """Adds the reports and the start of the text, or of its dialect, to the options; options have
    precedence.
    """
    says = unit.reporting
    if says.nonempty and options.empty_reports:
        message = (
            "Reports without content are left out by the text, "
            "and shown by the option empty_reports."
        )
        raise QueryError(message, span=unit.form.span, text=text)
    t0 = says.t0 if options.t0 is None else options.t0
    merged = replace(options, t0=t0, nonempty=options.nonempty or says.nonempty)
    if options.report is not None or options.period is not None:
        return merged
    return replace(merged, period=says.every, report=None if says.every else says.policy)


def windows(
    clauses: Sequence[ast.WindowClause], options: QueryOptions, text: str
) -> tuple[StreamWindow, ...]:
    """Returns the windows of a query in order.

    Raises ``QueryError`` for a name declared twice, or for ``report=close`` without any STEP.
    """
    seen: set[str] = set()
    for clause in clauses:
        name = iri(clause.name)
        if name in seen:
            raise QueryError(f"The window <{name}> is declared twice.", span=clause.span, text=text)
        seen.add(name)
    if options.report == "close" and clauses and not any(map(_closes, clauses)):
        span = clauses[0].span
        message = "The option report=close needs a window with a STEP: only such windows close."
        raise QueryError(message, span=span, text=text)
    return tuple(StreamWindow(iri(c.name), _stream(c), window(c.spec, options)) for c in clauses)


def _stream(clause: ast.WindowClause) -> str:
    assert isinstance(clause.stream, ast.Constant), "a variable has been spread over the streams"
    return iri(clause.stream)


def spread_windows(
    unit: ast.QueryUnit, streams: Collection[str] | None, text: str
) -> ast.QueryUnit:
    """Returns the query with a window on each stream over which ``STREAM ?s [..]`` ranges.

    Equal brackets on a stream are one window.
    """
    clauses: list[ast.WindowClause] = []
    said = {iri(clause.name) for clause in unit.windows if isinstance(clause.stream, ast.Constant)}
    for clause in unit.windows:
        if isinstance(clause.stream, ast.Constant):
            clauses.append(clause)
            continue
        if not streams:
            message = f"STREAM ?{clause.stream.name} goes over the streams, and none are given."
            raise QueryError(
                message, span=clause.stream.span, text=text, hint="Say --stream IRI=PATH."
            )
        for stream in sorted(streams):
            name, on = (
                ast.Constant(Iri(n), clause.stream.span)
                for n in (call(stream, clause.spec), stream)
            )
            if iri(name) not in said:
                clauses.append(replace(clause, name=name, stream=on))
    return replace(unit, windows=tuple(clauses))


def each_stream(
    name: str, span: Span, spec: ast.WindowSpec | None, context: Context
) -> Iterator[tuple[int, Iri]]:
    """Yields the windows over which ``STREAM ?s`` ranges, by number, with the IRI of ?s."""
    for index, (window, stream) in enumerate(zip(context.windows, context.streams, strict=True)):
        if spec is not None and window != call(stream, spec):
            continue
        if ":" not in stream and context.base is None:
            hint = "Give the stream by its IRI, or the query a BASE."
            message = f"STREAM ?{name} goes over the stream {stream}, which has no IRI."
            raise QueryError(message, span=span, text=context.text, hint=hint)
        yield index, Iri(stream if ":" in stream else resolve(stream, context.base or ""))


def _closes(clause: ast.WindowClause) -> bool:
    match clause.spec:
        case ast.Range(_, step):
            return step is not None
        case ast.LastTriples(_, step):
            return step > 1
        case ast.Session():
            return True
        case _:
            return False


def reporting(options: QueryOptions) -> Reporting:
    """Returns the report policy of the options beside the windows' own.

    >>> reporting(QueryOptions(period=60_000)).clock.describe()
    '[EVERY PT1M]'
    """
    if options.period is None:
        return Reporting(nonempty=options.nonempty)
    clock = Window(
        WindowKind.CLOCK, step=options.period, t0=options.t0 or 0, t0_given=options.t0 is not None
    )
    return Reporting(clock, options.nonempty)


def window(spec: ast.WindowSpec, options: QueryOptions) -> Window:
    """Returns the window of a clause under the options.

    >>> window(ast.Range(4000, 2000), QueryOptions(bounds="(]")).kind.name
    'CLOSE_CLOSED'
    """
    t0, has_t0 = options.t0 or 0, options.t0 is not None
    match spec:
        case ast.Range(range_, None, to):
            return Window(WindowKind.RANGE, range=range_, t0=t0, t0_given=has_t0, to=to)
        case ast.Range(range_, int(step), to):
            return Window(_sliding(options), range=range_, step=step, t0=t0, t0_given=has_t0, to=to)
        case ast.LastTriples(count, step):
            return Window(WindowKind.COUNT, count=count, step=step, t0=t0, t0_given=has_t0)
        case ast.Session(gap):
            at_the_end = options.report != "change" and options.period is None
            kind = WindowKind.ENDED if at_the_end else WindowKind.SESSION
            return Window(kind, range=gap, t0=t0, t0_given=has_t0)
        case ast.Instant.NOW:
            return Window(WindowKind.NOW, t0=t0, t0_given=has_t0)
        case _:
            return Window(WindowKind.ALL, t0=t0, t0_given=has_t0)


def _sliding(options: QueryOptions) -> WindowKind:
    if options.report == "change":
        return WindowKind.CHANGE
    return WindowKind.CLOSE_OPEN if options.bounds == "[)" else WindowKind.CLOSE_CLOSED


def iri(constant: ast.Constant) -> str:
    """Returns the text of a constant, which is an IRI by the grammar."""
    assert isinstance(constant.term, Iri), "names of windows, streams and graphs are IRIs"
    return constant.term.value
